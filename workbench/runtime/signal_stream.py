"""A program of signals over rows that keep coming: the same points, each once, as soon as nothing can change it.

The state is the rows that the points to come depend on, which boundary resolution tells (*TiLT* §5.1), and the
time up to which each key's points were given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
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
from workbench.temporal import Program, Reach
from workbench.time import LIMIT

Array = npt.NDArray[Any]

_PUSH = "push a table first, if only an empty one"


class SignalStream:
    """Rows pushed in batches, points given back, by key and time.

    A point is given once no row may come any more that could change it: rows are at most ``delay`` microseconds
    behind the newest one of their table; those further behind are dropped and counted in ``late``. Where there are
    several tables, the one that is furthest behind says what is settled. Whatever the batches are, the points are
    those of the whole tables at once. Cost: that of the new rows and of those that are kept.
    """

    def __init__(self, program: Program, time: str, by: Sequence[str], delay: int = 0) -> None:
        self._program, self._time, self._by, self._delay = program, time, tuple(by), delay
        self._reach = {name: program.reach(name) for name in program.sources}
        self._newest = dict.fromkeys(program.sources, -LIMIT)
        self._keys: pa.Table | None = None
        self._stamp: pa.Field | None = None
        self._rows = {name: KeptRows(program.columns[name]) for name in program.sources}
        #: Up to which time the points of each key were given.
        self._done = np.zeros(0, np.int64)
        self.late = 0

    @property
    def watermark(self) -> int:
        """No row before this time is waited for, in microseconds."""
        return min(self._newest.values()) - self._delay

    @property
    def kept(self) -> int:
        """Rows in the state."""
        return sum(map(len, self._rows.values()))

    def push(self, tables: pa.Table | Mapping[str, pa.Table], newest: Iterable[tuple[str, int]] = ()) -> pa.Table:
        """Take in some rows, of one table or of some by name; the points that are settled by them.

        ``newest`` are times that rows of a table have reached which go to other streams, each of which has some keys.
        """
        program = self._program
        given = dict(tables) if isinstance(tables, Mapping) else {program.at: tables}
        check(program, given, self._time, self._by, only=tuple(given))
        if not given:
            return self._settled(self.watermark)
        first = next(iter(given.values()))
        known = first.slice(0, 0) if self._keys is None else self._keys
        (_, *codes), self._keys = keys_of([known, *given.values()], self._by)
        if self._stamp is None or program.at in given:
            self._stamp = given.get(program.at, first).schema.field(self._time)
        self._done = np.append(self._done, np.full(self._keys.num_rows - len(self._done), -LIMIT))
        for (name, table), own in zip(given.items(), codes, strict=True):
            rows = rows_of(table, self._time, own, program.columns[name])
            on_time = np.flatnonzero(rows.times >= self._newest[name] - self._delay)
            self.late += len(rows) - len(on_time)
            self._newest[name] = max(self._newest[name], int(rows.times.max(initial=-LIMIT)))
            self._rows[name].add(rows.take(on_time))
        for name, time in newest:
            self._newest[name] = max(self._newest[name], time)
        return self._settled(self.watermark)

    def finish(self) -> pa.Table:
        """No more rows come: the points that are left."""
        return self._settled(LIMIT)

    def changes(self) -> StateChanges:
        """What a host is to store since the last call, or since :meth:`load`."""
        if self._keys is None or self._stamp is None:
            raise EngineError("no rows have come yet", hint=_PUSH)
        put, remove, many = dict[int, bytes](), list[int](), len(self._rows)
        for place, rows in enumerate(self._rows.values()):
            written, gone = rows.changes()
            remove += [block * many + place for block in gone]
            for block, table in written.items():
                header = {"source": place, "number": block}
                put[block * many + place] = wire.pack(wire.Kind.SIGNALS_BLOCK, header, [table])
        facts = {
            "state": self._identity,
            "newest": [*self._newest.values()],
            "late": self.late,
            "next": [rows.next for rows in self._rows.values()],
        }
        done = pa.record_batch([pa.array(self._done)], names=["done"])
        stamp = pa.record_batch([pa.nulls(0, self._stamp.type)], schema=pa.schema([self._stamp]))
        meta = wire.pack(wire.Kind.SIGNALS_META, facts, [wire.one_batch(self._keys), done, stamp])
        return StateChanges(meta, put, tuple(remove))

    def load(self, meta: bytes, blocks: Iterable[bytes]) -> None:
        """Go on from what was stored. Raises EngineError where that is the state of another program."""
        facts, (keys, done, stamp) = wire.unpack(wire.Kind.SIGNALS_META, meta)
        if facts["state"] != self._identity:
            raise EngineError(
                "the state is that of another program of signals, or of one by other keys",
                hint="give the query a checkpoint folder of its own",
            )
        self._newest = dict(zip(self._newest, facts["newest"], strict=True))
        self.late, self._stamp = facts["late"], stamp.schema.field(0)
        self._keys, self._done = pa.Table.from_batches([keys]), done.column(0).to_numpy().copy()
        opened = [wire.unpack(wire.Kind.SIGNALS_BLOCK, block) for block in blocks]
        for place, (rows, after) in enumerate(zip(self._rows.values(), facts["next"], strict=True)):
            rows.load([(head["number"], table) for head, (table,) in opened if head["source"] == place], after)

    @cached_property
    def _identity(self) -> str:
        """What a state belongs to: another program could not read it, or would go on wrongly."""
        text = f"{self._program} by {self._by} over {self._time}, {self._delay} late"
        return hashlib.sha256(text.encode()).hexdigest()

    def _settled(self, watermark: int) -> pa.Table:
        """The points of each key after those given before, up to where nothing can change."""
        keys, stamp = self._keys, self._stamp
        if keys is None or stamp is None:
            raise EngineError("no rows have come yet", hint=_PUSH)
        rows = {name: kept.rows for name, kept in self._rows.items()}
        runs = {name: np.searchsorted(own.keys, np.arange(keys.num_rows + 1)) for name, own in rows.items()}
        until = np.full(keys.num_rows, LIMIT)
        if watermark < LIMIT:
            for name, own in rows.items():
                until = np.minimum(until, _until(own, runs[name], watermark, self._reach[name]))
        span = int(self._done.min(initial=LIMIT)), int(until.max(initial=-LIMIT))
        points = evaluate(self._program, rows, keys.num_rows, span=span)
        fits = (points.times > self._done[points.keys]) & (points.times <= until[points.keys])
        given = np.flatnonzero(fits)
        np.maximum.at(self._done, points.keys[given], points.times[given])
        # Points to come are later than both; those between the last row and the next one too, where they are by time.
        begin = self._done if self._program.every else np.maximum(self._done, until)
        for name, own in rows.items():
            self._rows[name].keep(_needed(own, runs[name], begin, self._reach[name]))
        return table_of(self._program, points.take(given), keys, stamp, self._by)


def _until(rows: Rows, runs: Array, watermark: int, reach: Reach) -> Array:
    """The last time of each key whose value is settled as far as one source goes."""
    keys = len(runs) - 1
    until = np.full(keys, watermark - reach.ahead - 1)
    if reach.after:
        # The neighbours that a point asks for are there where so many settled rows follow its own.
        settled = np.bincount(rows.keys[rows.times < watermark], minlength=keys)
        place = settled - reach.after
        times = rows.times if len(rows) else np.zeros(1, np.int64)
        first = times[np.minimum(runs[:-1] + np.maximum(place, 0), len(times) - 1)]
        until = np.minimum(until, np.where(place > 0, first - 1, -LIMIT))
    return until


def _needed(rows: Rows, runs: Array, begin: Array, reach: Reach) -> Array:
    """The rows that points after ``begin`` depend on, at least one of each key: where its domain goes on from."""
    old = rows.times < begin[rows.keys] - reach.back
    # Of the old rows of a key the last few.
    counts = np.bincount(rows.keys[old], minlength=len(runs) - 1)
    first = runs[:-1] + np.maximum(counts - max(1, reach.before), 0)
    return np.flatnonzero(np.arange(len(rows)) >= first[rows.keys])
