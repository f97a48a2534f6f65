"""A plan over a whole table in one process: the parallel aggregation tree with threads (*LightSaber* §3).

Nothing is late and every window is final, so there are no messages, no state and no watermark between the levels::

    rows      |-------- thread 1 --------|-------- thread 2 --------|    level 1: each range into cells [slice, key]
    slices    |---|---|---|---|---|---|---|---|---|---|---|---|---|
                                       ^ a slice of two ranges: its partials are combined
    windows   |- part 1 -----------|                                     level 3: parts of the windows, with the
                            |- part 2 ----------------------------|      slices that they reach back to

Where ``[slice, key]`` is too large to be kept at once, rows are first shared out to blocks of keys, and each block
goes through all levels on one thread. Where most of a block's cells would be empty and each window is one slice, the
cells that have rows are sorted instead of stored in a matrix.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.codegen import Scans
from workbench.codegen.assembly import scan_rows
from workbench.kernels.partition import partition
from workbench.logical import ContextFree, Window
from workbench.plan import Assembly, Bounds, GridSet, SharedPlan, Span
from workbench.results import Status
from workbench.runtime.assembling import Alike, Assembler, Cells, Emitted, Ranges, Windows, emit, emit_cells
from workbench.runtime.folding import Folder, Rows, chosen, cut_batch, plan_columns
from workbench.runtime.keys import unite_keys
from workbench.time import LIMIT

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


@dataclass(frozen=True)
class Limits:
    """How many cells ``[slice, key]`` are kept at once and how many make a block of keys.

    Four blocks make a part of the windows. A block whose cells are more than ``sparse`` times its rows is sorted, if
    its windows are slices.
    """

    dense: int = 1 << 24
    block: int = 1 << 17
    sparse: int = 16


@dataclass(frozen=True)
class _Matrices:
    """Cells of some slices and keys, for :class:`Assembler`."""

    starts: Array
    fields: Sequence[Fields]
    keys: int
    scans: Sequence[Scans] = ()

    @property
    def end(self) -> int:
        return len(self.starts)

    def rows(self, times: Array) -> Array:
        return np.searchsorted(self.starts, times)

    def partials(self, position: int) -> Fields:
        return self.fields[position]

    def between(self, low: int, high: int) -> _Matrices:
        """The slices that start in ``[low, high)``."""
        first, last = np.searchsorted(self.starts, [low, high])
        fields = [tuple(array[first:last] for array in fields) for fields in self.fields]
        return _Matrices(self.starts[first:last], fields, self.keys)


class _Worker:
    """What one thread at a time may use: the kernels of all windows and the memory that they work in."""

    def __init__(self, plan: SharedPlan) -> None:
        self._assembler = Assembler(plan)
        self._scans = [[Scans() for _ in fold.partials] for fold in plan.folds]
        self._cells: dict[Folder, list[Fields]] = {}

    def assemble(self, fold: int, kinds: Sequence[Assembly], ranges: Ranges, matrices: _Matrices) -> Windows:
        """Windows from the matrices of a fold; the next call writes over them."""
        for scans in self._scans[fold]:
            # Scans of other slices are overwritten, which is cheaper than fresh memory.
            scans.forget()
            if scans.arrays is not None and not _fit(scans.arrays, matrices):
                scans.reset()
        return self._assembler.assemble(fold, kinds, ranges, replace(matrices, scans=self._scans[fold]))

    def blank(self, folder: Folder, cells: int) -> list[Fields]:
        """Cells without rows for a fold, in memory that was there before; the next call writes over them."""
        kept = self._cells.get(folder)
        if kept is None or len(kept[0][0]) < cells:
            kept = self._cells[folder] = folder.blank(cells)
        fields = [tuple(array[:cells] for array in arrays) for arrays in kept]
        for kind, arrays in zip(folder.kinds, fields, strict=True):
            for array, identity in zip(arrays, kind.identity, strict=True):
                array[:] = identity
        return fields


def _fit(scans: tuple[Fields, Fields], matrices: _Matrices) -> bool:
    """Whether scans that were made for other matrices have room for these; those that no kernel uses have no rows."""
    width = matrices.fields[0][0].shape[1]
    room = scan_rows(matrices.end)
    return all(array.shape[1] == width and (not len(array) or len(array) >= room) for side in scans for array in side)


@dataclass(frozen=True)
class _Task:
    """The rows of all ranges for one fold: ``starts`` of all slices, ``places`` of each range's own among them.

    ``bounds`` are all windows, the place of each one's kind among those of the fold in ``kinds``, which ascend.
    """

    number: int
    parts: list[Rows]
    starts: Array
    places: list[Array]
    keys: list[pa.Array]
    kinds: Array
    bounds: Bounds

    @property
    def width(self) -> int:
        return len(self.keys[0]) if self.keys else 1

    @property
    def cells(self) -> int:
        return len(self.starts) * self.width


class TableRunner:
    """Runs a plan over tables on ``threads`` threads, by default as many as there are processors."""

    def __init__(self, plan: SharedPlan, threads: int | None = None, limits: Limits | None = None) -> None:
        self.plan = plan
        self.threads = threads or os.cpu_count() or 1
        self.limits = limits or Limits()
        self._folders = [Folder(fold) for fold in plan.folds]
        self._kinds = [plan.of_fold(fold) for fold in range(len(plan.folds))]
        self._alike = [Alike.of(plan, kinds) for kinds in self._kinds]
        self._grids = [
            GridSet([each.window for each in kinds if isinstance(each.window, ContextFree)]) for kinds in self._kinds
        ]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for _ in range(self.threads):
            self._idle.put(_Worker(plan))

    def compile(self) -> None:
        """Wait until all kernels are compiled. Without it the first calls may run on array code."""
        for folder in self._folders:
            folder.compile()
        Assembler(self.plan).compile()

    def run(self, table: pa.Table) -> Emitted:
        """All windows of all queries, in any number of batches for each; every window stands in one batch alone."""
        columns = table.select(list(plan_columns(self.plan)))
        cuts = np.linspace(0, len(table), self.threads + 1).astype(int).tolist()
        ranges = [columns.slice(low, high - low).combine_chunks() for low, high in pairwise(cuts)]
        batches = [batch for part in ranges for batch in part.to_batches() if len(batch)]
        results: Emitted = []
        with ThreadPoolExecutor(self.threads, "winquery") as pool:
            read = list(pool.map(self._read, batches))
            for number in range(len(self.plan.folds)):
                parts = [rows[number] for rows in read if len(rows[number])]
                if parts:
                    results += self._fold(pool, number, parts)
        return results

    def _read(self, batch: pa.RecordBatch) -> list[Rows]:
        cut = cut_batch(batch, self.plan)
        return [folder.read(cut) for folder in self._folders]

    def _fold(self, pool: ThreadPoolExecutor, number: int, parts: list[Rows]) -> Emitted:
        starts = np.unique(np.concatenate([rows.slices.starts for rows in parts]))
        keys: list[pa.Array] = []
        if parts[0].codes is not None:
            codes, keys = unite_keys([(rows.codes, rows.keys) for rows in parts if rows.codes is not None])
            parts = [Rows(rows.slices, own, keys, rows.inputs) for rows, own in zip(parts, codes, strict=True)]
        chosen = self._grids[number].select(starts, [Span(starts, -LIMIT, LIMIT)])
        if not len(chosen.kinds):  # every row is outside of the bands that the windows are
            return []
        places = [np.searchsorted(starts, rows.slices.starts) for rows in parts]
        task = _Task(number, parts, starts, places, keys, chosen.kinds, chosen.bounds)
        if not keys or task.cells <= self.limits.dense:
            return self._whole(pool, task)
        return self._in_blocks(pool, task)

    def _whole(self, pool: ThreadPoolExecutor, task: _Task) -> Emitted:
        """All cells at once: ranges of rows, then parts of the windows, in parallel."""
        folder, width = self._folders[task.number], task.width
        numbers, doubled = _own_rows(task)
        height = len(task.starts) + sum(len(rows) for rows, _ in doubled)
        cells = [tuple(np.empty(height * width, f.dtype) for f in kind.fields) for kind in folder.kinds]
        cuts = np.linspace(0, height * width, self.threads + 1).astype(int).tolist()

        def clear(low: int, high: int) -> None:
            for kind, fields in zip(folder.kinds, cells, strict=True):
                for array, identity in zip(fields, kind.identity, strict=True):
                    array[low:high] = identity

        list(pool.map(clear, cuts[:-1], cuts[1:]))
        list(pool.map(lambda rows, own: folder.fold(rows, own, width, cells), task.parts, numbers))
        matrices = [tuple(array.reshape(height, width) for array in fields) for fields in cells]
        with np.errstate(all="ignore"):
            for rows, others in doubled:
                for kind, fields in zip(folder.kinds, matrices, strict=True):
                    merged = kind.combine(*(f[rows] for f in fields), *(f[others] for f in fields))
                    for target, values in zip(fields, merged, strict=True):
                        target[rows] = values
        kept = [tuple(array[: len(task.starts)] for array in fields) for fields in matrices]
        return self._windows(pool, task, _Matrices(task.starts, kept, width))

    def _windows(self, pool: ThreadPoolExecutor, task: _Task, matrices: _Matrices) -> Emitted:
        """Parts of the windows in parallel, large against the slices that two of them share."""
        span = int((task.bounds.ends - task.bounds.starts).max())
        whole = max(span, int(task.starts[-1]) - int(task.starts[0]))
        parts = min(task.cells // (4 * self.limits.block), whole // (2 * span))
        parts = max(parts, self.threads if task.cells > self.limits.block else 1)
        # The n-th of the m windows of a kind is of part n * parts // m, so parts are about one range of time.
        count = np.bincount(task.kinds)
        share = (np.arange(len(task.kinds)) - (np.cumsum(count) - count)[task.kinds]) * parts // count[task.kinds]
        pieces = [np.flatnonzero(share == part) for part in range(parts)]
        return self._joined(
            pool, [partial(self._emit, task, piece, matrices, task.keys) for piece in pieces if len(piece)]
        )

    def _emit(
        self, task: _Task, piece: Array | slice, matrices: _Matrices, keys: list[pa.Array], worker: _Worker
    ) -> Emitted:
        """The results of some windows over the slices that they need."""
        kinds, bounds = task.kinds[piece], task.bounds[piece]
        cells = matrices.between(int(bounds.starts.min()), int(bounds.ends.max()))
        if self._are_slices(task.number):
            partials = self._kinds[task.number][0].partials
            found = Windows({index: cells.partials(index) for index in partials}, dict.fromkeys(partials))
        else:
            ranges = Ranges(kinds, cells.rows(bounds.starts), cells.rows(bounds.ends))
            found = worker.assemble(task.number, self._kinds[task.number], ranges, cells)
        return emit(self._alike[task.number], kinds, bounds, found, keys, _final(len(bounds)))

    def _in_blocks(self, pool: ThreadPoolExecutor, task: _Task) -> Emitted:
        """Blocks of keys in parallel, each through all levels; its columns are a power of two."""
        rows = sum(map(len, task.parts))
        sparse = task.cells > self.limits.sparse * rows and self._are_slices(task.number)
        columns = self.limits.block // len(task.starts)
        if sparse:  # as many rows to a block as it would have cells
            columns = self.limits.block * task.width // rows
        shift = max(4, columns.bit_length() - 1)
        blocks = -(-task.width >> shift)

        def share_out(part: Rows, places: Array) -> tuple[Array, Array, Array]:
            assert part.codes is not None
            place = places[part.slices.positions()]
            return partition(part.codes.rows(), place, shift, blocks)

        shares = list(pool.map(share_out, task.parts, task.places))
        work = self._sparse_block if sparse else self._dense_block
        return self._joined(pool, [partial(work, task, shift, block, shares) for block in range(blocks)])

    def _dense_block(
        self,
        task: _Task,
        shift: int,
        block: int,
        shares: list[tuple[Array, Array, Array]],
        worker: _Worker,
    ) -> Emitted:
        folder, width = self._folders[task.number], 1 << shift
        cells = worker.blank(folder, len(task.starts) * width)
        for part, (bounds, order, group) in zip(task.parts, shares, strict=True):
            mine = slice(bounds[block], bounds[block + 1])
            folder.fold_cells(group[mine], chosen(part.inputs, order[mine]), cells)
        shaped = [tuple(array.reshape(-1, width) for array in fields) for fields in cells]
        keys = [column.slice(block << shift, width) for column in task.keys]
        return self._emit(task, slice(None), _Matrices(task.starts, shaped, width), keys, worker)

    def _sparse_block(
        self,
        task: _Task,
        shift: int,
        block: int,
        shares: list[tuple[Array, Array, Array]],
        worker: _Worker,
    ) -> Emitted:
        folder = self._folders[task.number]
        slices = [slice(bounds[block], bounds[block + 1]) for bounds, _, _ in shares]
        groups = np.concatenate([group[mine] for mine, (_, _, group) in zip(slices, shares, strict=True)])
        found, group = np.unique(groups, return_inverse=True)
        cells, done = worker.blank(folder, len(found)), 0
        for part, mine, (_, order, _) in zip(task.parts, slices, shares, strict=True):
            rows = order[mine]
            folder.fold_cells(group[done : done + len(rows)], chosen(part.inputs, rows), cells)
            done += len(rows)
        place, code = np.divmod(found, 1 << shift)
        keys = [column.take(pa.array(code + (block << shift))) for column in task.keys]
        (assembly,) = self._kinds[task.number]
        own = {index: tuple(array.copy() for array in cells[index]) for index in assembly.partials}
        return emit_cells(self._alike[task.number], Cells(task.bounds[place], keys, own, _final(len(found))))

    def _are_slices(self, fold: int) -> bool:
        """Whether the windows of a fold are the slices, so that there is nothing to put together."""
        if len(self._kinds[fold]) != 1 or len(self.plan.edges) + len(self.plan.listed) != 1:
            return False
        window = self._kinds[fold][0].window
        return isinstance(window, Window) and self.plan.edges[0].period == window.size

    def _joined(self, pool: ThreadPoolExecutor, works: Sequence[Callable[[_Worker], Emitted]]) -> Emitted:
        """The results of all works, in order, each with a worker of its own while it runs."""

        def run(work: Callable[[_Worker], Emitted]) -> Emitted:
            worker = self._idle.get()
            try:
                return work(worker)
            finally:
                self._idle.put(worker)

        return [result for results in pool.map(run, works) for result in results]


def _own_rows(task: _Task) -> tuple[list[Array], list[tuple[Array, Array]]]:
    """Matrix rows that each range may write to, and (row, other row) that hold partials of one slice, in order.

    A slice has its row; ranges after the first one that has rows in it get other rows behind all slices.
    """
    taken = np.zeros(len(task.starts), np.bool_)
    numbers, doubled, height = [], [], len(task.starts)
    for places in task.places:
        again, own = taken[places], places.copy()
        own[again] = np.arange(height, height + int(again.sum()))
        taken[places] = True
        numbers.append(own)
        doubled.append((places[again], own[again]))
        height += len(own[again])
    return numbers, doubled


def _final(windows: int) -> Array:
    return np.full(windows, Status.FINAL, np.int8)
