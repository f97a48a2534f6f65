"""The algorithms of *SlideSide* §4 and *LightSaber* §7.7, and ours, as things that take a column and give windows.

All run on one thread, sliding by one row, and store every result. The algorithms of ``workbench.kernels.fifo`` take
one row at a time, in one compiled loop; ours (``blocks``) is :class:`RowWindows`, batch after batch. Sums have an
inverse (int64, modulo 2**64), minima have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks import peers
from benchmarks.row_streams import BLOCKS, Aggregate, Stream
from benchmarks.timing import batches
from workbench.algebra import PARTIALS
from workbench.algebra.monoids import monoid_of
from workbench.codegen.row_windows import RowWindows
from workbench.kernels.fifo import interface
from workbench.kernels.fifo.daba_lite import daba_lite
from workbench.kernels.fifo.flat_fat import flat_fat
from workbench.kernels.fifo.monoids import Monoid
from workbench.kernels.fifo.slick_deque import slick_deque_inv, slick_deque_non_inv
from workbench.kernels.fifo.slide_side import slide_side_inv, slide_side_non_inv
from workbench.kernels.fifo.subtract_on_evict import subtract_on_evict
from workbench.kernels.fifo.two_stacks import two_stacks
from workbench.kernels.fifo.two_stacks_lite import two_stacks_lite

Array = npt.NDArray[Any]
Make = Callable[[Monoid, Sequence[int]], interface.Algorithm]

#: Rows of a pass's output. Odd, so that the results of many windows do not fall into one set of a cache.
BATCH = 4091


@dataclass(frozen=True)
class Function:
    """Sum or minimum: its aggregate for the block kernels, its monoid, and who can compute it."""

    aggregate: Aggregate
    monoid: Monoid
    algorithms: Mapping[str, Make]


FUNCTIONS = {
    "sum": Function(
        Aggregate("sum", "count", "int64", "sum"),
        monoid_of(PARTIALS["count"]),
        {
            "SoE": subtract_on_evict,
            "TwoStacks": two_stacks,
            "TwoStacks Lite": two_stacks_lite,
            "SlickDeque": slick_deque_inv,
            "SlideSide": slide_side_inv,
            "FlatFAT": flat_fat,
        },
    ),
    "min": Function(
        Aggregate("min", "min_int", "int64", "min"),
        monoid_of(PARTIALS["min_int"]),
        {
            "TwoStacks": two_stacks,
            "TwoStacks Lite": two_stacks_lite,
            "DABA Lite": daba_lite,
            "SlickDeque": slick_deque_non_inv,
            "SlideSide": slide_side_non_inv,
            "FlatFAT": flat_fat,
        },
    ),
}


class Contestant(Protocol):
    """Windows over a column."""

    partials: int

    def run(self) -> None:
        """One pass over the column; the state goes on from pass to pass."""


class OneByOne:
    """An algorithm that takes a row at a time."""

    def __init__(self, make: Make, function: Function, column: Array, sizes: Sequence[int]) -> None:
        self.algorithm = make(function.monoid, sorted(sizes))
        self.partials = interface.partials(self.algorithm.state)
        self._pieces = [column[piece] for piece in batches(len(column), BATCH)]
        self._out = np.zeros((len(sizes), min(BATCH, len(column))), np.int64)

    def run(self) -> None:
        """The results of a batch go to one buffer, like those of the blocks."""
        loop, state = self.algorithm.functions.loop, self.algorithm.state
        for piece in self._pieces:
            loop(state, (piece,), (self._out,))


class Blocks:
    """The block kernels, in batches whose results fill about 512 KB, at least 512 rows and at most 65,536."""

    def __init__(self, function: Function, column: Array, sizes: Sequence[int]) -> None:
        batch = min(65_536, max(512, 65_536 // len(sizes)))
        self._stream = Stream(function.aggregate, column, sorted(sizes), batch)
        self.partials = RowWindows(function.aggregate.kind, sorted(sizes), [function.aggregate.dtype]).partials

    def run(self) -> None:
        """As the other's."""
        self._stream.reused()


def contestants(name: str, column: Array, sizes: Sequence[int]) -> dict[str, Contestant]:
    """All that can compute ``sum`` or ``min`` over these windows, ours last."""
    function = FUNCTIONS[name]
    found: dict[str, Contestant] = {
        label: OneByOne(make, function, column, sizes) for label, make in function.algorithms.items()
    }
    return found | {BLOCKS: Blocks(function, column, sizes)}


def check(name: str, column: Array, sizes: Sequence[int]) -> None:
    """Compare everyone's windows with a recalculation; :class:`~benchmarks.peers.Mismatch` if wrong."""
    function, sizes = FUNCTIONS[name], sorted(sizes)
    found = {
        label: interface.drive(make(function.monoid, sizes), [column])[0]
        for label, make in function.algorithms.items()
    }
    found[BLOCKS] = RowWindows(function.aggregate.kind, sizes).push((column,))[0]
    for label, windows in found.items():
        for q, size in enumerate(sizes):
            ends = peers.sample(len(column), [size])
            expected = peers.recalculated(name, column, size, ends)
            peers.same(f"{name} of {label}, window of {size}", windows[q, ends], expected)
