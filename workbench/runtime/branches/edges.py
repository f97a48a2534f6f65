"""The windows that are aware of their context, over the leaves of all keys at once.

The paper's interface for them (*General Stream Slicing* §5.4.2) is one call for a row, which may add and remove
edges. Here one call takes all rows: :meth:`Edges.windows` finds the windows by the leaves as they are now, and
:meth:`Edges.settle` which leaves may become one slice, because no row can come between them any more, and which are
of no more use. Nothing is remembered between two calls but where the leaves begin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.kernels.gaps import latest
from workbench.kernels.slicing import slice_starts
from workbench.logical import ContextFree, CountWindow, LastRows, Punctuation, Session
from workbench.plan import grid_of
from workbench.runtime.branches.base import Clock, table_of
from workbench.runtime.branches.leaves import Leaves
from workbench.runtime.notifying import NEVER as NEVER
from workbench.time import LIMIT

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Found:
    """Windows, by key and in order of time: the leaves ``[first, last)`` of each, its bounds and its number.

    A window is final once the watermark is at or behind ``closes``. ``fresh``: rows of this micro-batch have changed
    it.
    """

    keys: Array
    numbers: Array
    starts: Array
    ends: Array
    first: Array
    last: Array
    closes: Array
    fresh: Array

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, which: Array) -> Found:
        return Found(*(column[which] for column in vars(self).values()))


class Edges(ABC):
    """The edges of one window type; ``base`` is how many rows of each key have been there before its first leaf."""

    def __init__(self) -> None:
        self.base = np.zeros(0, np.int64)

    def widen(self, keys: int) -> None:
        """Make room for keys."""
        self.base = np.concatenate([self.base, np.zeros(max(0, keys - len(self.base)), np.int64)])

    @abstractmethod
    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        """The windows that are not settled, of those still to be filled only the next."""

    def remembered(self) -> pa.RecordBatch:
        """What must be there after a restart; inverse of :meth:`recall`."""
        return table_of([self.base])

    def recall(self, table: pa.RecordBatch) -> None:
        """Go on from what was remembered."""
        self.base = table.column(0).to_numpy().copy()

    def whole(self, found: Found, leaves: Leaves) -> Array:
        """Which windows cannot reach back to rows before the first of these leaves."""
        return np.ones(len(found), np.bool_)

    @abstractmethod
    def settle(self, leaves: Leaves, horizon: int) -> Array:
        """For each leaf with rows before the horizon only, the slice that it is now a part of, ascending; -1: none.

        No row before the horizon can come any more. Leaves with later rows are left alone.
        """

    def settled(self, keys: Array, numbers: Array, closes: Array, horizon: int) -> Array:
        """Which windows that were found will not be found again, after :meth:`settle`."""
        return closes <= horizon


class CountEdges(Edges):
    """Every ``slide`` rows a window of ``size`` rows.

    ::

        rank      0   1   2   3   4   5   6   7   8
        rows      a   a   a   a   a   a   a   a   a
        windows   [--------------)                          size 4, slide 3: number 0
                              [--------------)              number 1
        slices    [----------)[--)[------)[--)              cut at every start and end
    """

    def __init__(self, window: CountWindow) -> None:
        super().__init__()
        self._window = window

    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        size, slide = self._window.size, self._window.slide
        run, place = np.unique(leaves.keys, return_index=True)
        base = self.base[run]
        # Rows of all keys one after the other: the rank of a row of a key is a shift away from its place there.
        before = np.cumsum(leaves.counts) - leaves.counts
        rows = int(leaves.counts.sum())
        total = base + np.diff(np.append(before[place], rows))
        first = -(-base // slide)
        full = (total - size) // slide
        # Of the windows that are not full, the one that will be first.
        top = np.maximum(full, first - 1) + 1
        top -= top * slide >= total
        count = np.maximum(top - first + 1, 0)
        key = np.repeat(np.arange(len(run)), count)
        number = np.arange(len(key)) - np.repeat(np.cumsum(count) - count, count) + first[key]
        begin, end = number * slide, np.minimum(number * slide + size, total[key])
        shift = before[place][key] - base[key]
        low, high = (np.searchsorted(before, shift + rank) for rank in (begin, end))
        ends = leaves.lasts[high - 1] + 1
        closes = np.where(begin + size <= total[key], ends, NEVER)
        fresh = np.append(0, np.cumsum(leaves.fresh))
        changed = fresh[high] > fresh[place[key]]  # a row moves all behind it
        return Found(run[key], number, leaves.firsts[low], ends, low, high, closes, changed)

    def settle(self, leaves: Leaves, horizon: int) -> Array:
        size, slide = self._window.size, self._window.slide
        first, _ = leaves.runs()
        before = np.cumsum(leaves.counts) - leaves.counts
        rank = self.base[leaves.keys] + before - before[first]
        settled = leaves.lasts < horizon
        known = self.base.copy()
        np.add.at(known, leaves.keys[settled], leaves.counts[settled])
        still = np.maximum((known - size) // slide + 1, 0) * slide  # the start of the first window that may change
        self.base = np.maximum(self.base, np.minimum(still, known))
        part = slice_starts(rank, [(slide, 0), (slide, size % slide)])
        useful = settled & (rank >= still[leaves.keys])
        new = np.append(True, (np.diff(leaves.keys) != 0) | (np.diff(part) != 0))[: len(leaves)]
        return np.where(useful, np.cumsum(new), -1)


class LastEdges(Edges):
    """Every ``every``, the last ``rows`` rows before: a slice for each row, as a window may begin at any."""

    def __init__(self, window: LastRows) -> None:
        super().__init__()
        self._window = window

    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        every, offset = self._window.every, self._window.offset
        edge = (leaves.lasts - offset) // every * every + every + offset
        final = np.append((np.diff(leaves.keys) != 0) | (np.diff(edge) != 0), True)[: len(leaves)]
        last = np.flatnonzero(final & (edge > clock.settled_before)) + 1
        first = np.maximum(leaves.runs()[0][last - 1], last - self._window.rows)
        edge = edge[last - 1]
        fresh = np.append(0, np.cumsum(leaves.fresh))
        changed = fresh[last] > fresh[first]
        return Found(leaves.keys[last - 1], edge, leaves.firsts[first], edge, first, last, edge, changed)

    def settle(self, leaves: Leaves, horizon: int) -> Array:
        settled = leaves.lasts < horizon
        known = np.append(0, np.cumsum(settled))
        _, end = leaves.runs()
        behind = known[end] - known[np.arange(len(leaves)) + 1]  # settled rows of the key that are later
        return np.where(settled & (behind < self._window.rows), np.arange(len(leaves)), -1)

    def whole(self, found: Found, leaves: Leaves) -> Array:
        return found.last - found.first == self._window.rows


class MarkEdges(Edges):
    """From each mark to the next. All rows with the time of a mark are behind it."""

    def __init__(self, window: Punctuation) -> None:
        super().__init__()

    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        first = np.flatnonzero(self._begins(leaves))
        last = np.append(first[1:], len(leaves))[: len(first)]
        same = np.append(leaves.keys[first[1:]] == leaves.keys[first[:-1]], False)[: len(first)]
        ends = np.where(same, leaves.firsts[np.minimum(last, len(leaves) - 1)], leaves.lasts[last - 1] + 1)
        closes = np.where(same, ends, LIMIT if clock.finish else NEVER)
        fresh = np.append(0, np.cumsum(leaves.fresh))
        starts = leaves.firsts[first]
        return Found(leaves.keys[first], starts, starts, ends, first, last, closes, fresh[last] > fresh[first])

    @staticmethod
    def _begins(leaves: Leaves) -> Array:
        """The leaves that begin a window: the first one of a key, and of the rows with the time of a mark."""
        key = np.append(True, np.diff(leaves.keys) != 0)[: len(leaves)]
        return key | MarkEdges._marked(leaves)

    @staticmethod
    def _marked(leaves: Leaves) -> Array:
        """The first leaf of a key and time at which there is a mark."""
        new = (np.diff(leaves.keys) != 0) | (np.diff(leaves.firsts) != 0)
        moments = np.flatnonzero(np.append(True, new)[: len(leaves)])
        marked = np.zeros(len(leaves), np.bool_)
        if len(moments):
            marked[moments] = np.logical_or.reduceat(leaves.marks, moments)
        return marked

    def whole(self, found: Found, leaves: Leaves) -> Array:
        return self._marked(leaves)[found.first]

    def settle(self, leaves: Leaves, horizon: int) -> Array:
        window = np.cumsum(self._begins(leaves))
        first = np.flatnonzero(self._begins(leaves))
        same = np.append(leaves.keys[first[1:]] == leaves.keys[first[:-1]], False)[: len(first)]
        closes = np.where(same, leaves.firsts[np.append(first[1:], 0)[: len(first)]], NEVER)
        return np.where((leaves.lasts < horizon) & (closes[window - 1] > horizon), window, -1)


class GridEdges(Edges):
    """Context-free windows whose rows are kept for the order of an aggregate that does not commute."""

    def __init__(self, window: ContextFree) -> None:
        super().__init__()
        self._grid = grid_of(window)

    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        low = self._grid.closed(clock.settled_before) + 1
        high = max(self._grid.closed(clock.after), self._grid.closed(clock.newest) + 1)
        first, last = self._grid.containing(leaves.lasts)
        # Leaves of one key and slice name the same windows; neighbours share most of theirs.
        pairs = np.unique(np.stack([leaves.keys, np.maximum(first, low), np.minimum(last, high)]), axis=1)
        count = np.maximum(pairs[2] - pairs[1] + 1, 0)
        numbers = np.repeat(pairs[1] - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        keys, numbers = np.unique(np.stack([np.repeat(pairs[0], count), numbers]), axis=1)
        bounds = self._grid.bounds(numbers)
        begin, end = leaves.find(keys, bounds.starts), leaves.find(keys, bounds.ends)
        fresh = np.append(0, np.cumsum(leaves.fresh))
        ends = bounds.ends
        return Found(keys, ends, bounds.starts, ends, begin, end, ends, fresh[end] > fresh[begin])

    def settle(self, leaves: Leaves, horizon: int) -> Array:
        first, last = self._grid.containing(leaves.lasts)
        new = (np.diff(leaves.keys) != 0) | (np.diff(first) != 0) | (np.diff(last) != 0)
        useful = (leaves.lasts < horizon) & (first <= last) & (self._grid.bounds(last).ends > horizon)
        return np.where(useful, np.cumsum(np.append(True, new)[: len(leaves)]), -1)


class SessionEdges(Edges):
    """Sessions whose rows are kept for the order of an aggregate that does not commute."""

    def __init__(self, window: Session) -> None:
        super().__init__()
        self._joins = int(window.joins)

    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        first = np.flatnonzero(self._begins(leaves))
        last = np.append(first[1:], len(leaves))[: len(first)]
        ends = np.maximum.reduceat(leaves.until, first) if len(first) else leaves.until
        fresh = np.append(0, np.cumsum(leaves.fresh))
        starts = leaves.firsts[first]
        changed = fresh[last] > fresh[first]
        return Found(leaves.keys[first], starts, starts, ends - self._joins, first, last, ends, changed)

    @staticmethod
    def _begins(leaves: Leaves) -> Array:
        new = np.ones(len(leaves), np.bool_)
        ends = latest(leaves.keys, leaves.until)
        new[1:] = (np.diff(leaves.keys) != 0) | (leaves.firsts[1:] >= ends[:-1])
        return new

    def settle(self, leaves: Leaves, horizon: int) -> Array:
        begins = self._begins(leaves)
        session = np.cumsum(begins)
        ends = np.maximum.reduceat(leaves.until, np.flatnonzero(begins)) if len(leaves) else leaves.until
        return np.where((leaves.lasts < horizon) & (ends[session - 1] > horizon), session, -1)
