"""Where the rows of one key stand as time goes on: how many there are up to each of a block of times.

Rows and times ascend, so a pointer that never goes back finds all of them: no search. One key and one piece of time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.jit import jit

Array = npt.NDArray[Any]


def _upto(rows: Array, points: Array, back: int, at: int, counts: Array) -> int:
    """``counts[j]`` rows are at or before ``points[j] - back``; ``at`` of them before the first point for sure.

    Returns the last count, where to go on from.
    """
    for j in range(points.size):
        moment = points[j] - back
        while at < rows.size and rows[np.uint64(at)] <= moment:
            at += 1
        counts[j] = at
    return at


def _before_tumbling(rows: Array, points: Array, back: int, width: int, end: int, at: int, counts: Array) -> int:
    """The same of the rows before the tumbling window that ``points[j] - back`` lies in, or the one after (1)."""
    edge = -(1 << 62)
    for j in range(points.size):
        moment = points[j] - back
        if edge + width <= moment or j == 0:
            edge = moment - moment % width
        bound = edge + end * width
        while at < rows.size and rows[np.uint64(at)] < bound:
            at += 1
        counts[j] = at
    return at


upto, before_tumbling = jit(_upto), jit(_before_tumbling)
