"""Recalculation: every window from its own elements, every time. The reference for all others.

The naive scheme that *SlideSide* §1 and *LightSaber* §2.1 start from.

Needs a monoid. Combines: insert 0, evict 0, a query as many as its window has elements. Space: n partials, n being
the size of the largest window.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from workbench.kernels.fifo.fields import ACCESS, Array, Fields, blank
from workbench.kernels.fifo.interface import Algorithm, Functions, ascending, complete, zero
from workbench.kernels.fifo.monoids import Monoid, Partial
from workbench.kernels.jit import jitable

PRESENT, END = 0, 1  # cursors: elements that are present; slot of the next one


class State(NamedTuple):
    """A circular buffer of elements."""

    sizes: Array
    cursors: Array
    elements: Fields


def recalculate(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over any monoid."""
    windows = ascending(sizes)
    state = State(windows, np.zeros(2, np.int64), blank(monoid.identity, monoid.dtypes, sizes[-1]))
    return Algorithm("recalculate", monoid, tuple(sizes), state, _functions(monoid))


@cache
def _functions(monoid: Monoid) -> Functions:
    load, store, _ = ACCESS[len(monoid.dtypes) - 1]
    identity, combine = zero(monoid), jitable(monoid.combine)

    def insert(state: State, partial: Partial) -> None:
        capacity = len(state.elements[0])
        end = state.cursors[END]
        store(state.elements, end, partial)
        state.cursors[END] = end + 1 if end + 1 < capacity else 0
        state.cursors[PRESENT] = min(state.cursors[PRESENT] + 1, capacity)

    def evict(state: State) -> None:
        if state.cursors[PRESENT] == 0:
            raise IndexError("evict from an empty window")
        state.cursors[PRESENT] -= 1

    def answer(state: State, w: int) -> Partial:
        capacity = len(state.elements[0])
        count = min(state.sizes[w], state.cursors[PRESENT])
        slot = state.cursors[END] - count
        result = identity
        for _ in range(count):
            result = combine(result, load(state.elements, slot if slot >= 0 else slot + capacity))
            slot += 1
        return result

    return complete(monoid, jitable(insert), jitable(evict), jitable(answer))
