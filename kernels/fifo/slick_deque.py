"""SlickDeque: several windows over one set of elements; one scheme for groups, one for selective monoids.

Shein, Chrysanthis, Labrinidis: SlickDeque (EDBT 2018); *SlideSide* §2 and Table 1.

**Invertible** (:func:`slick_deque_inv`): Subtract-on-Evict with one total per window and the elements kept once.
Needs a group. Combines and inverts for windows that slide: 2 q, queries 0. Space: n + q, n being the largest window.

**Non-invertible** (:func:`slick_deque_non_inv`): a deque of the elements that some window may still answer with.
Needs a selective monoid. An inserted element x first drops from the end of the deque every e with
``combine(e, x) == x``: no window can answer with e any more, since each one that holds e holds x. What remains has
``combine(d_i, d_i+1) == d_i``, so the answer of a window is the first element of the deque that lies in it: by
associativity it wins over all later ones, and what was dropped between two of them lost to the second. For each
window a mark keeps that element's number and only ever moves on over elements, so that it takes amortised constant
time to find; it is the walk through the deque of the paper, gone on with where it stopped.

Combines for windows that slide: less than 2 on average, the length of the deque + 1 at worst, queries 0. Space: a
partial and a position for each element of the deque, from 1 to n (1 to 2 n numbers, "2 to 2n" in Table 1); the arrays
here hold the most there can be, and :func:`entries` says how many are in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from workbench.kernels.fifo.fields import ACCESS, Array, Fields, blank
from workbench.kernels.fifo.interface import Algorithm, Functions, ascending, complete, zero
from workbench.kernels.fifo.monoids import Group, Monoid, Partial, Selective, require
from workbench.kernels.jit import jitable

PRESENT, END = 0, 1  # cursors of both: elements that are present; slot (inv) or number (non-inv) of the next one
FIRST, LAST = 2, 3  # of the deque: number of its first entry; number after its last one


class TotalsState(NamedTuple):
    """A circular buffer for all windows and a total for each."""

    sizes: Array
    cursors: Array
    elements: Fields
    totals: Fields


class DequeState(NamedTuple):
    """The deque: entry ``i`` is at slot ``i & (slots - 1)``. ``marks[w]``: no entry before it is in window ``w``."""

    sizes: Array
    cursors: Array
    marks: Array
    positions: Array
    entries: Fields


def slick_deque_inv(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over a group; TypeError for a monoid that is none."""
    group = require(Group, monoid, "slick_deque_inv", "`slide_side_non_inv` needs no inverse")
    windows = ascending(sizes)
    elements = blank(group.identity, group.dtypes, sizes[-1])
    state = TotalsState(windows, np.zeros(2, np.int64), elements, blank(group.identity, group.dtypes, len(windows)))
    return Algorithm("slick_deque_inv", group, tuple(sizes), state, _functions_inv(group))


def slick_deque_non_inv(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over a selective monoid; TypeError for one that is not."""
    selective = require(Selective, monoid, "slick_deque_non_inv", "`slide_side_non_inv` takes any monoid")
    windows = ascending(sizes)
    slots = 1 << (int(windows[-1]) - 1).bit_length()
    entries = blank(selective.identity, selective.dtypes, slots)
    marks, positions = np.zeros(len(windows), np.int64), np.zeros(slots, np.int64)
    state = DequeState(windows, np.zeros(4, np.int64), marks, positions, entries)
    return Algorithm("slick_deque_non_inv", selective, tuple(sizes), state, _functions_non_inv(selective))


def entries(state: DequeState) -> int:
    """Entries in the deque now, each a partial and a position."""
    return int(state.cursors[LAST] - state.cursors[FIRST])


@cache
def _functions_inv(group: Group) -> Functions:
    load, store, _ = ACCESS[len(group.dtypes) - 1]
    combine, invert = jitable(group.combine), jitable(group.invert)

    @jitable
    def element(state: TotalsState, age: int) -> Partial:
        """The element that came ``age`` insertions ago: 1 is the newest."""
        slot = state.cursors[END] - age
        return load(state.elements, slot if slot >= 0 else slot + len(state.elements[0]))

    def insert(state: TotalsState, partial: Partial) -> None:
        capacity, end, present = len(state.elements[0]), state.cursors[END], state.cursors[PRESENT]
        for w in range(len(state.sizes)):
            total = load(state.totals, w)
            if present >= state.sizes[w]:
                total = invert(total, element(state, state.sizes[w]))
            store(state.totals, w, combine(total, partial))
        store(state.elements, end, partial)
        state.cursors[END] = end + 1 if end + 1 < capacity else 0
        state.cursors[PRESENT] = min(present + 1, capacity)

    def evict(state: TotalsState) -> None:
        present = state.cursors[PRESENT]
        if present == 0:
            raise IndexError("evict from an empty window")
        for w in range(len(state.sizes)):
            if state.sizes[w] >= present:
                store(state.totals, w, invert(load(state.totals, w), element(state, present)))
        state.cursors[PRESENT] = present - 1

    def answer(state: TotalsState, w: int) -> Partial:
        return load(state.totals, w)

    return complete(group, jitable(insert), jitable(evict), jitable(answer))


@cache
def _functions_non_inv(monoid: Selective) -> Functions:
    load, store, same = ACCESS[len(monoid.dtypes) - 1]
    identity, combine = zero(monoid), jitable(monoid.combine)

    @jitable
    def drop_oldest(state: DequeState) -> None:
        first, mask = state.cursors[FIRST], len(state.positions) - 1
        if state.positions[first & mask] == state.cursors[END] - state.cursors[PRESENT]:
            state.cursors[FIRST] = first + 1
        state.cursors[PRESENT] -= 1

    def insert(state: DequeState, partial: Partial) -> None:
        if state.cursors[PRESENT] == state.sizes[len(state.sizes) - 1]:
            drop_oldest(state)
        mask, first, last = len(state.positions) - 1, state.cursors[FIRST], state.cursors[LAST]
        while last > first and same(combine(load(state.entries, (last - 1) & mask), partial), partial):
            last -= 1
        for w in range(len(state.marks)):
            state.marks[w] = min(state.marks[w], last)
        state.positions[last & mask] = state.cursors[END]
        store(state.entries, last & mask, partial)
        state.cursors[LAST] = last + 1
        state.cursors[END] += 1
        state.cursors[PRESENT] += 1

    def evict(state: DequeState) -> None:
        if state.cursors[PRESENT] == 0:
            raise IndexError("evict from an empty window")
        drop_oldest(state)

    def answer(state: DequeState, w: int) -> Partial:
        count = min(state.sizes[w], state.cursors[PRESENT])
        if count == 0:
            return identity
        mask, start = len(state.positions) - 1, state.cursors[END] - count
        entry = max(state.marks[w], state.cursors[FIRST])
        while state.positions[entry & mask] < start:
            entry += 1
        state.marks[w] = entry
        return load(state.entries, entry & mask)

    return complete(monoid, jitable(insert), jitable(evict), jitable(answer))
