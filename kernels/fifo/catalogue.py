"""Every algorithm by name, with what it needs of a monoid: for benchmarks and for tests that run them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from workbench.kernels.fifo.daba_lite import daba_lite
from workbench.kernels.fifo.flat_fat import flat_fat
from workbench.kernels.fifo.interface import Algorithm
from workbench.kernels.fifo.monoids import Group, Monoid, Selective
from workbench.kernels.fifo.recalculate import recalculate
from workbench.kernels.fifo.slick_deque import slick_deque_inv, slick_deque_non_inv
from workbench.kernels.fifo.slide_side import slide_side_inv, slide_side_non_inv
from workbench.kernels.fifo.subtract_on_evict import subtract_on_evict
from workbench.kernels.fifo.two_stacks import two_stacks
from workbench.kernels.fifo.two_stacks_lite import two_stacks_lite


class Entry(NamedTuple):
    """``make(monoid, sizes)`` builds the algorithm; TypeError unless ``monoid`` is a ``needs``."""

    make: Callable[[Monoid, Sequence[int]], Algorithm]
    needs: type[Monoid]


ALGORITHMS: Mapping[str, Entry] = MappingProxyType(
    {
        "recalculate": Entry(recalculate, Monoid),
        "two_stacks": Entry(two_stacks, Monoid),
        "two_stacks_lite": Entry(two_stacks_lite, Monoid),
        "daba_lite": Entry(daba_lite, Monoid),
        "flat_fat": Entry(flat_fat, Monoid),
        "slide_side_non_inv": Entry(slide_side_non_inv, Monoid),
        "subtract_on_evict": Entry(subtract_on_evict, Group),
        "slick_deque_inv": Entry(slick_deque_inv, Group),
        "slide_side_inv": Entry(slide_side_inv, Group),
        "slick_deque_non_inv": Entry(slick_deque_non_inv, Selective),
    }
)
