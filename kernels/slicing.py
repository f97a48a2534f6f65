"""Cutting times into slices (level 0 of the tree: which slice does a row belong to?)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Rows to look at in one go: what is made of them stays in the cache of a core.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Slices:
    """The slices of rows, as runs: rows ``bounds[r] .. bounds[r + 1]`` are of the slice at ``starts[places[r]]``.

    ``starts`` ascend and are distinct.
    """

    starts: Array
    places: Array
    bounds: Array

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.bounds[-1])

    def positions(self) -> Array:
        """The place of every row's slice among ``starts``."""
        return np.repeat(self.places, np.diff(self.bounds))

    def rows(self, low: int, high: int) -> Slices:
        """Those of the rows ``[low, high)``."""
        first = int(np.searchsorted(self.bounds, low, "right")) - 1
        last = int(np.searchsorted(self.bounds, high))
        # np.clip looks up the limits of the type, which takes longer than the clipping.
        bounds = np.minimum(np.maximum(self.bounds[first : last + 1], low), high) - low
        return Slices(self.starts, self.places[first:last], bounds)

    def only(self, times: Array) -> Slices:
        """Those of the rows that a mask keeps, or of each as often as ``times`` says.

        ``starts`` stay; some may have no row left.
        """
        kept = np.concatenate(([0], np.cumsum(times)))
        return Slices(self.starts, self.places, kept[self.bounds])


def ordered(times: Array) -> bool:
    """Whether times never descend; ends at the first block where they do."""
    return all(
        bool((times[low + 1 : low + _BLOCK + 1] >= times[low : low + _BLOCK][: len(times) - low - 1]).all())
        for low in range(0, len(times) - 1, _BLOCK)
    )


def cut(times: Array, edges: Sequence[tuple[int, int]], unit: int = 1) -> Slices | None:
    """The slices of rows in order of time, or None where it would not be cheaper than to look at every row.

    ``unit`` is the number of microseconds that times count in; edges are in microseconds. The edges from the first
    row to the last are listed and looked up among the rows: the cost is that of :func:`ordered` and of the edges.
    """
    if not len(times) or not ordered(times):
        return None
    first, last = int(times[0]) * unit, int(times[-1]) * unit
    if sum((last - first) // period + 1 for period, _ in edges) > len(times):
        return None
    start = max(first - (first - phase) % period for period, phase in edges)
    inner = [np.arange(first - (first - phase) % period + period, last + 1, period) for period, phase in edges]
    starts = np.unique(np.concatenate([[start], *inner]).astype(np.int64))
    bounds = np.append(np.searchsorted(times, -(-starts // unit)), len(times))
    places = np.flatnonzero(bounds[1:] > bounds[:-1])
    return Slices(starts[places], np.arange(len(places)), np.append(bounds[places], len(times)))


def slices_of(times: Array, edges: Sequence[tuple[int, int]]) -> Slices:
    """The slices of rows in any order; times in microseconds."""
    return number_slices(slice_starts(times, edges))


def slice_starts(times: Array, edges: Sequence[tuple[int, int]]) -> Array:
    """Start of the slice ``[start, next edge)`` of each time; edges are the (period, phase) progressions.

    The start is the latest edge not after the time, also before 1970 (floor division). int64 microseconds in and
    out. Cost: one pass per progression.
    """
    starts: Array | None = None
    for period, phase in edges:
        last = times - (times - phase) % period
        starts = last if starts is None else np.maximum(starts, last, out=starts)
    if starts is None:
        raise ValueError("a plan has at least one progression of edges")
    return starts


def number_slices(starts: Array) -> Slices:
    """The slices of rows by the start of each one's slice.

    Neighbouring rows mostly fall into the same slice, so only the runs are sorted, not the rows.
    """
    if not len(starts):
        return Slices(starts, np.zeros(0, np.int64), np.zeros(1, np.int64))
    changes = np.flatnonzero(starts[1:] != starts[:-1]) + 1
    bounds = np.concatenate(([0], changes, [len(starts)]))
    distinct, of_run = np.unique(starts[bounds[:-1]], return_inverse=True)
    return Slices(distinct, of_run, bounds)
