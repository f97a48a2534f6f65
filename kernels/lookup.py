"""Where times stand among others that ascend."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.later import Later

Array = npt.NDArray[Any]


def first_at(ascending: Array, times: Array) -> Array:
    """The place of the first of ``ascending`` times that is at or after each time; their number if none is.

    All int64, in any order, from -2**62 to 2**62. Cost: the times, where the others do not lie very unevenly.
    """
    compiled = _compiled.ready()
    if compiled is None or not len(ascending):
        return np.searchsorted(ascending, times)
    places = np.empty(len(times), np.int64)
    compiled(ascending, times, places)
    return places


def _find(ascending: Array, times: Array, places: Array) -> None:
    """``table[c]`` is the place of the first time in the range from ``c << shift`` after the earliest on.

    A step or two from there lead to the place, where halving takes a dozen, each of them a guess of the processor's.
    In a range with many the rest is halved. Indices are unsigned, since numba would ask whether each is negative.
    """
    origin, last, shift = ascending[0], ascending[ascending.size - 1], np.uint64(0)
    while np.uint64(last - origin) >> shift >= np.uint64(2 * ascending.size):
        shift += np.uint64(1)
    table = np.zeros((np.uint64(last - origin) >> shift) + np.uint64(2), np.int64)
    for i in range(ascending.size):
        table[(np.uint64(ascending[i] - origin) >> shift) + np.uint64(1)] += 1
    for c in range(1, table.size):
        table[c] += table[c - 1]
    for i in range(times.size):
        t = times[i]
        if t <= origin or t > last:
            places[i] = ascending.size if t > last else 0
            continue
        cell = np.uint64(t - origin) >> shift
        low, high = np.uint64(table[cell]), np.uint64(table[cell + np.uint64(1)])
        while high - low > np.uint64(4):
            middle = (low + high) >> np.uint64(1)
            if ascending[middle] < t:
                low = middle + np.uint64(1)
            else:
                high = middle
        while low < high and ascending[low] < t:
            low += np.uint64(1)
        places[i] = low


_compiled = Later(_find, [(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))])
