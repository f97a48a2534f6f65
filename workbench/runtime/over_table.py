"""OVER over a whole table in one process, by threads: nothing is late, so there is no state and no watermark.

Rows are brought into order by key and time (a counting sort where they come in order of time), then pieces of them go
through all frames of all queries, each on one thread, and the results back to where their rows stand in the table::

    rows by key    |aaaaaaa|bbbbbbbbbbbbbbb|ccccc|dddddddddd|
    pieces         |---- 1 ----|---- 2 ----|---- 3 ----|-- 4
                       a frame reaches back into earlier pieces, whose rows and scans are there
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.algebra import AGGREGATES
from workbench.codegen.kernels import choice
from workbench.codegen.over import CHUNK, FrameKernel, SortedRows, sealed
from workbench.kernels.frames import NO_INDEX, first_low, frames_of, time_index
from workbench.kernels.peers import NO_MOMENTS, begin_moments
from workbench.logical import Expression, Frame, OverCall, RangeFrame, RowsFrame, beside_frames, over_calls
from workbench.plan import QueryPlan, SharedPlan
from workbench.runtime.branches.over import frames_needed, over_users
from workbench.runtime.expressions import evaluate, evaluate_filter
from workbench.runtime.folding import Folder, plan_columns
from workbench.runtime.keys import number_keys
from workbench.runtime.ordering import AsIs, Counted, Ordering, Permuted
from workbench.runtime.over_columns import Output, of_rows, room

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: Rows to a piece: a multiple of a chunk, so that the results of ten frames stay in the second- or third-level cache.
PIECE = 8 * CHUNK
#: Frames with more rows than this on average share scans.
_MANY = 2 * CHUNK
#: Moments by rows up to which rows of equal time are taken together.
_FEW = 0.7
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True)
class _Task:
    """The rows of a fold in order, with all that its frames need of them."""

    batch: pa.RecordBatch
    rows: SortedRows
    unit: int
    ordering: Ordering
    lifted: list[Fields | None]
    scans: dict[int, tuple[Fields, Fields]]
    large: frozenset[Frame]
    users: tuple[QueryPlan, ...]
    frames: dict[Frame, tuple[int, ...]]


class OverTable:
    """Runs the OVER queries of a plan over tables on ``threads`` threads, by default one for each processor."""

    def __init__(self, plan: SharedPlan, threads: int | None = None) -> None:
        self.plan = plan
        self.threads = threads or os.cpu_count() or 1
        self._folds = [fold for fold in range(len(plan.folds)) if over_users(plan, fold)]
        self._folders = {fold: Folder(plan.folds[fold]) for fold in self._folds}
        self._kernels = {fold: [FrameKernel(kind) for kind in self._folders[fold].kinds] for fold in self._folds}

    def run(self, table: pa.Table) -> dict[str, pa.Table]:
        """The values of each OVER query, a row for each row that has a time and passes the filter, in their order."""
        (batch,) = table.select(list(plan_columns(self.plan))).combine_chunks().to_batches() or [None]
        found = {}
        with ThreadPoolExecutor(self.threads, "winquery") as pool:
            for fold in self._folds:
                task = None if batch is None else self._read(pool, fold, batch)
                for user in over_users(self.plan, fold):
                    entry = self.plan.queries[user]
                    found[entry.query.name] = (
                        _empty(entry) if task is None else self._results(pool, fold, task, entry)
                    )
        return found

    def _read(self, pool: ThreadPoolExecutor, fold: int, batch: pa.RecordBatch) -> _Task | None:
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
            stamps, unit = stamps.cast(pa.timestamp("us", stamps.type.tz)), 1
        times = stamps.view(pa.int64()).to_numpy()
        users = tuple(self.plan.queries[user] for user in over_users(self.plan, fold))
        frames = frames_needed(self.plan, over_users(self.plan, fold))
        codes: Array | None = None
        if spec.keys:
            numbered, _ = number_keys([evaluate(named.expression, batch) for named in spec.keys], len(batch))
            codes = numbered.narrow()
        by_rows = any(isinstance(frame, RowsFrame) for frame in frames)
        ordering = self._order(pool, batch, times, codes, spec.columns if by_rows else None)
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
        needs_index = len(runs) == 2 and any(isinstance(frame, RangeFrame) for frame in large)
        index, shift = time_index(times) if needs_index else (NO_INDEX, 0)
        rows = SortedRows(times, runs, index, shift, at)
        scans = self._scan(pool, fold, lifted, {p for frame in large for p in frames[frame]})
        large = frozenset(f for f in large if all(p in scans or lifted[p] is None for p in frames[f]))
        return _Task(batch, rows, unit, ordering, lifted, scans, large, users, frames)

    def _order(
        self,
        pool: ThreadPoolExecutor,
        batch: pa.RecordBatch,
        times: Array,
        codes: Array | None,
        columns: Sequence[Expression] | None,
    ) -> Ordering:
        """The rows by key, time and (where frames go by rows) ``columns``."""
        ordering: Ordering
        overlapping = [(low, high + 1) for low, high in self._parts(len(times))]
        if all(pool.map(lambda part: _ascending(times[slice(*part)]), overlapping)):
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

        def begin(low: int, high: int) -> tuple[Array, Array]:
            starts = np.empty(high - low + 1, np.int32)
            starts = starts[: begin_moments(sealed(times), sealed(runs), low, high, starts)]
            return starts, times[starts]

        first, moments = zip(*pool.map(begin, *zip(*self._parts(rows), strict=True)), strict=True)
        at = np.concatenate([*first, np.array([rows], np.int32)])
        if len(at) > _FEW * rows:
            return times, runs, NO_MOMENTS, lifted
        united: list[Fields | None] = []
        for kernel, fields in zip(kernels, lifted, strict=True):
            out = None if fields is None else tuple(room(len(at) - 1, field.dtype) for field in fields)
            if fields is not None and out is not None:
                list(pool.map(partial(kernel.united, at, fields, out), self._parts(len(at) - 1)))
            united.append(out)
        return np.concatenate(moments), np.searchsorted(at, runs), at, united

    def _parts(self, rows: int) -> list[tuple[int, int]]:
        """A part of the rows for each thread."""
        return list(pairwise(np.linspace(0, rows, self.threads + 1).astype(int).tolist()))

    def _is_large(self, frame: Frame, times: Array, runs: Array, unit: int) -> bool:
        """Whether a frame has many rows, judged by a few."""
        by_time, reach = isinstance(frame, RangeFrame), _reach(frame, unit)
        rows = np.linspace(0, len(times) - 1, 17).astype(int)[1:]
        sizes = [row - first_low(times, runs, by_time, reach, row) for row in rows.tolist()]
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
            rows = len(fields[0])
            cuts = [*range(0, rows, max(1, rows // CHUNK // self.threads) * CHUNK), rows]
            list(pool.map(partial(_scan, kernel, fields, scans), pairwise(cuts)))
        return found

    def _results(self, pool: ThreadPoolExecutor, fold: int, task: _Task, entry: QueryPlan) -> pa.Table:
        """All values of one query, in the order of the table."""
        rows = len(task.batch)
        framed = [named for named in entry.query.values if over_calls(named.expression)]
        columns = [Output(named.expression.type, rows, task.ordering) for named in framed]
        overs = list(dict.fromkeys(over for named in framed for over in over_calls(named.expression)))
        parts = {ingredient.call: ingredient.partials for ingredient in entry.ingredients}
        needs = [parts[over.call] for over in overs]
        leaves = dict.fromkeys(leaf for named in framed for leaf in beside_frames(named.expression))
        beside = {leaf: evaluate(leaf, task.batch) for leaf in leaves}
        alone = [overs.index(named.expression) if named.expression in overs else -1 for named in framed]

        places = len(task.rows.times)
        # Here, as it is the threads' work too, which must not wait for itself.
        order = task.ordering.order if min(alone, default=0) < 0 else None

        def piece(begin: int) -> None:
            end = min(begin + PIECE, places)
            windows = _Windows(self._kernels[fold], task, begin, end)
            found = [windows.lowered(over, positions) for over, positions in zip(overs, needs, strict=True)]
            known: dict[Expression, pa.Array] = {}
            at = task.rows.at[begin : end + 1]
            low, high = at[[0, -1]].tolist() if len(at) else (begin, end)
            if min(alone) < 0:
                own = None if order is None else pa.array(order[low:high])
                for leaf, column in beside.items():
                    known[leaf] = column.slice(low, high - low) if own is None else column.take(own)
                known |= {over: of_rows(values, at) for over, values in zip(overs, found, strict=True)}
            for named, place, out in zip(framed, alone, columns, strict=True):
                if place >= 0:
                    out.put(low, high, found[place], at)
                else:
                    out.put(low, high, evaluate(named.expression, known, high - low), NO_MOMENTS)

        list(pool.map(piece, range(0, places, PIECE)))
        values = {named.name: column.array() for named, column in zip(framed, columns, strict=True)}
        for named in entry.query.values:
            if named.name not in values:
                values[named.name] = evaluate(named.expression, task.batch)
        return pa.table({named.name: values[named.name] for named in entry.query.values})


class _Windows:
    """The windows of one piece: the frames of its rows, and their partials, each made once."""

    def __init__(self, kernels: Sequence[FrameKernel], task: _Task, begin: int, end: int) -> None:
        self._kernels = kernels
        self._task = task
        self._begin, self._end = begin, end
        self._bounds: dict[Frame, tuple[Array, Array]] = {}
        self._found: dict[tuple[Frame, int], Fields] = {}
        self._means: dict[tuple[Frame, int], Array] = {}

    def lowered(self, over: OverCall, positions: Sequence[int]) -> pa.Array:
        """The values of an aggregate over a frame. The mean of floats without NULL comes from the kernel itself."""
        call, frame, task = over.call, over.frame, self._task
        first = self._kernels[positions[0]].kind.name
        if (
            call.function == "avg"
            and first == "sum_float"
            and task.lifted[positions[1]] is None
            and self._mean(frame, positions[0])
        ):
            return pa.array(self._means[frame, positions[0]])
        fields = [self._partial(frame, position) for position in positions]
        return AGGREGATES[call.function].lower(fields, call.operands, call.type, str(call))

    def _mean(self, frame: Frame, position: int) -> bool:
        """The mean over a frame from the kernel itself; False where array code must."""
        if (frame, position) not in self._means:
            if frame in self._task.large:
                self._shared(position, mean=True)
            else:
                (values,) = self._near(frame, position, mean=True) or (None,)
                if values is None:
                    return False
                self._means[frame, position] = values
        return True

    def _near(self, frame: Frame, position: int, mean: bool = False) -> Fields | None:
        """One frame over a partial by the kernel that finds the frames by itself; None where array code must."""
        task, kernel, rows = self._task, self._kernels[position], self._task.lifted[position]
        assert rows is not None
        out = tuple(np.empty(self._end - self._begin, kind) for kind in kernel.kind.dtypes)
        by_time = isinstance(frame, RangeFrame), _reach(frame, task.unit)
        return out if kernel.near(task.rows, by_time, rows, (self._begin, self._end), out, mean=mean) else None

    def _partial(self, frame: Frame, position: int) -> Fields:
        if (frame, position) not in self._found:
            rows = self._task.lifted[position]
            if rows is None:
                first, last = self._frame(frame)
                at = self._task.rows.at
                sizes = np.subtract(at[last], at[first], dtype=np.int64) if len(at) else last - first
                self._found[frame, position] = (sizes,)
            elif frame in self._task.large:
                self._shared(position, mean=False)
            elif (near := self._near(frame, position)) is not None:
                self._found[frame, position] = near
            else:
                first, last = self._frame(frame)
                low, high = first[0], last[-1]
                some = tuple(column[low:high] for column in rows)
                windows = self._kernels[position].windows(first - low, last - low, some, compiled=False)
                self._found[frame, position] = windows
        return self._found[frame, position]

    def _frame(self, frame: Frame) -> tuple[Array, Array]:
        if frame not in self._bounds:
            rows, reach = self._task.rows, _reach(frame, self._task.unit)
            piece = self._begin, self._end
            self._bounds[frame] = frames_of(rows.times, rows.runs, isinstance(frame, RangeFrame), reach, *piece)
        return self._bounds[frame]

    def _shared(self, position: int, mean: bool) -> None:
        """All large frames over a partial in one call."""
        task, kernel = self._task, self._kernels[position]
        frames = [frame for frame in task.large if position in task.frames[frame]]
        kinds = np.array([isinstance(frame, RangeFrame) for frame in frames])
        reaches = np.array([_reach(frame, task.unit) for frame in frames])
        shape = len(frames), self._end - self._begin
        out = tuple(room(shape[0] * shape[1], np.dtype(kind)).reshape(shape) for kind in kernel.kind.dtypes)
        fields = task.lifted[position]
        assert fields is not None
        piece = self._begin, self._end
        kernel.shared(task.rows, (kinds, reaches), fields, task.scans[position], piece, out, mean=mean)
        for place, frame in enumerate(frames):
            if mean:
                self._means[frame, position] = out[0][place]
            else:
                self._found[frame, position] = tuple(column[place] for column in out)


def _scan(kernel: FrameKernel, fields: Fields, scans: tuple[Fields, Fields], cut: tuple[int, int]) -> None:
    kernel.scan(fields, scans, *cut)


def _reach(frame: Frame, unit: int) -> int:
    """How far back in rows, or in units of time (of ``unit`` microseconds); -1: all rows of the key."""
    if frame.preceding is None:
        return -1
    return frame.preceding // (unit if isinstance(frame, RangeFrame) else 1)


def _ascending(times: Array) -> bool:
    return bool((times[1:] >= times[:-1]).all())


def _tied(times: Array, runs: Array) -> bool:
    """Whether two rows of one key have the same time; the rows stand by key and time."""
    same = times[1:] == times[:-1]
    same[runs[1:-1] - 1] = False
    return bool(same.any())


def _empty(entry: QueryPlan) -> pa.Table:
    kinds = [(named.name, named.expression.type) for named in entry.query.values]
    return pa.table({name: pa.array([], kind) for name, kind in kinds})
