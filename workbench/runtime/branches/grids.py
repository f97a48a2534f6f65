"""Context-free windows over the slices of one fold: edges are known, so slices never split and rows are not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.logical import AnyWindow, ContextFree
from workbench.plan import Bounds, Chosen, GridSet, SharedPlan, Span
from workbench.results import Status
from workbench.runtime.assembling import Alike, Assembler, Emitted, Ranges, emit
from workbench.runtime.branches.base import Branch, Clock, table_of
from workbench.runtime.branches.filling import Filling
from workbench.runtime.branches.revisions import Revisions, counter
from workbench.runtime.branches.store import SliceStore, distinct
from workbench.time import DAY, LIMIT

Array = npt.NDArray[Any]

#: The block of the revisions; those of slices are numbered by time.
_REVISIONS = -(1 << 40)
#: The block of the first filling; the others have the numbers before it.
_FILLINGS = _REVISIONS - 1
#: Shortest slices to a block: small enough that a change writes little, large enough that blocks are few.
BLOCK = 64


def _touched(bounds: Bounds, starts: Array, keys: Array, width: int) -> Array:
    """Which keys of each window have got entries: ``[window, key]``."""
    found = np.zeros((len(bounds), width), np.bool_)
    order = np.argsort(starts, kind="stable")
    starts, keys = starts[order], keys[order]
    lows, highs = np.searchsorted(starts, bounds.starts), np.searchsorted(starts, bounds.ends)
    for row, (low, high) in enumerate(zip(lows, highs, strict=True)):
        found[row, keys[low:high]] = True
    return found


class SliceWindows(Branch):
    """All context-free windows over one fold."""

    def __init__(self, plan: SharedPlan, fold: int, assembler: Assembler) -> None:
        self._plan = plan
        self._fold = fold
        self._assembler = assembler
        self._assemblies = [each for each in plan.of_fold(fold) if isinstance(each.window, ContextFree)]
        self._alike = Alike.of(plan, self._assemblies)
        self._grids = GridSet([each.window for each in self._assemblies if isinstance(each.window, ContextFree)])
        spec = plan.folds[fold]
        self.store = SliceStore(
            [partial.monoid for partial in spec.partials], [named.expression.type for named in spec.keys]
        )
        self.table = self.store.table
        self._span = min(BLOCK * min((edges.period for edges in plan.edges), default=DAY), LIMIT // 2)
        self._extra = 1 + len(spec.gaps) if spec.gaps else 0
        self._entries: list[tuple[Array, Array]] = []
        self._revisions = Revisions()
        self._fillings = Filling.of(plan, self._assemblies)
        self._told: Mapping[tuple[str, int], int] = {}
        self._dirty: set[int] = set()
        self._blocks: set[int] = set()

    @property
    def slices(self) -> int:
        return len(self.store.starts)

    @property
    def nbytes(self) -> int:
        return self.store.nbytes

    def take(self, keys: pa.RecordBatch, entries: pa.RecordBatch, clock: Clock, late: dict[int, int]) -> None:
        starts, codes = (column.to_numpy() for column in entries.columns[:2])
        fields = self.store.from_arrow(entries.columns[2 + self._extra :])
        self._count_late(starts, fields[0], clock, late)
        numbers = self.store.number_keys(keys)[codes]
        useful = starts >= self._grids.open_from(clock.settled_before)
        if not useful.all():
            starts, numbers = starts[useful], numbers[useful]
            fields = [column[useful] for column in fields]
        self.store.merge(starts, numbers, fields)
        self._dirty |= set(distinct(starts // self._span).tolist())
        self._entries.append((starts, numbers))

    def advance(self, clock: Clock, late: dict[int, int]) -> Emitted:
        starts = np.concatenate([np.zeros(0, np.int64), *(starts for starts, _ in self._entries)])
        numbers = np.concatenate([np.zeros(0, np.int64), *(numbers for _, numbers in self._entries)])
        self._entries.clear()
        results = self._emit(self._chosen(distinct(starts), clock), starts, numbers, clock)
        for filling in self._fillings:
            results += filling.advance(self.store, self._assembler, self._revisions, clock, (starts, numbers))
        self.store.evict(self._grids.open_from(clock.settled_after))
        self._revisions.forget(clock.settled_after)
        return results

    def _chosen(self, changed: Array, clock: Clock) -> Chosen:
        """The windows to tell of, by kind and end: those that changed after they were final, those that are final
        now, and of those still open in event time only the next to end: it is the moving end of a plot.
        """
        grids, kept = self._grids, self.store.starts
        spans = [
            Span(changed, clock.settled_before, clock.before),
            Span(kept, clock.before, clock.after),
            Span(changed, clock.after, grids.next_ends(clock.newest)),
        ]
        return grids.select(kept, spans)

    def _emit(self, chosen: Chosen, starts: Array, keys: Array, clock: Clock) -> Emitted:
        if not len(chosen):
            return []
        kinds, bounds, begin = chosen.kinds, chosen.bounds, self.store.begin
        ranges = Ranges(kinds, chosen.first + begin, chosen.last + begin)
        found = self._assembler.assemble(self._fold, self._assemblies, ranges, self.store)
        status = np.where(bounds.ends <= clock.after, np.int8(Status.FINAL), np.int8(Status.PROVISIONAL))
        revised = bounds.ends <= clock.before
        wanted, revisions = None, {}
        if revised.any():
            status[revised] = Status.REVISED
            wanted = np.ones((len(bounds), self.store.keys), np.bool_)
            wanted[revised] = _touched(bounds[revised], starts, keys, self.store.keys)
            revisions = {group.fill: np.zeros(wanted.shape, np.int16) for group in self._alike}
            for kind in np.unique(kinds[revised]).tolist():
                own = revised & (kinds == kind)
                for fill, numbers in revisions.items():
                    numbers[own] = self._revisions.next(counter(kind, fill), bounds[own].ends, wanted[own])
        return emit(self._alike, kinds, bounds, found, self.table.arrays(), status, wanted, revisions)

    def _count_late(self, starts: Array, rows: Array, clock: Clock, late: dict[int, int]) -> None:
        old = np.flatnonzero(starts < clock.settled_before)
        if not len(old):
            return
        horizon = clock.settled_before
        missed = self._grids.missed(starts[old], horizon)
        of_query: dict[int, Array] = {}
        for place in np.flatnonzero(missed.any(axis=1)).tolist():
            for query, level in self._assemblies[place].users:
                since = self._told.get((self._plan.queries[query].query.name, level))
                own = missed[place] if since is None else self._grids.missed_since(place, starts[old], since, horizon)
                of_query[query] = of_query.get(query, False) | own
        for query, mask in of_query.items():
            late[query] += int(rows[old[mask]].sum())

    def used(self) -> Array | None:
        # A key has windows without rows to be filled for ever. A revised one has rows in slices that are kept.
        return None if self._fillings else self.store.used()

    def renumber(self, kept: Array) -> None:
        self.store.renumber(kept)
        self._revisions.renumber(kept)
        self._dirty = self._every_block()

    def _every_block(self) -> set[int]:
        """The numbers of all blocks of slices that are kept."""
        return set(distinct(self.store.starts // self._span).tolist())

    def changes(self) -> tuple[dict[int, pa.RecordBatch], set[int]]:
        put: dict[int, pa.RecordBatch] = {}
        for number in self._dirty:
            columns = list(self.store.entries(number * self._span, (number + 1) * self._span))
            if len(columns[0]):
                put[number] = table_of([*columns[:2], *self.store.to_arrow(columns[2:])])
        self._dirty.clear()
        kept = self.store.starts
        first = int(kept[0]) if len(kept) else None
        gone = {block for block in self._blocks - put.keys() if first is None or (block + 1) * self._span <= first}
        self._blocks = (self._blocks | put.keys()) - gone
        revisions = self._revisions.changes()
        filled = {_FILLINGS - place: filling.changes() for place, filling in enumerate(self._fillings)}
        more = {_REVISIONS: revisions, **filled}
        return put | {number: table for number, table in more.items() if table is not None}, gone

    def restore(self, blocks: Mapping[int, pa.RecordBatch]) -> None:
        self.store.widen()
        for number, table in blocks.items():
            if number == _REVISIONS:
                self._revisions.restore(table)
                continue
            if number < _REVISIONS:
                self._fillings[_FILLINGS - number].restore(table)
                continue
            starts, keys, *fields = table.columns
            self.store.merge(starts.to_numpy(), keys.to_numpy(), self.store.from_arrow(fields))
            self._blocks.add(number)

    def adopt(self, older: Branch, partials: Sequence[int | None]) -> None:
        """A slice that is there stays as it is, whatever the edges are now.

        Windows that go on have their edges in both plans, so old slices and new ones lie in them as a whole; windows
        that begin now begin behind all rows that old slices hold.
        """
        assert isinstance(older, SliceWindows)
        self.store.adopt(older.store, partials)
        places = {assembly.window: place for place, assembly in enumerate(self._assemblies)}
        known = enumerate(older._assemblies)
        self._revisions.adopt(
            older._revisions, {n: places[each.window] for n, each in known if each.window in places}
        )
        fillings = {filling.assembly.window: filling for filling in older._fillings}
        for filling in self._fillings:
            if filling.assembly.window in fillings:
                filling.adopt(fillings[filling.assembly.window])
        self._dirty = self._every_block()

    def begin(self, since: Mapping[AnyWindow, int], told: Mapping[tuple[str, int], int]) -> None:
        self._alike = [group.begun(told) for group in self._alike]
        self._told = told
