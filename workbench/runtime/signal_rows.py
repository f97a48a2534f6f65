"""The rows that a stream of signals keeps, and the blocks in which a host stores them. Free of any host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.runtime.signals import Rows

Array = npt.NDArray[Any]

#: Blocks, at most: one more, and the smaller half of them is written again, as one.
_BLOCKS = 16
#: The block of rows that no block has yet.
_NEW = -1


class KeptRows:
    """Rows in the order of :attr:`Rows.order`, each in one of the blocks that :meth:`changes` hands out.

    Rows go while blocks stay as they were written. A block of which less than half is left is written again, together
    with the newest rows, so that what is stored is at most twice what is kept, and that costs each row little.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        none = np.zeros(0, np.int64)
        self.rows = Rows(none, none, {name: np.zeros(0) for name in columns}, {})
        #: Of each row the block, and its place in the order of arrival.
        self._place, self._came = none, none
        #: The number of the next block.
        self.next = 0
        #: How many rows each block was written with.
        self._written: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, rows: Rows) -> None:
        """Rows that have just come, in any order."""
        first = int(self._came.max(initial=-1)) + 1
        self._bring(rows, np.full(len(rows), _NEW), np.arange(first, first + len(rows)))

    def keep(self, index: Array) -> None:
        """Those at some ascending places stay."""
        self.rows, self._place, self._came = self.rows.take(index), self._place[index], self._came[index]

    def changes(self) -> tuple[dict[int, pa.RecordBatch], tuple[int, ...]]:
        """Blocks to write since the last call or :meth:`load`, and those to take away. At most one is written."""
        left = np.bincount(self._place[self._place != _NEW], minlength=self.next)
        gone = {block for block, size in self._written.items() if 2 * left[block] < size}
        others = sorted(self._written.keys() - gone, key=lambda block: (left[block], block))
        if len(others) >= _BLOCKS:
            gone |= set(others[: len(others) // 2])
        moved = np.flatnonzero(np.isin(self._place, [_NEW, *gone]))
        for block in gone:
            del self._written[block]
        if not len(moved):
            return {}, tuple(gone)
        block, self.next = self.next, self.next + 1
        self._place[moved] = block
        self._written[block] = len(moved)
        return {block: self._table(moved)}, tuple(gone)

    def load(self, blocks: Iterable[tuple[int, pa.RecordBatch]], after: int) -> None:
        """Take in blocks that were written, in any order; the next one is ``after``. The rows are still none."""
        parts = list(blocks)
        self.next, self._written = after, {block: len(table) for block, table in parts}
        if not parts:
            return
        place = np.repeat([block for block, _ in parts], [len(table) for _, table in parts])
        table = pa.Table.from_batches([table for _, table in parts]).combine_chunks()
        came = table.column("came").to_numpy()
        order = np.argsort(came)
        self._bring(_rows_in(table, self._columns).take(order), place[order], came[order])

    def _bring(self, rows: Rows, place: Array, came: Array) -> None:
        """Put rows behind those that are there, into the order."""
        rows = Rows.joined(self.rows, rows)
        place, came = np.concatenate([self._place, place]), np.concatenate([self._came, came])
        order = rows.order
        if order is not None:
            rows, place, came = rows.take(order), place[order], came[order]
        self.rows, self._place, self._came = rows, place, came

    def _table(self, index: Array) -> pa.RecordBatch:
        rows, came = self.rows.take(index), self._came[index]
        columns = {"key": pa.array(rows.keys), "time": pa.array(rows.times), "came": pa.array(came)}
        for place, name in enumerate(self._columns):
            present = rows.present.get(name)
            columns[str(place)] = pa.array(rows.columns[name], mask=None if present is None else ~present)
        return pa.RecordBatch.from_pydict(columns)


def _rows_in(table: pa.Table, names: Sequence[str]) -> Rows:
    """The rows of a block; NaN is a value, NULL is none."""
    values, present = {}, {}
    for place, name in enumerate(names):
        column = table.column(str(place))
        values[name] = column.fill_null(0.0).to_numpy()
        if column.null_count:
            present[name] = column.is_valid().to_numpy()
    return Rows(table.column("key").to_numpy(), table.column("time").to_numpy(), values, present)
