"""Sessions over one fold: fragments of rows that merge where a gap closes (*General Stream Slicing* §5.2, §5.3).

Sessions are aware of their context, but a row never splits one, so rows need not be kept. A task has united rows of
one slice and key that follow each other soon enough, late ones apart from others; here fragments in time are merged
into sessions, which are slices themselves::

    fragments   |--gap)   |-----gap)        |--gap)
    new row            |--gap)
    sessions    |------------------gap)     |--gap)      two have become one: results of both are withdrawn
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.kernels.gaps import overlapping
from workbench.logical import AnyWindow, Session
from workbench.plan import Assembly, Bounds, SharedPlan
from workbench.results import Status
from workbench.runtime.assembling import Alike, Cells, Emitted, emit_cells
from workbench.runtime.branches.base import Branch, Clock, Work, counted_since, flagged, rearranged, table_of
from workbench.runtime.branches.keytable import KeyTable
from workbench.runtime.branches.leaves import by_partial, combined
from workbench.runtime.branches.revisions import one_more

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Spans:
    """Sessions or fragments, an entry each; ``shown`` is the status that was last told, ABSENT if none was."""

    keys: Array
    starts: Array
    ends: Array
    shown: Array
    revisions: Array
    fields: list[Array]

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, which: Array | slice) -> _Spans:
        keys, starts, ends = self.keys[which], self.starts[which], self.ends[which]
        fields = [field[which] for field in self.fields]
        return _Spans(keys, starts, ends, self.shown[which], self.revisions[which], fields)


class SessionWindows(Branch):
    """The sessions of one gap over one fold."""

    def __init__(self, plan: SharedPlan, assembly: Assembly) -> None:
        assert isinstance(assembly.window, Session)
        self._plan, self._users = plan, assembly.users
        self._since = counted_since(plan, self._users, {})
        self._alike = Alike.of(plan, [assembly])
        self.window = self._window = assembly.window
        spec = plan.folds[assembly.fold]
        self._gap = next(number for number, gap in enumerate(spec.gaps) if gap == assembly.window)
        self._gaps = len(spec.gaps)
        self._kinds = [partial.monoid for partial in spec.partials]
        self._fields = [field for kind in self._kinds for field in kind.fields]
        self.table = KeyTable([named.expression.type for named in spec.keys])
        none = np.zeros(0, np.int64)
        self._open = self._spans(none, none, none, [np.zeros(0, field.dtype) for field in self._fields])
        self._entries: list[_Spans] = []
        self._changed = False

    @staticmethod
    def _spans(keys: Array, starts: Array, ends: Array, fields: list[Array]) -> _Spans:
        return _Spans(keys, starts, ends, np.zeros(len(keys), np.int8), np.zeros(len(keys), np.int16), fields)

    @property
    def slices(self) -> int:
        return len(self._open)

    @property
    def nbytes(self) -> int:
        kept = sum(field.nbytes(cells) for field, cells in zip(self._fields, self._open.fields, strict=True))
        return kept + 27 * len(self._open)

    def take(self, keys: pa.RecordBatch, entries: pa.RecordBatch, clock: Clock, late: dict[int, int]) -> None:
        codes, first, end = (entries.column(place).to_numpy() for place in (1, 2, 3 + self._gap))
        columns = entries.columns[3 + self._gaps :]
        fields = [field.from_arrow(column) for field, column in zip(self._fields, columns, strict=True)]
        spans = self._spans(self.table.number(keys)[codes], first, end, fields)
        missed = first + self._window.reprieve <= clock.settled_before
        if missed.any():
            for query, since in self._since.items():
                late[query] += int(fields[0][missed & (end > first) & (first >= since)].sum())
        self._entries.append(spans[(end > first) & ~missed])

    def advance(self, clock: Clock, late: dict[int, int]) -> Emitted:
        fresh = sum(map(len, self._entries))
        self.work = Work()
        merged, withdrawn, new = (
            self._merge() if fresh else (self._open, self._open[:0], np.zeros(len(self._open), bool))
        )
        self._entries.clear()
        closed, out = merged.ends <= clock.after, np.isin(merged.shown, (Status.FINAL, Status.REVISED))
        # A result that was final, or should have been before this micro-batch, has changed.
        merged.revisions[:] = one_more(merged.revisions, new & (out | (merged.ends <= clock.before)))
        told = new | (closed & ~out)
        status = np.where(merged.revisions > 0, Status.REVISED, Status.FINAL)
        merged.shown[told] = np.where(closed, status, Status.PROVISIONAL)[told]
        results = self._emit(withdrawn, merged[told])
        self._open = merged[merged.ends > clock.settled_after]
        self._changed |= bool(told.any()) or len(self._open) < len(merged)
        return results

    def _merge(self) -> tuple[_Spans, _Spans, Array]:
        """All spans merged; sessions whose results must be withdrawn; which of the merged have got rows."""
        parts = [self._open, *self._entries]
        names = ("keys", "starts", "ends", "shown", "revisions")
        keys, starts, ends, shown, revisions = (np.concatenate([getattr(p, name) for p in parts]) for name in names)
        fields = [np.concatenate(column) for column in zip(*(part.fields for part in parts), strict=True)]
        order, group = overlapping(keys, starts, ends)
        every, fresh = _Spans(keys, starts, ends, shown, revisions, fields)[order], order >= len(self._open)
        first = np.flatnonzero(np.append(True, np.diff(group) != 0))
        merged = _Spans(
            every.keys[first],
            every.starts[first],
            np.maximum.reduceat(every.ends, first),
            np.maximum.reduceat(every.shown, first),
            np.maximum.reduceat(every.revisions, first),
            combined(group, every.fields, self._kinds),
        )
        # Fragments of this micro-batch that unite have been no slices; sessions that were open have.
        self.work = Work(merges=int((~fresh).sum()) - len(np.unique(group[~fresh])))
        moved = (every.shown != Status.ABSENT) & (every.starts != merged.starts[group])
        return merged, every[moved], np.logical_or.reduceat(fresh, first)

    def _emit(self, withdrawn: _Spans, told: _Spans) -> Emitted:
        results: Emitted = []
        for spans, status in ((withdrawn, np.zeros(len(withdrawn), np.int8)), (told, told.shown)):
            if len(spans):
                partials = dict(enumerate(by_partial(spans.fields, self._kinds)))
                keys = self.table.taken(spans.keys)
                bounds = Bounds(spans.starts, spans.ends - self._window.joins)
                cells = Cells(bounds, keys, partials, status, spans.revisions, spans.starts)
                results += emit_cells(self._alike, cells)
        return results

    def used(self) -> Array:
        return flagged(len(self.table), self._open.keys)

    def renumber(self, kept: Array) -> None:
        self._open = replace(self._open, keys=np.searchsorted(kept, self._open.keys))
        self._changed = True

    def changes(self) -> tuple[dict[int, pa.RecordBatch], set[int]]:
        if not self._changed:
            return {}, set()
        self._changed = False
        kept = self._open
        fields = [field.to_arrow(cells) for field, cells in zip(self._fields, kept.fields, strict=True)]
        return {0: table_of([kept.keys, kept.starts, kept.ends, kept.shown, kept.revisions, *fields])}, set()

    def restore(self, blocks: Mapping[int, pa.RecordBatch]) -> None:
        for table in blocks.values():
            keys, starts, ends, shown, revisions = (column.to_numpy().copy() for column in table.columns[:5])
            fields = [field.from_arrow(c) for field, c in zip(self._fields, table.columns[5:], strict=True)]
            self._open = _Spans(keys, starts, ends, shown, revisions, fields)

    def adopt(self, older: Branch, partials: Sequence[int | None]) -> None:
        assert isinstance(older, SessionWindows)
        self.table.adopt(older.table)
        kept = older._open
        fields = rearranged(kept.fields, older._kinds, self._kinds, partials, len(kept))
        self._open = _Spans(kept.keys, kept.starts, kept.ends, kept.shown, kept.revisions, fields)
        self._changed = True

    def begin(self, since: Mapping[AnyWindow, int], told: Mapping[tuple[str, int], int]) -> None:
        self._alike = [group.begun(told) for group in self._alike]
        self._since = counted_since(self._plan, self._users, told)
