"""Many kinds of context-free windows asked at once, so that a hundred of them cost little more than one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.logical import ContextFree, Window
from workbench.plan.grid import Bounds
from workbench.plan.grids import grid_of

Array = npt.NDArray[Any]


class GridSet:
    """The grids of some kinds of windows; a kind is known by its place.

    Periodic ones are asked together, as arrays over kinds; the others one by one.
    """

    def __init__(self, windows: Sequence[ContextFree]) -> None:
        self._grids = [grid_of(window) for window in windows]
        regular = [isinstance(window, Window) for window in windows]
        periodic = [window for window in windows if isinstance(window, Window)]
        self._periodic, self._others = np.flatnonzero(regular), np.flatnonzero(np.logical_not(regular)).tolist()
        self._size, self._slide, self._offset = (
            np.array([getattr(window, side) for window in periodic], np.int64) for side in ("size", "slide", "offset")
        )

    def __len__(self) -> int:
        return len(self._grids)

    def select(self, starts: Array, after: int, until: int | Array) -> tuple[Array, Bounds]:
        """The windows of all kinds that end in ``(after, until]`` and contain at least one of the slices.

        Slices ascend; ``until`` may be a time for each kind. Returns the place of each window's kind, ascending, and
        the windows, those of a kind by end. Cost: proportional to the slices and the answer.
        """
        latest = np.full(len(self), until) if isinstance(until, int) else until
        if not len(starts) or not len(self) or int(latest.max()) <= after:
            return np.zeros(0, np.int64), Bounds(np.zeros(0, np.int64), np.zeros(0, np.int64))
        places, bounds, wide = self._near(starts, after, latest)
        single = [*self._others, *wide]
        if not single:
            return places, bounds
        found = [self._grids[place].select(starts, after, int(latest[place])) for place in single]
        places = np.concatenate([places, np.repeat(single, [len(own) for own in found])])
        order = np.argsort(places, kind="stable")
        begins, ends = (
            np.concatenate([getattr(own, side) for own in (bounds, *found)])[order] for side in ("starts", "ends")
        )
        return places[order], Bounds(begins, ends)

    def _near(self, starts: Array, after: int, latest: Array) -> tuple[Array, Bounds, list[int]]:
        """As :meth:`select` for periodic kinds, each window from the first slice to the last looked at.

        Also the places of kinds that have too many of these, as where slices lie far apart.
        """
        size, slide, offset = self._size, self._slide, self._offset
        low = np.maximum(self._closed(after), self._closed(int(starts[0]))) + 1
        high = np.minimum(self._closed(latest[self._periodic]), (int(starts[-1]) - offset) // slide)
        count = np.maximum(high - low + 1, 0)
        wide = count > 4 * len(starts) + 64
        count[wide] = 0
        kind = np.repeat(np.arange(len(count)), count)
        numbers = np.arange(len(kind)) + np.repeat(low - (np.cumsum(count) - count), count)
        begins = offset[kind] + numbers * slide[kind]
        ends = begins + size[kind]
        used = np.searchsorted(starts, begins) < np.searchsorted(starts, ends)
        if not used.all():
            kind, begins, ends = kind[used], begins[used], ends[used]
        return self._periodic[kind], Bounds(begins, ends), self._periodic[wide].tolist()

    def _closed(self, times: int | Array) -> Array:
        """The largest number of a window of each periodic kind that ends at or before a time."""
        closed: Array = (times - self._size - self._offset) // self._slide
        return closed

    def next_ends(self, time: int) -> Array:
        """For each kind the end of the first window to end after a time."""
        ends = np.empty(len(self), np.int64)
        ends[self._periodic] = self._offset + (self._closed(time) + 1) * self._slide + self._size
        for place in self._others:
            ends[place] = self._grids[place].next_end(time)
        return ends

    def open_from(self, time: int) -> int:
        """The start of the earliest window of all kinds that ends after a time."""
        begins = self._offset + (self._closed(time) + 1) * self._slide
        others = [self._grids[place].open_from(time) for place in self._others]
        return min(others + ([int(begins.min())] if len(begins) else []))

    def missed(self, starts: Array, time: int) -> Array:
        """Which slices are in a window that ended by then, ``[kind, slice]``."""
        missed = np.zeros((len(self), len(starts)), np.bool_)
        size, slide, offset = (column[:, None] for column in (self._size, self._slide, self._offset))
        first = (starts - offset - size) // slide + 1
        within = first * slide + offset <= starts
        missed[self._periodic] = within & (first * slide + offset + size <= time)
        for place in self._others:
            missed[place] = self._grids[place].first_end(starts) <= time
        return missed
