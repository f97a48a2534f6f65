"""Cutting times into slices (level 0 of the tree: which slice does a row belong to?)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Slices:
    """The slices of rows, as runs: rows ``bounds[r] .. bounds[r + 1]`` are of the slice at ``starts[places[r]]``.

    Without ``bounds`` every row has a place of its own, as where rows come out of order. ``starts`` ascend and are
    distinct.
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
        """Those of the rows that a mask keeps, or of each as often as ``times`` says.

        ``starts`` stay; some may have no row left.
        """
        if self.bounds is None:
            return Slices(self.starts, np.repeat(self.places, times), None)
        kept = np.concatenate(([0], np.cumsum(times)))
        return Slices(self.starts, self.places, kept[self.bounds])


def ordered(times: Array) -> bool:
    """Whether times never descend; ends at the first block where they do."""
    return all(
        bool((times[low + 1 : low + _BLOCK + 1] >= times[low : low + _BLOCK][: len(times) - low - 1]).all())
        for low in range(0, len(times) - 1, _BLOCK)
    )


#: No further edges than those of progressions.
NO_EDGES = np.zeros(0, np.int64)


def cut(times: Array, edges: Progressions, others: Array = NO_EDGES, unit: int = 1) -> Slices | None:
    """The slices of rows in order of time, or None where it would not be cheaper than to look at every row.

    ``edges`` and ``others`` are as for :func:`slice_starts`, in microseconds; ``unit`` is the number of microseconds
    that times count in. The edges from the first row to the last are listed and looked up among the rows: the cost is
    that of :func:`ordered` and of the edges.
    """
    if not len(times) or not ordered(times):
        return None
    starts = _edges_between(int(times[0]) * unit, int(times[-1]) * unit, edges, others, len(times))
    if starts is None:
        return None
    bounds = _among(times, -(-starts // unit))
    places = np.flatnonzero(bounds[1:] > bounds[:-1])
    return Slices(starts[places], np.arange(len(places)), np.append(bounds[places], len(times)))


def _among(times: Array, edges: Array) -> Array:
    """The first row at or after each edge, and behind them the number of rows; both ascend."""
    compiled = _searching.ready()
    if compiled is None:
        return np.append(np.searchsorted(times, edges), len(times))
    bounds = np.empty(len(edges) + 1, np.int64)
    compiled(_sealed(times), edges, bounds)
    return bounds


def _search(times: Array, edges: Array, bounds: Array) -> None:
    """From the last edge on in longer and longer steps, then by halving: all near what was just looked at."""
    low = 0
    for i in range(edges.size):
        edge, hop = edges[i], 1
        while low + hop <= times.size and times[np.uint64(low + hop - 1)] < edge:
            low += hop
            hop *= 2
        high = min(low + hop - 1, times.size)
        while low < high:
            middle = (low + high) // 2
            if times[np.uint64(middle)] < edge:
                low = middle + 1
            else:
                high = middle
        bounds[i] = low
    bounds[edges.size] = times.size


def _sealed(times: Array) -> Array:
    """Not to be written to: one type of them, wherever they come from, and so one machine code."""
    times = times.view()
    times.flags.writeable = False
    return times


_searching = Later(_search, [(_sealed(NO_EDGES), NO_EDGES, np.zeros(1, np.int64))])


def slices_of(
    times: Array,
    edges: Progressions,
    others: Array = NO_EDGES,
    extent: tuple[int, int] | None = None,
) -> Slices:
    """The slices of rows in any order; times in microseconds, from ``extent[0]`` to ``extent[1]`` if that is known.

    Where the edges between the first and the last row are fewer than the rows, each row is looked up among them.
    """
    if not len(times):
        return Slices(times, times, None)
    first, last = extent or (int(times.min()), int(times.max()))
    starts = _edges_between(first, last, edges, others, len(times))
    if starts is None:
        return number_slices(slice_starts(times, edges, others))
    places, used = _places(times, starts, last)
    if used.all():
        return Slices(starts, places, None)
    return Slices(starts[used], (np.cumsum(used) - 1)[places], None)


#: Ranges of time that rows are looked up by, and rows at a time: both stay in the nearest cache.
_CELLS, _PIECE = 1 << 11, 1 << 11


def _places(times: Array, starts: Array, latest: int) -> tuple[Array, Array]:
    """The place of each time's slice among ``starts``, and which slices have rows. No time is behind ``latest``."""
    compiled = _compiled.ready()
    if compiled is None:
        places = np.searchsorted(starts, times, "right") - 1
        return places, np.bincount(places, minlength=len(starts)) > 0
    shift = max(0, (latest - int(starts[0])).bit_length() - _CELLS.bit_length() + 1)
    table = np.searchsorted(starts, starts[0] + (np.arange(_CELLS) << shift), "right")
    ends = np.append(starts[1:], [2**63 - 1] * 3)
    place = table - 1
    found: tuple[Array, Array] = compiled(
        _sealed(times), starts[0], ends, place.astype(np.int32), ends[place], ends[table], shift
    )
    return found[0], found[1][:-2]


def _locate(
    times: Array, origin: int, ends: Array, table: Array, near: Array, far: Array, shift: int
) -> tuple[Array, Array]:
    """``table[c]`` is the slice in which the range from ``c << shift`` after the first edge on begins.

    ``near[c]`` is where that slice ends, ``far[c]`` where the next one does. Late rows change the slice at random, so
    the one step that many rows need is arithmetic: a processor that guesses which row needs it guesses wrong. A
    second step is rare where slices are longer than ranges. Indices are unsigned, since numba would ask whether each
    is negative.
    """
    # Fresh memory is what costs here, so places are short.
    places, used, bits = np.empty(times.size, np.int32), np.zeros(ends.size, np.bool_), np.uint64(shift)
    for low in range(0, times.size, _PIECE):
        now, own = times[low : low + _PIECE], places[low : low + _PIECE]
        for i in range(now.size):
            t = now[i]
            cell = np.uint64(t - origin) >> bits
            place = table[cell] + np.int32(t >= near[cell])
            if t >= far[cell]:
                while t >= ends[np.uint64(place)]:
                    place += np.int32(1)
            own[i] = place
        # Apart from the loop above, which is then twice as fast.
        for i in range(own.size):
            used[np.uint64(own[i])] = True
    return places, used


_compiled = Later(
    _locate, [(_sealed(NO_EDGES), np.int64(0), np.zeros(2, np.int64), np.zeros(1, np.int32), NO_EDGES, NO_EDGES, 0)]
)


#: Cells of each slice that rows out of order go to in turn: what one takes to be stored is the work on three others.
LANES = 4


def _spread(places: Array, cells: Array) -> None:
    for i in range(places.size):
        cells[i] = places[i] * LANES + i % LANES


_spreading = Later(_spread, [(np.zeros(0, np.int32), np.zeros(0, np.int64))])


def spreading() -> Callable[[Array, Array], None] | None:
    """The function that gives rows by ``places`` (int32) their ``cells``, neighbours different ones; or None."""
    return _spreading.ready()


def _edges_between(first: int, last: int, edges: Progressions, others: Array, most: int) -> Array | None:
    """The edge at or before ``first`` and all in ``(first, last]``, ascending; None if more than ``most``."""
    periods, phases = np.array(edges, np.int64).reshape(-1, 2).T
    before = first - (first - phases) % periods
    counts = np.maximum((last - before) // periods, 0)
    if counts.sum() > most:
        return None
    listed = others[np.searchsorted(others, first, "right") :]
    earlier = others[len(others) - len(listed) - 1] if len(listed) < len(others) else BEFORE
    start = max(int(before.max()) if len(before) else BEFORE, int(earlier))
    progression = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(1, len(progression) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    inner = before[progression] + step * periods[progression]
    found = np.concatenate([[start], inner, listed[listed <= last]]).astype(np.int64)
    found.sort()  # np.unique hashes first, which takes longer for these few
    return found[np.append(True, found[1:] != found[:-1])]


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
