"""OVER over a whole table in one process, by threads: nothing is late, so there is no state and no watermark.

Rows are brought into order by key and time (a counting sort where they come in order of time), then pieces of them go
through all frames of all queries, each on one thread, and the results back to where their rows stand in the table::

    rows by key    |aaaaaaa|bbbbbbbbbbbbbbb|ccccc|dddddddddd|
    pieces         |---- 1 ----|---- 2 ----|---- 3 ----|-- 4
                       a frame reaches back into earlier pieces, whose rows and scans are there
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.codegen.over import CHUNK, FrameKernel
from workbench.kernels.peers import NO_MOMENTS
from workbench.logical import Expression, Frame, OverCall, RangeFrame, beside_frames, over_calls
from workbench.plan import QueryPlan, SharedPlan
from workbench.results import ResultBatch, Status
from workbench.runtime.branches.over import over_users
from workbench.runtime.expressions import evaluate
from workbench.runtime.folding import Folder, micros, plan_columns, require_near
from workbench.runtime.over_columns import Output, of_rows, room
from workbench.runtime.over_reading import Reader
from workbench.runtime.over_windows import Task, Windows, is_mean, reach, reaches

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: Rows to a piece: a multiple of a chunk, so that the results of ten frames stay in the second- or third-level cache.
PIECE = 8 * CHUNK
#: Pieces to a thread where results go straight to the whole.
_PARTS = 8


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
                task = None
                if batch is not None:
                    kernels, folder = self._kernels[fold], self._folders[fold]
                    task = Reader(self.plan, fold, folder, kernels, pool, self.threads).read(batch, exact)
                for user in over_users(self.plan, fold):
                    entry = self.plan.queries[user]
                    yield entry, task, None if task is None else self._results(pool, fold, task, entry)

    def _cuts(self, places: int) -> list[tuple[int, int]]:
        """Some parts for each thread, of whole chunks."""
        return list(pairwise([*range(0, places, max(1, places // CHUNK // (_PARTS * self.threads)) * CHUNK), places]))

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
        cuts = self._cuts(len(task.rows.times))
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
