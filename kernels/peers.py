"""Peers: rows of one key and time, which have the same frames by time and so the same results.

Rows stand by key and time. The *moments* of them are the groups of peers; ``at`` holds the first row of each, and
behind the last one the number of rows, all int32::

    key       a  a  a  a  a  b  b
    time      1  1  2  2  2  2  3
    at        0     2        5  6  7
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.frames import place
from workbench.kernels.jit import jit

Array = npt.NDArray[Any]


#: No moments: rows stand for themselves.
NO_MOMENTS = np.zeros(0, np.int32)


def _begin_moments(times: Array, runs: Array, begin: int, end: int, starts: Array) -> int:
    """The rows of ``[begin, end)`` that begin a moment, into ``starts`` (room for one more); returns how many."""
    found, run = 0, place(runs, 0, runs.size, begin)
    for row in range(begin, end):
        first = row == runs[run]
        run += first
        starts[found] = row
        found += first or times[row] != times[row - 1]
    return found


begin_moments = jit(_begin_moments)


def _row_counts(at: Array, low: int, moves: int, high: int, counts: Array) -> None:
    """How many rows are in ``[low, high)``, and in those that follow: both ends, or the last alone, one further each.

    They are moments if there are any, else rows.
    """
    size = counts.size
    if at.size == 0:
        for j in range(size):
            counts[j] = high - low + (1 - moves) * j
    elif moves:
        first, last = at[low : low + size], at[high : high + size]
        for j in range(size):
            counts[j] = np.float64(last[j]) - np.float64(first[j])
    else:
        last = at[high : high + size]
        for j in range(size):
            counts[j] = np.float64(last[j]) - np.float64(at[low])


row_counts = jit(_row_counts)


def _spread(values: Array, at: Array, out: Array) -> None:
    """The value of each moment to its rows; ``out[0]`` is for row ``at[0]``.

    Four rows are written at once, whatever there are: moments mostly have few, and a loop of unknown length costs
    more. What is too much is written over by the next moment, before the end of ``out`` nothing is.
    """
    origin, safe = at[0], out.size - 4
    for moment in range(values.size):
        low, high, value = at[moment] - origin, at[moment + 1] - origin, values[moment]
        if low <= safe:
            row = np.uint64(low)
            out[row] = value
            out[row + np.uint64(1)] = value
            out[row + np.uint64(2)] = value
            out[row + np.uint64(3)] = value
            low += 4
        for left in range(low, high):
            out[left] = value


spread = jit(_spread)
