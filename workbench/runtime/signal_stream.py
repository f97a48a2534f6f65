"""A program of signals over rows that keep coming: the same points, each once, as soon as nothing can change it.

The state is the rows that the points to come depend on, which boundary resolution tells (*TiLT* §5.1), and the
time up to which each key's points were given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.errors import EngineError
from workbench.runtime import wire
from workbench.runtime.signal_rows import KeptRows
from workbench.runtime.signal_tables import check, keys_of, rows_of, table_of
from workbench.runtime.signals import Rows, evaluate
from workbench.runtime.state import StateChanges
from workbench.temporal import Program
from workbench.time import LIMIT

Array = npt.NDArray[Any]

_PUSH = "push a table first, if only an empty one"


class SignalStream:
    """Rows pushed in batches, points given back, by key and time.

    A point is given once no row may come any more that could change it: rows are at most ``delay`` microseconds
    behind the newest one; those further behind are dropped and counted in ``late``. Whatever the batches are, the
    points are those of the whole table at once. Cost: that of the new rows and of those that are kept.
    """

    def __init__(self, program: Program, time: str, by: Sequence[str], delay: int = 0) -> None:
        if len(program.sources) > 1:
            raise EngineError(f"a stream of signals has one table, this program reads {len(program.sources)}")
        self._program, self._time, self._by, self._delay = program, time, tuple(by), delay
        self._reach = program.boundaries.sources[program.at]
        self._newest = -LIMIT
        self._keys: pa.Table | None = None
        self._stamp: pa.Field | None = None
        self._rows = KeptRows(program.columns[program.at])
        #: Up to which time the points of each key were given.
        self._done = np.zeros(0, np.int64)
        self.late = 0

    @property
    def watermark(self) -> int:
        """No row before this time is waited for, in microseconds."""
        return self._newest - self._delay

    @property
    def kept(self) -> int:
        """Rows in the state."""
        return len(self._rows)

    def push(self, table: pa.Table, newest: int = -LIMIT) -> pa.Table:
        """Take in some rows; the points that are settled by them.

        ``newest`` is the time that rows have reached which go elsewhere, where this is one of several streams.
        """
        program = self._program
        check(program, {program.at: table}, self._time, self._by)
        known = [table.slice(0, 0) if self._keys is None else self._keys, table]
        (_, codes), self._keys = keys_of(known, self._by)
        self._stamp = table.schema.field(self._time)
        self._done = np.append(self._done, np.full(self._keys.num_rows - len(self._done), -LIMIT))
        rows = rows_of(table, self._time, codes, program.columns[program.at])
        on_time = np.flatnonzero(rows.times >= self.watermark)
        self.late += len(rows) - len(on_time)
        self._newest = max(self._newest, newest, int(rows.times.max(initial=-LIMIT)))
        self._rows.add(rows.take(on_time))
        return self._settled(self.watermark)

    def finish(self) -> pa.Table:
        """No more rows come: the points that are left."""
        return self._settled(LIMIT)

    def changes(self) -> StateChanges:
        """What a host is to store since the last call, or since :meth:`load`."""
        if self._keys is None or self._stamp is None:
            raise EngineError("no rows have come yet", hint=_PUSH)
        put, remove = self._rows.changes()
        header = {"state": self._identity, "newest": self._newest, "late": self.late, "next": self._rows.next}
        done = pa.record_batch([pa.array(self._done)], names=["done"])
        stamp = pa.record_batch([pa.nulls(0, self._stamp.type)], schema=pa.schema([self._stamp]))
        meta = wire.pack(wire.Kind.SIGNALS_META, header, [wire.one_batch(self._keys), done, stamp])
        return StateChanges(meta, {block: _block(block, table) for block, table in put.items()}, remove)

    def load(self, meta: bytes, blocks: Iterable[bytes]) -> None:
        """Go on from what was stored. Raises EngineError where that is the state of another program."""
        header, (keys, done, stamp) = wire.unpack(wire.Kind.SIGNALS_META, meta)
        if header["state"] != self._identity:
            raise EngineError(
                "the state is that of another program of signals, or of one by other keys",
                hint="give the query a checkpoint folder of its own",
            )
        self._newest, self.late, self._stamp = header["newest"], header["late"], stamp.schema.field(0)
        self._keys, self._done = pa.Table.from_batches([keys]), done.column(0).to_numpy().copy()
        self._rows.load(map(_opened, blocks), header["next"])

    @cached_property
    def _identity(self) -> str:
        """What a state belongs to: another program could not read it, or would go on wrongly."""
        text = f"{self._program} by {self._by} over {self._time}, {self._delay} late"
        return hashlib.sha256(text.encode()).hexdigest()

    def _settled(self, watermark: int) -> pa.Table:
        """The points of each key after those given before, up to where nothing can change."""
        rows, keys, stamp = self._rows.rows, self._keys, self._stamp
        if keys is None or stamp is None:
            raise EngineError("no rows have come yet", hint=_PUSH)
        runs = np.searchsorted(rows.keys, np.arange(keys.num_rows + 1))
        until = self._until(rows, runs, watermark)
        span = int(self._done.min(initial=LIMIT)), int(until.max(initial=-LIMIT))
        points = evaluate(self._program, {self._program.at: rows}, keys.num_rows, span=span)
        fits = (points.times > self._done[points.keys]) & (points.times <= until[points.keys])
        given = np.flatnonzero(fits)
        np.maximum.at(self._done, points.keys[given], points.times[given])
        self._rows.keep(self._needed(rows, runs))
        return table_of(self._program, points.take(given), keys, stamp, self._by)

    def _until(self, rows: Rows, runs: Array, watermark: int) -> Array:
        """The last time of each key whose value is settled."""
        keys = len(runs) - 1
        if watermark == LIMIT:
            return np.full(keys, LIMIT)
        until = np.full(keys, watermark - self._reach.ahead - 1)
        if self._reach.after and len(rows):
            # The neighbours that a point asks for are there where so many settled rows follow its own.
            settled = np.bincount(rows.keys[rows.times < watermark], minlength=keys)
            place = settled - self._reach.after
            first = rows.times[np.minimum(runs[:-1] + np.maximum(place, 0), len(rows) - 1)]
            until = np.minimum(until, np.where(place > 0, first - 1, -LIMIT))
        return until

    def _needed(self, rows: Rows, runs: Array) -> Array:
        """The rows that points to come depend on, at least one of each key: where its domain goes on from."""
        begin = self._done[rows.keys] - self._reach.back
        old = rows.times < begin
        # Of the old rows of a key the last few.
        counts = np.bincount(rows.keys[old], minlength=len(runs) - 1)
        first = runs[:-1] + np.maximum(counts - max(1, self._reach.before), 0)
        return np.flatnonzero(np.arange(len(rows)) >= first[rows.keys])


def _block(number: int, table: pa.RecordBatch) -> bytes:
    return wire.pack(wire.Kind.SIGNALS_BLOCK, {"number": number}, [table])


def _opened(block: bytes) -> tuple[int, pa.RecordBatch]:
    header, (table,) = wire.unpack(wire.Kind.SIGNALS_BLOCK, block)
    return header["number"], table
