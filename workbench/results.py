"""Results of running queries: a thread-safe, bounded store of windows by (query, level, key).

The writer (a Spark callback or the in-process engine) hands over whole batches of columns; any number of readers
(plots, ``results()``) copy ranges out. Applying a batch twice changes nothing: a result is identified by
(query, level, key, window start), and the newest one stands.

Periodic windows make a regular grid, so a level is kept as matrices ``[window, key]``: writing a batch is one
scatter per column, reading a range of all keys one slice. A ring: when the budget of bytes is used up, the oldest
windows leave first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import QueryError, did_you_mean

Array = npt.NDArray[Any]


class Status(IntEnum):
    """What a result is worth. ``ABSENT`` marks a window without a row, and withdraws a provisional one."""

    ABSENT = 0
    PROVISIONAL = 1
    FINAL = 2
    REVISED = 3


@dataclass(frozen=True)
class Level:
    """One zoom level: windows ``[start, start + size)`` with ``start = offset + k * slide``, microseconds."""

    label: str
    size: int
    slide: int
    offset: int = 0


@dataclass(frozen=True)
class Schema:
    """The shape of one query's results: its levels from fine to coarse, key columns and value columns."""

    query: str
    levels: tuple[Level, ...]
    keys: tuple[tuple[str, pa.DataType], ...]
    values: tuple[tuple[str, pa.DataType], ...]

    @property
    def numeric(self) -> tuple[str, ...]:
        """The value columns that a line can show: numbers, booleans and times; not structs, lists or text."""
        return tuple(name for name, kind in self.values if _storage(kind) is not object)


@dataclass(frozen=True)
class ResultBatch:
    """Some windows of one level, columnar; all arrays have one length.

    ``keys`` are Arrow arrays in the order of the schema, ``values`` Arrow arrays (NULL where the aggregate has no
    value), ``starts`` int64 microseconds, ``status`` int8 codes of :class:`Status`, ``revisions`` int16.
    """

    level: int
    starts: Array
    keys: tuple[pa.Array, ...]
    values: tuple[pa.Array, ...]
    status: Array
    revisions: Array


@dataclass(frozen=True)
class Series:
    """A range of one level for some keys: matrices ``[window, key]``, a copy that nobody else changes.

    ``values[name][i, j]`` is NaN where NULL or where ``status[i, j]`` is ABSENT. ``starts`` ascends by the slide.
    """

    level: int
    starts: Array
    keys: tuple[tuple[Any, ...], ...]
    values: dict[str, Array]
    status: Array


@dataclass
class _Grid:
    """The matrices of one level. Row ``r`` holds the window that starts at ``base + r * slide``."""

    base: int = 0
    rows: int = 0
    keys: list[tuple[Any, ...]] = field(default_factory=list)
    index: dict[tuple[Any, ...], int] = field(default_factory=dict)
    values: list[Array] = field(default_factory=list)
    valid: list[Array] = field(default_factory=list)
    status: Array = field(default_factory=lambda: np.zeros((0, 0), np.int8))
    revisions: Array = field(default_factory=lambda: np.zeros((0, 0), np.int16))


class QueryResults:
    """The results of one query, all levels. Every method may be called from any thread.

    ``budget`` bounds the bytes of each level; at least 1,000 windows of each key are kept whatever it says.
    """

    def __init__(self, schema: Schema, budget: int = 256 << 20) -> None:
        self.schema = schema
        self.budget = budget
        self._lock = threading.RLock()
        self._grids = [self._empty() for _ in schema.levels]
        self._version = 0
        self._listeners: list[Callable[[], None]] = []

    def _empty(self) -> _Grid:
        grid = _Grid()
        for _, kind in self.schema.values:
            grid.values.append(np.zeros((0, 0), _storage(kind)))
            grid.valid.append(np.zeros((0, 0), np.bool_))
        return grid

    @property
    def version(self) -> int:
        """Grows by one with every applied change; unequal numbers mean that something may have changed."""
        return self._version

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener()`` after every change, on the writer's thread, so it must only set a flag.

        Returns a function that ends the subscription.
        """
        with self._lock:
            self._listeners.append(listener)

        def cancel() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return cancel

    def apply(self, batches: Iterable[ResultBatch]) -> None:
        """Take over result batches; one version step and one notification for all of them."""
        with self._lock:
            for batch in batches:
                if len(batch.starts):
                    self._apply(batch)
            self._version += 1
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def clear(self) -> None:
        """Forget everything, as before the first batch."""
        with self._lock:
            self._grids = [self._empty() for _ in self.schema.levels]
            self._version += 1
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def keys(self, level: int = 0) -> list[tuple[Any, ...]]:
        """The keys seen at a level, in order of appearance; ``[()]`` for a query without keys."""
        with self._lock:
            return list(self._grids[level].keys)

    def extent(self, level: int) -> tuple[int, int] | None:
        """Start of the oldest and end of the newest window kept at a level, or None where there is none."""
        with self._lock:
            grid, shape = self._grids[level], self.schema.levels[level]
            if not grid.rows:
                return None
            return grid.base, grid.base + (grid.rows - 1) * shape.slide + shape.size

    def counts(self, level: int) -> dict[Status, int]:
        """How many windows of each status (ABSENT left out) are kept at a level."""
        with self._lock:
            grid = self._grids[level]
            found = np.bincount(grid.status[: grid.rows].ravel(), minlength=len(Status))
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
        with self._lock:
            grid, shape = self._grids[level], self.schema.levels[level]
            first = 0 if start is None else max(0, -((grid.base - start) // shape.slide))
            last = grid.rows if end is None else min(grid.rows, -((grid.base - end) // shape.slide))
            last = max(first, last)
            wanted = list(grid.keys) if keys is None else [key for key in keys if key in grid.index]
            columns = np.array([grid.index[key] for key in wanted], np.int64)
            names = [name for name, _ in self.schema.values]
            picked: dict[str, Array] = {}
            status = grid.status[first:last][:, columns]
            for name in self.schema.numeric if values is None else values:
                position = names.index(name)
                matrix = grid.values[position][first:last][:, columns].astype(np.float64)
                matrix[~grid.valid[position][first:last][:, columns]] = np.nan
                picked[name] = matrix
            starts = grid.base + np.arange(first, last, dtype=np.int64) * shape.slide
            return Series(level, starts, tuple(wanted), picked, status)

    def table(self, level: int | str | None = None, status: Status | None = None) -> pa.Table:
        """All kept windows as an Arrow table, one row each, ordered by level, start and key's appearance.

        Columns: ``level``, the keys, ``window_start``, ``window_end`` (timestamps in UTC), the values, ``status``
        and ``revision``. ``level`` picks one by position or label, ``status`` one status.
        """
        chosen = range(len(self.schema.levels)) if level is None else [self.level_index(level)]
        with self._lock:
            return pa.concat_tables([self._table(position, status) for position in chosen])

    def level_index(self, level: int | str) -> int:
        """Position of a level given by position or label. Raises QueryError for an unknown one."""
        labels = [shape.label for shape in self.schema.levels]
        if isinstance(level, int) and 0 <= level < len(labels):
            return level
        if level in labels:
            return labels.index(str(level))
        raise QueryError(
            f"no level `{level}` in query `{self.schema.query}`", hint=did_you_mean(str(level), labels, "level")
        )

    def _table(self, level: int, status: Status | None) -> pa.Table:
        grid, shape = self._grids[level], self.schema.levels[level]
        codes = grid.status[: grid.rows]
        rows, columns = np.nonzero(codes if status is None else codes == status)
        starts = grid.base + rows * shape.slide
        stamp = pa.timestamp("us", tz="UTC")
        fields: list[tuple[str, pa.Array]] = [
            ("level", pa.array([shape.label]).take(pa.array(np.zeros(len(rows), np.int64))))
        ]
        for position, (name, kind) in enumerate(self.schema.keys):
            distinct = pa.array([key[position] for key in grid.keys], kind)
            fields.append((name, distinct.take(pa.array(columns))))
        fields.append(("window_start", pa.array(starts).cast(stamp)))
        fields.append(("window_end", pa.array(starts + shape.size).cast(stamp)))
        for position, (name, kind) in enumerate(self.schema.values):
            picked = grid.values[position][rows, columns]
            missing = ~grid.valid[position][rows, columns]
            if picked.dtype == object:
                picked[missing] = None
                fields.append((name, pa.array(picked, kind)))
            else:
                column = pa.array(picked, mask=missing)
                column = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
                fields.append((name, column.cast(kind)))
        names = pa.array([member.name.lower() for member in Status])
        fields.append(("status", names.take(pa.array(codes[rows, columns]))))
        fields.append(("revision", pa.array(grid.revisions[rows, columns])))
        return pa.table([array for _, array in fields], names=[name for name, _ in fields])

    def _apply(self, batch: ResultBatch) -> None:
        grid, shape = self._grids[batch.level], self.schema.levels[batch.level]
        columns = self._columns(grid, batch)
        starts = batch.starts
        if grid.rows == 0:
            grid.base = int(starts.min())
        rows = (starts - grid.base) // shape.slide
        shift = self._reserve(grid, batch.level, int(rows.min()), int(rows.max()))
        kept = rows >= shift
        rows, columns = rows[kept] - shift, columns[kept]
        grid.status[rows, columns] = batch.status[kept]
        grid.revisions[rows, columns] = batch.revisions[kept]
        for position, array in enumerate(batch.values):
            values, valid = _numpy(array, grid.values[position].dtype)
            grid.values[position][rows, columns] = values[kept]
            grid.valid[position][rows, columns] = valid[kept]

    def _columns(self, grid: _Grid, batch: ResultBatch) -> Array:
        """The matrix column of every row's key; new keys get the next free one."""
        codes, distinct = encode_keys(batch.keys) if batch.keys else (np.zeros(len(batch.starts), np.int64), [()])
        places = np.empty(len(distinct), np.int64)
        for position, key in enumerate(distinct):
            place = grid.index.get(key)
            if place is None:
                place = grid.index[key] = len(grid.keys)
                grid.keys.append(key)
            places[position] = place
        return places[codes]

    def _reserve(self, grid: _Grid, level: int, first: int, last: int) -> int:
        """Make rows ``first .. last`` exist as far as the budget goes; returns by how much rows moved down."""
        cell = 3 + sum((_OBJECT_BYTES if matrix.dtype == object else matrix.itemsize) + 1 for matrix in grid.values)
        width = max(8, 1 << (len(grid.keys) - 1).bit_length())
        limit = max(1_000, self.budget // (cell * width))
        top = max(last + 1, grid.rows)
        bottom = min(first, 0)
        if top - bottom > limit:
            # Drop a quarter at once, so that the copying below is rare.
            bottom = max(bottom, top - limit * 3 // 4)
        rows = top - bottom
        have, columns = grid.status.shape
        if bottom or rows > have or width > columns:
            height = max(have, min(limit, 1 << (rows - 1).bit_length()))
            source = slice(max(bottom, 0), max(bottom, grid.rows))
            target = max(0, -bottom)

            def move(matrix: Array) -> Array:
                fresh = np.zeros((height, max(width, columns)), matrix.dtype)
                old = matrix[source]
                fresh[target : target + len(old), : old.shape[1]] = old
                return fresh

            grid.values = [move(matrix) for matrix in grid.values]
            grid.valid = [move(matrix) for matrix in grid.valid]
            grid.status, grid.revisions = move(grid.status), move(grid.revisions)
            grid.base += bottom * self.schema.levels[level].slide
        grid.rows = rows
        return bottom


#: What a struct, a list or a text costs in memory, about: the budget of a level counts with it.
_OBJECT_BYTES = 512

#: The one NaN that stands in keys, so that a key with NaN equals itself.
_NAN = float("nan")


def encode_keys(keys: Sequence[pa.Array]) -> tuple[Array, list[tuple[Any, ...]]]:
    """As :func:`encode_columns`, the distinct keys as tuples."""
    codes, distinct = encode_columns(keys)
    return codes, list(zip(*map(key_values, distinct), strict=True))


def encode_columns(keys: Sequence[pa.Array]) -> tuple[Array, list[pa.Array]]:
    """Dense codes of key tuples and the columns of the distinct ones, in order of first appearance.

    NULL is a key like any other; so is NaN, and both zeros are one key, as in Spark.
    """
    keys = [pc.add(key, pa.scalar(0.0, key.type)) if pa.types.is_floating(key.type) else key for key in keys]
    encoded = [key.dictionary_encode(null_encoding="encode") for key in keys]
    codes, distinct = encoded[0].indices.to_numpy(zero_copy_only=False), [encoded[0].dictionary]
    for array in encoded[1:]:
        codes, first = _dense(codes * np.int64(len(array.dictionary)) + array.indices.to_numpy(zero_copy_only=False))
        distinct = [key.take(pa.array(first)) for key in keys]
    return codes, distinct


def _dense(codes: Array) -> tuple[Array, Array]:
    """Codes in order of first appearance, and where that is. Only a wide range of codes is sorted."""
    span = int(codes.max()) + 1 if len(codes) else 0
    if span > max(2 * len(codes), 1 << 16):
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    else:
        first = np.full(span, -1)
        first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.flatnonzero(first >= 0)
    order = order[np.argsort(first[order])]
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], first[order]


def key_values(array: pa.Array) -> list[Any]:
    """Python values of a key column, fit to be compared and hashed."""
    values = array.to_pylist()
    if pa.types.is_floating(array.type):
        return [value if value is None else _NAN if value != value else value + 0.0 for value in values]
    return values


def _storage(kind: pa.DataType) -> npt.DTypeLike:
    if pa.types.is_boolean(kind):
        return np.bool_
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return np.int64
    return np.float64 if pa.types.is_floating(kind) else object


def _numpy(array: pa.Array, dtype: npt.DTypeLike) -> tuple[Array, Array]:
    """Values (0 where NULL) and validity of an Arrow array; structs, lists and text as Python objects."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if np.dtype(dtype).hasobject:
        cells = np.empty(len(array), object)
        cells[:] = array.to_pylist()
        return cells, valid
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_temporal(array.type):
        array = array.cast(pa.int64())
    filled = array.fill_null(False if pa.types.is_boolean(array.type) else 0) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False).astype(dtype), valid
