"""TwoStacks: a queue of two stacks, each element with the aggregate of its stack from it to the other stack.

*SlideSide* §2 and Fig. 1, *LightSaber* §2.1 and Fig. 2; described by Hirzel, Schneider, Tangwongsan: Sliding-Window
Aggregation Algorithms (DEBS 2017). Both stacks lie in one circular buffer of the elements, with a second one of
aggregates next to it::

    oldest                 newest
      a   b   c   d  |  e   f        elements
     a-d b-d c-d  d  |  e  e-f       aggregates
    top of front        top of back

A window is the top of the front combined with the top of the back. When an element must go and the front is empty,
all of the back becomes the front (the flip): its aggregates are made anew, from the right.

Needs a monoid. Combines: a window that slides takes 3 on average (push, its share of a flip, query) and n + 2 in
the worst case, with n elements in the window. Space: 2 n; for several windows once each. The block-wise relative for
whole matrices of slices is :mod:`workbench.kernels.two_stacks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from workbench.kernels.fifo.fields import ACCESS, Array, Fields, blank
from workbench.kernels.fifo.interface import Algorithm, Functions, ascending, zero
from workbench.kernels.fifo.monoids import Monoid, Partial
from workbench.kernels.fifo.replicas import COUNT, lay_out, replicate
from workbench.kernels.jit import jitable

FIRST, FRONT = 1, 2  # cursors: slot of the oldest element; elements in the front stack


class State(NamedTuple):
    """Elements and aggregates of both stacks, for each window."""

    sizes: Array
    starts: Array
    cursors: Array
    elements: Fields
    aggregates: Fields


def two_stacks(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over any monoid."""
    windows = ascending(sizes)
    starts, cursors, slots = lay_out(windows, cursors=3)
    elements, aggregates = (blank(monoid.identity, monoid.dtypes, slots) for _ in range(2))
    state = State(windows, starts, cursors, elements, aggregates)
    return Algorithm("two_stacks", monoid, tuple(sizes), state, _functions(monoid))


@cache
def _functions(monoid: Monoid) -> Functions:
    load, store, _ = ACCESS[len(monoid.dtypes) - 1]
    identity, combine = zero(monoid), jitable(monoid.combine)

    @jitable
    def slot_of(state: State, w: int, n: int) -> int:
        """Slot of the n-th oldest element of window ``w``, where n = 0 .. size."""
        slot = state.cursors[w, FIRST] + n
        return state.starts[w] + (slot - state.sizes[w] if slot >= state.sizes[w] else slot)

    @jitable
    def top_of_back(state: State, w: int) -> Partial:
        count = state.cursors[w, COUNT]
        if count == state.cursors[w, FRONT]:
            return identity
        return load(state.aggregates, slot_of(state, w, count - 1))

    def push(state: State, w: int, partial: Partial) -> None:
        slot = slot_of(state, w, state.cursors[w, COUNT])
        store(state.elements, slot, partial)
        store(state.aggregates, slot, combine(top_of_back(state, w), partial))
        state.cursors[w, COUNT] += 1

    @jitable
    def flip(state: State, w: int) -> None:
        count = state.cursors[w, COUNT]
        suffix = identity
        for n in range(count - 1, -1, -1):
            slot = slot_of(state, w, n)
            suffix = combine(load(state.elements, slot), suffix)
            store(state.aggregates, slot, suffix)
        state.cursors[w, FRONT] = count

    def pop(state: State, w: int) -> None:
        if state.cursors[w, FRONT] == 0:
            flip(state, w)
        first = state.cursors[w, FIRST] + 1
        state.cursors[w, FIRST] = first if first < state.sizes[w] else 0
        state.cursors[w, COUNT] -= 1
        state.cursors[w, FRONT] -= 1

    def answer(state: State, w: int) -> Partial:
        back = top_of_back(state, w)
        if state.cursors[w, FRONT] == 0:
            return back
        return combine(load(state.aggregates, state.starts[w] + state.cursors[w, FIRST]), back)

    return replicate(monoid, jitable(push), jitable(pop), jitable(answer))
