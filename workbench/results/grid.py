"""A regular level: windows of all keys on one grid of starts, kept as matrices ``[window, key]``.

Writing a batch is one scatter per column, reading a range of all keys one slice. A ring: when the budget of bytes
is used up, the oldest windows leave first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.results.keys import KeyIndex
from workbench.results.shapes import (
    OBJECT_BYTES,
    Array,
    Level,
    ResultColumns,
    Rows,
    Schema,
    Series,
    storage,
    unpacked,
)


class GridLevel:
    """Row ``r`` of the matrices holds the window that starts at ``base + r * slide``."""

    def __init__(self, schema: Schema, level: int, budget: int) -> None:
        self._schema = schema
        self._number = level
        self._shape: Level = schema.levels[level]
        self._budget = budget
        self.index = KeyIndex()
        self._base = 0
        self._rows = 0
        self._values = [np.zeros((0, 0), storage(kind)) for _, kind in schema.values]
        self._valid = [np.zeros((0, 0), np.bool_) for _ in schema.values]
        self._status = np.zeros((0, 0), np.int8)
        self._revisions = np.zeros((0, 0), np.int16)

    def move(self, schema: Schema, number: int) -> None:
        """From now on this is the level at another position of a schema with the same columns."""
        self._schema, self._number = schema, number

    def extent(self) -> tuple[int, int] | None:
        """Start of the oldest and end of the newest window, or None where there is none."""
        if not self._rows:
            return None
        return self._base, self._base + (self._rows - 1) * self._shape.slide + self._shape.size

    def counts(self) -> Array:
        """How many windows of each status code there are."""
        return np.bincount(self._status[: self._rows].ravel(), minlength=4)

    def series(
        self, start: int | None, end: int | None, keys: Sequence[tuple[Any, ...]] | None, values: Sequence[str]
    ) -> Series:
        """See :meth:`QueryResults.series`."""
        slide = self._shape.slide
        first, last = self._range(start, end)
        wanted = self.index.find(keys)
        columns = np.array([self.index.places[key] for key in wanted], np.int64)
        names = [name for name, _ in self._schema.values]
        picked: dict[str, Array] = {}
        status = self._status[first:last][:, columns]
        for name in values:
            position = names.index(name)
            matrix = self._values[position][first:last][:, columns].astype(np.float64)
            matrix[~self._valid[position][first:last][:, columns]] = np.nan
            picked[name] = matrix
        starts = self._base + np.arange(first, last, dtype=np.int64) * slide
        return Series(self._number, starts, (starts + self._shape.size)[:, None], tuple(wanted), picked, status)

    def _range(self, start: int | None, end: int | None) -> tuple[int, int]:
        """The rows of windows that start in ``[start, end)``."""
        slide = self._shape.slide
        first = 0 if start is None else max(0, -((self._base - start) // slide))
        last = self._rows if end is None else min(self._rows, -((self._base - end) // slide))
        return first, max(first, last)

    def rows(
        self,
        status: int | None,
        start: int | None = None,
        end: int | None = None,
        keys: Sequence[tuple[Any, ...]] | None = None,
    ) -> Rows:
        """Windows that start in ``[start, end)``, of one status and some keys or all, by start and then by key."""
        first, last = self._range(start, end)
        codes = self._status[: self._rows]
        there = codes[first:last] != 0 if status is None else codes[first:last] == status
        if keys is not None:
            there &= np.isin(np.arange(there.shape[1]), [self.index.places[key] for key in self.index.find(keys)])
        rows, columns = np.nonzero(there)
        rows += first
        starts = self._base + rows * self._shape.slide
        pairs = zip(self._values, self._valid, strict=True)
        values = [(matrix[rows, columns], valid[rows, columns]) for matrix, valid in pairs]
        ends = starts + self._shape.size
        return Rows(columns, starts, ends, values, codes[rows, columns], self._revisions[rows, columns])

    def apply(self, batch: ResultColumns) -> None:
        """Write windows over what is kept of them."""
        columns = self.index.number(batch.keys, len(batch.starts))
        starts = batch.starts
        if self._rows == 0:
            self._base = int(starts.min())
        rows = (starts - self._base) // self._shape.slide
        shift = self._reserve(int(rows.min()), int(rows.max()))
        kept = rows >= shift
        rows, columns = rows[kept] - shift, columns[kept]
        self._status[rows, columns] = batch.status[kept]
        self._revisions[rows, columns] = batch.revisions[kept]
        for position, array in enumerate(batch.values):
            values, valid = unpacked(array, self._values[position].dtype)
            self._values[position][rows, columns] = values[kept]
            self._valid[position][rows, columns] = valid[kept]

    def is_sparse(self, windows: ResultColumns) -> bool:
        """Whether windows would leave although there is room for them: few lie far apart, as after a long silence."""
        base = self._base if self._rows else int(windows.starts.min())
        rows = (windows.starts - base) // self._shape.slide
        span = max(int(rows.max()) + 1, self._rows) - min(int(rows.min()), 0)
        kept = int(np.count_nonzero(self._status[: self._rows])) + len(rows)
        return span > self._limit() and kept * 4 < self._limit() * max(1, len(self.index.keys))

    def _width(self) -> int:
        """Columns of the matrices, with room for more keys."""
        return max(8, 1 << (len(self.index.keys) - 1).bit_length())

    def _limit(self) -> int:
        """How many windows of each key the budget allows."""
        cell = 3 + sum((OBJECT_BYTES if matrix.dtype == object else matrix.itemsize) + 1 for matrix in self._values)
        return max(1_000, self._budget // (cell * self._width()))

    def _reserve(self, first: int, last: int) -> int:
        """Make rows ``first .. last`` exist as far as the budget goes; returns by how much rows moved down."""
        width, limit = self._width(), self._limit()
        top = max(last + 1, self._rows)
        bottom = min(first, 0)
        if top - bottom > limit:
            # Drop a quarter at once, so that the copying below is rare.
            bottom = max(bottom, top - limit * 3 // 4)
        rows = top - bottom
        have, columns = self._status.shape
        if bottom or rows > have or width > columns:
            height = max(have, min(limit, 1 << (rows - 1).bit_length()))
            source = slice(max(bottom, 0), max(bottom, self._rows))
            target = max(0, -bottom)

            def move(matrix: Array) -> Array:
                fresh = np.zeros((height, max(width, columns)), matrix.dtype)
                old = matrix[source]
                fresh[target : target + len(old), : old.shape[1]] = old
                return fresh

            self._values = [move(matrix) for matrix in self._values]
            self._valid = [move(matrix) for matrix in self._valid]
            self._status, self._revisions = move(self._status), move(self._revisions)
            self._base += bottom * self._shape.slide
        self._rows = rows
        return bottom
