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


def _begin_moments(times: Array, runs: Array, begin: int, end: int, starts: Array, moments: Array) -> int:
    """The rows of ``[begin, end)`` that begin a moment, into ``starts``, and their times; returns how many.

    There is room for one more than the rows: each is written before it is known whether it begins one.
    """
    found, run, row = 0, place(runs, 0, runs.size, begin + 1) - 1, begin
    while row < end:
        while row >= runs[run + 1]:
            run += 1
        starts[found], moments[found] = row, times[row]
        found += row == runs[run] or times[row] != times[row - 1]
        stop = min(runs[run + 1], end)
        for i in range(row + 1, stop):
            now = times[np.uint64(i)]
            starts[np.uint64(found)], moments[np.uint64(found)] = i, now
            found += now != times[np.uint64(i - 1)]
        row = stop
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


def _own(at: Array, owners: Array) -> None:
    """The place of each row's moment among those of ``at``, for the first ``owners.size`` rows of theirs."""
    origin = at[0]
    for moment in range(at.size - 1):
        for row in range(at[moment] - origin, min(at[moment + 1] - origin, owners.size)):
            owners[np.uint64(row)] = moment


own = jit(_own)
