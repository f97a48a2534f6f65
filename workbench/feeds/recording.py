"""Recorded events in Parquet files: which rows have arrived by when, and reading parts of them.

Rows are numbered through all files, in the order of the files and of the rows in them: the order of arrival.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import SourceError
from workbench.feeds.feed import Tally

MICROS = pa.timestamp("us", tz="UTC")

#: Rows that one call of a fold gets; small enough for the cache, large enough to drown the call.
_FOLD_ROWS = 1 << 17
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class FilePiece:
    """Rows ``[offset, offset + rows)`` of one row group of one file."""

    path: str
    row_group: int
    offset: int
    rows: int

    def read(self, schema: pa.Schema, tally: Tally) -> Iterator[pa.RecordBatch]:
        """The columns of ``schema``, in its types, of these rows, in order.

        Raises SourceError naming the file that has gone, been cut short or been given other columns since it was
        opened.
        """
        table = _row_group(self, tuple(schema.names))
        if table.num_rows < self.offset + self.rows:
            raise SourceError(f"`{self.path}` has become shorter while it was read")
        part = table.slice(self.offset, self.rows)
        columns = [_convert(part.column(field.name), field, self.path) for field in schema]
        yield from pa.table(columns, schema=schema).combine_chunks().to_batches(_FOLD_ROWS)


class Recording:
    """Parquet files as one numbered sequence of rows, with the clock of arrival of each.

    ``arrival`` names the column that tells when a row arrived; a row is out when the running maximum of that column
    has reached the clock. Footers are read at once, the arrival column one row group at a time, when it is asked.
    """

    def __init__(self, paths: Sequence[str], arrival: str) -> None:
        self._arrival = arrival
        self._groups: list[FilePiece] = []
        self._carry: dict[int, int] = {0: _NEVER}
        self._starts = [0]
        for path in paths:
            footer = _open(path).metadata
            for index in range(footer.num_row_groups):
                rows = footer.row_group(index).num_rows
                self._groups.append(FilePiece(path, index, 0, rows))
                self._starts.append(self._starts[-1] + rows)
        self._loaded: tuple[int, npt.NDArray[np.int64]] | None = None

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return self._starts[-1]

    def clock(self, row: int) -> int:
        """When row ``row`` was out, in microseconds: the largest arrival among the rows ``0 .. row``."""
        group = self._group_of(row)
        return int(self._clocks(group)[row - self._starts[group]])

    def rows_out(self, clock: int, start: int, limit: int) -> int:
        """How many of the first ``limit`` rows are out at ``clock``; at least ``start``, which are known to be.

        Cost: one look-up per row group between the answer and ``start``.
        """
        row = start
        while row < limit:
            group = self._group_of(row)
            out = self._starts[group] + int(np.searchsorted(self._clocks(group), clock, side="right"))
            row = max(row, out)
            if row < self._starts[group + 1]:
                break
        return min(row, limit)

    def split(self, start: int, end: int, parts: int) -> list[list[FilePiece]]:
        """The rows ``[start, end)`` in at most ``parts`` runs of similar length, each a list of pieces.

        A cut moves to the edge of a row group where one is near, so that no two tasks decode the same group.
        """
        size = (end - start) / max(parts, 1)
        cuts = [start]
        for part in range(1, parts):
            ideal = start + round(part * size)
            edge = min(self._starts, key=lambda begin: abs(begin - ideal))
            cuts.append(edge if abs(edge - ideal) <= size / 4 else ideal)
        cuts.append(end)
        return [self._pieces(first, last) for first, last in pairwise(cuts)]

    def _pieces(self, start: int, end: int) -> list[FilePiece]:
        pieces = []
        for begin, group in zip(self._starts, self._groups, strict=False):
            first, last = max(start, begin), min(end, begin + group.rows)
            if first < last:
                pieces.append(FilePiece(group.path, group.row_group, first - begin, last - first))
        return pieces

    def _group_of(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1

    def _clocks(self, group: int) -> npt.NDArray[np.int64]:
        """The running maximum of arrivals at each row of a row group, all rows before it included."""
        if self._loaded is None or self._loaded[0] != group:
            for missing in range(max(g for g in self._carry if g <= group), group):
                self._carry[missing + 1] = int(self._accumulated(missing)[-1])
            self._loaded = group, self._accumulated(group)
        return self._loaded[1]

    def _accumulated(self, group: int) -> npt.NDArray[np.int64]:
        piece = self._groups[group]
        table = _row_group(piece, (self._arrival,))
        column = to_micros(table.column(0), self._arrival, piece.path).cast(pa.int64())
        values = column.fill_null(_NEVER).to_numpy()
        return np.maximum(np.maximum.accumulate(values), self._carry[group])


def to_micros(column: Any, name: str, path: str) -> Any:
    """A timestamp column in microseconds, UTC; without a zone it counts as UTC.

    Raises SourceError where the unit is finer than a microsecond and would lose digits, or the time does not fit.
    """
    try:
        return column.cast(MICROS)
    except pa.ArrowInvalid as error:
        raise SourceError(
            f"the column `{name}` of `{path}` does not fit into microseconds: {error}",
            hint="round it to microseconds before it is written; nothing is cut off silently",
        ) from None


def _convert(column: Any, field: pa.Field, path: str) -> Any:
    if pa.types.is_timestamp(field.type):
        return to_micros(column, field.name, path).cast(field.type)
    return column if column.type == field.type else column.cast(field.type)


def _open(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError:
        raise SourceError(f"no file `{path}`") from None
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"cannot read `{path}` as Parquet: {error}") from None


def _row_group(piece: FilePiece, names: tuple[str, ...]) -> pa.Table:
    try:
        stamp = Path(piece.path).stat()
        return _decoded(piece.path, stamp.st_mtime_ns, stamp.st_size, piece.row_group, names)
    except FileNotFoundError:
        raise SourceError(f"the file `{piece.path}` has vanished while it was read") from None
    except (OSError, KeyError, IndexError, pa.ArrowException) as error:
        raise SourceError(f"cannot read `{piece.path}`, which has changed since it was opened: {error}") from None


@lru_cache(maxsize=1)
def _decoded(path: str, modified: int, size: int, row_group: int, names: tuple[str, ...]) -> pa.Table:
    """One row group, kept for the next micro-batch: a slow replay takes many small bites of the same one."""
    with pq.ParquetFile(path) as file:
        missing = set(names) - set(file.schema_arrow.names)
        if missing:
            raise SourceError(f"`{path}` has lost the column `{min(missing)}` since it was opened")
        return file.read_row_group(row_group, columns=list(names))
