"""Results for each row of one fold: OVER queries. A row's result is told once, when no earlier row can come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra import AGGREGATES
from workbench.logical import EachRow, Expression, Frame, over_calls
from workbench.plan import QueryPlan, SharedPlan, stream_time
from workbench.results import ResultBatch, ResultBundle, Status
from workbench.runtime.assembling import Emitted
from workbench.runtime.branches.base import Branch, Clock, flagged
from workbench.runtime.branches.keytable import KeyTable
from workbench.runtime.expressions import evaluate
from workbench.runtime.folding import Folder
from workbench.runtime.over import OverRows

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


class RowResults(Branch):
    """All OVER queries over one fold. They never have provisional results, and allowed lateness delays them."""

    def __init__(self, plan: SharedPlan, fold: int) -> None:
        spec = plan.folds[fold]
        self._users = over_users(plan, fold)
        self.table = KeyTable([named.expression.type for named in spec.keys])
        time = stream_time(plan.stream)
        frames = frames_needed(plan, self._users)
        self._rows = OverRows(Folder(spec), spec.columns or (), time, frames, spec.ahead)
        self._plan = plan
        self._changed = False

    @property
    def slices(self) -> int:
        return 0

    @property
    def tuples(self) -> int:
        return self._rows.rows

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes

    def take(self, keys: pa.RecordBatch, entries: pa.RecordBatch, clock: Clock, late: dict[int, int]) -> None:
        times, codes, *columns = entries.columns
        missed = times.to_numpy() < clock.settled_before
        if missed.any():
            for query in self._users:
                late[query] += int(missed.sum())
            kept = pa.array(~missed)
            times, codes, *columns = (column.filter(kept) for column in entries.columns)
        self._rows.add(self.table.number(keys)[codes.to_numpy()], times.to_numpy(), columns)
        self._changed = True

    def advance(self, clock: Clock, late: dict[int, int]) -> Emitted:
        passed = self._rows.advance(clock.settled_after, finish=clock.finish)
        if passed is None:
            return []
        self._changed = True
        if not len(passed.times):
            return []
        keys = self.table.taken(passed.keys)
        rows = len(passed.times)
        status, revisions = np.full(rows, Status.FINAL, np.int8), np.zeros(rows, np.int16)
        results: Emitted = []
        for query in self._users:
            entry = self._plan.queries[query]
            values = lower_rows(entry, keys, passed.columns, passed.partials, rows)
            batch = ResultBatch.of(
                0, passed.times, tuple(keys), values, status, revisions, passed.times, passed.numbers
            )
            results.append(ResultBundle.of(entry.query.name, batch))
        return results

    def used(self) -> Array | None:
        if self._rows.lasting or 2 * self._rows.recent >= len(self.table):
            return None
        return flagged(len(self.table), *self._rows.keys())

    def renumber(self, kept: Array) -> None:
        self._rows.renumber(kept)
        self._changed = True

    def changes(self) -> tuple[dict[int, pa.RecordBatch], set[int]]:
        if not self._changed:
            return {}, set()
        self._changed = False
        return dict(enumerate(self._rows.snapshot())), set()

    def restore(self, blocks: Mapping[int, pa.RecordBatch]) -> None:
        if blocks:
            self._rows.restore([blocks[number] for number in range(len(blocks))])

    def adopt(self, older: Branch, partials: Sequence[int | None]) -> None:
        assert isinstance(older, RowResults)
        self.table.adopt(older.table)
        self._rows.adopt(older._rows, partials)
        self._changed = True


def over_users(plan: SharedPlan, fold: int) -> list[int]:
    """The positions of the OVER queries over a fold."""
    return [
        query
        for assembly in plan.of_fold(fold)
        if isinstance(assembly.window, EachRow)
        for query, _ in assembly.users
    ]


def frames_needed(plan: SharedPlan, users: Sequence[int]) -> dict[Frame, tuple[int, ...]]:
    """Which partials of their fold each frame of some queries needs."""
    needed: dict[Frame, dict[int, None]] = {}
    for query in users:
        entry = plan.queries[query]
        parts = {ingredient.call: ingredient.partials for ingredient in entry.ingredients}
        for named in entry.query.values:
            for over in over_calls(named.expression):
                needed.setdefault(over.frame, {}).update(dict.fromkeys(parts[over.call]))
    return {frame: tuple(positions) for frame, positions in needed.items()}


def lower_rows(
    entry: QueryPlan,
    keys: Sequence[pa.Array],
    row: Mapping[Expression, pa.Array],
    partials: Mapping[tuple[Frame, int], Fields],
    rows: int,
) -> tuple[pa.Array, ...]:
    """The value columns of an OVER query from what is read of the rows and the partials of their frames."""
    columns: dict[Expression, pa.Array] = dict(row)
    columns |= {named.expression: array for named, array in zip(entry.query.keys, keys, strict=True)}
    parts = {ingredient.call: ingredient.partials for ingredient in entry.ingredients}
    for named in entry.query.values:
        for over in over_calls(named.expression):
            call, fields = over.call, [partials[over.frame, position] for position in parts[over.call]]
            columns[over] = AGGREGATES[call.function].lower(fields, call.operands, call.type, str(call))
    return tuple(
        evaluate(named.expression, columns, rows).cast(named.expression.type) for named in entry.query.values
    )
