"""OVER: windows that slide by one row. Every row has a result of its own, from the rows of its key before it.

A frame begins a number of rows or a time before the current row, and ends with it or some rows or time before it, or
behind it: then the row's result waits for what comes. As in SQL, a frame by time that ends with the current row holds
all rows of the current row's own time (its peers), a frame by rows does not. Rows of equal time are ordered by the
values that the query itself reads of them, in the order of their names, so that no order of arrival shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from workbench.errors import QueryError
from workbench.logical.expressions import AggregateCall, Expression, walk
from workbench.time import SECOND


@dataclass(frozen=True)
class RowsFrame:
    """From ``preceding`` rows of the key before the current row, or the first one (None), to ``until`` before it.

    0 is the current row itself, negative numbers are rows behind it. Empty where the key has no such row.
    """

    preceding: int | None
    until: int = 0

    def __post_init__(self) -> None:
        _check_order(self, str)

    @property
    def single(self) -> bool:
        """Whether it never holds more than one row."""
        return self.preceding == self.until

    @property
    def lasting(self) -> bool:
        """Whether it may hold a row of however long ago."""
        return self.preceding is None or self.preceding > 0

    def __str__(self) -> str:
        return f"ROWS {_between(self, str)}"


@dataclass(frozen=True)
class RangeFrame:
    """The rows of the key between ``preceding`` (None: any time) and ``until`` microseconds before the row's time.

    Both ends are inclusive: ``[time - preceding, time - until]``. Negative numbers are times behind it.
    """

    preceding: int | None
    until: int = 0

    def __post_init__(self) -> None:
        _check_order(self, _seconds)

    @property
    def single(self) -> bool:
        """Never: there may be any number of rows at one time."""
        return False

    @property
    def lasting(self) -> bool:
        """Whether it may hold a row of however long ago."""
        return self.preceding is None

    def __str__(self) -> str:
        return f"RANGE {_between(self, _seconds)}"


Frame: TypeAlias = RowsFrame | RangeFrame


def _check_order(frame: Frame, text: Callable[[int], str]) -> None:
    if frame.preceding is not None and frame.preceding < frame.until:
        start, end = (_bound(distance, text) for distance in (frame.preceding, frame.until))
        raise QueryError(
            f"the frame ends before it begins: `{end}` is before `{start}`",
            hint="the earlier bound comes first, as in `BETWEEN 5 PRECEDING AND 1 PRECEDING`",
        )


def _between(frame: Frame, text: Callable[[int], str]) -> str:
    start = "UNBOUNDED PRECEDING" if frame.preceding is None else _bound(frame.preceding, text)
    return f"BETWEEN {start} AND {_bound(frame.until, text) if frame.until else 'CURRENT ROW'}"


def _bound(distance: int, text: Callable[[int], str]) -> str:
    return f"{text(abs(distance))} {'PRECEDING' if distance >= 0 else 'FOLLOWING'}"


def _seconds(time: int) -> str:
    whole, part = divmod(time, SECOND)
    return f"INTERVAL '{whole}{f'.{part:06}'.rstrip('0') if part else ''}' SECOND"


@dataclass(frozen=True)
class OverCall(Expression):
    """An aggregate over the frame of a row. Partition and order are the query's: its keys, and its stream's time."""

    call: AggregateCall
    frame: Frame

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.call,)

    def __str__(self) -> str:
        if self.call.function == "first_value" and self.frame.single and self.frame.until:
            rows = abs(self.frame.until)
            name = "lag" if self.frame.until > 0 else "lead"
            return f"{name}({self.call.arguments[0]}{f', {rows}' if rows > 1 else ''})"
        return f"{self.call} OVER ({self.frame})"


@dataclass(frozen=True)
class EachRow:
    """The windows of an OVER query: one for each row, whose bounds are both the row's time."""

    @property
    def label(self) -> str:
        """Always the same: a query has one level of it."""
        return "each row"


def ahead_of(frames: Iterable[Frame]) -> tuple[int, int]:
    """How many rows, and microseconds, behind a row frames reach at most."""
    reaching = [frame for frame in frames if frame.until < 0]
    by_time = [-frame.until for frame in reaching if isinstance(frame, RangeFrame)]
    return max((-f.until for f in reaching if isinstance(f, RowsFrame)), default=0), max(by_time, default=0)


def over_calls(expression: Expression) -> list[OverCall]:
    """The aggregates over frames in an expression, left to right."""
    return [node for node in walk(expression) if isinstance(node, OverCall)]


def beside_frames(expression: Expression) -> list[Expression]:
    """The leaves of an expression that are read of the row itself, outside all frames."""
    if isinstance(expression, OverCall):
        return []
    if not expression.children:
        return [expression]
    return [leaf for child in expression.children for leaf in beside_frames(child)]
