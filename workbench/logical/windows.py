"""Window types: what the rows of a query are grouped by, beside its keys. Frozen and hashable.

The type decides edges and triggers, never the operator (*General Stream Slicing* §4.4):

- *context free*: all edges are known beforehand. :class:`Window`, :class:`Cumulating`, :class:`Band`,
  :class:`Calendar`;
- *sessions* merge where a row closes a gap: :class:`Session`;
- *context aware*: edges depend on the rows of the key. :class:`Punctuation` and :class:`CountWindow` are forward
  context free (a row tells what is before it), :class:`LastRows` is forward context aware: where a window begins is
  known only when it ends;
- along another *measure* than time: :class:`~workbench.logical.measures.MeasureWindow`;
- a user's own: :mod:`workbench.logical.user_windows`.

Times are int64 microseconds, all windows half-open ``[start, end)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from workbench.errors import QueryError, did_you_mean
from workbench.logical.expressions import Expression
from workbench.logical.measures import MeasureWindow
from workbench.logical.over import EachRow
from workbench.logical.user_windows import UserContext, UserGrid
from workbench.time import format_duration, format_time


@dataclass(frozen=True)
class Window:
    """A sliding window over event time: ``[start, start + size)`` for every ``start = offset + k * slide``.

    All three in microseconds; ``slide == size`` is a tumbling window. ``size >= slide > 0``; anything else is
    refused, because rows would fall between the windows. Half-open: a row at ``end`` belongs to the next window.
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise QueryError(
                f"the window size must be positive, got `{format_duration(self.size)}`",
                hint="write it as 'size / slide', such as '10 minutes / 1 minute'",
            )
        if self.slide <= 0:
            raise QueryError(
                f"the window slide must be positive, got `{format_duration(self.slide)}`",
                hint="leave the slide out for windows that follow one another without overlap",
            )
        if self.slide > self.size:
            raise QueryError(
                f"the slide `{format_duration(self.slide)}` is longer than the window "
                f"`{format_duration(self.size)}`, so rows between two windows would be lost",
                hint="make the slide at most as long as the window",
            )
        object.__setattr__(self, "offset", self.offset % self.slide)

    @property
    def label(self) -> str:
        """Its name as a zoom level: ``'15 minutes / 1 minute'``, or just the size of a tumbling window."""
        text = format_duration(self.size)
        if self.slide != self.size:
            text += f" / {format_duration(self.slide)}"
        if self.offset:
            text += f" + {format_duration(self.offset)}"
        return text


@dataclass(frozen=True)
class Cumulating:
    """Windows that grow: ``[base, base + i * step)`` for i = 1 ... size / step and ``base = offset + k * size``.

    A whole number of steps makes the size. Rows since midnight, told every hour, are a size of a day and a step of an
    hour.
    """

    size: int
    step: int
    offset: int = 0

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("step", self.step)):
            if value <= 0:
                raise QueryError(
                    f"the {name} of cumulating windows must be positive, got `{format_duration(value)}`",
                    hint="such as `cumulate_window(ts, '1 day', '1 hour')`",
                )
        if self.size % self.step:
            raise QueryError(
                f"the step `{format_duration(self.step)}` does not divide the size `{format_duration(self.size)}`",
                hint="the last step must end where the window starts anew",
            )
        object.__setattr__(self, "offset", self.offset % self.size)

    @property
    def label(self) -> str:
        """Such as ``'up to 1 day by 1 hour'``."""
        text = f"up to {format_duration(self.size)} by {format_duration(self.step)}"
        return text + (f" + {format_duration(self.offset)}" if self.offset else "")


@dataclass(frozen=True)
class Band:
    """One window with fixed bounds."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise QueryError(
                f"the window would end at {format_time(self.end)}, before it starts at {format_time(self.start)}",
                hint="give the start first",
            )

    @property
    def label(self) -> str:
        """Its bounds."""
        return f"{format_time(self.start)} to {format_time(self.end)}"


#: Calendar units, with how many days or months they are about.
CALENDAR_UNITS = ("day", "week", "month", "quarter", "year")
#: More units of whatever length would begin and end where no row can be.
_MOST_UNITS = 100_000


@dataclass(frozen=True)
class Calendar:
    """Windows of ``count`` calendar units in a time zone, one after the other, aligned to 1970 (weeks to Mondays).

    A day is from local midnight to local midnight: 23 or 25 hours where the clock changes. Where there is no midnight
    (the clock changes then), the day begins with its first moment; where there are two, with the first.
    """

    unit: str
    zone: str = "UTC"
    count: int = 1

    def __post_init__(self) -> None:
        if self.unit not in CALENDAR_UNITS:
            raise QueryError(
                f"unknown calendar unit `{self.unit}`",
                hint=did_you_mean(self.unit, CALENDAR_UNITS, "unit") or f"units are {', '.join(CALENDAR_UNITS)}",
            )
        if self.count <= 0:
            raise QueryError(f"the number of {self.unit}s must be positive, got `{self.count}`")
        if self.count > _MOST_UNITS:
            raise QueryError(f"no calendar window has more than {_MOST_UNITS:,} {self.unit}s, got `{self.count}`")
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            raise QueryError(
                f"there is no time zone `{self.zone}`",
                hint=did_you_mean(self.zone, sorted(available_timezones()), "zone") or "such as 'Europe/Berlin'",
            ) from None

    @property
    def label(self) -> str:
        """Such as ``'1 month in Europe/Berlin'``."""
        return f"{self.count} {self.unit}{'' if self.count == 1 else 's'} in {self.zone}"


@dataclass(frozen=True)
class Session:
    """Rows of a key that follow each other within a gap: ``[first row, last row + gap)``.

    ``gap`` in microseconds, or an expression that gives each row's own as the text of a duration; then a session ends
    at the largest ``time + gap`` of its rows. Rows whose gap is NULL or not positive are in no session.

    Is a row at exactly the end still in the session? To Spark it is (``joins``), though the end is told as exclusive;
    half-open as all other windows are, it begins the next one.
    """

    gap: int | Expression
    joins: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.gap, int) and self.gap <= 0:
            raise QueryError(
                f"the gap of a session must be positive, got `{format_duration(self.gap)}`",
                hint="such as `session_window(ts, '30 minutes')`",
            )

    @property
    def label(self) -> str:
        """Such as ``'session of 30 minutes'``, or ``'gap of 30 minutes'`` where a row at the end does not join."""
        gap = format_duration(self.gap) if isinstance(self.gap, int) else self.gap
        return f"{'session' if self.joins else 'gap'} of {gap}"

    @property
    def reprieve(self) -> int:
        """How far the watermark, less the allowed lateness, gets behind a row before that is late, microseconds.

        Until a session of this row alone would be settled. So the session of a row that is in time begins behind all
        rows of those that are settled. That is not so of rows with long gaps of their own: such a row is in time as
        long as the watermark is not behind it.
        """
        return self.gap + self.joins if isinstance(self.gap, int) else 1


@dataclass(frozen=True)
class CountWindow:
    """``size`` rows of a key in order of time, anew every ``slide`` rows, from the key's first row on.

    Rows of equal time are ordered by the values that the query reads, so that no order of arrival shows in a result.
    A window is final when it is full and the watermark has passed its rows; one that never fills up stays
    provisional.
    """

    size: int
    slide: int

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("slide", self.slide)):
            if value <= 0:
                raise QueryError(
                    f"the {name} of a count window must be positive, got `{value}`",
                    hint="such as `count_window(100, 10)`: 100 rows, anew every 10",
                )
        if self.slide > self.size:
            raise QueryError(
                f"the slide of `{self.slide}` rows is longer than the window of `{self.size}`, so rows between two "
                "windows would be lost",
                hint="make the slide at most as long as the window",
            )

    @property
    def label(self) -> str:
        """Such as ``'100 rows / 10'``."""
        return f"{self.size} rows" + (f" / {self.slide}" if self.slide != self.size else "")


@dataclass(frozen=True)
class Punctuation:
    """Windows between marks: a row of the key for which the condition is true begins one, which ends at the next.

    Rows before the first mark form a window that begins with the key's first row. All rows with the time of a mark
    are in the window that it begins.
    """

    condition: Expression

    @property
    def label(self) -> str:
        """Such as ``'from each (event = 'start')'``."""
        return f"from each {self.condition}"


@dataclass(frozen=True)
class LastRows:
    """The last ``rows`` rows of a key before every ``offset + k * every``: the end by time, the start by count.

    There is a window at an edge only if a row of the key came since the edge before.
    """

    rows: int
    every: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.rows <= 0:
            raise QueryError(
                f"the number of rows must be positive, got `{self.rows}`", hint="such as `last(100, '1 minute')`"
            )
        if self.every <= 0:
            raise QueryError(
                f"the time between two windows must be positive, got `{format_duration(self.every)}`",
                hint="such as `last(100, '1 minute')`",
            )
        object.__setattr__(self, "offset", self.offset % self.every)

    @property
    def label(self) -> str:
        """Such as ``'last 100 rows / 1 minute'``."""
        text = f"last {self.rows} rows / {format_duration(self.every)}"
        return text + (f" + {format_duration(self.offset)}" if self.offset else "")


#: Windows whose edges are known beforehand.
ContextFree: TypeAlias = Window | Cumulating | Band | Calendar | UserGrid
#: Windows that depend on the rows of the key before and after, so that rows are kept until no earlier one can come.
ContextAware: TypeAlias = CountWindow | Punctuation | LastRows | MeasureWindow | UserContext
AnyWindow: TypeAlias = ContextFree | Session | ContextAware | EachRow


#: A row in more windows than these would take all memory.
_MOST = 1 << 24


def require_few(window: AnyWindow) -> None:
    """Raise QueryError for windows of which so many overlap that no machine can hold those of one row."""
    match window:
        case Window(size, step) | MeasureWindow(_, size, step) | Cumulating(size, step) if size // step > _MOST:
            raise QueryError(
                f"each row would be in {size // step:,} windows, more than {_MOST:,}",
                hint="take a longer slide, or a shorter window",
            )


def window_reads(window: AnyWindow) -> list[Expression]:
    """What a window type reads of each row."""
    if isinstance(window, UserContext):
        return list(window.arguments)
    return [part for part in vars(window).values() if isinstance(part, Expression)]
