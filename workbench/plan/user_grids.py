"""Context-free windows of a user's, asked edge by edge (*General Stream Slicing* §5.4.2) and remembered.

A batch needs whole arrays of edges and windows. They are asked for once, where rows are: to the right edge by edge,
as far as the windows of the latest time reach, and to the left when an earlier time turns up::

    asked for      (low                      high]
    edges            |    |   |      |   |    |         next_edge(low), next_edge of that, ...
    windows          [--------)                         trigger(edge before, edge): those that end there
                          [----------)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import islice, pairwise
from typing import Any

import numpy as np

from workbench.logical import UserGrid
from workbench.plan.grid import Array, Bounds, Grid
from workbench.time import LIMIT, format_time

#: Times that no row has; the first and the last watermark are beyond them.
_FAR = LIMIT // 2
#: Windows of one type that are remembered, at most, and edges without any between two windows.
_MOST = 4_000_000
#: The first distance at which an edge to the left is looked for, microseconds.
_STEP = 1 << 20


class Asked(Grid):
    """The windows of one call of a window type. Starts and ends ascend; may be used by several threads at once."""

    def __init__(self, window: UserGrid) -> None:
        self._window = window
        self._lock = threading.RLock()
        self._low: int | None = None
        self._high = 0
        self._complete = False
        self._starts: list[int] = []
        self._ends: list[int] = []
        #: The place in the lists of the window with the number 0.
        self._zero = 0

    def edges(self, low: int, high: int) -> Array:
        with self._lock:
            found = [self._edge_until(low)]
            while (edge := self._edge(max(found[-1], low))) is not None and edge <= high:
                found.append(edge)
                if len(found) > _MOST:
                    raise self._window.fault(f"more than {_MOST:,} edges among the rows of one batch", "next_edge")
            return np.array(found, np.int64)

    def containing(self, times: Array) -> tuple[Array, Array]:
        if not len(times):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        with self._lock:
            self._reach(int(times.min()), int(times.max()))
            first = np.searchsorted(self._ends, times, "right") - self._zero
            return first, np.searchsorted(self._starts, times, "right") - 1 - self._zero

    def bounds(self, numbers: Array) -> Bounds:
        with self._lock:
            places = numbers + self._zero
            known = (places >= 0) & (places < len(self._ends))
            far, places = np.where(places < 0, -LIMIT, LIMIT), np.where(known, places, 0)
            starts, ends = (np.array([*side, 0], np.int64)[places] for side in (self._starts, self._ends))
            return Bounds(np.where(known, starts, far), np.where(known, ends, far))

    def closed(self, time: int) -> int:
        if not -_FAR < time < _FAR:
            return -LIMIT if time < 0 else LIMIT
        with self._lock:
            self._reach(time, time)
            return int(np.searchsorted(self._ends, time, "right")) - 1 - self._zero

    def _reach(self, low: int, high: int) -> None:
        """Know all windows that end behind ``low`` and start at or before ``high``, and the one after them."""
        if self._low is None:
            self._low = self._high = low
        if low < self._low:
            earlier = self._triggered(low, self._low)
            self._starts[:0], self._ends[:0] = ([window[side] for window in earlier] for side in (0, 1))
            self._zero += len(earlier)
            self._low = low
            self._check()
        idle = 0
        while not self._complete and not (self._starts and self._starts[-1] > high):
            edge = self._edge(self._high)
            if edge is None:
                self._complete = True
                break
            for start, end in self._triggered(self._high, edge):
                self._starts.append(start)
                self._ends.append(end)
                idle = -1
            self._check(2)
            self._high, idle = edge, idle + 1
            if idle > _MOST or len(self._ends) > _MOST:
                raise self._window.fault(f"no window begins behind {format_time(high)}", "trigger")

    def _check(self, behind: int | None = None) -> None:
        """Starts and ends ascend, all of them or the last ones."""
        starts, ends = ((side if behind is None else side[-behind:]) for side in (self._starts, self._ends))
        for side, what in ((starts, "begin"), (ends, "end")):
            for earlier, later in pairwise(side):
                if earlier >= later:
                    raise self._window.fault(
                        f"windows must {what} one after the other, got {_shown(earlier)} before {_shown(later)}",
                        "trigger",
                    )

    def _edge(self, time: int) -> int | None:
        """The first edge after a time, None if there is none."""
        found = self._window.call("next_edge", time)
        edge = None if found is None else self._window.number(found, "next_edge")
        if edge is None or edge >= _FAR:
            return None
        if edge <= time:
            raise self._window.fault(f"`next_edge({time})` gave `{edge}`, which is no later time", "next_edge")
        return edge

    def _edge_until(self, time: int) -> int:
        """The last edge at or before a time, by bisection: slices begin at the same edges whatever is asked first."""

        def earlier(moment: int) -> bool:
            edge = self._edge(moment)
            return edge is not None and edge <= time

        distance = _STEP
        while not earlier(time - distance):
            distance *= 2
            if time - distance < -_FAR:
                return -LIMIT
        low, high = time - distance, time
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if earlier(middle) else (low, middle)
        return low + 1

    def _triggered(self, after: int, until: int) -> list[tuple[int, int]]:
        """The windows that end in ``(after, until]``, checked."""
        given: Iterable[Any] = self._window.call("trigger", after, until)
        try:
            pairs = [(start, end) for start, end in islice(given, _MOST + 1)]
        except Exception as error:  # the user's own code, a generator most often
            raise self._window.fault(f"`trigger` failed: {type(error).__name__}: {error}", "trigger") from error
        if len(pairs) > _MOST:
            raise self._window.fault(
                f"more than {_MOST:,} windows between {_shown(after)} and {_shown(until)}", "trigger"
            )
        number = self._window.number
        found = [(number(start, "trigger"), number(end, "trigger")) for start, end in pairs]
        for start, end in found:
            if not (start < end and after < end <= until):
                raise self._window.fault(
                    f"`trigger({after}, {until})` gave `({start}, {end})`, which is no window that ends in between",
                    "trigger",
                )
            for side in (start, end):
                if self._edge(side - 1) != side:
                    raise self._window.fault(
                        f"a window has a bound at {_shown(side)}, where `next_edge` tells no edge", "next_edge"
                    )
        return sorted(found, key=lambda window: window[1])


def _shown(time: int) -> str:
    return format_time(time) if abs(time) < _FAR // 32 else str(time)
