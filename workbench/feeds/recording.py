"""Recorded events in files: which rows have arrived by when, and reading parts of them.

Rows are numbered through all files, in the order of the files and of the rows in them: the order of arrival.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.errors import SourceError
from workbench.feeds.dialect import PLAIN, Dialect
from workbench.feeds.feed import Tally
from workbench.feeds.formats import RecordedFile, read_block, without_views
from workbench.feeds.lines import Block
from workbench.feeds.times import MICROS, to_micros

#: Rows that one call of a fold gets; small enough for the cache, large enough to drown the call.
_FOLD_ROWS = 1 << 17
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class FilePiece:
    """Rows ``[offset, offset + rows)`` of one block of one file, which had ``size`` bytes when it was taken in."""

    path: str
    format: str
    size: int
    block: Block
    offset: int
    rows: int
    dialect: Dialect = PLAIN

    def read(self, schema: pa.Schema, tally: Tally) -> Iterator[pa.RecordBatch]:
        """The columns of ``schema``, in its types, of these rows, in order.

        Raises SourceError naming the file that has gone, changed its size or been given other columns since then.
        """
        table = self._block(schema)
        if table.num_rows < self.offset + self.rows:
            raise SourceError(f"`{self.path}` has become shorter while it was read")
        part = table.slice(self.offset, self.rows)
        columns = [_convert(part.column(field.name), field, self.path) for field in schema]
        yield from pa.table(columns, schema=schema).combine_chunks().to_batches(_FOLD_ROWS)

    def _block(self, schema: pa.Schema) -> pa.Table:
        """All rows of the block."""
        try:
            stamp = Path(self.path).stat()
        except FileNotFoundError:
            raise SourceError(
                f"the file `{self.path}` has vanished before its rows were read",
                hint="bring it back and start the query again: it goes on where it was",
            ) from None
        if stamp.st_size != self.size:
            raise SourceError(
                f"`{self.path}` has changed since it was taken in: it had {self.size:,} bytes then, and has "
                f"{stamp.st_size:,} now",
                hint="bring it back as it was and start the query again; new rows belong into a new file",
            )
        try:
            return _decoded(self.path, stamp.st_mtime_ns, self.format, self.block, schema, self.dialect)
        except (OSError, EOFError, IndexError, pa.ArrowException) as error:
            raise SourceError(
                f"cannot read `{self.path}`, which has changed since it was taken in: {error}"
            ) from None


class Recording:
    """Files as one numbered sequence of rows, with the clock of arrival of each. More files may be added.

    ``arrival`` names the column that tells when a row arrived; a row is out when the running maximum of that column
    has reached the clock. The arrival column is read one block at a time, when it is asked.
    """

    def __init__(self, files: Iterable[RecordedFile], arrival: str) -> None:
        self._arrival = arrival
        self._blocks: list[tuple[RecordedFile, Block]] = []
        self._carry: dict[int, int] = {0: _NEVER}
        self._starts = [0]
        for file in files:
            self.add(file)
        self._loaded: tuple[int, npt.NDArray[np.int64]] | None = None

    def add(self, file: RecordedFile) -> None:
        """Let the rows of one more file follow."""
        for block in file.blocks:
            self._blocks.append((file, block))
            self._starts.append(self._starts[-1] + block.rows)

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return self._starts[-1]

    def clock(self, row: int) -> int:
        """When row ``row`` was out, in microseconds: the largest arrival among the rows ``0 .. row``."""
        block = self._block_of(row)
        return int(self._clocks(block)[row - self._starts[block]])

    def rows_out(self, clock: int, start: int, limit: int) -> int:
        """How many of the first ``limit`` rows are out at ``clock``; at least ``start``, which are known to be.

        Cost: one look-up per block between the answer and ``start``.
        """
        row = start
        while row < limit:
            block = self._block_of(row)
            out = self._starts[block] + int(np.searchsorted(self._clocks(block), clock, side="right"))
            row = max(row, out)
            if row < self._starts[block + 1]:
                break
        return min(row, limit)

    def split(self, start: int, end: int, parts: int) -> list[list[FilePiece]]:
        """The rows ``[start, end)`` in at most ``parts`` runs of similar length, each a list of pieces.

        A cut moves to the edge of a block where one is near, so that no two tasks decode the same block.
        """
        size = (end - start) / max(parts, 1)
        cuts = [start]
        for part in range(1, parts):
            ideal = start + round(part * size)
            edge = self._nearest_edge(ideal)
            cuts.append(edge if abs(edge - ideal) <= size / 4 else ideal)
        cuts.append(end)
        return [list(self._pieces(first, last)) for first, last in pairwise(cuts)]

    def _nearest_edge(self, row: int) -> int:
        place = bisect_left(self._starts, row)
        return min(self._starts[max(place - 1, 0) : place + 1], key=lambda begin: abs(begin - row))

    def _pieces(self, start: int, end: int) -> Iterator[FilePiece]:
        place = self._block_of(start)
        while start < end:
            file, block = self._blocks[place]
            begin = self._starts[place]
            last = min(end, begin + block.rows)
            yield FilePiece(file.path, file.format, file.size, block, start - begin, last - start, file.dialect)
            start, place = last, place + 1

    def _block_of(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1

    def _clocks(self, block: int) -> npt.NDArray[np.int64]:
        """The running maximum of arrivals at each row of a block, all rows before it included."""
        if self._loaded is None or self._loaded[0] != block:
            for missing in range(max(known for known in self._carry if known <= block), block):
                self._carry[missing + 1] = int(self._accumulated(missing)[-1])
            self._loaded = block, self._accumulated(block)
        return self._loaded[1]

    def _accumulated(self, place: int) -> npt.NDArray[np.int64]:
        file, block = self._blocks[place]
        piece = FilePiece(file.path, file.format, file.size, block, 0, block.rows, file.dialect)
        table = pa.Table.from_batches(piece.read(pa.schema([(self._arrival, MICROS)]), Tally()))
        values = table.column(0).cast(pa.int64()).fill_null(_NEVER).to_numpy()
        return np.maximum(np.maximum.accumulate(values), self._carry[place])


def _convert(column: Any, field: pa.Field, path: str) -> Any:
    column = without_views(column)
    if pa.types.is_timestamp(field.type):
        return to_micros(column, field.name, path).cast(field.type)
    return column if column.type == field.type else column.cast(field.type)


@lru_cache(maxsize=1)
def _decoded(path: str, modified: int, kind: str, block: Block, schema: pa.Schema, dialect: Dialect) -> pa.Table:
    """One block, kept for the next micro-batch: a slow replay takes many small bites of the same one."""
    return read_block(path, kind, block, schema, dialect)
