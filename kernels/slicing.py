"""Cutting times into slices (level 0 of the tree: which slice does a row belong to?)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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


def number_slices(starts: Array) -> tuple[Array, Array]:
    """Ascending distinct starts, and for every row its position among them.

    Neighbouring rows mostly fall into the same slice, so only the runs are sorted, not the rows.
    """
    if not len(starts):
        return starts, np.zeros(0, np.int64)
    changes = np.flatnonzero(starts[1:] != starts[:-1]) + 1
    bounds = np.concatenate(([0], changes, [len(starts)]))
    distinct, of_run = np.unique(starts[bounds[:-1]], return_inverse=True)
    return distinct, np.repeat(of_run, np.diff(bounds))
