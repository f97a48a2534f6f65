"""The edges of windows that a user's class tells of, row by row, over the leaves of all keys.

Rows may come out of order, so the class goes through the kept rows anew in every micro-batch, from what was known
when the rows before them were settled. It always sees them in order of time::

    settled rows: what the class has kept of them   |   kept rows, gone through anew
    fields, windows that are still open             |   .  .   . ..   .
                                            horizon ^
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from workbench.logical import UserContext
from workbench.runtime.branches.base import Array, Clock, table_of
from workbench.runtime.branches.edges import NEVER, Edges, Found
from workbench.runtime.branches.leaves import Leaves
from workbench.runtime.notifying import Memory, earliest, follows, fresh, notify, spans
from workbench.time import LIMIT

_LISTS = pa.list_(pa.int64())


class ToldEdges(Edges):
    """``_known`` is what is known of each key as the settled rows have left it, ``_now`` as all rows have.

    ``_ended`` are the keys and numbers of the windows that settled rows have ended.
    """

    def __init__(self, window: UserContext) -> None:
        super().__init__()
        self._window = window
        self._follow = follows(window)
        self._known: dict[int, Memory] = {}
        self._next: dict[int, Memory] = {}
        self._now: dict[int, Memory] = {}
        self._ended: set[tuple[int, int]] = set()

    def notify(self, settled: Leaves, rows: Leaves, columns: Sequence[pa.Array], clock: Clock) -> None:
        """Go through the kept rows, which are by key and time, with their values."""
        self._next, self._now = dict(self._known), dict(self._known)
        values = [column.to_pylist() for column in columns]
        times = rows.firsts.tolist()
        bounds = [*np.flatnonzero(np.append(True, np.diff(rows.keys) != 0)[: len(rows)]).tolist(), len(rows)]
        for low, high in pairwise(bounds):
            key = int(rows.keys[low])
            memory = self._known[key].copy() if key in self._known else fresh(self._window)
            if not self._follow:
                memory.rows = settled.firsts[slice(*np.searchsorted(settled.keys, [key, key + 1]))].tolist()
            middle = int(np.searchsorted(rows.firsts[low:high], clock.settled_after))
            own = list(zip(times[low:high], *(column[low:high] for column in values), strict=True))
            notify(self._window, memory, own[:middle])
            if middle:
                self._next[key] = memory.copy()
            notify(self._window, memory, own[middle:])
            self._now[key] = memory

    def _spans(self, known: dict[int, Memory]) -> tuple[Array, Array, Array, Array]:
        """Keys, starts and ends of all windows, by key and in order, and when they are final."""
        found = [(key, *span) for key in sorted(known) for span in spans(self._window, known[key])]
        keys, starts, ends, closes = np.array(found, np.int64).reshape(-1, 4).T
        return keys, starts, ends, closes

    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        keys, starts, ends, closes = self._spans(self._now)
        begin, end = leaves.find(keys, starts), leaves.find(keys, ends)
        there = end > begin
        lasts = np.append(leaves.lasts, 0)[np.where(there, end - 1, -1)]
        ends = np.where(ends < NEVER, ends, lasts + 1)
        closes = np.minimum(closes, LIMIT) if clock.finish else closes
        new = np.append(0, np.cumsum(leaves.fresh))
        found = Found(keys, starts if self._follow else ends, starts, ends, begin, end, closes, new[end] > new[begin])
        return found[there]

    def settle(self, leaves: Leaves, horizon: int) -> Array:
        self._known, self._next, self._now = self._next, {}, {}
        group = self._in_windows(leaves, horizon) if self._follow else self._needed(leaves, horizon)
        self._ended = set()
        for key, memory in self._known.items():
            self._ended |= {
                (key, window[0 if self._follow else 1]) for window in memory.windows if window[1] <= horizon
            }
            still = [window for window in memory.windows if window[1] > horizon]
            # Of those that follow one another the last is known on, as the next must not begin within it.
            memory.windows = still or (memory.windows[-1:] if self._follow else [])
        return np.where(leaves.lasts < horizon, group, -1)

    def settled(self, keys: Array, numbers: Array, closes: Array, horizon: int) -> Array:
        # One that a kept row has ended, there or in hindsight, is found again: a row may come that ends it sooner.
        pairs = zip(keys.tolist(), numbers.tolist(), strict=True)
        return np.array([pair in self._ended for pair in pairs], np.bool_)

    def _in_windows(self, leaves: Leaves, horizon: int) -> Array:
        """The window of each leaf, which follow one another, so that its rows become one slice."""
        keys, starts, ends, _ = self._spans(self._known)
        if not len(keys):
            return np.full(len(leaves), -1)
        moments = np.unique(starts)
        width = len(moments) + 1
        rank = leaves.keys * width + np.searchsorted(moments, leaves.firsts, "right")
        place = np.searchsorted(keys * width + np.searchsorted(moments, starts, "right"), rank, "right") - 1
        inside = (place >= 0) & (keys[place] == leaves.keys) & (leaves.lasts < ends[place]) & (ends[place] > horizon)
        return np.where(inside, place, -1)

    def _needed(self, leaves: Leaves, horizon: int) -> Array:
        """A slice for each row that a window needs, or one that is still to come."""
        least = np.full(int(leaves.keys.max(initial=-1)) + 1, LIMIT)
        first, end = np.searchsorted(leaves.keys, [np.arange(len(least)), np.arange(1, len(least) + 1)])
        for key, memory in self._known.items():
            if key < len(least):
                own = leaves.firsts[first[key] : end[key]]
                memory.rows = own[own < horizon].tolist()
                unsettled = [start for start, until, _ in memory.windows if until > horizon]
                least[key] = min([earliest(self._window, memory), *unsettled])
        return np.where(leaves.lasts >= least[leaves.keys], np.arange(len(leaves)), -1)

    def remembered(self) -> pa.RecordBatch:
        keys, known = sorted(self._known), [self._known[key] for key in sorted(self._known)]
        fields = [
            pa.array([memory.values[name] for memory in known], kind)
            for name, kind, _ in self._window.definition.fields
        ]
        lists = [pa.array([[each[side] for each in memory.windows] for memory in known], _LISTS) for side in (0, 1)]
        before = pa.array([memory.before for memory in known], pa.int64())
        return table_of([pa.array(keys, pa.int64()), before, *lists, *fields])

    def recall(self, table: pa.RecordBatch) -> None:
        keys, before, starts, ends, *fields = (column.to_pylist() for column in table.columns)
        names = [name for name, _, _ in self._window.definition.fields]
        self._known = {}
        for place, key in enumerate(keys):
            values = {name: column[place] for name, column in zip(names, fields, strict=True)}
            # A row that has told of an end is settled, so the watermark has passed it.
            windows = [[start, end, end] for start, end in zip(starts[place], ends[place], strict=True)]
            self._known[key] = Memory(values, windows, before[place])
