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


def m4(columns: Array, values: Array) -> Array:
    """Rows to draw, for every key at once.

    ``columns`` (ascending integers) is the pixel column of each row, ``values`` a matrix ``[row, key]`` in which
    NaN means no value. Returns row numbers ``[4 * distinct columns, key]``: of each column and key the rows of
    its first, least, greatest and last value in the order of rows, so one row may come twice; four times -1
    where the column holds no value of the key. Cost: a few passes over ``values``.
    """
    rows, keys = values.shape
    if rows == 0:
        return np.empty((0, keys), np.int64)
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    counts = np.diff(np.r_[starts, rows])
    row = np.arange(rows, dtype=np.int64)[:, None]
    present = ~np.isnan(values)
    least = np.repeat(np.fmin.reduceat(values, starts, axis=0), counts, axis=0)
    greatest = np.repeat(np.fmax.reduceat(values, starts, axis=0), counts, axis=0)
    picked = np.stack(
        [
            np.minimum.reduceat(np.where(present, row, rows), starts, axis=0),
            np.minimum.reduceat(np.where(values == least, row, rows), starts, axis=0),
            np.minimum.reduceat(np.where(values == greatest, row, rows), starts, axis=0),
            np.maximum.reduceat(np.where(present, row, -1), starts, axis=0),
        ],
        axis=1,
    )
    picked[picked == rows] = -1
    picked.sort(axis=1)
    return picked.reshape(4 * len(starts), keys)
