"""A tree of partials over slices, for many keys at once (FlatFAT): the eager store of *General Stream Slicing* §5.4.

The leaves are the slices themselves, rows of matrices ``[slice, key]``; what is kept beside them are the levels
above, one behind the other in one matrix. A node is the partial of its two children in order, so any monoid will do::

    level 2     |------- 0 to 3 -------|---- 4 to 5
    level 1     |-- 0, 1 --|-- 2, 3 --|-- 4, 5 --|
    slices        0    1     2    3     4    5

A slice that changes renews one node a level, a window takes at most two nodes a level, whatever its size. This is the
array code; ``codegen/slices.py`` has the compiled form of the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


def levels(rows: int) -> list[tuple[int, int]]:
    """Where each level above so many slices begins in the matrix of the tree, and how many nodes it has.

    All levels together have fewer than ``rows + rows.bit_length()`` nodes.
    """
    found: list[tuple[int, int]] = []
    above = 0
    while rows > 1:
        rows = (rows + 1) // 2
        found.append((above, rows))
        above += rows
    return found


def renew(changed: Array, leaves: Fields, tree: Fields, combine: Callable[..., Fields]) -> None:
    """Bring the nodes above the ``changed`` slices (ascending) up to date. Cost: one combine a node."""
    below, size = leaves, len(leaves[0])
    for begin, count in levels(size):
        changed = np.unique(changed >> 1)
        pairs = changed[2 * changed + 1 < size]
        above = tuple(matrix[begin : begin + count] for matrix in tree)
        for matrix, child in zip(above, below, strict=True):
            matrix[changed] = child[2 * changed]
        merged = combine(*(child[2 * pairs] for child in below), *(child[2 * pairs + 1] for child in below))
        for matrix, values in zip(above, merged, strict=True):
            matrix[pairs] = values
        below, size = above, count


def assemble(
    first: Array,
    last: Array,
    leaves: Fields,
    tree: Fields,
    identity: Sequence[Any],
    combine: Callable[..., Fields],
) -> Fields:
    """Partials ``[window, key]`` of the windows ``[first[w], last[w])``, in any order."""
    keys = leaves[0].shape[1]
    out = tuple(np.empty((len(first), keys), field.dtype) for field in leaves)
    rows = [leaves, *(tuple(matrix[b : b + n] for matrix in tree) for b, n in levels(len(leaves[0])))]
    blank = tuple(np.full(keys, value, field.dtype) for value, field in zip(identity, leaves, strict=True))
    for window in range(len(first)):
        low, high = int(first[window]), int(last[window])
        left = right = blank
        for level in rows:
            if low >= high:
                break
            if low & 1:
                left = combine(*left, *(matrix[low] for matrix in level))
            if high & 1:
                right = combine(*(matrix[high - 1] for matrix in level), *right)
            low, high = (low + 1) >> 1, high >> 1
        for target, values in zip(out, combine(*left, *right), strict=True):
            target[window] = values
    return out
