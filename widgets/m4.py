"""M4: the four points of a pixel column that decide how a line is drawn.

Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014: a line drawn through the
first, the minimum, the maximum and the last point of every pixel column is the same picture as the line through
all points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Values that are looked at together: what is made of them stays in the processor's cache.
_BLOCK = 1 << 16


def m4(columns: Array, values: Array) -> Array:
    """Rows to draw, for every key at once.

    ``columns`` (ascending integers) is the pixel column of each row, ``values`` a matrix ``[row, key]`` in which
    NaN means no value. Returns row numbers ``[4 * distinct columns, key]``: of each column and key the rows of
    its first, least, greatest and last value in the order of rows, so one row may come twice; four times -1
    where the column holds no value of the key. Cost: a few passes over ``values``; docs/decisions/0009 compares.
    """
    rows, keys = values.shape
    if rows == 0:
        return np.empty((0, keys), np.int64)
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    ends = np.r_[starts[1:], rows]
    picked = np.empty((len(starts), 4, keys), np.int64)
    step = max(1, len(starts) * _BLOCK // max(1, values.size))
    for first in range(0, len(starts), step):
        block = slice(first, first + step)
        low, high = int(starts[block][0]), int(ends[block][-1])
        picked[block] = _block(values[low:high], starts[block] - low, ends[block] - low)
        picked[block] += np.where(picked[block] < 0, 0, low)
    picked.sort(axis=1)
    return picked.reshape(4 * len(starts), keys)


def _block(values: Array, starts: Array, ends: Array) -> Array:
    """First, least, greatest and last rows of columns that lie side by side, ``[column, which, key]``."""
    gap = np.isnan(values)
    gaps = bool(gap.any())
    column = np.repeat(np.arange(len(starts)), ends - starts)
    least = np.minimum.reduceat(np.where(gap, np.inf, values) if gaps else values, starts, axis=0)
    greatest = np.maximum.reduceat(np.where(gap, -np.inf, values) if gaps else values, starts, axis=0)
    picked = np.empty((len(starts), 4, values.shape[1]), np.int64)
    picked[:, 0], picked[:, 3] = starts[:, None], ends[:, None] - 1
    for which, extreme in ((1, least), (2, greatest)):
        rows, keys = np.nonzero(values == extreme[column])
        # Of several rows the last one written stays: the first in their order.
        picked[column[rows[::-1]], which, keys[::-1]] = rows[::-1]
    if gaps:
        none = np.logical_and.reduceat(gap, starts, axis=0)
        for which, step in ((0, 1), (3, -1)):
            _leave_gaps(picked[:, which], gap, none, step)
        picked[np.broadcast_to(none[:, None], picked.shape)] = -1
    return picked


def _leave_gaps(rows: Array, gap: Array, none: Array, step: int) -> None:
    """Move the rows of columns with a value by ``step`` until each holds one."""
    column, key = np.nonzero(~none)
    while len(column):
        inside = gap[rows[column, key], key]
        column, key = column[inside], key[inside]
        rows[column, key] += step
