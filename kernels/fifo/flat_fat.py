"""FlatFAT: a binary tree of aggregates in one array without pointers, its leaves a circular buffer.

Tangwongsan, Hirzel, Schneider, Wu: General Incremental Sliding-Window Aggregation (PVLDB 8(7), 2015), §4;
*SlideSide* §2 and Table 1. Node 1 is the root, node i has the children 2 i and 2 i + 1, the m leaves are the nodes
m .. 2 m - 1, m being the power of two that holds the largest window. Every window is a range of leaves, put together
from the largest subtrees that fit into it, left ones on the left. Where a window runs over the end of the buffer (the
inverted buffer) its older elements stand right of its newer ones: then it is the suffix of leaves from its start
combined with the prefix up to its end.

A leaf that left is not cleared: a node is only ever read when all of its leaves are in the window, and each of them
was brought up to date all the way to the root when it was inserted.

Needs a monoid. Combines with m leaves: insert log2 m, evict 0, a query 2 log2 m + 3 at most; with q windows q
queries over one tree. Space: 2 m.
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

PRESENT, END = 0, 1  # cursors: elements that are present; leaf of the next one


class State(NamedTuple):
    """The tree."""

    sizes: Array
    cursors: Array
    tree: Fields


def flat_fat(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over any monoid."""
    windows = ascending(sizes)
    leaves = 1 << (int(windows[-1]) - 1).bit_length()
    state = State(windows, np.zeros(2, np.int64), blank(monoid.identity, monoid.dtypes, 2 * leaves))
    return Algorithm("flat_fat", monoid, tuple(sizes), state, _functions(monoid))


@cache
def _functions(monoid: Monoid) -> Functions:
    load, store, _ = ACCESS[len(monoid.dtypes) - 1]
    identity, combine = zero(monoid), jitable(monoid.combine)

    @jitable
    def fold(tree: Fields, low: int, high: int) -> Partial:
        """The nodes from ``low`` (inclusive) to ``high`` (exclusive) of one height, in order."""
        left = right = identity
        while low < high:
            if low & 1:
                left = combine(left, load(tree, low))
                low += 1
            if high & 1:
                high -= 1
                right = combine(load(tree, high), right)
            low >>= 1
            high >>= 1
        return combine(left, right)

    def insert(state: State, partial: Partial) -> None:
        leaves = len(state.tree[0]) // 2
        end = state.cursors[END]
        node = leaves + end
        store(state.tree, node, partial)
        while node > 1:
            node >>= 1
            store(state.tree, node, combine(load(state.tree, 2 * node), load(state.tree, 2 * node + 1)))
        state.cursors[END] = (end + 1) & (leaves - 1)
        state.cursors[PRESENT] = min(state.cursors[PRESENT] + 1, state.sizes[len(state.sizes) - 1])

    def evict(state: State) -> None:
        if state.cursors[PRESENT] == 0:
            raise IndexError("evict from an empty window")
        state.cursors[PRESENT] -= 1

    def answer(state: State, w: int) -> Partial:
        leaves = len(state.tree[0]) // 2
        count = min(state.sizes[w], state.cursors[PRESENT])
        end = state.cursors[END]
        if end == 0:
            end = leaves
        start = end - count
        if start >= 0:
            return fold(state.tree, leaves + start, leaves + end)
        return combine(fold(state.tree, 2 * leaves + start, 2 * leaves), fold(state.tree, leaves, leaves + end))

    return complete(monoid, jitable(insert), jitable(evict), jitable(answer))
