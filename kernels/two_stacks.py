"""TwoStacks over slices, for many keys at once: windows from slice partials without an inverse.

*SlideSide* §2 and *LightSaber* §5.3 name the algorithm; here the front stack is an array of suffix partials made
by one backward pass at each flip, the back stack a single running partial, and both are rows over all keys, so
that a combine is one vector operation ([slice, key] matrices). Windows are runs of slices and may share any part.

Every slice enters the back once and a suffix once: at most two combines for each slice and key and one for each
window and key, whatever the size of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


def assemble(
    first: Array,
    last: Array,
    fields: Sequence[Array],
    identity: Sequence[int | float],
    combine: Callable[..., Fields],
) -> Fields:
    """Partials of the windows ``[first[w], last[w])`` over the rows of the matrices ``fields[slice, key]``.

    ``first`` and ``last`` never descend (windows in order of start). Returns matrices ``[window, key]``. The
    variant that runs before the compiled one is ready.
    """
    keys = fields[0].shape[1]
    out = tuple(np.empty((len(first), keys), field.dtype) for field in fields)
    blank = tuple(np.full(keys, value, field.dtype) for value, field in zip(identity, fields, strict=True))
    front: list[Fields] = []
    base = top = end = 0  # front[j - base] is the partial of slices [j, top), back that of [top, end)
    back = blank
    for window in range(len(first)):
        low, high = int(first[window]), int(last[window])
        if low >= top:
            base, top, end, back = low, high, high, blank
            front = _suffixes(fields, low, high, blank, combine)
        for row in range(end, high):
            back = combine(*back, *(field[row] for field in fields))
        end = max(end, high)
        for target, values in zip(out, combine(*front[low - base], *back), strict=True):
            target[window] = values
    return out


def _suffixes(
    fields: Sequence[Array], low: int, high: int, blank: Fields, combine: Callable[..., Fields]
) -> list[Fields]:
    """Partials of ``[j, high)`` for j = low .. high."""
    suffixes = [blank]
    for row in range(high - 1, low - 1, -1):
        suffixes.append(combine(*(field[row] for field in fields), *suffixes[-1]))
    return suffixes[::-1]
