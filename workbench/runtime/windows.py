"""Which windows to emit: arithmetic on periodic windows over the slices that exist. Pure functions on arrays.

A window is named by k: it is ``[offset + k * slide, offset + k * slide + size)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.logical import Window

Array = npt.NDArray[Any]


def last_closed(window: Window, time: int) -> int:
    """The largest k whose window ends at or before a time: a row at ``time`` or later is not in it."""
    return (time - window.size - window.offset) // window.slide


def windows_of(window: Window, starts: Array) -> tuple[Array, Array]:
    """First and last k (inclusive) of the windows that contain each slice, by the slices' starts.

    ::

        slices   |--|--|--|--|--|--|
        k        [--------)                start <= s
        k + 1       [--------)             and s < start + size
    """
    last = (starts - window.offset) // window.slide
    first = (starts - window.offset - window.size) // window.slide + 1
    return first, last


def touched(window: Window, starts: Array, low: int, high: int) -> Array:
    """Ascending distinct k in ``[low, high]`` of the windows that contain at least one of the slices.

    ``starts`` ascend. Cost: proportional to the slices and the answer, however far apart they lie.
    """
    if not len(starts) or high < low:
        return np.zeros(0, np.int64)
    first, last = windows_of(window, starts)
    first, last = np.maximum(first, low), np.minimum(last, high)
    # Both ascend, so what earlier slices have named ends at the previous last.
    begin = np.maximum(first, np.concatenate(([first[0]], last[:-1] + 1)))
    count = np.maximum(last - begin + 1, 0)
    begin, count = begin[count > 0], count[count > 0]
    before = np.cumsum(count) - count
    return np.repeat(begin - before, count) + np.arange(int(count.sum()))
