"""Sharing out rows by key before they are folded, so that each share's partials fit into a cache (radix join)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.jit import jit
from workbench.kernels.prefetch import soon_read, soon_written

Array = npt.NDArray[Any]


def _scatter(code: Array, place: Array, shift: int, bounds: Array, order: Array, group: Array) -> None:
    """See :func:`partition`; ``bounds`` are zeros on entry."""
    for i in range(code.size):
        bounds[(code[i] >> shift) + 2] += 1
    for part in range(2, bounds.size):
        bounds[part] += bounds[part - 1]
    mask = (1 << shift) - 1
    for i in range(code.size):
        part = (code[i] >> shift) + 1
        target = bounds[part]
        bounds[part] = target + 1
        order[target] = i
        group[target] = (place[i] << shift) + (code[i] & mask)


_compiled: Callable[..., None] = jit(_scatter)


def partition(code: Array, place: Array, shift: int, parts: int) -> tuple[Array, Array, Array]:
    """Rows by ``code >> shift`` in ``[0, parts)``, in their order within each part; all arrays int64.

    Returns the parts' bounds, the row numbers, and for each of those rows the cell ``[place, code]`` in a matrix of
    ``1 << shift`` columns for its part. Two passes over the rows.
    """
    bounds = np.zeros(parts + 2, np.int64)
    order, group = np.empty(len(code), np.int64), np.empty(len(code), np.int64)
    _compiled(code, place, shift, bounds, order, group)
    return bounds[:-1], order, group


def _count_keys(code: Array, counts: Array) -> None:
    for i in range(code.size):
        counts[code[i]] += 1


#: How many elements ahead each key's stream is asked for: two lines of the cache of eight bytes each.
_AHEAD = 16


def _order_rows(code: Array, origin: int, places: Array, order: Array) -> None:
    """``places`` is where the next row of each key goes; rows are numbered from ``origin``."""
    for i in range(code.size):
        key = np.uint64(code[i])
        place = places[key]
        order[np.uint64(place)] = origin + i
        places[key] = place + 1
        soon_written(order, place + _AHEAD)


def _place_rows(code: Array, places: Array, values: Array, out: Array) -> None:
    """Rows to where they stand by key: each key's next row goes behind its last, so caches see streams.

    They are too many for the processor to foresee, so they are asked for ahead: half the time of doing without.
    """
    for i in range(code.size):
        key = np.uint64(code[i])
        place = places[key]
        out[np.uint64(place)] = values[i]
        places[key] = place + 1
        soon_written(out, place + _AHEAD)


def _fetch_rows(code: Array, places: Array, values: Array, out: Array) -> None:
    """The way back."""
    for i in range(code.size):
        key = np.uint64(code[i])
        place = places[key]
        out[i] = values[np.uint64(place)]
        places[key] = place + 1
        soon_read(values, place + _AHEAD)


def _gather(values: Array, order: Array, out: Array) -> None:
    for i in range(order.size):
        out[i] = values[order[i]]


def _scatter_back(values: Array, order: Array, out: Array) -> None:
    for i in range(order.size):
        out[order[i]] = values[i]


count_keys, order_rows = jit(_count_keys), jit(_order_rows)
place_rows, fetch_rows = jit(_place_rows), jit(_fetch_rows)
#: ``gather(values, order, out)``: ``out[i] = values[order[i]]``; ``scatter`` is its inverse.
gather, scatter = jit(_gather), jit(_scatter_back)
