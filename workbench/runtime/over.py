"""Windows that slide by one row, for one fold: rows in, the partials of each row's frames out. Free of any host.

Rows wait until no earlier one can come, then they pass, in order of time within their key, each with the partials of
its frames. What is kept::

    history: rows that frames of later rows reach      waiting rows         horizon: no earlier row can come
    . . .. .  .  . .                               |   .  . .  ..   .
    passed                                  horizon ^

A frame without a beginning keeps one partial for each key instead of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        self, folder: Folder, columns: Sequence[Expression], time: Expression, frames: Mapping[Frame, Sequence[int]]
    ) -> None:
        self._folder = folder
        self._columns = tuple(columns)
        self._time = time
        self._frames = dict(frames)
        self._kernels = [FrameKernel(kind) for kind in folder.kinds]
        bounded = [frame for frame in frames if frame.preceding is not None]
        self._reach = max((f.preceding or 0 for f in bounded if isinstance(f, RangeFrame)), default=-1)
        self._rows = max((f.preceding or 0 for f in bounded if not isinstance(f, RangeFrame)), default=0)
        self._waiting = self._batch(
            np.zeros(0, np.int64), np.zeros(0, np.int64), [pa.array([], c.type) for c in columns]
        )
        self._history = _History(np.zeros(0, np.int64), np.zeros(0, np.int64), folder.blank(0))
        self._counts = np.zeros(0, np.int64)
        open_ended = [needs for frame, needs in self._frames.items() if frame.preceding is None]
        self._carried = {position: folder.kinds[position].blank(0) for needs in open_ended for position in needs}

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
                [*self._folder.kinds, *map(self._folder.kinds.__getitem__, self._carried)], fields, strict=True
            )
            for spec, column in zip(kind.fields, columns, strict=True)
        )
        return int(self._waiting.nbytes + 2 * self._history.keys.nbytes + cells)

    def add(self, keys: Array, times: Array, columns: Sequence[pa.Array]) -> None:
        """Take in rows, none of them earlier than the horizon."""
        self._waiting = pa.Table.from_batches([self._waiting, self._batch(keys, times, columns)]).combine_chunks()
        self._waiting = self._waiting.to_batches()[0] if len(self._waiting) else self._batch(keys, times, columns)

    def advance(self, horizon: int) -> Passed | None:
        """Let the rows before ``horizon`` pass; None if there is none. Cost: passing rows and history."""
        due = pc.less(self._waiting.column(1), horizon)
        batch = self._waiting.filter(due)
        if not len(batch):
            return None
        self._waiting = self._waiting.filter(pc.invert(due))
        batch = batch.take(pc.sort_indices(batch, [(name, "ascending") for name in batch.schema.names]))
        keys, times = (column.to_numpy() for column in batch.columns[:2])
        columns = dict(zip(self._columns, batch.columns[2:], strict=True))
        columns[self._time] = batch.column(1).cast(pa.timestamp("us", "UTC")).cast(self._time.type)
        rows = _History(keys, times, self._folder.lift(columns, len(batch)))
        self._widen(int(keys[-1]) + 1)
        runs = _runs(keys)
        partials = self._open_ended(rows, runs) | self._bounded(rows, horizon)
        numbers = self._counts[keys] + np.arange(len(keys)) - np.repeat(runs[:-1], np.diff(runs))
        self._counts[keys[runs[:-1]]] += np.diff(runs)
        return Passed(keys, times, numbers, columns, partials)

    def _open_ended(self, rows: _History, runs: Array) -> dict[tuple[Frame, int], Fields]:
        """Frames from a key's first row on: what is carried, and the passing rows; then these are carried on."""
        found: dict[tuple[Frame, int], Fields] = {}
        for frame in (frame for frame in self._frames if frame.preceding is None):
            first, last = frames_of(rows.times, runs, isinstance(frame, RangeFrame), -1)
            for position in self._frames[frame]:
                own = self._kernels[position].windows(first, last, rows.fields[position])
                before = (column[rows.keys] for column in self._carried[position])
                with np.errstate(all="ignore"):
                    found[frame, position] = self._folder.kinds[position].combine(*before, *own)
        for (_, position), fields in found.items():
            for carried, column in zip(self._carried[position], fields, strict=True):
                carried[rows.keys[runs[:-1]]] = column[runs[1:] - 1]
        return found

    def _bounded(self, rows: _History, horizon: int) -> dict[tuple[Frame, int], Fields]:
        """Frames that reach back into the history, which then is moved on."""
        frames = [frame for frame in self._frames if frame.preceding is not None]
        if not frames:
            return {}
        every, new = self._history.followed_by(rows)
        runs = _runs(every.keys)
        found = {}
        for frame in frames:
            first, last = frames_of(every.times, runs, isinstance(frame, RangeFrame), frame.preceding or 0)
            for position in self._frames[frame]:
                windows = self._kernels[position].windows(first[new], last[new], every.fields[position])
                found[frame, position] = windows
        behind = np.repeat(runs[1:], np.diff(runs)) - np.arange(len(every.keys))
        kept = behind <= self._rows
        if self._reach >= 0:
            kept |= every.times >= max(horizon, -LIMIT) - self._reach
        self._history = every[kept]
        return found

    def _widen(self, keys: int) -> None:
        """Room for keys that have come up."""
        more = keys - len(self._counts)
        if more > 0:
            self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])
            for position, carried in self._carried.items():
                blank = self._folder.kinds[position].blank(more)
                self._carried[position] = tuple(map(np.concatenate, zip(carried, blank, strict=True)))

    def _batch(self, keys: Array, times: Array, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        return _table([pa.array(keys), pa.array(times), *columns])

    def snapshot(self) -> list[pa.RecordBatch]:
        """All that is kept: waiting rows, history, and what is kept for each key."""
        history = self._history
        fields = [
            spec.to_arrow(column)
            for kind, columns in zip(self._folder.kinds, history.fields, strict=True)
            for spec, column in zip(kind.fields, columns, strict=True)
        ]
        carried = [
            spec.to_arrow(column)
            for position, columns in self._carried.items()
            for spec, column in zip(self._folder.kinds[position].fields, columns, strict=True)
        ]
        past = [pa.array(history.keys), pa.array(history.times), *fields]
        return [self._waiting, _table(past), _table([pa.array(self._counts), *carried])]

    def adopt(self, older: OverRows, partials: Sequence[int | None]) -> None:
        """Take over what the rows of an older plan have kept, which had all frames of this one.

        ``partials`` are the older places of partials; what was not there (None) no frame needs, and is blank.
        """
        self._waiting, self._counts, past = older._waiting, older._counts, older._history
        blank = self._folder.blank(len(past.keys))
        fields = [own if place is None else past.fields[place] for own, place in zip(blank, partials, strict=True)]
        self._history = _History(past.keys, past.times, fields)
        for position in self._carried:
            place = partials[position]
            if place is not None:
                self._carried[position] = older._carried[place]

    def restore(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Bring fresh rows to what :meth:`snapshot` gave."""
        self._waiting, past, keyed = tables
        columns = iter(past.columns[2:])
        fields = [tuple(spec.from_arrow(next(columns)) for spec in kind.fields) for kind in self._folder.kinds]
        self._history = _History(past.column(0).to_numpy(), past.column(1).to_numpy(), fields)
        self._counts = keyed.column(0).to_numpy().copy()
        columns = iter(keyed.columns[1:])
        for position in self._carried:
            specs = self._folder.kinds[position].fields
            self._carried[position] = tuple(spec.from_arrow(next(columns)).copy() for spec in specs)


def _runs(keys: Array) -> Array:
    """Where each key's rows begin among sorted ones, and where the last one's end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1, [len(keys)]]).astype(np.int64)


def _table(columns: list[pa.Array]) -> pa.RecordBatch:
    return pa.record_batch(columns, names=[str(number) for number in range(len(columns))])
