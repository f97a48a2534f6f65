"""OVER over a whole table in one process, by threads: nothing is late, so there is no state and no watermark.

Rows are brought into order by key and time (a counting sort where they come in order of time), then pieces of them go
through all frames of all queries, each on one thread, and the results back to where their rows stand in the table::

    rows by key    |aaaaaaa|bbbbbbbbbbbbbbb|ccccc|dddddddddd|
    pieces         |---- 1 ----|---- 2 ----|---- 3 ----|-- 4
                       a frame reaches back into earlier pieces, whose rows and scans are there
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.codegen.kernels import choice
from workbench.codegen.over import CHUNK, NO_STEPS, FrameKernel, SortedRows, sealed
from workbench.kernels.frames import NO_INDEX, fill_steps, first_low, time_index
from workbench.kernels.peers import NO_MOMENTS, ascending, begin_moments, count_moments
from workbench.logical import Expression, Frame, OverCall, RangeFrame, RowsFrame, beside_frames, over_calls
from workbench.plan import QueryPlan, SharedPlan
from workbench.results import ResultBatch, Status
from workbench.runtime.branches.over import frames_needed, over_users
from workbench.runtime.expressions import evaluate, evaluate_filter
from workbench.runtime.folding import Folder, micros, plan_columns, require_near
from workbench.runtime.keys import number_keys
from workbench.runtime.ordering import AsIs, Counted, Ordering, Permuted
from workbench.runtime.over_columns import Output, of_rows, room
from workbench.runtime.over_windows import Task, Windows, is_mean, reach, reaches

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: Rows to a piece: a multiple of a chunk, so that the results of ten frames stay in the second- or third-level cache.
PIECE = 8 * CHUNK
#: Pieces to a thread where results go straight to the whole.
_PARTS = 8
#: Frames with more rows than this on average share scans.
_MANY = 2 * CHUNK
#: Share of the chunks with rows at equal distances from which on frames are found without an index.
_REGULAR = 0.9
#: Moments by rows up to which rows of equal time are taken together.
_FEW = 0.7
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


class OverTable:
    """Runs the OVER queries of a plan over tables on ``threads`` threads, by default one for each processor."""

    def __init__(self, plan: SharedPlan, threads: int | None = None) -> None:
        self.plan = plan
        self.threads = threads or os.cpu_count() or 1
        self._folds = [fold for fold in range(len(plan.folds)) if over_users(plan, fold)]
        self._folders = {fold: Folder(plan.folds[fold]) for fold in self._folds}
        self._kernels = {fold: [FrameKernel(kind) for kind in self._folders[fold].kinds] for fold in self._folds}

    def run(self, table: pa.Table) -> dict[str, pa.Table]:
        """The values of each OVER query, a row for each row that has a time and passes the filter, in their order.

        Columns of one query may be parts of one piece of memory, which lives as long as any of them.
        """
        return {
            entry.query.name: _empty(entry) if task is None else values
            for entry, task, values in self._each(table, exact=False)
        }

    def told(self, table: pa.Table) -> list[tuple[str, ResultBatch]]:
        """The same as results, all of them final. Raises DataError for times beyond what an operator takes."""
        return [
            (entry.query.name, _told(self.plan, entry, task, values))
            for entry, task, values in self._each(table, exact=True)
            if task is not None
        ]

    def _each(self, table: pa.Table, exact: bool) -> Iterator[tuple[QueryPlan, Task | None, pa.Table]]:
        """The queries with the rows of their fold, if there are any, and the values.

        ``exact``: rows of one key and time are in their order even if no frame depends on it.
        """
        (batch,) = table.select(list(plan_columns(self.plan))).combine_chunks().to_batches() or [None]
        with ThreadPoolExecutor(self.threads, "winquery") as pool:
            for fold in self._folds:
                task = None if batch is None else self._read(pool, fold, batch, exact)
                for user in over_users(self.plan, fold):
                    entry = self.plan.queries[user]
                    yield entry, task, None if task is None else self._results(pool, fold, task, entry)

    def _read(self, pool: ThreadPoolExecutor, fold: int, batch: pa.RecordBatch, exact: bool) -> Task | None:
        """Filter and order the rows of a fold, and lift each into its partials."""
        spec, folder = self.plan.folds[fold], self._folders[fold]
        if batch.column(self.plan.stream.time).null_count:
            batch = batch.filter(batch.column(self.plan.stream.time).is_valid())
        if spec.where is not None:
            batch = batch.filter(evaluate_filter(spec.where, batch))
        if not len(batch):
            return None
        stamps = batch.column(self.plan.stream.time)
        unit = _UNITS.get(stamps.type.unit)
        if unit is None:
            times, unit = micros(stamps, self.plan.stream.time), 1
        else:
            times = stamps.view(pa.int64()).to_numpy()
        frames = frames_needed(self.plan, over_users(self.plan, fold))
        codes: Array | None = None
        if spec.keys:
            numbered, _ = number_keys([evaluate(named.expression, batch) for named in spec.keys], len(batch))
            codes = numbered.narrow()
        by_rows = any(isinstance(frame, RowsFrame) for frame in frames)
        ordering = self._order(pool, batch, times, codes, spec.columns if by_rows or exact else None)
        runs = ordering.runs
        times = ordering.sorted(times)
        lifted = [
            None if each is None else tuple(ordering.sorted(column) for column in each)
            for each in folder.lift_rows(batch, len(batch))
        ]
        at = NO_MOMENTS
        if not by_rows:
            times, runs, at, lifted = self._united(pool, fold, times, runs, lifted)
        large = frozenset(frame for frame in frames if self._is_large(frame, times, runs, unit))
        steps, index, shift = NO_STEPS, NO_INDEX, 0
        if any(isinstance(frame, RangeFrame) for frame in large):
            steps = np.empty(-(-len(times) // CHUNK), np.int64)
            list(
                pool.map(lambda cut: fill_steps(sealed(times), CHUNK, cut[0], cut[1], steps), self._cuts(len(times)))
            )
            if len(runs) == 2 and np.count_nonzero(steps) < _REGULAR * len(steps):
                index, shift = time_index(times)
        rows = SortedRows(times, runs, index, shift, at, steps)
        scans = self._scan(pool, fold, lifted, {p for frame in large for p in frames[frame]})
        large = frozenset(f for f in large if all(p in scans or lifted[p] is None for p in frames[f]))
        return Task(batch, rows, unit, ordering, lifted, scans, large, frames)

    def _order(
        self,
        pool: ThreadPoolExecutor,
        batch: pa.RecordBatch,
        times: Array,
        codes: Array | None,
        columns: Sequence[Expression] | None,
    ) -> Ordering:
        """The rows by key, time and, if there are any, ``columns``."""
        ordering: Ordering
        if all(pool.map(lambda part: ascending(sealed(times), *part), self._parts(len(times)))):
            ordering = AsIs(len(times)) if codes is None else Counted(pool, self.threads, codes)
        else:
            order, runs = np.argsort(times, kind="stable"), np.array([0, len(times)])
            if codes is not None:
                counted = Counted(pool, self.threads, codes[order])
                order, runs = order[counted.order], counted.runs
            ordering = Permuted(pool, self.threads, order, runs)
        if columns and _tied(ordering.sorted(times), ordering.runs):
            read = [pa.array(np.zeros(len(times), np.int8) if codes is None else codes), pa.array(times)]
            read += [evaluate(column, batch) for column in columns]
            every = pa.table(read, names=[*map(str, range(len(read)))])
            order = pc.sort_indices(every, [(name, "ascending") for name in every.column_names]).to_numpy()
            return Permuted(pool, self.threads, order.astype(np.int64), ordering.runs)
        return ordering

    def _united(
        self, pool: ThreadPoolExecutor, fold: int, times: Array, runs: Array, lifted: list[Fields | None]
    ) -> tuple[Array, Array, Array, list[Fields | None]]:
        """Times, runs, ``at`` and partials of moments instead of rows, where that saves a good part of the work.

        All frames go by time, so peers have the same results, and in a frame are either all or none of them.
        """
        rows, kernels = len(times), self._kernels[fold]
        some = times[: 1 << 16]
        few = 1 < rows < 1 << 31 and np.count_nonzero(np.diff(some)) <= _FEW * len(some)
        if not few or not all(k.unites(rows) for k, own in zip(kernels, lifted, strict=True) if own is not None):
            return times, runs, NO_MOMENTS, lifted

        cuts = self._parts(rows)
        found = list(pool.map(lambda cut: count_moments(sealed(times), sealed(runs), *cut), cuts))
        ends = np.cumsum(found).tolist()
        if ends[-1] > _FEW * rows:
            return times, runs, NO_MOMENTS, lifted
        at, moments = room(ends[-1] + 1, np.int32), room(ends[-1], np.int64)
        at[-1] = rows

        def begin(cut: tuple[int, int], low: int, high: int) -> None:
            begin_moments(sealed(times), sealed(runs), *cut, at[low:high], moments[low:high])

        list(pool.map(begin, cuts, [0, *ends[:-1]], ends))
        united: list[Fields | None] = []
        for kernel, fields in zip(kernels, lifted, strict=True):
            out = None if fields is None else tuple(room(len(at) - 1, field.dtype) for field in fields)
            if fields is not None and out is not None:
                list(pool.map(partial(kernel.united, at, fields, out), self._parts(len(at) - 1)))
            united.append(out)
        # In the type of ``at``, which would be converted as a whole otherwise.
        return moments, np.searchsorted(at, runs.astype(at.dtype)), at, united

    def _parts(self, rows: int) -> list[tuple[int, int]]:
        """A part of the rows for each thread."""
        return list(pairwise(np.linspace(0, rows, self.threads + 1).astype(int).tolist()))

    def _cuts(self, rows: int, parts: int = 1) -> list[tuple[int, int]]:
        """Some parts for each thread, of whole chunks."""
        return list(pairwise([*range(0, rows, max(1, rows // CHUNK // (parts * self.threads)) * CHUNK), rows]))

    def _is_large(self, frame: Frame, times: Array, runs: Array, unit: int) -> bool:
        """Whether a frame has many rows, judged by a few; one that ends earlier only if it has no beginning."""
        if frame.until and frame.preceding is not None:
            return False
        by_time, back = isinstance(frame, RangeFrame), reach(frame, unit)
        rows = np.linspace(0, len(times) - 1, 17).astype(int)[1:]
        sizes = [row - first_low(times, runs, by_time, back, row) for row in rows.tolist()]
        return bool(np.mean(sizes) > _MANY)

    def _scan(
        self, pool: ThreadPoolExecutor, fold: int, lifted: Sequence[Fields | None], positions: Iterable[int]
    ) -> dict[int, tuple[Fields, Fields]]:
        """Scans of the partials that large frames need and that have compiled kernels."""
        found = {}
        for position in positions:
            kernel, fields = self._kernels[fold][position], lifted[position]
            if fields is None or not kernel.kind.compiled or choice(None) == "generic":
                continue
            found[position] = scans = kernel.scans(fields)
            list(pool.map(partial(_scan, kernel, fields, scans), self._cuts(len(fields[0]))))
        return found

    def _results(self, pool: ThreadPoolExecutor, fold: int, task: Task, entry: QueryPlan) -> pa.Table:
        """All values of one query, in the order of the table."""
        rows = len(task.batch)
        framed = [named for named in entry.query.values if over_calls(named.expression)]
        overs = list(dict.fromkeys(over for named in framed for over in over_calls(named.expression)))
        parts = {ingredient.call: ingredient.partials for ingredient in entry.ingredients}
        needs = [parts[over.call] for over in overs]
        leaves = dict.fromkeys(leaf for named in framed for leaf in beside_frames(named.expression))
        beside = {leaf: evaluate(leaf, task.batch) for leaf in leaves}
        alone = [overs.index(named.expression) if named.expression in overs else -1 for named in framed]
        whole = self._means(pool, fold, task, dict(zip(overs, needs, strict=True)))
        columns = [
            Output(named.expression.type, rows, task.ordering, whole.get(named.expression)) for named in framed
        ]

        places = len(task.rows.times)
        # Here, as it is the threads' work too, which must not wait for itself.
        order = task.ordering.order if min(alone, default=0) < 0 else None

        def piece(begin: int) -> None:
            end = min(begin + PIECE, places)
            windows = Windows(self._kernels[fold], task, begin, end)
            found = [
                None if over in whole else windows.lowered(over, positions)
                for over, positions in zip(overs, needs, strict=True)
            ]
            known: dict[Expression, pa.Array] = {}
            at = task.rows.at[begin : end + 1]
            low, high = at[[0, -1]].tolist() if len(at) else (begin, end)
            if min(alone) < 0:
                own = None if order is None else pa.array(order[low:high])
                for leaf, column in beside.items():
                    known[leaf] = column.slice(low, high - low) if own is None else column.take(own)
                known |= {
                    over: pa.array(whole[over][low:high]) if values is None else of_rows(values, at)
                    for over, values in zip(overs, found, strict=True)
                }
            for named, place, out in zip(framed, alone, columns, strict=True):
                if place < 0:
                    out.put(low, high, evaluate(named.expression, known, high - low), NO_MOMENTS)
                elif found[place] is not None:
                    out.put(low, high, found[place], at)

        if any(column.open for column in columns):
            list(pool.map(piece, range(0, places, PIECE)))
        values = {named.name: column.array() for named, column in zip(framed, columns, strict=True)}
        for named in entry.query.values:
            if named.name not in values:
                values[named.name] = evaluate(named.expression, task.batch)
        return pa.table({named.name: values[named.name] for named in entry.query.values})

    def _means(
        self, pool: ThreadPoolExecutor, fold: int, task: Task, needs: Mapping[OverCall, Sequence[int]]
    ) -> dict[Expression, Array]:
        """Means of floats, in order of key and time, which kernels write where they stand in the end."""
        kernels, rows, found = self._kernels[fold], len(task.batch), dict[Expression, Array]()
        cuts = self._cuts(len(task.rows.times), _PARTS)
        large: dict[int, list[OverCall]] = {}
        for over, (position, *others) in needs.items():
            if over.frame.until or not is_mean(kernels, task, over, (position, *others)):
                continue
            if over.frame in task.large:
                large.setdefault(position, []).append(over)
            elif not len(task.rows.at) and kernels[position].finds(rows):
                out = found[over] = room(rows, np.float64)
                list(pool.map(partial(_near, kernels[position], task, over.frame, position, out), cuts))
        for position, overs in large.items():
            fields, kernel = task.lifted[position], kernels[position]
            assert fields is not None
            out = room(len(overs) * rows, np.float64).reshape(len(overs), rows)
            frames = reaches([over.frame for over in overs], task.unit)
            write = partial(kernel.shared, task.rows, frames, fields, task.scans[position])
            list(pool.map(partial(write, out=(out,), mean=True, wide=True), cuts))
            found |= dict(zip(overs, out, strict=True))
        return found


def _near(kernel: FrameKernel, task: Task, frame: Frame, position: int, out: Array, cut: tuple[int, int]) -> None:
    """Means over one frame of few rows."""
    fields = task.lifted[position]
    assert fields is not None
    by_time = isinstance(frame, RangeFrame), reach(frame, task.unit)
    kernel.near(task.rows, by_time, fields, cut, (out[slice(*cut)],), mean=True)


def _scan(kernel: FrameKernel, fields: Fields, scans: tuple[Fields, Fields], cut: tuple[int, int]) -> None:
    kernel.scan(fields, scans, *cut)


def _tied(times: Array, runs: Array) -> bool:
    """Whether two rows of one key have the same time; the rows stand by key and time."""
    same = times[1:] == times[:-1]
    same[runs[1:-1] - 1] = False
    return bool(same.any())


def _told(plan: SharedPlan, entry: QueryPlan, task: Task, values: pa.Table) -> ResultBatch:
    """Results of all rows, in the order of the table."""
    rows, runs = len(task.batch), task.ordering.runs
    times = micros(task.batch.column(plan.stream.time), plan.stream.time)
    require_near(plan, int(times.min()), int(times.max()))
    numbers = room(rows, np.int64)
    task.ordering.restored(np.arange(rows) - np.repeat(runs[:-1], np.diff(runs)), numbers)
    keys = tuple(evaluate(named.expression, task.batch) for named in entry.query.keys)
    status, revisions = np.full(rows, Status.FINAL, np.int8), np.zeros(rows, np.int16)
    columns = tuple(values[named.name].combine_chunks().cast(named.expression.type) for named in entry.query.values)
    return ResultBatch.of(0, times, keys, columns, status, revisions, times, numbers)


def _empty(entry: QueryPlan) -> pa.Table:
    kinds = [(named.name, named.expression.type) for named in entry.query.values]
    return pa.table({name: pa.array([], kind) for name, kind in kinds})
