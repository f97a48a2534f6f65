"""TwoStacks Lite: TwoStacks with one partial per element, written over in place, and one for the whole back stack.

Tangwongsan, Hirzel, Schneider: In-Order Sliding-Window Aggregation in Worst-Case Constant Time (VLDB Journal 2021),
§4; the idea is HammerSlide's (Theodorakis et al., ADMS 2018; *LightSaber* §5.3 and Fig. 8f): nobody asks for any
aggregate of the back stack but the top, nor for an element once it is in the front::

    oldest                 newest
     a-d b-d c-d  d  |  e   f        slots: aggregates in the front, elements in the back
                        back = e-f

Needs a monoid. Combines: a window that slides takes 3 on average (push, its share of a flip, query) and n + 2 in
the worst case, with n elements in the window. Space: n + 1; for several windows once each.
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
    """A circular buffer with both stacks and the aggregate of the back, for each window."""

    sizes: Array
    starts: Array
    cursors: Array
    slots: Fields
    backs: Fields


def two_stacks_lite(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over any monoid."""
    windows = ascending(sizes)
    starts, cursors, slots = lay_out(windows, cursors=3)
    partials = blank(monoid.identity, monoid.dtypes, slots)
    state = State(windows, starts, cursors, partials, blank(monoid.identity, monoid.dtypes, len(windows)))
    return Algorithm("two_stacks_lite", monoid, tuple(sizes), state, _functions(monoid))


@cache
def _functions(monoid: Monoid) -> Functions:
    load, store, _ = ACCESS[len(monoid.dtypes) - 1]
    identity, combine = zero(monoid), jitable(monoid.combine)

    @jitable
    def slot_of(state: State, w: int, n: int) -> int:
        """Slot of the n-th oldest element of window ``w``, where n = 0 .. size."""
        slot = state.cursors[w, FIRST] + n
        return state.starts[w] + (slot - state.sizes[w] if slot >= state.sizes[w] else slot)

    def push(state: State, w: int, partial: Partial) -> None:
        store(state.slots, slot_of(state, w, state.cursors[w, COUNT]), partial)
        store(state.backs, w, combine(load(state.backs, w), partial))
        state.cursors[w, COUNT] += 1

    @jitable
    def flip(state: State, w: int) -> None:
        count = state.cursors[w, COUNT]
        suffix = identity
        for n in range(count - 1, -1, -1):
            slot = slot_of(state, w, n)
            suffix = combine(load(state.slots, slot), suffix)
            store(state.slots, slot, suffix)
        state.cursors[w, FRONT] = count
        store(state.backs, w, identity)

    def pop(state: State, w: int) -> None:
        if state.cursors[w, FRONT] == 0:
            flip(state, w)
        first = state.cursors[w, FIRST] + 1
        state.cursors[w, FIRST] = first if first < state.sizes[w] else 0
        state.cursors[w, COUNT] -= 1
        state.cursors[w, FRONT] -= 1

    def answer(state: State, w: int) -> Partial:
        back = load(state.backs, w)
        if state.cursors[w, FRONT] == 0:
            return back
        return combine(load(state.slots, state.starts[w] + state.cursors[w, FIRST]), back)

    return replicate(monoid, jitable(push), jitable(pop), jitable(answer))
