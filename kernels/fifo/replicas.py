"""Several windows with an algorithm that knows only one: a copy of its structure for each window.

That is how *SlideSide* §4.2 and *LightSaber* §7.7 run Subtract-on-Evict and TwoStacks on several queries, and what
the rows "qn" of their tables stand for. All copies lie one behind the other in the same arrays: window ``w`` has the
slots from ``starts[w]`` and the row ``w`` of ``cursors``, whose first column is the number of its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from workbench.kernels.fifo.fields import Array
from workbench.kernels.fifo.interface import Functions, State, complete
from workbench.kernels.fifo.monoids import Monoid, Partial
from workbench.kernels.jit import jitable

#: Column of ``cursors``: elements in the window.
COUNT = 0


class Layout(NamedTuple):
    """Where the copies are: first slots, cursors (zero), and slots in all."""

    starts: Array
    cursors: Array
    slots: int


def lay_out(sizes: Array, cursors: int, spare: int = 0) -> Layout:
    """Room for ``size + spare`` slots and ``cursors`` cursors for each window."""
    ends = np.cumsum(sizes + spare)
    return Layout(ends - sizes - spare, np.zeros((len(sizes), cursors), np.int64), int(ends[-1]))


def replicate(
    monoid: Monoid,
    push: Callable[[State, int, Partial], None],
    pop: Callable[[State, int], None],
    answer: Callable[[State, int], Partial],
) -> Functions:
    """Functions over all windows from those over one: ``push`` onto a window with room, ``pop`` the oldest of one."""

    def insert(state: State, partial: Partial) -> None:
        for w in range(len(state.sizes)):
            if state.cursors[w, COUNT] == state.sizes[w]:
                pop(state, w)
            push(state, w, partial)

    def evict(state: State) -> None:
        present = state.cursors[len(state.sizes) - 1, COUNT]
        if present == 0:
            raise IndexError("evict from an empty window")
        for w in range(len(state.sizes)):
            if state.cursors[w, COUNT] == present:
                pop(state, w)

    return complete(monoid, jitable(insert), jitable(evict), answer)
