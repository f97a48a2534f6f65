"""Windows that slide by one row, for one fold: rows in, the partials of each row's frames out. Free of any host.

Rows wait until no earlier one can come, then they pass, in order of time within their key, each with the partials of
its frames. What is kept::

    history: rows that frames of later rows reach      waiting rows         horizon: no earlier row can come
    . . .. .  .  . .                               |   .  . .  ..   .
    passed                                  horizon ^

A frame without a beginning keeps one partial for each key instead of rows; if it ends before the current row, also
the rows that are in no frame yet. Where frames reach ``ahead``, rows that have passed are pending until those have,
too, or none can come any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.codegen.over import FrameKernel
from workbench.kernels.frames import frames_of
from workbench.logical import Expression, Frame, RangeFrame
from workbench.runtime.folding import Folder
from workbench.time import LIMIT

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


@dataclass(frozen=True)
class Passed:
    """Rows that have passed, an entry each, by key and in their order within it.

    ``numbers`` count the rows of each key from 0; ``columns`` is what is read of the rows themselves; ``partials``
    are those of their frames, by frame and position of the partial.
    """

    keys: Array
    times: Array
    numbers: Array
    columns: dict[Expression, pa.Array]
    partials: dict[tuple[Frame, int], Fields]


@dataclass
class _History:
    """Rows that have passed and that later frames reach: keys, times and the fields of all partials, in order."""

    keys: Array
    times: Array
    fields: list[Fields]

    def followed_by(self, rows: _History) -> tuple[_History, Array]:
        """Within each key the other rows behind these; and which rows are the others'."""
        keys = np.concatenate([self.keys, rows.keys])
        order = np.argsort(keys, kind="stable")
        fields = [
            tuple(np.concatenate(pair)[order] for pair in zip(*both, strict=True))
            for both in zip(self.fields, rows.fields, strict=True)
        ]
        return _History(keys[order], np.concatenate([self.times, rows.times])[order], fields), order >= len(self.keys)

    def __getitem__(self, which: Array) -> _History:
        return _History(
            self.keys[which], self.times[which], [tuple(column[which] for column in each) for each in self.fields]
        )


class OverRows:
    """The rows of one fold and bucket. ``frames`` says which partials, by position, each frame needs.

    ``columns`` are the expressions of the fold's columns, ``time`` the event time as one. Keys are small integers.
    """

    def __init__(
        self,
        folder: Folder,
        columns: Sequence[Expression],
        time: Expression,
        frames: Mapping[Frame, Sequence[int]],
        ahead: tuple[int, int] = (0, 0),
    ) -> None:
        self._folder = folder
        self._columns = tuple(columns)
        self._time = time
        self._frames = dict(frames)
        self._kernels = [FrameKernel(kind) for kind in folder.kinds]
        self._ahead, self._delayed = ahead, any(ahead)
        #: Frames that need the history: all where rows are pending, which are part of it.
        self._reaching = [f for f in frames if f.preceding is not None or f.until or self._delayed]
        times = [_reach(frame) for frame in self._reaching if isinstance(frame, RangeFrame)]
        self._reach = max(times, default=-1)
        self._rows = max((_reach(frame) for frame in self._reaching if not isinstance(frame, RangeFrame)), default=0)
        self._waiting = self._batch(
            np.zeros(0, np.int64), np.zeros(0, np.int64), [pa.array([], c.type) for c in columns]
        )
        self._history = _History(np.zeros(0, np.int64), np.zeros(0, np.int64), folder.blank(0))
        #: How many rows each key has had; see :meth:`renumber`.
        self._counts = np.zeros(0, np.int64)
        open_ended = [frame for frame in frames if frame.preceding is None]
        #: Rows that later frames all hold: for those that end with the row or its peers (None) all so far.
        self._carried = {
            (frame if frame in self._reaching else None, position): folder.kinds[position].blank(0)
            for frame in open_ended
            for position in self._frames[frame]
        }
        #: How many rows of each key have gone into these.
        self._joined = {frame: np.zeros(0, np.int64) for frame in open_ended if frame in self._reaching}
        #: Rows that have passed and have no result yet, by key and in order within it.
        self._pending = self._waiting

    @property
    def lasting(self) -> bool:
        """Whether something is kept of every key for ever: its last rows, or a partial of all of them."""
        return any(frame.lasting for frame in self._frames)

    @property
    def _next(self) -> int:
        """Where a key that comes up begins to count its rows."""
        return 0 if self.lasting else int(self._counts[-1:].max(initial=0))

    @property
    def recent(self) -> int:
        """How many keys have rows that have passed and are kept, which are by key: quick to count."""
        keys = self._history.keys
        return int(np.count_nonzero(keys[1:] != keys[:-1])) + bool(len(keys))

    def keys(self) -> list[Array]:
        """The keys, many times, of all rows that are kept."""
        rows = [batch.column(0).to_numpy() for batch in (self._waiting, self._pending)]
        return [self._history.keys, *rows]

    def renumber(self, kept: Array) -> None:
        """Key ``kept[n]`` is key ``n`` from now on; there are rows of no other, and nothing is ``lasting``.

        A row is known by its number within its key, so one that comes again must not begin at 0: new keys count on
        from the highest number of those that are gone, which stands behind the counts.
        """
        known = kept[kept < len(self._counts)]
        gone = np.delete(self._counts, known).max(initial=self._next)
        self._counts = np.append(self._counts[known], gone)
        self._history = replace(self._history, keys=np.searchsorted(kept, self._history.keys))
        self._waiting, self._pending = (
            self._batch(np.searchsorted(kept, numbers.to_numpy()), times.to_numpy(), columns)
            for numbers, times, *columns in (self._waiting.columns, self._pending.columns)
        )

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return len(self._waiting) + len(self._history.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept, about."""
        fields = [*self._history.fields, *self._carried.values()]
        cells = sum(
            spec.nbytes(column)
            for kind, columns in zip(
                [*self._folder.kinds, *(self._folder.kinds[place] for _, place in self._carried)], fields, strict=True
            )
            for spec, column in zip(kind.fields, columns, strict=True)
        )
        return int(self._waiting.nbytes + self._pending.nbytes + 2 * self._history.keys.nbytes + cells)

    def add(self, keys: Array, times: Array, columns: Sequence[pa.Array]) -> None:
        """Take in rows, none of them earlier than the horizon."""
        self._waiting = pa.Table.from_batches([self._waiting, self._batch(keys, times, columns)]).combine_chunks()
        self._waiting = self._waiting.to_batches()[0] if len(self._waiting) else self._batch(keys, times, columns)

    def advance(self, horizon: int, *, finish: bool = False) -> Passed | None:
        """Let the rows before ``horizon`` pass; None if nothing has changed. Cost: passing rows and history.

        ``finish``: no row will ever follow, so that none waits for one.
        """
        due = pc.less(self._waiting.column(1), horizon)
        batch = self._waiting.filter(due)
        if not len(batch) and not len(self._pending):
            return None
        self._waiting = self._waiting.filter(pc.invert(due))
        batch = batch.take(pc.sort_indices(batch, [(name, "ascending") for name in batch.schema.names]))
        keys, times = (column.to_numpy() for column in batch.columns[:2])
        rows = _History(keys, times, self._folder.lift(self._read(batch), len(batch)))
        runs = _runs(keys)
        if len(keys):
            self._widen(int(keys[-1]) + 1)
            self._counts[keys[runs[:-1]]] += np.diff(runs)
        if self._delayed:
            return self._resume(batch, rows, max(horizon, -LIMIT), finish)
        partials = self._open_ended(rows, runs)
        if self._reaching:
            every, new = self._history.followed_by(rows)
            ends = _runs(every.keys)
            partials |= self._reached(every, ends, new, ends[1:], max(horizon, -LIMIT))
        numbers = self._counts[keys] + np.arange(len(keys)) - np.repeat(runs[1:], np.diff(runs))
        return Passed(keys, times, numbers, self._read(batch), partials)

    def _read(self, batch: pa.RecordBatch) -> dict[Expression, pa.Array]:
        """What is read of rows, by expression."""
        columns = dict(zip(self._columns, batch.columns[2:], strict=True))
        columns[self._time] = batch.column(1).cast(pa.timestamp("us", "UTC")).cast(self._time.type)
        return columns

    def _resume(self, batch: pa.RecordBatch, rows: _History, horizon: int, finish: bool) -> Passed:
        """The pending rows whose frames are complete, after some more have passed. ::

        . . . . . . | . . . . | . . . .        the history of a key: rows with a result, with one now, and
        told           now      pending        those that wait for more rows or time
        """
        every, _ = self._history.followed_by(rows)
        runs, batch = _runs(every.keys), pa.concat_batches([self._pending, batch])
        batch = batch.take(pa.array(np.argsort(batch.column(0).to_numpy(), kind="stable")))
        lengths = np.diff(runs)
        behind = np.repeat(runs[1:], lengths) - np.arange(len(every.keys))
        untold = behind <= np.bincount(batch.column(0).to_numpy(), minlength=len(self._counts))[every.keys]
        told = untold if finish else (behind > self._ahead[0]) & (every.times < horizon - self._ahead[1]) & untold
        chosen = pa.array(told[untold])
        self._pending, batch = batch.filter(pc.invert(chosen)), batch.filter(chosen)
        numbers = (self._counts[every.keys] - behind)[told]
        firsts = runs[1:] - np.add.reduceat(untold & ~told, runs[:-1], dtype=np.int64)
        partials = self._reached(every, runs, told, firsts, horizon)
        keys, times = (column.to_numpy() for column in batch.columns[:2])
        return Passed(keys, times, numbers, self._read(batch), partials)

    def _open_ended(self, rows: _History, runs: Array) -> dict[tuple[Frame, int], Fields]:
        """Frames from a key's first row to this one: what is carried, and the passing rows, which then are, too."""
        found: dict[tuple[Frame, int], Fields] = {}
        for frame in (frame for frame in self._frames if frame not in self._reaching):
            first, last = frames_of(rows.times, runs, isinstance(frame, RangeFrame), None)
            for position in self._frames[frame]:
                own = self._kernels[position].windows(first, last, rows.fields[position])
                before = (column[rows.keys] for column in self._carried[None, position])
                with np.errstate(all="ignore"):
                    found[frame, position] = self._folder.kinds[position].combine(*before, *own)
        for (_, position), fields in found.items():
            for carried, column in zip(self._carried[None, position], fields, strict=True):
                carried[rows.keys[runs[:-1]]] = column[runs[1:] - 1]
        return found

    def _reached(
        self, every: _History, runs: Array, told: Array, untold: Array, horizon: int
    ) -> dict[tuple[Frame, int], Fields]:
        """The frames of some rows of the history, which then is moved on.

        ``untold`` is where in each run the rows begin that have no result yet, or its end.
        """
        found: dict[tuple[Frame, int], Fields] = {}
        lengths = np.diff(runs)
        since = np.full(len(lengths), horizon)
        since[untold < runs[1:]] = every.times[untold[untold < runs[1:]]]
        for frame in self._reaching:
            by_time = isinstance(frame, RangeFrame)
            first, last = frames_of(every.times, runs, by_time, frame.preceding, until=frame.until)
            first, last = first[told], last[told]
            if frame.preceding is None:
                begun = runs[1:] - (self._counts - self._joined[frame])[every.keys[runs[:-1]]]
                first = np.repeat(begun, lengths)[told]
            for position in self._frames[frame]:
                kernel, fields = self._kernels[position], every.fields[position]
                windows = (kernel.single if frame.single else kernel.windows)(first, last, fields)
                if frame.preceding is None:
                    before = (column[every.keys[told]] for column in self._carried[frame, position])
                    with np.errstate(all="ignore"):
                        windows = kernel.kind.combine(*before, *windows)
                found[frame, position] = windows
            if frame.preceding is None:
                ends = np.minimum(untold, untold - frame.until)
                if by_time and frame.until > 0:
                    reached = every.times <= np.repeat(since - frame.until, lengths)
                    ends = runs[:-1] + np.add.reduceat(reached, runs[:-1], dtype=np.int64)
                self._join(frame, every, every.keys[runs[:-1]], begun, np.maximum(begun, ends))
        kept = np.repeat(untold, lengths) - np.arange(len(every.keys)) <= self._rows
        if self._reach >= 0:
            kept |= every.times >= np.repeat(since - self._reach, lengths)
        self._history = every[kept]
        return found

    def _join(self, frame: Frame, every: _History, keys: Array, begun: Array, ends: Array) -> None:
        """Carry the rows ``[begun, ends)`` of each key, which all frames of later results hold."""
        self._joined[frame][keys] += ends - begun
        for position in self._frames[frame]:
            joining = self._kernels[position].windows(begun, ends, every.fields[position])
            carried = self._carried[frame, position]
            with np.errstate(all="ignore"):
                merged = self._folder.kinds[position].combine(*(column[keys] for column in carried), *joining)
            for column, values in zip(carried, merged, strict=True):
                column[keys] = values

    def _widen(self, keys: int) -> None:
        """Room for keys that have come up; if keys may be forgotten, one more, for where later ones begin."""
        more = keys + (not self.lasting) - len(self._counts)
        if more > 0:
            self._counts = np.concatenate([self._counts, np.full(more, self._next)])
            for (frame, position), carried in self._carried.items():
                blank = self._folder.kinds[position].blank(more)
                self._carried[frame, position] = tuple(map(np.concatenate, zip(carried, blank, strict=True)))
            for each, joined in self._joined.items():
                self._joined[each] = np.concatenate([joined, np.zeros(more, np.int64)])

    def _batch(self, keys: Array, times: Array, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        return _table([pa.array(keys), pa.array(times), *columns])

    def snapshot(self) -> list[pa.RecordBatch]:
        """All that is kept: waiting rows, history, what is kept for each key, pending rows if there may be any."""
        history = self._history
        fields = [
            spec.to_arrow(column)
            for kind, columns in zip(self._folder.kinds, history.fields, strict=True)
            for spec, column in zip(kind.fields, columns, strict=True)
        ]
        carried = [
            spec.to_arrow(column)
            for (_, position), columns in self._carried.items()
            for spec, column in zip(self._folder.kinds[position].fields, columns, strict=True)
        ]
        carried += map(pa.array, self._joined.values())
        past = [pa.array(history.keys), pa.array(history.times), *fields]
        pending = [self._pending] if self._delayed else []
        return [self._waiting, _table(past), _table([pa.array(self._counts), *carried]), *pending]

    def adopt(self, older: OverRows, partials: Sequence[int | None]) -> None:
        """Take over what the rows of an older plan have kept, which had all frames of this one.

        ``partials`` are the older places of partials; what was not there (None) no frame needs, and is blank.
        """
        self._waiting, self._counts, past = older._waiting, older._counts, older._history
        self._pending = older._pending
        blank = self._folder.blank(len(past.keys))
        fields = [own if place is None else past.fields[place] for own, place in zip(blank, partials, strict=True)]
        self._history = _History(past.keys, past.times, fields)
        for frame, position in self._carried:
            place = partials[position]
            if place is not None:
                self._carried[frame, position] = older._carried[frame, place]
        self._joined = {frame: older._joined[frame] for frame in self._joined}

    def restore(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Bring fresh rows to what :meth:`snapshot` gave."""
        self._waiting, past, keyed, *pending = tables
        self._pending = pending[0] if self._delayed else self._pending
        columns = iter(past.columns[2:])
        fields = [tuple(spec.from_arrow(next(columns)) for spec in kind.fields) for kind in self._folder.kinds]
        self._history = _History(past.column(0).to_numpy(), past.column(1).to_numpy(), fields)
        self._counts = keyed.column(0).to_numpy().copy()
        columns = iter(keyed.columns[1:])
        for frame, position in self._carried:
            specs = self._folder.kinds[position].fields
            self._carried[frame, position] = tuple(spec.from_arrow(next(columns)).copy() for spec in specs)
        self._joined = {frame: next(columns).to_numpy().copy() for frame in self._joined}


def _reach(frame: Frame) -> int:
    """How many rows, or for how long, a frame needs rows: those that it does not carry."""
    return max(0, frame.until if frame.preceding is None else frame.preceding)


def _runs(keys: Array) -> Array:
    """Where each key's rows begin among sorted ones, and where the last one's end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1, [len(keys)]]).astype(np.int64)


def _table(columns: list[pa.Array]) -> pa.RecordBatch:
    return pa.record_batch(columns, names=[str(number) for number in range(len(columns))])
