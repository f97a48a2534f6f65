"""Folding rows into groups without compilation, for any monoid: pairwise within segments.

The variant that answers at once while a compiled fold is being made (*Grizzly* §6.1: start generic), and the
second opinion that the compiled fold is tested against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


def fold_segments(group: Array, fields: Fields, combine: Callable[..., Fields]) -> tuple[Array, Fields]:
    """Distinct groups, ascending, and the combination of the fields of each one's rows in their order.

    Rows are sorted by group (stably), then neighbours of one group are combined in pairs, round after round, so
    an order-sensitive or non-commutative monoid comes out right and a float sum has pairwise accuracy. Cost: one
    sort, then about two vector operations per row.
    """
    order = np.argsort(group, kind="stable")
    group = group[order]
    fields = tuple(field[order] for field in fields)
    while len(group) and (group[1:] == group[:-1]).any():
        first = np.concatenate(([True], group[1:] != group[:-1]))
        beginning = np.flatnonzero(first)
        place = np.arange(len(group)) - np.repeat(beginning, np.diff(np.append(beginning, len(group))))
        left = np.flatnonzero(place % 2 == 0)
        paired = np.append(group[1:] == group[:-1], False)[left]
        pair = left[paired]
        merged = combine(*(field[pair] for field in fields), *(field[pair + 1] for field in fields))
        folded = tuple(field[left] for field in fields)
        for target, values in zip(folded, merged, strict=True):
            target[paired] = values
        group, fields = group[left], folded
    return group, fields
