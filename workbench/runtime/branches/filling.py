"""Results for windows without rows: see :class:`~workbench.logical.Fill`.

::

    windows of a key   1     2     3     4     5     6
    rows                     .           . .                  the first window with a row is the second
    told                     |     -     |     -     -        - filled, up to the latest event time
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import QueryError
from workbench.logical import ContextFree, Fill, Window
from workbench.plan import Assembly, QueryPlan, SharedPlan, grid_of
from workbench.results import ResultBatch, ResultBundle, Status
from workbench.runtime.assembling import Assembler, Emitted, Ranges
from workbench.runtime.branches.base import Clock, table_of
from workbench.runtime.branches.revisions import Revisions, counter
from workbench.runtime.branches.store import SliceStore
from workbench.runtime.lowering import lower
from workbench.time import LIMIT

Array = npt.NDArray[Any]

#: More windows than these, of all keys, are not filled at once.
MOST = 1 << 24
#: The first window of a key that has none yet.
_NONE = 2**63 - 1


@dataclass
class _User:
    """A query's level that is filled; ``carried`` are the values of the last settled window with rows, by key."""

    entry: QueryPlan
    level: int
    carried: list[pa.Array]


class Filling:
    """Fills the windows of one kind over one fold, for all queries that ask for it.

    It remembers the number of the first window with rows of each key and, for ``PREVIOUS``, the values of the last.
    """

    def __init__(self, plan: SharedPlan, assembly: Assembly, place: int) -> None:
        assert isinstance(assembly.window, ContextFree)
        self._fold = plan.folds[assembly.fold]
        self.assembly = assembly
        self._place = place
        self._grid = grid_of(assembly.window)
        self._users = [
            _User(plan.queries[query], level, [])
            for query, level in assembly.users
            if plan.queries[query].query.fill is not None
        ]
        self._first = np.zeros(0, np.int64)
        self._written = True
        self._widen(0)

    @staticmethod
    def of(plan: SharedPlan, assemblies: Sequence[Assembly]) -> list[Filling]:
        """One for each kind of window that a query wants to be filled."""
        return [
            Filling(plan, assembly, place)
            for place, assembly in enumerate(assemblies)
            if any(plan.queries[query].query.fill is not None for query, _ in assembly.users)
        ]

    @property
    def _previous(self) -> list[_User]:
        return [user for user in self._users if user.entry.query.fill is Fill.PREVIOUS]

    def advance(
        self,
        store: SliceStore,
        assembler: Assembler,
        revisions: Revisions,
        clock: Clock,
        touched: tuple[Array, Array],
    ) -> Emitted:
        """The results of windows without rows that are final now, and of those that late rows have changed.

        ``touched`` are the slices and key numbers that have got rows. Call it before slices are evicted. Cost:
        proportional to the kept slices and to the windows, of all keys, that are not settled.
        """
        self._widen(store.keys)
        starts, keys = list(store.entries(-LIMIT, LIMIT))[:2]
        if not store.keys:
            return []
        grid, before = self._grid, self._first.copy()
        low = grid.closed(clock.settled_before) + 1
        self._begin(starts, keys, low)
        low = max(low, int(self._first.min()))
        latest = int(grid.containing(np.array([clock.newest]))[1][0])
        high = min(grid.closed(clock.after), latest)
        if high < low:
            return []
        if (high - low + 1) * store.keys > MOST:
            name = self._users[0].entry.query.name
            raise QueryError(
                f"filling the windows of `{name}` would take {(high - low + 1) * store.keys:,} results at once",
                hint="leave FILL out, or take longer windows: rows lie far apart",
            )
        present = self._marked(starts, keys, low, high, store.keys)
        numbers = np.arange(low, high + 1)[:, None]
        known = numbers <= grid.closed(clock.before)
        bounds = grid.bounds(numbers[:, 0])
        # A day that a zone left out has no time.
        empty = (numbers > self._first) & ~present & (bounds.starts < bounds.ends)[:, None]
        told = empty & (~known | (numbers < before))
        last = np.maximum.accumulate(np.where(present, numbers - low, -1), axis=0)
        after_late = told
        if self._previous:
            late = self._marked(*touched, low, high, store.keys) & present
            after_late = told | (empty & np.take_along_axis(late, np.maximum(last, 0), 0) & (last >= 0))
        changed = {Fill.NULL: told, Fill.PREVIOUS: after_late}
        cells = {fill: (which, self._count(revisions, fill, low, known & which)) for fill, which in changed.items()}
        settles = int(np.clip(grid.closed(clock.settled_after) - low, -1, high - low))
        return self._results(store, assembler, low, cells, last, settles, known[:, 0])

    def _count(self, revisions: Revisions, fill: Fill, low: int, changed: Array) -> Array:
        """Count the revisions of results that were final, of windows numbered from ``low`` on."""
        counts = np.zeros(changed.shape, np.int16)
        rows = np.flatnonzero(changed.any(axis=1))
        if len(rows):
            ends = self._grid.bounds(low + rows).ends
            counts[rows] = revisions.next(counter(self._place, fill), ends, changed[rows])
        return counts

    def _results(
        self,
        store: SliceStore,
        assembler: Assembler,
        low: int,
        cells: Mapping[Fill, tuple[Array, Array]],
        last: Array,
        settles: int,
        known: Array,
    ) -> Emitted:
        """The results of empty windows, numbered from ``low`` on; those up to ``settles`` change no more.

        All are matrices ``[window, key]``: ``cells`` what is told and the revisions, for ``PREVIOUS`` and for others,
        and the ``last`` window with rows at or before each.
        """
        results: Emitted = []
        for user in self._users:
            previous = user.entry.query.fill is Fill.PREVIOUS
            told, counts = cells[Fill.PREVIOUS if previous else Fill.NULL]
            rows, keys = np.nonzero(told)
            bounds = self._grid.bounds(low + rows)
            columns = store.table.taken(keys)
            status = np.where(known[rows], Status.REVISED, Status.FINAL).astype(np.int8)
            blank = {n: self._fold.partials[n].monoid.blank(len(rows)) for n in self._read(user)}
            values, status = lower(user.entry, columns, blank, status)
            if user.entry.query.fill is Fill.ZERO:
                values = tuple(
                    column.fill_null(pa.scalar(0, column.type)) if _numeric(column.type) else column
                    for column in values
                )
            if previous:
                values = self._carry(user, store, assembler, low, (rows, keys, last), settles, values)
            if len(rows):
                irregular = not isinstance(self.assembly.window, Window)
                batch = ResultBatch.of(
                    user.level,
                    bounds.starts,
                    tuple(columns),
                    values,
                    status,
                    counts[rows, keys],
                    *([bounds.ends, bounds.ends] if irregular else []),
                )
                results.append(ResultBundle.of(user.entry.query.name, batch))
        return results

    def _carry(
        self,
        user: _User,
        store: SliceStore,
        assembler: Assembler,
        low: int,
        cells: tuple[Array, Array, Array],
        settles: int,
        values: tuple[pa.Array, ...],
    ) -> tuple[pa.Array, ...]:
        """The values of empty windows with those of the last window with rows for NULLs; carries the settled on."""
        rows, keys, last = cells
        source = last[rows, keys]
        settled = last[settles] if settles >= 0 else np.full(store.keys, -1)
        wanted_rows = np.concatenate([source, settled])
        wanted_keys = np.concatenate([keys, np.arange(store.keys)])
        found = wanted_rows >= 0
        known = self._values(user, store, assembler, low, wanted_rows[found], wanted_keys[found])
        # Behind the carried values by key stand those of windows that are still there.
        place = np.where(found, store.keys + np.cumsum(found) - 1, wanted_keys)
        pools = [pa.concat_arrays([old, new]) for old, new in zip(user.carried, known, strict=True)]
        here, ahead = pa.array(place[: len(rows)]), pa.array(place[len(rows) :])
        if (settled >= 0).any():
            user.carried = [pool.take(ahead) for pool in pools]
            self._written = False
        return tuple(_instead(column, pool.take(here)) for column, pool in zip(values, pools, strict=True))

    def _values(
        self, user: _User, store: SliceStore, assembler: Assembler, low: int, rows: Array, keys: Array
    ) -> tuple[pa.Array, ...]:
        """The values of windows with rows, an entry each."""
        if not len(rows):
            return tuple(pa.array([], column.type) for column in user.carried)
        distinct, place = np.unique(rows, return_inverse=True)
        bounds = self._grid.bounds(low + distinct)
        ranges = Ranges(np.zeros(len(distinct), np.int64), store.rows(bounds.starts), store.rows(bounds.ends))
        windows = assembler.assemble(self.assembly.fold, [self.assembly], ranges, store)
        partials = {n: tuple(field[place, keys] for field in windows.of(n)) for n in self._read(user)}
        columns = store.table.taken(keys)
        return lower(user.entry, columns, partials, np.zeros(len(rows), np.int8))[0]

    def _begin(self, starts: Array, keys: Array, low: int) -> None:
        """Note the first window with rows of each key; windows before ``low`` are settled."""
        first, last = self._grid.containing(starts)
        useful = (first <= last) & (last >= low)
        was = self._first.copy()
        np.minimum.at(self._first, keys[useful], np.maximum(first[useful], low))
        self._written &= bool((was == self._first).all())

    def _marked(self, starts: Array, keys: Array, low: int, high: int, width: int) -> Array:
        """Which windows ``low ... high`` have one of these slices, ``[window, key]``."""
        first, last = self._grid.containing(starts)
        first, last = np.maximum(first, low) - low, np.minimum(last, high) - low
        some = first <= last
        steps = np.zeros((high - low + 2, width), np.int32)
        np.add.at(steps, (first[some], keys[some]), 1)
        np.add.at(steps, (last[some] + 1, keys[some]), -1)
        marked: Array = np.cumsum(steps[:-1], axis=0) > 0
        return marked

    @staticmethod
    def _read(user: _User) -> set[int]:
        return {0}.union(*(ingredient.partials for ingredient in user.entry.ingredients))

    def _widen(self, keys: int) -> None:
        more = keys - len(self._first)
        self._first = np.concatenate([self._first, np.full(more, _NONE, np.int64)])
        for user in self._previous:
            kinds = [named.expression.type for named in user.entry.query.values]
            old = user.carried or [pa.array([], kind) for kind in kinds]
            user.carried = [pa.concat_arrays([column, pa.nulls(more, column.type)]) for column in old]

    def changes(self) -> pa.RecordBatch | None:
        """What to write, if something has changed since the last call."""
        if self._written:
            return None
        self._written = True
        return table_of([self._first, *(column for user in self._previous for column in user.carried)])

    def restore(self, table: pa.RecordBatch) -> None:
        """Inverse of :meth:`changes`, for a fresh one."""
        first, *columns = table.columns
        self._first = first.to_numpy().copy()
        for user in self._previous:
            user.carried = [columns.pop(0) for _ in user.carried]

    def adopt(self, older: Filling) -> None:
        """Take over from the one for the same windows in an older plan, which has all queries of this one."""
        self._first, self._written = older._first, False
        known = {(user.entry.query, user.level): user.carried for user in older._previous}
        for user in self._previous:
            user.carried = known[user.entry.query, user.level]


def _numeric(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _instead(values: pa.Array, others: pa.Array) -> pa.Array:
    """The values, and the others where they are NULL; of any type."""
    place = np.arange(len(values)) + len(values) * pc.is_null(values).to_numpy(zero_copy_only=False)
    return pa.concat_arrays([values, others]).take(pa.array(place))
