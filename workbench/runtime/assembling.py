"""Slice partials into windows and windows into result rows, for every host of levels 2 and 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.codegen import AssembleKernel, Scans
from workbench.logical import Window
from workbench.plan import Assembly, Bounds, SharedPlan
from workbench.results import ResultBatch
from workbench.runtime.lowering import lower

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]
#: Results with the name of their query.
Emitted = list[tuple[str, ResultBatch]]
#: Partials of windows, matrices ``[window, key]`` by (place among the chosen assemblies, partial).
Windows = dict[tuple[int, int], Fields]


class Leaves(Protocol):
    """Matrices ``[slice, key]`` of one fold in order of time: the slice store of an operator, or a table's."""

    @property
    def scans(self) -> Sequence[Scans]: ...

    @property
    def keys(self) -> int:
        """How many columns are in use."""

    @property
    def end(self) -> int:
        """The matrix row after the newest slice."""

    def rows(self, times: Array) -> Array:
        """The matrix row of the first slice that starts at or after each time."""

    def partials(self, position: int) -> Fields:
        """The matrices of one partial."""


class Assembler:
    """The kernels of all windows of a plan. Not for several threads at once: it keeps the room for its answers."""

    def __init__(self, plan: SharedPlan) -> None:
        self.plan = plan
        self._kernels = [
            AssembleKernel(plan.folds[method.fold].partials[method.partial].kind, method.algorithm, method.chunk)
            for method in plan.methods
        ]

    def compile(self) -> None:
        """Wait until all compiled variants are there."""
        for kernel in self._kernels:
            kernel.compile()

    def assemble(self, fold: int, chosen: Sequence[tuple[Assembly, Array, Array]], leaves: Leaves) -> Windows:
        """Partials of windows over a fold, each kind with the rows ``[first, last)`` of the leaves of its windows.

        Windows of a kind ascend. The next call writes over what this one returns.
        """
        ranges = [(first, last) for _, first, last in chosen]
        found: Windows = {}
        for method, kernel in zip(self.plan.methods, self._kernels, strict=True):
            users = [place for place, (assembly, _, _) in enumerate(chosen) if method.partial in assembly.partials]
            if method.fold != fold or not users:
                continue
            bounds = np.cumsum([0, *(len(ranges[place][0]) for place in users)])
            first, last = (np.concatenate([ranges[place][side] for place in users]) for side in (0, 1))
            matrices, scans = leaves.partials(method.partial), leaves.scans[method.partial]
            fields = kernel(first, last, bounds, matrices, scans, keys=max(1, leaves.keys), end=leaves.end)
            for place, (low, high) in zip(users, pairwise(bounds), strict=True):
                found[place, method.partial] = tuple(field[low:high] for field in fields)
        return found


def emit(
    plan: SharedPlan,
    assembly: Assembly,
    bounds: Bounds,
    partials: dict[int, Fields],
    keys: Sequence[pa.Array],
    status: Array,
    wanted: Array | None = None,
    revisions: Array | None = None,
) -> Emitted:
    """The result rows of windows of one kind, for every query that uses them.

    ``bounds`` and ``status`` (codes) are of each window, ``partials`` matrices ``[window, key]``, of which the first
    counts rows: a window without any has no result. ``keys`` are the columns of the keys. ``wanted`` and
    ``revisions`` are matrices too; None: all, and never revised.
    """
    counts = partials[0][0]
    present = counts != 0  # three times as fast as of the integers
    found = np.flatnonzero(present if wanted is None else present & wanted)
    rows, columns = np.divmod(found, counts.shape[1])
    cells = Cells(
        bounds[rows],
        [key.take(pa.array(columns)) for key in keys],
        {index: tuple(_taken(field, found) for field in fields) for index, fields in partials.items()},
        status[rows],
        None if revisions is None else revisions.reshape(-1)[found],
    )
    return emit_cells(plan, assembly, cells)


def _taken(field: Array, found: Array) -> Array:
    """A copy of some cells, or all: results outlive the matrices, which the next windows are written to."""
    return field.reshape(-1)[found] if len(found) < field.size else field.reshape(-1).copy()


@dataclass(frozen=True)
class Cells:
    """Results to be lowered, an entry each: bounds, key columns, partials by number, status codes, revisions.

    ``numbers`` identify windows of irregular levels within their key; None: the end does.
    """

    bounds: Bounds
    keys: list[pa.Array]
    partials: dict[int, Fields]
    status: Array
    revisions: Array | None = None
    numbers: Array | None = None


def emit_cells(plan: SharedPlan, assembly: Assembly, cells: Cells) -> Emitted:
    """As :func:`emit`, with everything one entry a result."""
    results: Emitted = []
    for query, level in assembly.users:
        entry = plan.queries[query]
        values, status = lower(entry, cells.keys, cells.partials, cells.status)
        revisions = np.zeros(len(status), np.int16) if cells.revisions is None else cells.revisions
        batch = ResultBatch(level, cells.bounds.starts, tuple(cells.keys), values, status, revisions)
        if not isinstance(assembly.window, Window):
            numbers = cells.bounds.ends if cells.numbers is None else cells.numbers
            batch = replace(batch, ends=cells.bounds.ends, numbers=numbers)
        results.append((entry.query.name, batch))
    return results
