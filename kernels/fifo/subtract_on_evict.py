"""Subtract-on-Evict: one running total per window, from which the oldest element is taken out again.

*SlideSide* §2 and Table 1 (SoE), *LightSaber* §2.1; described by Hirzel, Schneider, Tangwongsan: Sliding-Window
Aggregation Algorithms (DEBS 2017).

Needs a group. Combines and inverts for a window that slides: 2 at most, a query 0. Space: its n elements and the
total; for several windows once each (for elements shared by all windows see :mod:`.slick_deque`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from workbench.kernels.fifo.fields import ACCESS, Array, Fields, blank
from workbench.kernels.fifo.interface import Algorithm, Functions, ascending
from workbench.kernels.fifo.monoids import Group, Monoid, Partial, require
from workbench.kernels.fifo.replicas import COUNT, lay_out, replicate
from workbench.kernels.jit import jitable

FIRST = 1  # cursor: slot of the oldest element


class State(NamedTuple):
    """A circular buffer and a total per window."""

    sizes: Array
    starts: Array
    cursors: Array
    elements: Fields
    totals: Fields


def subtract_on_evict(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over a group; TypeError for a monoid that is none."""
    group = require(Group, monoid, "subtract_on_evict", "`two_stacks_lite` needs no inverse")
    windows = ascending(sizes)
    starts, cursors, slots = lay_out(windows, cursors=2)
    elements = blank(group.identity, group.dtypes, slots)
    state = State(windows, starts, cursors, elements, blank(group.identity, group.dtypes, len(windows)))
    return Algorithm("subtract_on_evict", group, tuple(sizes), state, _functions(group))


@cache
def _functions(group: Group) -> Functions:
    load, store, _ = ACCESS[len(group.dtypes) - 1]
    combine, invert = jitable(group.combine), jitable(group.invert)

    def push(state: State, w: int, partial: Partial) -> None:
        slot = state.cursors[w, FIRST] + state.cursors[w, COUNT]
        if slot >= state.sizes[w]:
            slot -= state.sizes[w]
        store(state.elements, state.starts[w] + slot, partial)
        store(state.totals, w, combine(load(state.totals, w), partial))
        state.cursors[w, COUNT] += 1

    def pop(state: State, w: int) -> None:
        first = state.cursors[w, FIRST]
        oldest = load(state.elements, state.starts[w] + first)
        store(state.totals, w, invert(load(state.totals, w), oldest))
        state.cursors[w, FIRST] = first + 1 if first + 1 < state.sizes[w] else 0
        state.cursors[w, COUNT] -= 1

    def answer(state: State, w: int) -> Partial:
        return load(state.totals, w)

    return replicate(group, jitable(push), jitable(pop), jitable(answer))
