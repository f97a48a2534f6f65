"""An irregular level: windows with bounds of their own, kept as columns in order of time.

Sessions, windows over a number of rows, windows between marks, and windows of a grid that are few and far apart: a
window is known by its number within its key, and what comes later is written over what is there. Batches are
appended; sorting waits until somebody reads or until as much has come in as is kept, so a window costs a constant
number of sorts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.results.grid import GridLevel
from workbench.results.keys import KeyIndex
from workbench.results.shapes import OBJECT_BYTES, Array, ResultColumns, Rows, Schema, Series, storage, unpacked


class LedgerLevel:
    """Columns of windows, each known by (key, number)."""

    def __init__(self, schema: Schema, level: int, budget: int) -> None:
        self._schema = schema
        self._number = level
        self._shape = schema.levels[level]
        cell = 32 + sum(OBJECT_BYTES if storage(kind) is object else 9 for _, kind in schema.values)
        self._limit = max(1_000, budget // cell)
        self.index = KeyIndex()
        self._columns = _blank(schema)
        self._pending: list[list[Array]] = []
        self._waiting = 0

    def apply(self, batch: ResultColumns) -> None:
        """Write windows over what is kept of them."""
        ends, numbers = batch.ends, batch.numbers
        if self._shape.regular:
            ends, numbers = batch.starts + self._shape.size, batch.starts
        if ends is None or numbers is None:
            raise TypeError("a window of an irregular level has an end and a number of its own")
        keys = self.index.number(batch.keys, len(batch.starts))
        columns = [keys, numbers, batch.starts, ends, batch.status, batch.revisions]
        for array, (_, kind) in zip(batch.values, self._schema.values, strict=True):
            columns += unpacked(array, storage(kind))
        self._append(columns)

    def take_over(self, level: GridLevel) -> None:
        """All windows of a regular level, in place of nothing."""
        rows, self.index = level.rows(None), level.index
        values = [column for pair in rows.values for column in pair]
        kept = [rows.keys, rows.starts, rows.starts, rows.ends, rows.status, rows.revisions, *values]
        self._append([column[rows.status != 0] for column in kept])

    def _append(self, columns: list[Array]) -> None:
        self._pending.append(columns)
        self._waiting += len(columns[0])
        if self._waiting > max(4_096, len(self._columns[0])):
            self._settle()

    def move(self, schema: Schema, number: int) -> None:
        """From now on this is the level at another position of a schema with the same columns."""
        self._schema, self._number = schema, number

    def extent(self) -> tuple[int, int] | None:
        """Start of the oldest and end of the newest window, or None where there is none."""
        _, _, starts, ends, *_ = self._settle()
        return (int(starts[0]), int(ends.max())) if len(starts) else None

    def counts(self) -> Array:
        """How many windows of each status code there are."""
        return np.bincount(self._settle()[4], minlength=4)

    def series(
        self, start: int | None, end: int | None, keys: Sequence[tuple[Any, ...]] | None, values: Sequence[str]
    ) -> Series:
        """See :meth:`QueryResults.series`. A row stands for a start: windows of several keys may share one.

        Windows of one key with one start go to rows of their own.
        """
        columns = self._settle()
        low = 0 if start is None else int(np.searchsorted(columns[2], start))
        high = len(columns[2]) if end is None else int(np.searchsorted(columns[2], end))
        wanted = self.index.find(keys)
        place = np.full(len(self.index.keys) + 1, -1)
        place[[self.index.places[key] for key in wanted]] = np.arange(len(wanted))
        column = place[columns[0][low:high]]
        chosen = np.flatnonzero(column >= 0)
        column, starts = column[chosen], columns[2][low:high][chosen]
        # The n-th window of a key with one start stands in the n-th row of that start.
        order = np.lexsort((column, starts))
        again = np.zeros(len(order), np.int64)
        same = (np.diff(starts[order]) == 0) & (np.diff(column[order]) == 0)
        run = np.arange(len(order))
        again[order] = run - np.maximum.accumulate(np.where(np.append(True, ~same)[: len(run)], run, 0))
        lines, row = np.unique(np.stack([starts, again]), axis=1, return_inverse=True)
        shape = (lines.shape[1], len(wanted))
        status, ends = np.zeros(shape, np.int8), np.repeat(lines[0][:, None], len(wanted), axis=1)
        status[row, column] = columns[4][low:high][chosen]
        ends[row, column] = columns[3][low:high][chosen]
        names, picked = [name for name, _ in self._schema.values], {}
        for name in values:
            value, valid = (part[low:high][chosen] for part in columns[6 + 2 * names.index(name) :][:2])
            picked[name] = np.full(shape, np.nan)
            picked[name][row[valid], column[valid]] = value[valid]
        return Series(self._number, lines[0], ends, tuple(wanted), picked, status)

    def rows(
        self,
        status: int | None,
        start: int | None = None,
        end: int | None = None,
        keys: Sequence[tuple[Any, ...]] | None = None,
    ) -> Rows:
        """Windows that start in ``[start, end)``, of one status and some keys or all, by start and then by key."""
        columns = self._settle()
        low = 0 if start is None else int(np.searchsorted(columns[2], start))
        high = len(columns[2]) if end is None else int(np.searchsorted(columns[2], end))
        columns = [column[low:high] for column in columns]
        if status is not None:
            columns = [column[columns[4] == status] for column in columns]
        if keys is not None:
            wanted = np.isin(columns[0], [self.index.places[key] for key in self.index.find(keys)])
            columns = [column[wanted] for column in columns]
        places, numbers, starts, ends, codes, revisions, *values = columns
        cells = list(zip(values[::2], values[1::2], strict=True))
        return Rows(places, starts, ends, cells, codes, revisions, numbers)

    def _settle(self) -> list[Array]:
        """All windows in order of start, key and number, the newest word on each, withdrawn ones left out."""
        if self._pending:
            columns = [np.concatenate(parts) for parts in zip(self._columns, *self._pending, strict=True)]
            self._pending, self._waiting = [], 0
            keys, numbers = columns[:2]
            order = np.lexsort((numbers, keys))  # stable: of one window the newest word comes last
            newest = np.append((np.diff(keys[order]) != 0) | (np.diff(numbers[order]) != 0), True)
            kept = order[newest]
            kept = kept[columns[4][kept] != 0]
            kept = kept[np.lexsort((numbers[kept], keys[kept], columns[2][kept]))]
            self._columns = [column[kept[-self._limit :]] for column in columns]
        return self._columns


def _blank(schema: Schema) -> list[Array]:
    kinds: list[Any] = [np.int64, np.int64, np.int64, np.int64, np.int8, np.int16]
    for _, kind in schema.values:
        kinds += [storage(kind), np.bool_]
    return [np.zeros(0, kind) for kind in kinds]
