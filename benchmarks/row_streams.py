"""Window kernels over a column that comes in batches: what the ``kernels-*`` workloads time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import peers
from benchmarks.timing import batches

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Aggregate:
    """A figure's short name, the kind of partial, the rows' type, and the function of NumPy that recalculates it."""

    name: str
    kind: str
    dtype: str
    function: str

    def column(self, rows: int) -> Array:
        """Random whole numbers small enough that a sum of a million of them fits into 32 bits."""
        return np.random.default_rng(11).integers(-1000, 1000, rows).astype(self.dtype)


#: Who we are in the papers' figures.
BLOCKS = "winquery blocks"
#: int32 sums are differences of prefix sums modulo 2**32 (`count` is plain addition with an inverse).
AGGREGATES = (
    Aggregate("sum_i32", "count", "int32", "sum"),
    Aggregate("min_i32", "min_int", "int32", "min"),
    Aggregate("sum_f64", "sum_float", "float64", "sum"),
    Aggregate("min_f64", "min_float", "float64", "min"),
)
#: Sums of floats as ``numerics='fast'`` has them: what comes added to a running sum, what leaves taken from it.
FAST = Aggregate("fast_f64", "sum_fast", "float64", "sum")


class Stream:
    """Windows of ``sizes`` rows over one column, pushed in batches; the state goes on from one pass to the next."""

    def __init__(
        self, aggregate: Aggregate, column: Array, sizes: Sequence[int], batch: int, kept: Array | None = None
    ) -> None:
        """``kept`` is the large array of :meth:`large`, of as many results as there are; else it makes its own."""
        self._kept = kept
        column = column.view()
        column.flags.writeable = False  # as a column of Arrow is
        self.column, self.sizes, self.batch = column, sizes, min(batch, len(column))
        self._aggregate = aggregate
        self._push = _pusher(aggregate, sizes)
        self._pieces = [column[piece] for piece in batches(len(column), self.batch)]
        self._buffer = np.empty((len(sizes), self.batch), column.dtype)

    def reused(self) -> None:
        """One pass; every batch's results go into the same buffer (of whole batches only: the last may be cut)."""
        for piece in self._pieces:
            out = self._buffer if len(piece) == self.batch else np.empty((len(self.sizes), len(piece)), piece.dtype)
            self._push(piece, out, False)

    def large(self) -> None:
        """One pass; all results are kept, batch after batch, in one array that is there already.

        Running sums go past the caches, as the array is larger; other windows gain nothing by that.
        """
        for piece, out in zip(self._pieces, self._large, strict=True):
            self._push(piece, out, True)

    @cached_property
    def _large(self) -> list[Array]:
        kept = self._kept
        if kept is None:
            kept = np.zeros(len(self.sizes) * len(self.column), self.column.dtype)
        bounds = [piece.start * len(self.sizes) for piece in batches(len(self.column), self.batch)]
        parts = np.split(kept, bounds[1:])
        return [part.reshape(len(self.sizes), -1) for part in parts]

    def results(self) -> Array:
        """``[window, row]`` of a pass that starts anew."""
        push = _pusher(self._aggregate, self.sizes)
        parts = [np.empty((len(self.sizes), len(piece)), piece.dtype) for piece in self._pieces]
        for piece, part in zip(self._pieces, parts, strict=True):
            push(piece, part, False)
        return np.concatenate(parts, axis=1)


def _pusher(aggregate: Aggregate, sizes: Sequence[int]) -> Callable[..., object]:
    """Windows from the first row on: ``push(rows, results, past)``."""
    from workbench.codegen import RowWindows, RunningSums

    if aggregate.kind == FAST.kind or (aggregate.kind == "count" and len(sizes) == 1):
        return RunningSums(sizes, aggregate.dtype).push
    windows = RowWindows(aggregate.kind, sizes, [aggregate.dtype])
    return lambda rows, results, past: windows.push((rows,), (results,))


def check(aggregate: Aggregate, column: Array, sizes: Sequence[int], batch: int) -> None:
    """Compare the kernels with a recalculation of sampled windows; :class:`~benchmarks.peers.Mismatch` if wrong."""
    found = Stream(aggregate, column, sizes, batch).results()
    for q, size in enumerate(sizes):
        ends = peers.sample(len(column), [size])
        expected = peers.recalculated(aggregate.function, column, size, ends)
        peers.same(f"{aggregate.name}, window of {size}", found[q, ends], expected)
