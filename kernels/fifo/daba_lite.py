"""DABA Lite, the De-Amortized Banker's Aggregator: TwoStacks whose flip is done ahead, a step per operation.

Tangwongsan, Hirzel, Schneider: In-Order Sliding-Window Aggregation in Worst-Case Constant Time (VLDB Journal 2021),
§6; DABA itself is of DEBS 2017. A circular buffer is cut at six marks F <= L <= R <= A <= B <= E::

    F        L        R        A        B        E
    | to B   | to R   | plain  | to B   | plain  |
    '--------------- front -------------'- back -'

A slot before L, or from A to B, holds the aggregate from its element up to B; one from L to R that up to R; the
others hold their elements. ``middle`` is the aggregate from R to B, ``back`` that from B to E. Between operations
either all is empty, or |F, L| = |B, E| + 1 and |L, R| = |R, A|. So the slot at F always holds the whole front.

Each operation changes |F, L| - |B, E| by one, and one step sets it right again:

- *shrink* (L < R): the slot at L gets ``middle`` added and L moves right; the slot left of A becomes the aggregate up
  to B and A moves left. |L, R| and |R, A| both lose one.
- *shift* (L = R = A): all three move right: the slots from A on are up to B already.
- *flip* first when L has come to B: then |B, E| = |F, B|, so the front becomes [L, R), the back [R, A), both A and B
  move to E, and the old ``back`` is the new ``middle``; then shrink.

Needs a monoid. Combines: insert 3, evict 2, query 1 at most, whatever happens. Space: n + 2 (and an unused slot);
for several windows once each.
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

F, L, R, A, B, E = 1, 2, 3, 4, 5, 6  # cursors: the marks, as slots; with a spare slot F == E means empty


class State(NamedTuple):
    """A circular buffer and the aggregates of two of its ranges, for each window."""

    sizes: Array
    starts: Array
    cursors: Array
    slots: Fields
    middles: Fields
    backs: Fields


def daba_lite(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over any monoid."""
    windows = ascending(sizes)
    starts, cursors, slots = lay_out(windows, cursors=7, spare=1)
    partials = blank(monoid.identity, monoid.dtypes, slots)
    middles, backs = (blank(monoid.identity, monoid.dtypes, len(windows)) for _ in range(2))
    state = State(windows, starts, cursors, partials, middles, backs)
    return Algorithm("daba_lite", monoid, tuple(sizes), state, _functions(monoid))


@cache
def _functions(monoid: Monoid) -> Functions:
    load, store, _ = ACCESS[len(monoid.dtypes) - 1]
    identity, combine = zero(monoid), jitable(monoid.combine)

    @jitable
    def right_of(mark: int, size: int) -> int:
        return mark + 1 if mark < size else 0

    @jitable
    def shrink(state: State, w: int) -> None:
        marks, size, start = state.cursors[w], state.sizes[w], state.starts[w]
        left, above = marks[L], marks[A]
        store(state.slots, start + left, combine(load(state.slots, start + left), load(state.middles, w)))
        marks[L] = right_of(left, size)
        below = above - 1 if above > 0 else size
        if above != marks[B]:
            done = combine(load(state.slots, start + below), load(state.slots, start + above))
            store(state.slots, start + below, done)
        marks[A] = below

    @jitable
    def restore_balance(state: State, w: int) -> None:
        marks = state.cursors[w]
        if marks[F] == marks[B]:  # one element at most: it becomes the front
            marks[L] = marks[R] = marks[A] = marks[B] = marks[E]
            store(state.middles, w, identity)
            store(state.backs, w, identity)
            return
        if marks[L] == marks[B]:
            marks[L], marks[R] = marks[F], marks[B]
            marks[A] = marks[B] = marks[E]
            store(state.middles, w, load(state.backs, w))
            store(state.backs, w, identity)
        if marks[L] == marks[R]:
            marks[L] = marks[R] = marks[A] = right_of(marks[L], state.sizes[w])
        else:
            shrink(state, w)

    def push(state: State, w: int, partial: Partial) -> None:
        end = state.cursors[w, E]
        store(state.slots, state.starts[w] + end, partial)
        store(state.backs, w, combine(load(state.backs, w), partial))
        state.cursors[w, E] = right_of(end, state.sizes[w])
        state.cursors[w, COUNT] += 1
        restore_balance(state, w)

    def pop(state: State, w: int) -> None:
        state.cursors[w, F] = right_of(state.cursors[w, F], state.sizes[w])
        state.cursors[w, COUNT] -= 1
        restore_balance(state, w)

    def answer(state: State, w: int) -> Partial:
        if state.cursors[w, COUNT] == 0:
            return identity
        return combine(load(state.slots, state.starts[w] + state.cursors[w, F]), load(state.backs, w))

    return replicate(monoid, jitable(push), jitable(pop), jitable(answer))
