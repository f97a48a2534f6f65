"""Windows along a measure, such as kilometres, over the leaves of all keys.

In order of time the measure of a key never goes back, so leaves in order of time are in order of the measure as well,
and windows are found as on any grid, with units of the measure for time::

    time      1   2   4   5   9           a window is final once the watermark has passed the first row
    km        3   7   7  12  31           that has reached its end: [0, 10) with the row at time 5
    windows   [--------)[---)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.kernels.gaps import latest
from workbench.logical import Backwards, MeasureWindow
from workbench.plan import grid_of
from workbench.runtime.branches.base import Array, Clock
from workbench.runtime.branches.edges import NEVER, Edges, Found
from workbench.runtime.branches.leaves import Leaves
from workbench.time import LIMIT

#: How far a key without rows has come: before all values.
NOWHERE = -(2**63)


@dataclass(frozen=True)
class Back:
    """Rows whose measure goes back: how many, and of the first its key, time, measure and what was before it."""

    rows: int
    key: int
    time: int
    value: Any
    before: Any


class MeasureEdges(Edges):
    """``until`` of a leaf is the last unit of the measure that its rows have reached.

    ``base`` is how far the settled rows of each key have come, as :meth:`~workbench.results.Unit.places` tells it.
    """

    def __init__(self, window: MeasureWindow) -> None:
        super().__init__()
        self._window = window
        self._grid = grid_of(window)

    def widen(self, keys: int) -> None:
        self.base = np.concatenate([self.base, np.full(max(0, keys - len(self.base)), NOWHERE)])

    def forward(self, rows: Leaves, measure: pa.Array, clock: Clock) -> tuple[Leaves, Back | None]:
        """The rows with a measure that does not go back, by key, time and measure.

        Also what there is to tell of those that do: of all where that is an error, else of those that this
        micro-batch settles, so of each once. Whichever of them are left out, the others stay the same: what they are
        compared with has come farther than all of them.
        """
        unit = self._window.unit
        reached, valid = unit.reached(measure)
        far, order = unit.places(measure), np.flatnonzero(valid)
        order = order[np.lexsort((far[order], rows.firsts[order], rows.keys[order]))]
        rows, far = replace(rows, until=reached)[order], far[order]
        before = self._before(rows, far)
        back, settled = far < before, rows.firsts < clock.settled_after
        np.maximum.at(self.base, rows.keys[settled], far[settled])
        error = self._window.backwards is Backwards.ERROR
        told = np.flatnonzero(back if error else back & settled)
        if not len(told):
            return rows[~back], None
        first = told[0]
        value, earlier = measure[int(order[first])].as_py(), unit.value_at(int(before[first]))
        return rows[~back], Back(len(told), int(rows.keys[first]), int(rows.firsts[first]), value, earlier)

    def _before(self, rows: Leaves, far: Array) -> Array:
        """How far the rows of its key with an earlier time have come, for each row."""
        if not len(rows):
            return far
        far = np.maximum(latest(rows.keys, far), self.base[rows.keys])
        key = np.append(True, np.diff(rows.keys) != 0)
        moment = np.flatnonzero(key | np.append(True, np.diff(rows.firsts) != 0))
        before = np.where(key[moment], self.base[rows.keys[moment]], far[moment - 1])
        return before[np.searchsorted(moment, np.arange(len(rows)), "right") - 1]

    def windows(self, leaves: Leaves, clock: Clock) -> Found:
        first, last = self._grid.containing(leaves.until)
        # Leaves of one key and slice name the same windows.
        pairs = np.unique(np.stack([leaves.keys, first, last]), axis=1)
        count = pairs[2] - pairs[1] + 1
        numbers = np.repeat(pairs[1] - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        keys, numbers = np.unique(np.stack([np.repeat(pairs[0], count), numbers]), axis=1)
        bounds = self._grid.bounds(numbers)
        begin, _ = self._at(leaves, keys, bounds.starts)
        end, closes = self._at(leaves, keys, bounds.ends)
        if clock.finish:
            closes = np.minimum(closes, LIMIT)
        fresh = np.append(0, np.cumsum(leaves.fresh))
        found = Found(keys, numbers, bounds.starts, bounds.ends, begin, end, closes, fresh[end] > fresh[begin])
        return found[closes > clock.settled_before]

    @staticmethod
    def _at(leaves: Leaves, keys: Array, bounds: Array) -> tuple[Array, Array]:
        """The first leaf of each key that has reached a bound, or the one after its last; and when all before is in.

        That is a microsecond after its first row, as rows of equal time may be on both sides of the bound.
        """
        place = replace(leaves, lasts=leaves.until).find(keys, bounds)
        leaf = np.minimum(place, len(leaves) - 1)
        there = (place < len(leaves)) & (leaves.keys[leaf] == keys)
        return place, np.where(there, leaves.firsts[leaf] + 1, NEVER)

    def settle(self, leaves: Leaves, horizon: int) -> Array:
        if not len(leaves):
            return np.zeros(0, np.int64)
        first, last = self._grid.containing(leaves.until)
        _, closes = self._at(leaves, leaves.keys, self._grid.bounds(last).ends)
        new = (np.diff(leaves.keys) != 0) | (np.diff(first) != 0) | (np.diff(last) != 0)
        return np.where((leaves.lasts < horizon) & (closes > horizon), np.cumsum(np.append(True, new)), -1)
