"""The grids of the context-free window types, and what a set of windows means for slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from workbench.logical import Band, Calendar, ContextFree, Cumulating, MeasureWindow, UserGrid, Window
from workbench.plan.grid import Array, Bounds, Grid
from workbench.plan.slicing import Edges, union
from workbench.plan.user_grids import Asked
from workbench.time import CYCLE, DAY, LIMIT


class Periodic(Grid):
    """Window k is ``[offset + k * slide, offset + k * slide + size)``.

    ::

        slices   |--|--|--|--|--|--|
        k        [--------)                start <= s
        k + 1       [--------)             and s < start + size
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        ends = Edges(window.slide, (window.offset + window.size) % window.slide)
        self.progressions = tuple(dict.fromkeys([Edges(window.slide, window.offset % window.slide), ends]))

    def containing(self, times: Array) -> tuple[Array, Array]:
        size, slide, offset = self._window.size, self._window.slide, self._window.offset
        return (times - offset - size) // slide + 1, (times - offset) // slide

    def bounds(self, numbers: Array) -> Bounds:
        starts = self._window.offset + numbers * self._window.slide
        return Bounds(starts, starts + self._window.size)

    def closed(self, time: int) -> int:
        return (time - self._window.size - self._window.offset) // self._window.slide


class Growing(Grid):
    """Cumulating windows: number ``base * steps + i`` is ``[base * size, base * size + (i + 1) * step)``."""

    def __init__(self, window: Cumulating) -> None:
        self._window = window
        self._steps = window.size // window.step
        self.progressions = (Edges(window.step, window.offset % window.step),)

    def containing(self, times: Array) -> tuple[Array, Array]:
        base, rest = np.divmod(times - self._window.offset, self._window.size)
        first = base * self._steps
        return first + rest // self._window.step, first + self._steps - 1

    def bounds(self, numbers: Array) -> Bounds:
        starts = self._window.offset + numbers // self._steps * self._window.size
        return Bounds(starts, self._window.offset + (numbers + 1) * self._window.step)

    def closed(self, time: int) -> int:
        return (time - self._window.offset) // self._window.step - 1


class Single(Grid):
    """The one window of a band, number 0."""

    def __init__(self, window: Band) -> None:
        self._window = window

    def edges(self, low: int, high: int) -> Array:
        edges = np.array([-LIMIT, self._window.start, self._window.end])
        return edges[
            max(0, int(np.searchsorted(edges, low, "right")) - 1) : int(np.searchsorted(edges, high, "right"))
        ]

    def containing(self, times: Array) -> tuple[Array, Array]:
        ended, begun = times >= self._window.end, times >= self._window.start
        return ended.astype(np.int64), begun.astype(np.int64) - 1

    def bounds(self, numbers: Array) -> Bounds:
        far = np.where(numbers < 0, -LIMIT, LIMIT)
        return Bounds(np.where(numbers == 0, self._window.start, far), np.where(numbers == 0, self._window.end, far))

    def closed(self, time: int) -> int:
        return 0 if time >= self._window.end else -1


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Local(Grid):
    """Calendar windows: number k is the k-th unit after the one that has 1970-01-01 in it."""

    def __init__(self, window: Calendar) -> None:
        self._window = window
        self._start = _starts(window)

    def edges(self, low: int, high: int) -> Array:
        numbers = range(self._number(low), self._number(high) + 1)
        return np.array([self._start(number) for number in numbers], np.int64)

    def containing(self, times: Array) -> tuple[Array, Array]:
        distinct, place = np.unique(times, return_inverse=True)
        numbers = np.array([self._number(int(time)) for time in distinct], np.int64)[place]
        return numbers, numbers

    def bounds(self, numbers: Array) -> Bounds:
        distinct, place = np.unique(numbers, return_inverse=True)
        edges = np.array([(self._start(int(k)), self._start(int(k) + 1)) for k in distinct], np.int64).reshape(-1, 2)
        return Bounds(edges[place, 0], edges[place, 1])

    def closed(self, time: int) -> int:
        return self._number(time) - 1

    def _number(self, time: int) -> int:
        """The window of a time: guessed from the date in UTC, which is a day off at most."""
        cycles, rest = divmod(time, CYCLE)
        day = (_EPOCH + timedelta(microseconds=rest)).date()
        number = _unit_of(day, cycles, self._window.unit) // self._window.count
        while self._start(number) > time:
            number -= 1
        while self._start(number + 1) <= time:
            number += 1
        return number


_MONTHS = {"month": 1, "quarter": 3, "year": 12}
#: Days and months of 400 years, after which the calendar begins again: :data:`workbench.time.CYCLE`.
_CYCLE_DAYS, _CYCLE_MONTHS = CYCLE // DAY, 400 * 12
#: Those of :class:`datetime.datetime`, less one at each end; ``0`` begins in 1970. Beyond them clocks are as within.
_CYCLES = (-4, 19)


def _unit_of(day: date, cycles: int, unit: str) -> int:
    """Which unit after the one with 1970-01-01 a date is in, moved by cycles; weeks begin on Mondays."""
    if unit in _MONTHS:
        return ((day.year - 1970) * 12 + day.month - 1 + cycles * _CYCLE_MONTHS) // _MONTHS[unit]
    days = (day - date(1970, 1, 1)).days + cycles * _CYCLE_DAYS
    return (days + 3) // 7 if unit == "week" else days


def _starts(window: Calendar) -> Callable[[int], int]:
    """The start of a window by number, kept once computed."""
    zone = ZoneInfo(window.zone)

    @lru_cache(maxsize=1 << 16)
    def start(number: int) -> int:
        unit = number * window.count
        if window.unit in _MONTHS:
            cycles, months = divmod(unit * _MONTHS[window.unit], _CYCLE_MONTHS)
            day = date(1970 + months // 12, months % 12 + 1, 1)
        else:
            cycles, days = divmod(unit * 7 - 3 if window.unit == "week" else unit, _CYCLE_DAYS)
            day = date(1970, 1, 1) + timedelta(days=days)
        held = min(max(cycles, _CYCLES[0]), _CYCLES[1])
        first = _first_moment(day.replace(year=day.year + 400 * held), zone)
        return (first - _EPOCH) // timedelta(microseconds=1) + (cycles - held) * CYCLE

    return start


def _first_moment(day: date, zone: ZoneInfo) -> datetime:
    """When a day begins in a zone, in UTC: its first midnight, or the change of the clock where there is none."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    high = midnight.astimezone(UTC)
    low = min(high, midnight.replace(fold=1).astimezone(UTC))
    # Two midnights go the other way. The clock changes at midnight most often, but has done so before it.
    while high - low > timedelta(microseconds=1):
        middle = low + (high - low) // 2
        low, high = (low, middle) if middle.astimezone(zone).date() >= day else (middle, high)
    return high


@lru_cache(maxsize=1 << 10)
def grid_of(window: ContextFree | MeasureWindow) -> Grid:
    """The grid of a context-free window; along a measure its times are units of that."""
    match window:
        case MeasureWindow():
            return Periodic(Window(window.size, window.slide, window.offset))
        case Window():
            return Periodic(window)
        case Cumulating():
            return Growing(window)
        case Band():
            return Single(window)
        case Calendar():
            return Local(window)
        case UserGrid():
            return Asked(window)


def slice_edges(windows: Iterable[ContextFree]) -> tuple[Edges, ...]:
    """The union of the starts and ends of all windows, as far as they are progressions."""
    return union(edges for window in windows for edges in grid_of(window).progressions)


def listed(windows: Iterable[ContextFree]) -> tuple[ContextFree, ...]:
    """The windows whose edges are no progressions, each once."""
    return tuple(dict.fromkeys(window for window in windows if not grid_of(window).progressions))
