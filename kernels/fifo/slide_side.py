"""SlideSide: several windows answered from one prefix scan and one suffix scan over a shared circular buffer.

Theodorakis, Pietzuch, Pirk: SlideSide (EDBT 2020). n is the size of the largest window, s of the smallest, q their
number; windows slide by one element.

**Invertible** (:func:`slide_side_inv`), Algorithms 1 to 3. Needs a group. ``back[i]`` is the aggregate of the first i
slots of the buffer; each time it starts again at slot 0, ``front[i]`` becomes that of its last i slots. A window ends
in the current run over the buffer and starts in the same one (prefix without a prefix) or in the one before (suffix,
then prefix). As printed the pseudocode needs care. The scan of Algorithm 2 runs one step too far (i = windowSize
would write ``frontStack[windowSize + 1]``) and reads ``partials`` where the buffer is called ``elements``. It, line 6
and line 14 of Algorithm 3 combine the newer partial on the left, which only commutative functions forgive.
Combines: insert 1 and a scan of n every n elements, a query 1: for one window 3 on average. At worst n + 1 + q (Table
1 has q: it leaves the scan out there). Space: 3 n + 2.

**Non-invertible** (:func:`slide_side_non_inv`), after §3.2, which omits the algorithm. Needs a monoid. Every window
would have its own TwoStacks: a front of suffix aggregates, a back of which only the root counts. Let all windows flip
at the same moment, after element t - 1. Then all fronts are suffixes that end at t - 1, so that one array serves as
the front of every window; window k just enters it at another place. And all backs are the elements from t::

    elements            a    b    c    d    e    f  |  g    h
    suffixes           a-f  b-f  c-f  d-f  e-f   f  |  (g, h: left over from earlier, never read)
    back                                               g-h
    window of 7             [b-f                  combined with g-h]
    window of 3                                 [f combined with g-h]

What holds between operations, for every element i that is present (in some window):

1. i < t: ``suffixes[i]`` is the aggregate of the elements i .. t - 1;
2. ``back`` is the aggregate of the elements from t to the newest;
3. the back has no more elements than the smallest window.

By (3) every window starts at t or before. If before, it is ``suffixes[start]`` combined with ``back`` by (1) and (2);
if at t, it is ``back``. Inserting keeps (1) and (2), and (3) as long as the back has less than s elements: when it
has s, the smallest window starts to evict and its front is empty. That is the trigger: t moves behind the newest
element, the back becomes empty, and (1) is restored by a scan over all elements from right to left,
``suffixes[i] = combine(elements[i], suffixes[i + 1])``. Evicting can break (3) only when everything left is in the
back, and triggers as well.

*When the scan may stop early.* Going left it has passed the s new elements and now finds for an i before the old t
the value that is stored already. By (1) everything further left was made from the stored value, by the same steps
that the scan is about to take: it would store the same again. Two conditions matter. The element must have been in
the front before: in the slot of a new element there is what an earlier run over the buffer left, and to stop where
the two happen to be equal leaves aggregates of elements that are long gone in the slots further left. And the whole
partial must be equal, all of its fields. For a sum the scan hardly ever stops. For a minimum it stops at the first
suffix that is not above any new element: with values in random order it gets d elements beyond the s new ones in s
out of s + d cases, so that it takes s (1 + ln(1 + n / s)) steps on average.

Combines: insert 1, a query 1, and every s elements a scan. So for one window 3 on average; for q windows 1 + q and
the scan's share, which is 1 + ln(1 + n / s) for a minimum over random values, but n / s for sums and for minima over
descending values (Table 1 has q for all of it). At worst n + q. Space: 2 n + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from workbench.kernels.fifo.fields import ACCESS, Array, Fields, blank
from workbench.kernels.fifo.interface import Algorithm, Functions, ascending, complete, zero
from workbench.kernels.fifo.monoids import Group, Monoid, Partial, require
from workbench.kernels.jit import jitable

PRESENT, END = 0, 1  # cursors of both: elements that are present; slot of the next one (curPos in the paper)
BACK = 2  # of the non-invertible scheme: elements in the back


class ScanState(NamedTuple):
    """The circular buffer, its prefix scan and the suffix scan of the run before, both with an identity first."""

    sizes: Array
    cursors: Array
    elements: Fields
    back: Fields
    front: Fields


class OverlaidState(NamedTuple):
    """The circular buffer, the front stacks of all windows in one array, and the root of their back stack."""

    sizes: Array
    cursors: Array
    elements: Fields
    suffixes: Fields
    back: Fields


def slide_side_inv(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over a group; TypeError for a monoid that is none."""
    group = require(Group, monoid, "slide_side_inv", "`slide_side_non_inv` needs no inverse")
    windows = ascending(sizes)
    elements, back, front = (blank(group.identity, group.dtypes, sizes[-1] + spare) for spare in (0, 1, 1))
    state = ScanState(windows, np.zeros(2, np.int64), elements, back, front)
    return Algorithm("slide_side_inv", group, tuple(sizes), state, _functions_inv(group))


def slide_side_non_inv(monoid: Monoid, sizes: Sequence[int]) -> Algorithm:
    """Windows of ``sizes`` elements (ascending) over any monoid."""
    windows = ascending(sizes)
    elements, suffixes, back = (blank(monoid.identity, monoid.dtypes, slots) for slots in (sizes[-1], sizes[-1], 1))
    state = OverlaidState(windows, np.zeros(3, np.int64), elements, suffixes, back)
    return Algorithm("slide_side_non_inv", monoid, tuple(sizes), state, _functions_non_inv(monoid))


@cache
def _functions_inv(group: Group) -> Functions:
    load, store, _ = ACCESS[len(group.dtypes) - 1]
    combine, invert = jitable(group.combine), jitable(group.invert)

    @jitable
    def scan(state: ScanState) -> None:
        size = len(state.elements[0])
        for i in range(size):
            store(state.front, i + 1, combine(load(state.elements, size - 1 - i), load(state.front, i)))

    def insert(state: ScanState, partial: Partial) -> None:
        size, end = len(state.elements[0]), state.cursors[END]
        if end == 0:
            scan(state)
        store(state.elements, end, partial)
        store(state.back, end + 1, combine(load(state.back, end), partial))
        state.cursors[END] = end + 1 if end + 1 < size else 0
        state.cursors[PRESENT] = min(state.cursors[PRESENT] + 1, size)

    def evict(state: ScanState) -> None:
        if state.cursors[PRESENT] == 0:
            raise IndexError("evict from an empty window")
        state.cursors[PRESENT] -= 1

    def answer(state: ScanState, w: int) -> Partial:
        end = state.cursors[END]
        if end == 0:
            end = len(state.elements[0])
        start = end - min(state.sizes[w], state.cursors[PRESENT])
        prefix = load(state.back, end)
        if start == 0:
            return prefix
        if start < 0:
            return combine(load(state.front, -start), prefix)
        return invert(prefix, load(state.back, start))

    return complete(group, jitable(insert), jitable(evict), jitable(answer))


@cache
def _functions_non_inv(monoid: Monoid) -> Functions:
    load, store, same = ACCESS[len(monoid.dtypes) - 1]
    identity, combine = zero(monoid), jitable(monoid.combine)

    @jitable
    def flip(state: OverlaidState) -> None:
        size, new, slot = len(state.elements[0]), state.cursors[BACK], state.cursors[END]
        suffix = identity
        for n in range(state.cursors[PRESENT]):
            slot = slot - 1 if slot > 0 else size - 1
            suffix = combine(load(state.elements, slot), suffix)
            if n >= new and same(suffix, load(state.suffixes, slot)):
                break
            store(state.suffixes, slot, suffix)
        state.cursors[BACK] = 0
        store(state.back, 0, identity)

    def insert(state: OverlaidState, partial: Partial) -> None:
        size, end = len(state.elements[0]), state.cursors[END]
        if state.cursors[PRESENT] == size:
            state.cursors[PRESENT] -= 1
        if state.cursors[BACK] == state.sizes[0]:
            flip(state)
        store(state.elements, end, partial)
        store(state.back, 0, combine(load(state.back, 0), partial))
        state.cursors[END] = end + 1 if end + 1 < size else 0
        state.cursors[PRESENT] += 1
        state.cursors[BACK] += 1

    def evict(state: OverlaidState) -> None:
        if state.cursors[PRESENT] == 0:
            raise IndexError("evict from an empty window")
        state.cursors[PRESENT] -= 1
        if state.cursors[BACK] > state.cursors[PRESENT]:
            flip(state)

    def answer(state: OverlaidState, w: int) -> Partial:
        count = min(state.sizes[w], state.cursors[PRESENT])
        back = load(state.back, 0)
        if count == state.cursors[BACK]:
            return back
        start = state.cursors[END] - count
        return combine(load(state.suffixes, start if start >= 0 else start + len(state.elements[0])), back)

    return complete(monoid, jitable(insert), jitable(evict), jitable(answer))
