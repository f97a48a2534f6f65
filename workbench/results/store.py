"""Results of running queries: a thread-safe, bounded store of windows by (query, level, key).

The writer (a Spark callback or the in-process engine) hands over whole batches of columns; any number of readers
(plots, ``results()``) copy ranges out. Applying a batch twice changes nothing: a result is identified by
(query, level, key, window), and the newest one stands.

What comes in waits until somebody reads, or until much of it waits: a hundred queries at which nobody looks cost a
writer next to nothing. Results of queries that are alike wait on a shelf (:mod:`workbench.results.shelf`), once for
all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.errors import QueryError, did_you_mean
from workbench.results.grid import GridLevel
from workbench.results.ledger import LedgerLevel
from workbench.results.shapes import Level, ResultBatch, ResultColumns, Rows, Schema, Series, Status
from workbench.results.shelf import Shelf
from workbench.time import parse_duration

#: Windows that may wait, and those of which the columns are held meanwhile, those of other queries among them.
_WAITING, _HELD = 1 << 12, 1 << 20


class QueryResults:
    """The results of one query, all levels. Every method may be called from any thread.

    ``budget`` bounds the bytes of each level; at least 1,000 windows of each key are kept whatever it says.
    """

    def __init__(self, schema: Schema, budget: int = 256 << 20) -> None:
        self.schema = schema
        self.budget = budget
        self._lock = threading.RLock()
        self._levels = self._empty()
        self._waiting: list[ResultBatch] = []
        self._waiting_rows = self._held_rows = 0
        self._version = 0
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._shelves: tuple[Shelf, ...] = ()

    def _empty(self) -> list[GridLevel | LedgerLevel]:
        return [self._make(number) for number in range(len(self.schema.levels))]

    def _make(self, number: int) -> GridLevel | LedgerLevel:
        kind = GridLevel if self.schema.levels[number].regular else LedgerLevel
        return kind(self.schema, number, self.budget)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A change under the lock to all that has come; then one version step, and the listeners are told."""
        with self._settled():
            yield
            self._version += 1
        self.tell()

    def tell(self) -> None:
        """The listeners are told that something has changed, without the lock."""
        for listener in self._listeners:
            listener()

    @contextmanager
    def _settled(self) -> Iterator[None]:
        """Under the lock, with everything that has come in its place."""
        with self._lock:
            self.settle()
            yield

    def settle(self) -> None:
        """Put everything that has come into its place; readers do so by themselves."""
        with self._lock:
            self._pull()
            self._place()

    def join(self, shelf: Shelf) -> None:
        """From now on results may wait on a shelf as well."""
        with self._lock:
            self._shelves = (*self._shelves, shelf)
            if self._listeners:
                shelf.watch(self, True)

    def leave(self, shelf: Shelf) -> None:
        """Take what waits on a shelf, and nothing from there any more."""
        with self._lock:
            self._pull()
            self._shelves = tuple(each for each in self._shelves if each is not shelf)

    def _pull(self) -> None:
        """Take what waits on shelves, in the order in which it came. Under the lock."""
        parts = [part for shelf in self._shelves for part in shelf.take(self)]
        for part in sorted(parts, key=lambda part: part.order):
            self._take(part.batches, part.labels)

    def _take(self, batches: Iterable[ResultBatch], labels: Sequence[str] | None) -> None:
        """Batches that wait from now on, unless many do; one version step. Under the lock."""
        for batch in self._fit(batches, labels) if labels else batches:
            rows = batch.high - batch.low
            if rows > 0:
                self._waiting.append(batch)
                self._waiting_rows += rows
                self._held_rows += len(batch.columns.starts)
        if self._waiting_rows > _WAITING or self._held_rows > _HELD:
            self._place()
        self._version += 1

    def _place(self) -> None:
        """Put what waits into its place. Under the lock."""
        waiting, self._waiting = self._waiting, []
        self._waiting_rows = self._held_rows = 0
        parts: dict[int, list[ResultColumns]] = {}
        for batch in waiting:
            parts.setdefault(batch.level, []).append(batch.own())
        for level, columns in parts.items():
            joined = ResultColumns.joined(columns)
            self._fitting(level, joined).apply(joined)

    @property
    def version(self) -> int:
        """Grows by one with every applied change; unequal numbers mean that something may have changed."""
        with self._lock:
            self._pull()
            return self._version

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener()`` after every change, on the writer's thread, so it must only set a flag.

        Returns a function that ends the subscription.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)
            for shelf in self._shelves:
                shelf.watch(self, True)

        def cancel() -> None:
            with self._lock:
                self._listeners = tuple(each for each in self._listeners if each is not listener)
                for shelf in () if self._listeners else self._shelves:
                    shelf.watch(self, False)

        return cancel

    def apply(self, batches: Iterable[ResultBatch], labels: Sequence[str] | None = None) -> None:
        """Take over result batches; one version step and one notification for all of them.

        ``labels`` are the levels by which the writer counts, where it may know others than the store: results of a
        level that the store does not have are left out.
        """
        with self._lock:
            self._pull()
            self._take(batches, labels)
        self.tell()

    def _fit(self, batches: Iterable[ResultBatch], labels: Sequence[str]) -> Iterator[ResultBatch]:
        """The batches of levels that are here, by the places they have here."""
        own = {level.label: number for number, level in enumerate(self.schema.levels)}
        for batch in batches:
            level = own.get(labels[batch.level])
            if level is not None:
                yield batch if level == batch.level else ResultBatch(level, batch.columns, batch.low, batch.high)

    def add_level(self, level: Level, position: int) -> None:
        """Make room for one more level, at a position among those there are; what is kept stays."""
        with self._changing():
            levels = self.schema.levels
            self.schema = replace(self.schema, levels=(*levels[:position], level, *levels[position:]))
            for number, kept in enumerate(self._levels):
                kept.move(self.schema, number + (number >= position))
            self._levels.insert(position, self._make(position))

    def drop_level(self, position: int) -> None:
        """Forget a level with its results."""
        with self._changing():
            levels = self.schema.levels
            self.schema = replace(self.schema, levels=levels[:position] + levels[position + 1 :])
            del self._levels[position]
            for number, kept in enumerate(self._levels):
                kept.move(self.schema, number)

    def _fitting(self, position: int, windows: ResultColumns) -> GridLevel | LedgerLevel:
        """The level of some windows; matrices give way to columns where most of them would be empty."""
        level = self._levels[position]
        if isinstance(level, GridLevel) and level.is_sparse(windows):
            columns = self._levels[position] = LedgerLevel(self.schema, position, self.budget)
            columns.take_over(level)
            return columns
        return level

    def clear(self) -> None:
        """Forget everything, as before the first batch."""
        with self._changing():
            self._levels = self._empty()

    def keys(self, level: int = 0) -> list[tuple[Any, ...]]:
        """The keys seen at a level, in order of appearance; ``[()]`` for a query without keys."""
        with self._settled():
            return list(self._levels[level].index.keys)

    def extent(self, level: int) -> tuple[int, int] | None:
        """Start of the oldest and end of the newest window kept at a level, or None where there is none."""
        with self._settled():
            return self._levels[level].extent()

    def counts(self, level: int) -> dict[Status, int]:
        """How many windows of each status (ABSENT left out) are kept at a level."""
        with self._settled():
            found = self._levels[level].counts()
            return {status: int(found[status]) for status in Status if status}

    def series(
        self,
        level: int,
        start: int | None = None,
        end: int | None = None,
        keys: Sequence[tuple[Any, ...]] | None = None,
        values: Sequence[str] | None = None,
    ) -> Series:
        """Windows of a level that start in ``[start, end)``, as matrices. Cost: one copy of the range.

        ``values`` picks some of the numeric columns, all of them by default.
        """
        with self._settled():
            return self._levels[level].series(start, end, keys, self.schema.numeric if values is None else values)

    def table(
        self,
        level: int | str | None = None,
        status: Status | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        keys: Sequence[tuple[Any, ...]] | None = None,
        numbered: bool = False,
    ) -> pa.Table:
        """All kept windows as an Arrow table, one row each, ordered by level, start and key's appearance.

        Columns: ``level``, the keys, ``window_start``, ``window_end`` (timestamps in UTC, or of a measure), the
        values, ``status`` and ``revision``. ``level`` picks one by position or label, ``status`` one
        status, ``start`` and ``end`` those that start in ``[start, end)``, ``keys`` those of some keys. ``numbered``
        adds ``window_number`` where the schema is.
        """
        chosen = range(len(self.schema.levels)) if level is None else [self.level_index(level)]
        numbered = numbered and self.schema.numbered
        with self._settled():
            kept = {each: self._levels[each].rows(status, start, end, keys) for each in chosen}
            return pa.concat_tables([self._table(each, rows, numbered) for each, rows in kept.items()])

    def level_index(self, level: int | str) -> int:
        """Position of a level given by position or label (``7 days`` is ``1 week``). Raises QueryError for an
        unknown one.
        """
        labels = [shape.label for shape in self.schema.levels]
        if isinstance(level, int) and 0 <= level < len(labels):
            return level
        if level in labels:
            return labels.index(str(level))
        spans = [_spans(label) for label in labels]
        if isinstance(level, str) and _spans(level) in spans:
            return spans.index(_spans(level))
        raise QueryError(
            f"no level `{level}` in query `{self.schema.query}`", hint=did_you_mean(str(level), labels, "level")
        )

    def _table(self, level: int, rows: Rows, numbered: bool) -> pa.Table:
        kept = self._levels[level]
        shape = self.schema.levels[level]
        label = pa.array([shape.label])
        fields: list[tuple[str, pa.Array]] = [("level", label.take(pa.array(np.zeros(len(rows.starts), np.int64))))]
        for position, (name, kind) in enumerate(self.schema.keys):
            distinct = pa.array([key[position] for key in kept.index.keys], kind)
            fields.append((name, distinct.take(pa.array(rows.keys))))
        fields.append(("window_start", shape.bounds(rows.starts)))
        fields.append(("window_end", shape.bounds(rows.ends)))
        if numbered:
            fields.append(("window_number", pa.array(rows.starts if rows.numbers is None else rows.numbers)))
        for (name, kind), (picked, valid) in zip(self.schema.values, rows.values, strict=True):
            if picked.dtype == object:
                fields.append((name, pa.array(picked, kind, mask=~valid)))
            else:
                column = pa.array(picked, mask=~valid)
                column = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
                fields.append((name, column.cast(kind)))
        names = pa.array([member.name.lower() for member in Status])
        fields.append(("status", names.take(pa.array(rows.status))))
        fields.append(("revision", pa.array(rows.revisions)))
        return pa.table([array for _, array in fields], names=[name for name, _ in fields])


def _spans(label: str) -> tuple[int, ...] | str:
    """Size and slide that a label tells, so that one can be told in other units; else the label itself."""
    try:
        return tuple(map(parse_duration, label.split("/")))
    except QueryError:
        return label
