"""Gaps: which rows of a key belong together because they follow each other soon enough (sessions)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.later import Later

Array = npt.NDArray[Any]


def overlapping(keys: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Half-open spans ``[start, end)`` of keys, united where they overlap: an order, and the group of each in it.

    In the order spans are sorted by key and start; groups are numbered from 0 on in the same order. Spans that only
    touch stay apart. Cost: two sorts.
    """
    order = np.lexsort((ends, starts, keys))
    keys, starts, ends = keys[order], starts[order], ends[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (starts[1:] >= latest(keys, ends)[:-1])
    return order, np.cumsum(new) - 1


def latest(keys: Array, ends: Array) -> Array:
    """The largest end so far within each run of equal keys."""
    by_end = np.argsort(ends, kind="stable")
    rank = np.empty(len(ends), np.int64)
    rank[by_end] = np.arange(len(ends))
    run = np.cumsum(np.append(0, keys[1:] != keys[:-1]))[: len(keys)]
    return ends[by_end[np.maximum.accumulate(run * len(ends) + rank) % max(len(ends), 1)]]


def fragments(cells: Array, keys: Array, times: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Rows of one cell (slice and key) told apart wherever a session ends between them.

    ``times`` ascend; a session of gap g that row i is the last one of ends at ``ends[g, i]``. Neighbours of a key are
    of one fragment if they are in one cell and the later one comes before each of the fragment's ends, which are the
    largest of its rows; a row that ends at its own time is alone. Returns the fragment of each row, numbered in order
    of their first rows, these rows, and the fragments' ends ``[gap, fragment]``. Cost: one pass; two sorts as long as
    the compiled variant is not ready.
    """
    compiled = _compiled.ready()
    if compiled is None:
        return _by_sorting(cells, keys, times, ends)
    found, first, until, count = compiled(cells, keys, times, ends)
    return found, first[:count], until[:, :count]


def _pass(cells: Array, keys: Array, times: Array, ends: Array) -> tuple[Array, Array, Array, int]:
    gaps, rows = ends.shape
    at = np.full(keys.max() + 1 if rows else 0, -1, np.int64)
    found, first = np.empty(rows, np.int64), np.empty(rows, np.int64)
    until = np.empty((gaps, rows), np.int64)
    count = 0
    for i in range(rows):
        f = at[keys[i]]
        fresh = f < 0 or cells[first[f]] != cells[i]
        if not fresh:
            for g in range(gaps):
                fresh = fresh or times[i] >= until[g, f] or ends[g, i] <= times[i]
        if fresh:
            f = at[keys[i]] = count
            first[f] = i
            count += 1
        for g in range(gaps):
            until[g, f] = ends[g, i] if fresh else max(until[g, f], ends[g, i])
        found[i] = f
    return found, first, until, count


def _by_sorting(cells: Array, keys: Array, times: Array, ends: Array) -> tuple[Array, Array, Array]:
    order = np.argsort(keys, kind="stable")  # rows of a key stay in order of time
    keys, cells, times, ends = keys[order], cells[order], times[order], ends[:, order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (cells[1:] != cells[:-1])
    alone = np.logical_or.reduce(ends <= times, axis=0)
    new |= alone
    new[1:] |= alone[:-1]
    fragment = np.cumsum(new) - 1
    while True:
        again = np.zeros(len(order), np.bool_)
        for row in ends:
            again[1:] |= (times[1:] >= latest(fragment, row)[:-1]) & ~new[1:]
        if not again.any():
            break
        # With each break what earlier rows have set ends, so there may be more.
        new |= again
        fragment = np.cumsum(new) - 1
    first = order[new]
    by_row = np.argsort(first, kind="stable")
    rank = np.empty(len(first), np.int64)
    rank[by_row] = np.arange(len(first))
    found = np.empty(len(order), np.int64)
    found[order] = rank[fragment]
    until = np.maximum.reduceat(ends, np.flatnonzero(new), axis=1) if len(order) else ends
    return found, first[by_row], until[:, by_row]


def extents(group: Array, times: Array, groups: int) -> tuple[Array, Array]:
    """The first and the last time of each group; of one without rows, the largest int64 and the smallest."""
    first, last = np.full(groups, 2**63 - 1), np.full(groups, -(2**63))
    compiled = _extents.ready()
    if compiled is None:
        np.minimum.at(first, group, times)
        np.maximum.at(last, group, times)
    else:
        compiled(group, times, first, last)
    return first, last


def _extend(group: Array, times: Array, first: Array, last: Array) -> None:
    for i in range(group.size):
        g, t = group[i], times[i]
        first[g] = min(first[g], t)
        last[g] = max(last[g], t)


_EMPTY = np.zeros(0, np.int64)
_extents = Later(_extend, [(_EMPTY, _EMPTY, _EMPTY, _EMPTY)])
_compiled = Later(_pass, [(_EMPTY, _EMPTY, _EMPTY, np.zeros((1, 0), np.int64))])
