"""What windows that are aware of their context are put together from: slices and kept rows of all keys, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.algebra import PartialKind
from workbench.codegen import Scans
from workbench.kernels.segments import fold_segments

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


def by_partial(fields: Sequence[Array], kinds: Sequence[PartialKind]) -> list[Fields]:
    """The fields of each partial, from those of all partials one after the other."""
    left = iter(fields)
    return [tuple(islice(left, len(kind.fields))) for kind in kinds]


def combined(group: Array, fields: Sequence[Array], kinds: Sequence[PartialKind]) -> list[Array]:
    """The fields of all partials for each group, in the order of its entries; groups ascend."""
    with np.errstate(all="ignore"):
        pairs = zip(kinds, by_partial(fields, kinds), strict=True)
        return [column for kind, own in pairs for column in fold_segments(group, own, kind.combine)[1]]


@dataclass(frozen=True)
class Leaves:
    """Slices and rows, an entry each, by key, then in order of time.

    ``firsts`` and ``lasts`` are the times of the first and the last of the ``counts`` rows of each; ``fresh`` tells
    the rows that came in this micro-batch, ``marks`` those that begin a window, ``until`` when a session that ends
    with the row would end (False and 0 where windows are not about that). ``fields`` are those of all partials of
    the fold.
    """

    keys: Array
    firsts: Array
    lasts: Array
    counts: Array
    fresh: Array
    marks: Array
    until: Array
    fields: list[Array]

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, which: Array) -> Leaves:
        return self._mapped(lambda column: column[which])

    def _mapped(self, change: Callable[[Array], Array]) -> Leaves:
        columns = (self.keys, self.firsts, self.lasts, self.counts, self.fresh, self.marks, self.until)
        keys, firsts, lasts, counts, fresh, marks, until = map(change, columns)
        return Leaves(keys, firsts, lasts, counts, fresh, marks, until, [change(field) for field in self.fields])

    @staticmethod
    def empty(kinds: Sequence[PartialKind]) -> Leaves:
        """Nothing."""
        times, flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return Leaves(
            times, times, times, times, flags, flags, times, [np.zeros(0, t) for k in kinds for t in k.dtypes]
        )

    def followed_by(self, rows: Leaves) -> Leaves:
        """These slices, and within each key behind them the rows."""
        order = np.argsort(np.concatenate([self.keys, rows.keys]), kind="stable")
        bounds = (rows.keys, rows.firsts, rows.lasts, rows.counts, rows.fresh, rows.marks, rows.until)
        other = iter((*bounds, *rows.fields))
        return self._mapped(lambda column: np.concatenate([column, next(other)])[order])

    def runs(self) -> tuple[Array, Array]:
        """The first leaf of the key of each leaf, and the one after its last."""
        new = np.append(True, np.diff(self.keys) != 0)[: len(self)]
        first = np.flatnonzero(new)
        run = np.cumsum(new) - 1
        return first[run], np.append(first[1:], len(self))[run]

    def late(self) -> Array:
        """Which leaves are rows of this micro-batch that one of the rows before it stands behind, of the same key."""
        _, last = self.runs()
        older = np.cumsum(np.append(0, ~self.fresh))  # how many of those before stand before each leaf
        return self.fresh & (older[last] > older[:-1])

    def cuts(self) -> int:
        """How many times marks of this micro-batch lie between two neighbours of before, the later not a mark."""
        older = np.flatnonzero(~self.fresh)
        marks = np.cumsum(np.append(0, self.fresh & self.marks))[older]
        cut = (np.diff(marks) > 0) & (np.diff(self.keys[older]) == 0) & ~self.marks[older[1:]]
        return int(cut.sum())

    def merged(self, group: Array, kinds: Sequence[PartialKind]) -> Leaves:
        """The leaves of each group, which are neighbours, as one slice."""
        first = np.flatnonzero(np.append(True, np.diff(group) != 0)[: len(group)])
        if len(first) == len(group):
            return self
        fields = combined(group, self.fields, kinds)
        last = np.append(first[1:], len(group)) - 1
        marks = np.logical_or.reduceat(self.marks, first)
        counts, until = np.add.reduceat(self.counts, first), np.maximum.reduceat(self.until, first)
        bounds = self.keys[first], self.firsts[first], self.lasts[last], counts
        return Leaves(*bounds, self.fresh[first], marks, until, fields)

    def find(self, keys: Array, times: Array) -> Array:
        """The first leaf of each key whose rows are at or after a time, or the leaf after its last."""
        moments = np.unique(self.lasts)
        places = self.keys * (len(moments) + 1) + np.searchsorted(moments, self.lasts)
        return np.searchsorted(places, keys * (len(moments) + 1) + np.searchsorted(moments, times))


class LeafMatrices:
    """Leaves as matrices with one column, for :class:`~workbench.runtime.assembling.Assembler`."""

    keys = 1

    def __init__(self, leaves: Leaves, kinds: Sequence[PartialKind]) -> None:
        self.end = len(leaves)
        self.scans = [Scans() for _ in kinds]
        self._partials = by_partial([field.reshape(-1, 1) for field in leaves.fields], kinds)

    def rows(self, times: Array) -> Array:
        raise TypeError("leaves are not by time alone")

    def partials(self, position: int) -> Fields:
        return self._partials[position]
