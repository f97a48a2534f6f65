"""Cutting times into slices (level 0 of the tree: which slice does a row belong to?)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.later import Later

Array = npt.NDArray[Any]
#: Edges that follow each other at equal distances: (period, phase), a row each.
Progressions = Sequence[tuple[int, int]] | Array

#: Where the slice before the first edge begins: half of the range of int64, as all times are.
BEFORE = -(2**62)

#: Rows to look at in one go: what is made of them stays in the cache of a core.
_BLOCK = 1 << 16
#: Rows for each slice, on the average, from which on a slice without any costs less than to find it out.
_FEW = 16


@dataclass(frozen=True)
class Slices:
    """The slices of rows, as runs: rows ``bounds[r] .. bounds[r + 1]`` are of the slice at ``starts[places[r]]``.

    Without ``bounds`` every row has a place of its own, as where rows come out of order. ``starts`` ascend and are
    distinct; some may have no row.
    """

    starts: Array
    places: Array
    bounds: Array | None

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.places) if self.bounds is None else int(self.bounds[-1])

    def positions(self) -> Array:
        """The place of every row's slice among ``starts``."""
        places = self.places.astype(np.int64, copy=False)
        return places if self.bounds is None else np.repeat(places, np.diff(self.bounds))

    def rows(self, low: int, high: int) -> Slices:
        """Those of the rows ``[low, high)``."""
        if self.bounds is None:
            return Slices(self.starts, self.places[low:high], None)
        first = int(np.searchsorted(self.bounds, low, "right")) - 1
        last = int(np.searchsorted(self.bounds, high))
        # np.clip looks up the limits of the type, which takes longer than the clipping.
        bounds = np.minimum(np.maximum(self.bounds[first : last + 1], low), high) - low
        return Slices(self.starts, self.places[first:last], bounds)

    def only(self, times: Array) -> Slices:
        """Those of the rows that a mask keeps, or of each as often as ``times`` says; ``starts`` stay."""
        if self.bounds is None:
            return Slices(self.starts, np.repeat(self.places, times), None)
        kept = np.concatenate(([0], np.cumsum(times)))
        return Slices(self.starts, self.places, kept[self.bounds])


#: Rows that are looked at together: they stay in the nearest cache.
_PIECE = 1 << 11


@dataclass(frozen=True)
class Extent:
    """The earliest and the latest of each ``_PIECE`` times, and whether no time is before the one before it."""

    lows: Array
    highs: Array
    ordered: bool

    @property
    def first(self) -> int:
        """The earliest time."""
        return int(self.lows.min())

    @property
    def last(self) -> int:
        """The latest time."""
        return int(self.highs.max())


def extent_of(times: Array) -> Extent:
    """The extent of at least one time. Cost: one pass."""
    begins = np.arange(0, len(times), _PIECE)
    compiled = _surveying.ready()
    if compiled is not None:
        lows, highs = np.empty(len(begins), np.int64), np.empty(len(begins), np.int64)
        return Extent(lows, highs, bool(compiled(_sealed(times), lows, highs)))
    if _ordered(times):
        return Extent(times[begins], times[np.append(begins[1:], len(times)) - 1], True)
    return Extent(np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins), False)


def _ordered(times: Array) -> bool:
    """Whether times never descend; ends at the first block where they do."""
    return all(
        bool((times[low + 1 : low + _BLOCK + 1] >= times[low : low + _BLOCK][: len(times) - low - 1]).all())
        for low in range(0, len(times) - 1, _BLOCK)
    )


def _survey(times: Array, lows: Array, highs: Array) -> bool:
    before, falls = times[0], 0
    for piece in range(lows.size):
        now = times[piece * _PIECE : (piece + 1) * _PIECE]
        low, high = now[0], now[0]
        falls += low < before
        for i in range(1, now.size):
            t = now[i]
            low, high = min(low, t), max(high, t)
            falls += t < now[np.uint64(i - 1)]
        lows[piece], highs[piece], before = low, high, now[now.size - 1]
    return falls == 0


#: No further edges than those of progressions.
NO_EDGES = np.zeros(0, np.int64)


def slices_of(
    times: Array, edges: Progressions, others: Array = NO_EDGES, extent: Extent | None = None, unit: int = 1
) -> Slices:
    """The slices of rows in any order, ``extent`` that of their times if it is known.

    ``edges`` and ``others`` are as for :func:`slice_starts`, in microseconds; ``unit`` is the number of microseconds
    that times count in. The edges from the first row to the last are listed. If they are fewer than the rows, they
    are looked up among rows in order, and rows in any other order among them.
    """
    if not len(times):
        return Slices(times, times, None)
    extent = extent or extent_of(times)
    starts = _edges_between(extent.first * unit, extent.last * unit, edges, others, len(times))
    if starts is None:
        return number_slices(slice_starts(times * unit, edges, others))
    reached = starts if unit == 1 else -(-starts // unit)
    if extent.ordered:
        bounds = _among(times, reached)
        places = np.flatnonzero(bounds[1:] > bounds[:-1])
        return Slices(starts[places], np.arange(len(places)), np.append(bounds[places], len(times)))
    places = _places(times, reached, extent)
    if len(starts) * _FEW <= len(times):
        return Slices(starts, places, None)
    used = np.bincount(places, minlength=len(starts)) > 0
    return Slices(starts[used], (np.cumsum(used) - 1)[places], None)


def _among(times: Array, edges: Array) -> Array:
    """The first row at or after each edge, and behind them the number of rows; both ascend."""
    compiled = _searching.ready()
    if compiled is None:
        return np.append(np.searchsorted(times, edges), len(times))
    bounds = np.empty(len(edges) + 1, np.int64)
    compiled(_sealed(times), edges, bounds)
    return bounds


def _search(times: Array, edges: Array, bounds: Array) -> None:
    """From where rows that are evenly apart would reach an edge, in longer and longer steps, then by halving.

    All of it is near what was just looked at, or near the answer: rows are far away in memory.
    """
    low, passed = 0, times[0] if times.size else 0
    rate = times.size / max(times[times.size - 1] - passed, 1) if times.size else 0.0
    for i in range(edges.size):
        edge, hop = edges[i], 1
        at = min(low + int(max(edge - passed, 0) * rate), times.size)
        if at < times.size and times[np.uint64(at)] < edge:
            low = at + 1
            while low + hop <= times.size and times[np.uint64(low + hop - 1)] < edge:
                low += hop
                hop *= 2
            high = min(low + hop - 1, times.size)
        else:
            high = at
            while high - hop >= low and times[np.uint64(high - hop)] >= edge:
                high -= hop
                hop *= 2
            low = max(low, high - hop + 1)
        while low < high:
            middle = (low + high) // 2
            if times[np.uint64(middle)] < edge:
                low = middle + 1
            else:
                high = middle
        bounds[i], passed = low, edge
    bounds[edges.size] = times.size


def _sealed(times: Array) -> Array:
    """Not to be written to: one type of them, wherever they come from, and so one machine code."""
    times = times.view()
    times.flags.writeable = False
    return times


_searching = Later(_search, [(_sealed(NO_EDGES), NO_EDGES, np.zeros(1, np.int64))])


#: The most edges among the rows of a piece that each of them is compared with.
_MOST = 24
#: Ranges of time that rows are looked up by where there are more.
_CELLS = 1 << 11


def _places(times: Array, starts: Array, extent: Extent) -> Array:
    """The place of each time's slice among ``starts``. No time is before the first."""
    compiled = _locating.ready()
    if compiled is None:
        return np.searchsorted(starts, times, "right") - 1
    ends = np.append(starts[1:], [2**63 - 1] * 3)
    lows, highs = (np.searchsorted(ends, side, "right") for side in (extent.lows, extent.highs))
    places: Array = compiled(_sealed(times), starts[0], ends, lows, highs, extent.last)
    return places


def _locate(times: Array, origin: int, ends: Array, lows: Array, highs: Array, latest: int) -> Array:
    """Piece by piece: rows are late by little, so those of a piece have few edges among them.

    To compare a whole piece with an edge is a run of SIMD instructions. Where there are too many edges, ``table[c]``
    is the slice in which the range from ``c << shift`` after the first edge on begins, ``near[c]`` where that ends,
    ``far[c]`` where the next one does; the one step that many rows need is arithmetic, since a processor that guesses
    which row needs it guesses wrong. Indices are unsigned, since numba would ask whether each is negative.
    """
    # Fresh memory is what costs here, so places are short.
    places, shift = np.empty(times.size, np.int32), np.uint64(0)
    table, near, far = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
    for piece in range(lows.size):
        low, first, last = piece * _PIECE, np.int32(lows[piece]), np.int32(highs[piece])
        now, own = times[low : low + _PIECE], places[low : low + _PIECE]
        if last - first <= _MOST:
            for i in range(own.size):
                own[i] = first
            for j in range(first, last, 3):
                a, b, c = ends[j], ends[j + 1], ends[j + 2]
                for i in range(own.size):
                    own[i] += np.int32(now[i] >= a) + np.int32(now[i] >= b) + np.int32(now[i] >= c)
            continue
        if not table.size:
            table, near, far = np.empty(_CELLS, np.int32), np.empty(_CELLS, np.int64), np.empty(_CELLS, np.int64)
            while np.uint64(latest - origin) >> shift >= np.uint64(_CELLS):
                shift += np.uint64(1)
            place = 0
            for c in range(_CELLS):
                while origin + (c << np.int64(shift)) >= ends[place]:
                    place += 1
                table[c], near[c], far[c] = place, ends[place], ends[place + 1]
        for i in range(own.size):
            t = now[i]
            cell = np.uint64(t - origin) >> shift
            own[i] = table[cell] + np.int32(t >= near[cell])
            if t >= far[cell]:
                while t >= ends[np.uint64(own[i])]:
                    own[i] += np.int32(1)
    return places


_surveying = Later(_survey, [(_sealed(np.zeros(1, np.int64)), np.zeros(1, np.int64), np.zeros(1, np.int64))])
_locating = Later(_locate, [(_sealed(NO_EDGES), np.int64(0), *[NO_EDGES] * 3, 0)])


def _edges_between(first: int, last: int, edges: Progressions, others: Array, most: int) -> Array | None:
    """The edge at or before ``first`` and all in ``(first, last]``, ascending; None if more than ``most``."""
    found = _of_progressions(first, last, np.ascontiguousarray(edges, np.int64).reshape(-1, 2), most)
    if found is None:
        return None
    if len(others):
        listed = others[max(0, np.searchsorted(others, first, "right") - 1) : np.searchsorted(others, last, "right")]
        found = np.append(found, listed)
    found.sort()  # np.unique hashes first, which takes longer for these few
    found = found[np.append(True, found[1:] != found[:-1])]
    return found[max(0, int(np.searchsorted(found, first, "right")) - 1) :]


def _of_progressions(first: int, last: int, edges: Array, most: int) -> Array | None:
    """The latest edge of progressions at or before ``first``, or ``BEFORE``, and all in ``(first, last]``."""
    compiled = _listing.ready()
    if compiled is not None:
        found = np.empty(most + 1, np.int64)
        count = compiled(first, last, edges, found)
        return None if count < 0 else found[:count]
    periods, phases = edges.T
    before = first - (first - phases) % periods
    counts = np.maximum((last - before) // periods, 0)
    if counts.sum() > most:
        return None
    progression = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(1, len(progression) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(before.max(initial=BEFORE), before[progression] + step * periods[progression])


def _list(first: int, last: int, edges: Array, found: Array) -> int:
    count, start = 1, BEFORE
    for i in range(len(edges)):
        period = edges[i, 0]
        edge = first - (first - edges[i, 1]) % period
        start = max(start, edge)
        while edge <= last - period:
            edge += period
            if count == found.size:
                return -1
            found[count] = edge
            count += 1
    found[0] = start
    return count


_listing = Later(_list, [(0, 0, np.zeros((0, 2), np.int64), np.zeros(1, np.int64))])


def slice_starts(times: Array, edges: Progressions, others: Array = NO_EDGES) -> Array:
    """Start of the slice ``[start, next edge)`` of each time.

    Edges are the (period, phase) progressions and ``others``, which ascend. The start is the latest edge not after
    the time, also before 1970 (floor division), or ``BEFORE`` where there is none. int64 microseconds in and out.
    Cost: one pass per progression.
    """
    starts: Array | None = None
    if len(others) or not len(edges):
        starts = np.append(others, BEFORE)[np.searchsorted(others, times, "right") - 1]
    for period, phase in edges:
        last = times - (times - phase) % period
        starts = last if starts is None else np.maximum(starts, last, out=starts)
    assert starts is not None
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
