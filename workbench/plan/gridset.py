"""Many kinds of context-free windows asked at once, so that a hundred of them cost little more than one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.lookup import first_at
from workbench.logical import ContextFree, Window
from workbench.plan.grid import Bounds
from workbench.plan.grids import grid_of
from workbench.time import LIMIT

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Span:
    """Windows that end in ``(after, until]``, where ``until`` may be a time for each kind.

    They have at least one of the ``slices``, whose starts ascend.
    """

    slices: Array
    after: int
    until: int | Array

    def until_of(self, kind: int) -> int:
        """The end of the span for the kind at a place."""
        return self.until if isinstance(self.until, int) else int(self.until[kind])

    def __bool__(self) -> bool:
        """Whether there may be any: a window ends after each slice that it has."""
        until = self.until if isinstance(self.until, int) else int(self.until.max())
        return bool(len(self.slices)) and until > max(self.after, int(self.slices[0]))


@dataclass(frozen=True)
class Chosen:
    """Windows by kind and end: the place of each one's kind, and the slices ``[first, last)`` that it has."""

    kinds: Array
    bounds: Bounds
    first: Array
    last: Array

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, which: Array) -> Chosen:
        return Chosen(self.kinds[which], self.bounds[which], self.first[which], self.last[which])


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
        # What was asked last: a micro-batch begins where the one before has ended.
        self._opened: tuple[int | None, int] = None, 0

    def __len__(self) -> int:
        return len(self._grids)

    def select(self, starts: Array, spans: Sequence[Span]) -> Chosen:
        """The windows of all kinds in some spans, one behind the other, over slices whose ``starts`` ascend.

        The slices of a span are some of these, or all: then it has the same array. Cost: proportional to the slices
        and the answer.
        """
        spans = [span for span in spans if span] if len(self) else []
        near = [self._near(span) for span in spans]
        low, count = (
            np.stack([part[side] for part in near], axis=1) if near else np.zeros((len(self._size), 0), np.int64)
            for side in (0, 1)
        )
        kind, each = np.repeat(np.arange(len(count)), count.sum(axis=1)), count.ravel()
        numbers = np.arange(len(kind)) + np.repeat(low.ravel() - (np.cumsum(each) - each), each)
        begins = self._offset[kind] + numbers * self._slide[kind]
        found = self._over(starts, self._periodic[kind], begins, begins + self._size[kind])
        used = found.first < found.last
        ends = found.bounds.ends
        for place, span in enumerate(spans):
            if span.slices is not starts:
                later = spans[place + 1].after if place + 1 < len(spans) else LIMIT
                mine = np.flatnonzero((ends > span.after) & (ends <= later))
                own = self._over(span.slices, mine, found.bounds.starts[mine], ends[mine])
                used[mine] = own.first < own.last
        found = found if used.all() else found[used]
        alone = [[*self._others, *wide] for _, _, wide in near]
        single = [(span, place) for span, places in zip(spans, alone, strict=True) for place in places]
        return self._with_single(starts, found, single) if single else found

    def _near(self, span: Span) -> tuple[Array, Array, list[int]]:
        """The first number and the number of windows of periodic kinds from the first slice of a span to the last.

        Also the places of kinds that have too many of these, as where slices lie far apart; they get none.
        """
        slices, until = span.slices, span.until if isinstance(span.until, int) else span.until[self._periodic]
        low, high = self._closed(max(span.after, int(slices[0]))) + 1, self._closed(until)
        latest = int(slices[-1])
        if (until - self._size > latest).any():
            high = np.minimum(high, (latest - self._offset) // self._slide)
        count = np.maximum(high - low + 1, 0)
        wide = count > 4 * len(slices) + 64
        count[wide] = 0
        return low, count, self._periodic[wide].tolist()

    def _with_single(self, starts: Array, found: Chosen, single: Sequence[tuple[Span, int]]) -> Chosen:
        """With the windows of some kinds that are asked by themselves, in their order."""
        parts = [self._grids[place].select(span.slices, span.after, span.until_of(place)) for span, place in single]
        kinds = np.repeat([place for _, place in single], [len(part) for part in parts])
        kinds = np.concatenate([found.kinds, kinds])
        begins, ends = (
            np.concatenate([getattr(part, side) for part in (found.bounds, *parts)]) for side in ("starts", "ends")
        )
        order = np.lexsort((ends, kinds))
        return self._over(starts, kinds[order], begins[order], ends[order])

    def _over(self, starts: Array, kinds: Array, begins: Array, ends: Array) -> Chosen:
        first, last = first_at(starts, np.concatenate([begins, ends])).reshape(2, -1)
        return Chosen(kinds, Bounds(begins, ends), first, last)

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
        if self._opened[0] != time:
            self._opened = time, self._open_from(time)
        return self._opened[1]

    def _open_from(self, time: int) -> int:
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

    def missed_since(self, kind: int, starts: Array, since: int, time: int) -> Array:
        """Which slices are in a window of one kind that started at ``since`` or later and ended by a time.

        Of the windows that a slice is in, the first one that started then is searched for, by halves.
        """
        grid = self._grids[kind]
        low, last = grid.containing(starts)
        high = last + 1
        while (low < high).any():
            middle = (low + high) // 2
            early = (grid.bounds(middle).starts < since) & (low < high)
            low, high = np.where(early, middle + 1, low), np.where(early | (low >= high), high, middle)
        found: Array = (low <= last) & (grid.bounds(low).ends <= time)
        return found
