"""Windows over one fold whose rows are kept until no earlier one can come.

*General Stream Slicing* §5.1: a row that comes late may split a slice of such windows, or shift all rows behind it by
one, so slices are made of rows only where that can happen no more. The rows from there on, in order of time, are what
the windows are found in::

    slices of settled rows          kept rows                      watermark - lateness = horizon
    |------|--|------|--|           .  . .  ..   .   .   .  .
                             horizon ^            ^ watermark
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import DataError
from workbench.logical import AnyWindow, Backwards, EachRow, MeasureWindow, Punctuation, Session, UserContext
from workbench.plan import Assembly, Bounds, SharedPlan, lasting, stream_time
from workbench.results import Status
from workbench.runtime.assembling import Alike, Assembler, Cells, Emitted, Ranges, emit_cells
from workbench.runtime.branches.along import MeasureEdges
from workbench.runtime.branches.base import Branch, Clock, Work, counted_since, flagged, rearranged, table_of
from workbench.runtime.branches.edges import Edges, Found
from workbench.runtime.branches.keytable import KeyTable
from workbench.runtime.branches.kinds import edges_of
from workbench.runtime.branches.leaves import LeafMatrices, Leaves
from workbench.runtime.branches.revisions import one_more
from workbench.runtime.branches.told import ToldEdges
from workbench.runtime.folding import Folder, session_ends
from workbench.time import format_time

Array = npt.NDArray[Any]

_DROP = "`measure_window(..., 'drop')` leaves rows that go back out and counts them"


@dataclass(frozen=True)
class _Shown:
    """Windows whose results are out and may still change, an entry each."""

    keys: Array
    numbers: Array
    starts: Array
    ends: Array
    closes: Array
    status: Array
    revisions: Array
    counts: Array

    def __getitem__(self, which: Array) -> _Shown:
        return _Shown(*(column[which] for column in vars(self).values()))

    @staticmethod
    def empty() -> _Shown:
        none = np.zeros(0, np.int64)
        return _Shown(none, none, none, none, none, np.zeros(0, np.int8), np.zeros(0, np.int16), none)


@dataclass
class _Kind:
    """One kind of windows over the fold, with what it has made of settled rows.

    ``since`` is when it began, in the middle of the stream; earlier rows are not taken and what could reach back to
    them is not told.
    """

    assembly: Assembly
    alike: list[Alike]
    edges: Edges
    slices: Leaves
    shown: _Shown = field(default_factory=_Shown.empty)
    since: int | None = None


class ContextWindows(Branch):
    """All windows over one fold whose rows are kept."""

    def __init__(self, plan: SharedPlan, fold: int, assembler: Assembler) -> None:
        self._plan = plan
        self._fold = fold
        self._assembler = assembler
        self._spec = plan.folds[fold]
        self._folder = Folder(self._spec)
        self._columns = self._spec.columns or ()
        self.table = KeyTable([named.expression.type for named in self._spec.keys])
        self._kinds = [
            _Kind(assembly, Alike.of(plan, [assembly]), edges_of(assembly.window), Leaves.empty(self._folder.kinds))
            for assembly in plan.of_fold(fold)
            if not isinstance(assembly.window, EachRow)
        ]
        self._rows = table_of([*[np.zeros(0, np.int64)] * 2, *(pa.array([], each.type) for each in self._columns)])
        self._lifted = [np.zeros(0, kind) for partial in self._folder.kinds for kind in partial.dtypes]
        self._entries: list[pa.RecordBatch] = []
        self._changed = False
        self._users = [user for kind in self._kinds for user in kind.assembly.users]
        self._lasting = any(lasting(plan.queries[query].query) for query, _ in self._users)
        self._since = counted_since(plan, self._users, {})

    @property
    def slices(self) -> int:
        return sum(len(kind.slices) for kind in self._kinds)

    @property
    def tuples(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        cells = sum(kind.slices.fields[0].nbytes * (len(kind.slices.fields) + 4) for kind in self._kinds)
        return int(self._rows.nbytes + sum(column.nbytes for column in self._lifted) + cells)

    def take(self, keys: pa.RecordBatch, entries: pa.RecordBatch, clock: Clock, late: dict[int, int]) -> None:
        times, codes, *columns = entries.columns
        missed = times.to_numpy() < clock.settled_before
        if missed.any():
            for query, since in self._since.items():
                late[query] += int((times.to_numpy()[missed] >= since).sum())
        rows = table_of([self.table.number(keys)[codes.to_numpy()], times, *columns])
        self._entries.append(rows.filter(pa.array(~missed)) if missed.any() else rows)

    def advance(self, clock: Clock, late: dict[int, int]) -> Emitted:
        rows = self._sorted()
        results: Emitted = []
        self.backward = {}
        self.work = Work()
        for kind in self._kinds:
            kind.edges.widen(len(self.table))
            own = self._marked(rows, kind, clock)
            leaves = kind.slices.followed_by(own if kind.since is None else own[own.firsts >= kind.since])
            found = kind.edges.windows(leaves, clock)
            found = found if kind.since is None else found[kind.edges.whole(found, leaves)]
            results += self._tell(kind, found, leaves, clock)
            part = kind.edges.settle(leaves, clock.settled_after)
            settled = leaves[part >= 0]
            old = part[(part >= 0) & (leaves.lasts < clock.settled_before)]  # those that have been slices before
            self.work += Work(merges=len(old) - len(np.unique(old)))
            settled = replace(settled, fresh=np.zeros(len(settled), np.bool_))
            before = len(kind.slices), len(kind.shown.keys)
            kind.slices = settled.merged(part[part >= 0], self._folder.kinds)
            shown = kind.shown
            over = kind.edges.settled(shown.keys, shown.numbers, shown.closes, clock.settled_after)
            kind.shown = shown[~over]
            # Time alone forgets, too: what was written of it would be taken for results that are there no more.
            self._changed |= before != (len(kind.slices), len(kind.shown.keys))
        kept = rows.firsts >= clock.settled_after
        self._changed |= bool(rows.fresh.any()) or bool(results) or not kept.all()
        self._rows = self._rows.filter(pa.array(kept))
        self._lifted = [column[kept] for column in self._lifted]
        return results

    def _sorted(self) -> Leaves:
        """Put new rows among the kept ones, by key, time and what is read of them; all as leaves."""
        kept = len(self._rows)
        if any(map(len, self._entries)):
            every = pa.Table.from_batches([self._rows, *self._entries]).combine_chunks()
            order = pc.sort_indices(every, [(name, "ascending") for name in every.column_names])
            lifted = self._lift(every.slice(kept).combine_chunks().to_batches()[0])
            places = order.to_numpy()
            columns = zip(self._lifted, lifted, strict=True)
            self._lifted = [np.concatenate(pair)[places] for pair in columns]
            self._rows = every.take(order).combine_chunks().to_batches()[0]
            fresh = places >= kept
        else:
            fresh = np.zeros(kept, np.bool_)
        self._entries.clear()
        keys, times = (column.to_numpy() for column in self._rows.columns[:2])
        ones, zeros = np.ones(len(keys), np.int64), np.zeros(len(keys), np.int64)
        return Leaves(keys, times, times, ones, fresh, zeros.astype(np.bool_), zeros, self._lifted)

    def _lift(self, rows: pa.RecordBatch) -> list[Array]:
        columns = dict(zip(self._columns, rows.columns[2:], strict=True))
        time = stream_time(self._plan.stream)
        columns[time] = rows.column(1).cast(pa.timestamp("us", "UTC")).cast(time.type)
        return [column for fields in self._folder.lift(columns, len(rows)) for column in fields]

    def _marked(self, rows: Leaves, kind: _Kind, clock: Clock) -> Leaves:
        """The rows with what a window type reads of them, without those that cannot be in its windows."""
        match kind.assembly.window:
            case MeasureWindow():
                return self._forward(rows, kind, clock)
            case UserContext(arguments=arguments):
                assert isinstance(kind.edges, ToldEdges)
                read = [self._rows.column(2 + self._columns.index(each)) for each in arguments]
                kind.edges.notify(kind.slices, rows, read, clock)
            case Punctuation(condition):
                column = self._rows.column(2 + self._columns.index(condition))
                return replace(rows, marks=column.fill_null(False).to_numpy(zero_copy_only=False))
            case Session():
                columns = dict(zip(self._columns, self._rows.columns[2:], strict=True))
                rows = replace(rows, until=session_ends(kind.assembly.window, rows.firsts, columns))
                return rows[rows.until > rows.firsts]
        return rows

    def _forward(self, rows: Leaves, kind: _Kind, clock: Clock) -> Leaves:
        """The rows whose measure does not go back, in its order. Raises DataError for others, or counts them."""
        window, edges = kind.assembly.window, kind.edges
        assert isinstance(window, MeasureWindow)
        assert isinstance(edges, MeasureEdges)
        rows, back = edges.forward(rows, self._rows.column(2 + self._columns.index(window.measure)), clock)
        if back is not None:
            keys = ", ".join(f"`{column[back.key]}`" for column in self.table.arrays()[: len(self._spec.keys)])
            text = (
                f"`{window.measure}`{' of ' if keys else ''}{keys} is `{back.value}` at {format_time(back.time)}, "
                f"where an earlier row has `{back.before}`"
            )
            if window.backwards is Backwards.ERROR:
                raise DataError(f"a measure goes back: {text}", hint=_DROP)
            self.backward = {**self.backward, **{query: (back.rows, text) for query, _ in kind.assembly.users}}
        return rows

    def _tell(self, kind: _Kind, found: Found, leaves: Leaves, clock: Clock) -> Emitted:
        """The results of windows that have become final, or have changed and are not settled; the rest is known."""
        place, gone = _matched(kind.shown, found)
        known, had = place >= 0, kind.shown[np.maximum(place, 0)] if len(kind.shown.keys) else None
        out = np.zeros(len(found), np.bool_)
        rows = np.append(0, np.cumsum(leaves.counts))
        counts = rows[found.last] - rows[found.first]
        changed, revisions = found.fresh.copy(), np.zeros(len(found), np.int16)
        if had is not None:
            out = known & np.isin(had.status, (Status.FINAL, Status.REVISED))
            moved = (had.starts != found.starts) | (had.ends != found.ends)
            changed |= known & (moved | (had.counts != counts))
            revisions[known] = had.revisions[known]
        closed = found.closes <= clock.after
        revisions = one_more(revisions, changed & (out | (~known & (found.closes <= clock.before))))
        # One that begins or is added now may hold earlier rows alone.
        told = changed | ~known | (closed & ~out)
        status = np.where(closed, np.where(revisions > 0, Status.REVISED, Status.FINAL), Status.PROVISIONAL)
        if had is not None:
            status = np.where(told | ~known, status, had.status)
        status = status.astype(np.int8)
        self.work += _work(kind, found, told, had, known, leaves)
        results = self._emit(kind, found[told], status[told], revisions[told], leaves)
        results += self._withdraw(kind, kind.shown[gone])
        seen = told | known
        bounds = found.keys, found.numbers, found.starts, found.ends, found.closes
        kind.shown = _Shown(*bounds, status, revisions, counts)[seen]
        return results

    def _emit(self, kind: _Kind, told: Found, status: Array, revisions: Array, leaves: Leaves) -> Emitted:
        if not len(told):
            return []
        matrices = LeafMatrices(leaves, self._folder.kinds)
        ranges = Ranges(np.zeros(len(told), np.int64), told.first, told.last)
        found = self._assembler.assemble(self._fold, [kind.assembly], ranges, matrices)
        partials = {
            index: tuple(column[:, 0].copy() for column in found.of(index)) for index in kind.assembly.partials
        }
        keys = self.table.taken(told.keys)
        bounds = Bounds(told.starts, told.ends)
        return emit_cells(kind.alike, Cells(bounds, keys, partials, status, revisions, told.numbers))

    def _withdraw(self, kind: _Kind, gone: _Shown) -> Emitted:
        """Take back the results of windows that there are no more."""
        if not len(gone.keys):
            return []
        keys = self.table.taken(gone.keys)
        status = np.zeros(len(gone.keys), np.int8)
        bounds = Bounds(gone.starts, gone.ends)
        return emit_cells(kind.alike, Cells(bounds, keys, {}, status, gone.revisions, gone.numbers))

    def used(self) -> Array | None:
        if self._lasting:
            return None
        numbers = [side.keys for kind in self._kinds for side in (kind.slices, kind.shown)]
        return flagged(len(self.table), self._rows.column(0).to_numpy(), *numbers)

    def renumber(self, kept: Array) -> None:
        numbers, *columns = self._rows.columns
        self._rows = table_of([np.searchsorted(kept, numbers.to_numpy()), *columns])
        for kind in self._kinds:
            kind.slices = replace(kind.slices, keys=np.searchsorted(kept, kind.slices.keys))
            kind.shown = replace(kind.shown, keys=np.searchsorted(kept, kind.shown.keys))
            kind.edges.base = kind.edges.base[kept]
        self._changed = True

    def changes(self) -> tuple[dict[int, pa.RecordBatch], set[int]]:
        """Block 0 holds the rows; each kind has three: its slices, where they begin, and what is out."""
        if not self._changed:
            return {}, set()
        self._changed = False
        put = {0: self._rows}
        for place, kind in enumerate(self._kinds):
            leaves = kind.slices
            bounds = [leaves.keys, leaves.firsts, leaves.lasts, leaves.counts, leaves.until, leaves.marks]
            put[3 * place + 1] = table_of([*bounds, *self._to_arrow(leaves.fields)])
            put[3 * place + 2] = kind.edges.remembered()
            put[3 * place + 3] = table_of(list(vars(kind.shown).values()))
        return put, set()

    def restore(self, blocks: Mapping[int, pa.RecordBatch]) -> None:
        if not blocks:
            return
        self._rows = blocks[0]
        self._lifted = self._lift(self._rows)
        for place, kind in enumerate(self._kinds):
            columns = blocks[3 * place + 1].columns
            keys, firsts, lasts, counts, until = (column.to_numpy() for column in columns[:5])
            fresh, marks = np.zeros(len(keys), np.bool_), columns[5].to_numpy(zero_copy_only=False)
            kind.slices = Leaves(keys, firsts, lasts, counts, fresh, marks, until, self._from_arrow(columns[6:]))
            kind.edges.recall(blocks[3 * place + 2])
            kind.shown = _Shown(*(column.to_numpy() for column in blocks[3 * place + 3].columns))

    def adopt(self, older: Branch, partials: Sequence[int | None]) -> None:
        assert isinstance(older, ContextWindows)
        self.table.adopt(older.table)
        self._rows, self._changed = older._rows, True
        self._lifted = self._lift(self._rows)
        before = {kind.assembly.window: kind for kind in older._kinds}
        for kind in self._kinds:
            same = before.get(kind.assembly.window)
            if same is not None:
                kept = same.slices
                fields = rearranged(kept.fields, older._folder.kinds, self._folder.kinds, partials, len(kept))
                kind.slices, kind.shown = replace(kept, fields=fields), same.shown
                kind.edges.recall(same.edges.remembered())

    def begin(self, since: Mapping[AnyWindow, int], told: Mapping[tuple[str, int], int]) -> None:
        for kind in self._kinds:
            kind.since = since.get(kind.assembly.window)
            kind.alike = [group.begun(told) for group in kind.alike]
        self._since = counted_since(self._plan, self._users, told)

    def _to_arrow(self, fields: list[Array]) -> list[pa.Array]:
        kinds = [field for kind in self._folder.kinds for field in kind.fields]
        return [field.to_arrow(cells) for field, cells in zip(kinds, fields, strict=True)]

    def _from_arrow(self, columns: list[pa.Array]) -> list[Array]:
        kinds = [field for kind in self._folder.kinds for field in kind.fields]
        return [field.from_arrow(column) for field, column in zip(kinds, columns, strict=True)]


def _work(kind: _Kind, found: Found, told: Array, had: _Shown | None, known: Array, leaves: Leaves) -> Work:
    """What rows out of order have done to the windows of a kind; ``had`` is what was shown of each ``known`` one."""
    cuts = leaves.cuts() if isinstance(kind.assembly.window, Punctuation) else 0
    if had is None or not len(found):
        return Work(splits=cuts)
    late = np.cumsum(np.append(0, leaves.late()))
    run, _ = leaves.runs()
    moved = known & (had.starts != found.starts) & (late[found.last] > late[run[found.last - 1]])
    within = late[found.last] > late[found.first]
    again = told & known & (moved | within | (found.ends < had.ends))
    # Where the first row of a window is new, the edge before it lies where it was.
    moved &= ~leaves.fresh[found.first]
    return Work(splits=cuts + int(moved.sum()), recomputations=int(again.sum()))


def _matched(shown: _Shown, found: Found) -> tuple[Array, Array]:
    """Where each found window stands among the shown ones, else -1; and which shown ones are not found."""
    keys, numbers = (np.concatenate([getattr(side, name) for side in (shown, found)]) for name in ("keys", "numbers"))
    order = np.lexsort((numbers, keys))  # stable: of two that are the same the shown one comes first
    again = (np.diff(keys[order]) == 0) & (np.diff(numbers[order]) == 0)
    pair = np.flatnonzero(again)
    place = np.full(len(found), -1)
    place[order[pair + 1] - len(shown.keys)] = order[pair]
    gone = np.ones(len(shown.keys), np.bool_)
    gone[order[pair]] = False
    return place, gone
