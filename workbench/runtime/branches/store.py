"""The slice store of one fold and one bucket: matrices ``[slice, key]`` of partial aggregates.

Slices are kept in order of start; a slice exists only where a row fell into it. New slices mostly come at the end
and are appended into spare room; one that comes late is inserted, which copies. Keys are numbered in order of
appearance, a column each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra import PartialKind
from workbench.codegen import Scans
from workbench.runtime.branches.keytable import KeyTable
from workbench.runtime.branches.leaves import combined

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


class SliceStore:
    """Slice partials by key. ``starts`` are the starts of the kept slices, ascending, int64 microseconds."""

    def __init__(self, kinds: Sequence[PartialKind], key_types: Sequence[pa.DataType]) -> None:
        self._kinds = tuple(kinds)
        self.table = KeyTable(key_types)
        self._starts = np.zeros(0, np.int64)
        self._head = 0  # slices before it are evicted, their room not yet given back
        self._size = 0
        #: Slices since keys were last looked through; one that is fresh, or read back, does so at once.
        self._evicted = math.inf
        # Without keys there is one column, and there never is another.
        self._matrices = [kind.blank((0, 8 if key_types else 1)) for kind in self._kinds]
        #: What kernels keep beside the slices, one for each partial.
        self.scans = [Scans() for _ in self._kinds]

    @property
    def starts(self) -> Array:
        return self._starts[self._head : self._size]

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return len(self.table)

    @property
    def nbytes(self) -> int:
        """Bytes of the partials kept (spare room left out); about, where they are objects."""
        kept = len(self.starts) * 8
        for position, kind in enumerate(self._kinds):
            cells = (matrix[self._head : self._size, : self.keys] for matrix in self.partials(position))
            kept += sum(field.nbytes(matrix) for field, matrix in zip(kind.fields, cells, strict=True))
        return kept

    def to_arrow(self, columns: Sequence[Array]) -> list[pa.Array]:
        """The field columns of entries, all partials, as they are sent and stored."""
        fields = [field for kind in self._kinds for field in kind.fields]
        return [field.to_arrow(cells) for field, cells in zip(fields, columns, strict=True)]

    def from_arrow(self, columns: Sequence[pa.Array]) -> list[Array]:
        """Inverse of :meth:`to_arrow`."""
        fields = [field for kind in self._kinds for field in kind.fields]
        return [field.from_arrow(column) for field, column in zip(fields, columns, strict=True)]

    def partials(self, position: int) -> Fields:
        """The matrices ``[row, key]`` of one partial, with spare room: see :meth:`rows` for the rows in use."""
        return self._matrices[position]

    def rows(self, times: Array) -> Array:
        """The matrix row of the first slice that starts at or after each time."""
        return np.searchsorted(self.starts, times) + self._head

    @property
    def begin(self) -> int:
        """The matrix row of the oldest slice."""
        return self._head

    @property
    def end(self) -> int:
        """The matrix row after the newest slice."""
        return self._size

    def adopt(self, older: SliceStore, partials: Sequence[int | None]) -> None:
        """Take over the slices and keys of another store; partials that it does not have (None) are blank."""
        self.table.adopt(older.table)
        self._starts, self._head, self._size = older._starts, older._head, older._size
        room = older._matrices[0][0].shape
        self._matrices = [
            kind.blank(room) if place is None else older._matrices[place]
            for kind, place in zip(self._kinds, partials, strict=True)
        ]

    def number_keys(self, keys: pa.RecordBatch) -> Array:
        """The numbers of keys, each of which has a column; unknown ones get the next."""
        numbers = self.table.number(keys)
        self.widen()
        return numbers

    def widen(self) -> None:
        """Make a column for every key of the table."""
        if self.keys > self._matrices[0][0].shape[1]:
            self._rebuild(self.starts, np.arange(len(self.starts)), _room(self.keys))

    def used(self) -> Array | None:
        """Which keys have a row in a slice that is kept; None as long as fewer slices have gone than there are.

        So each slice is looked through once or twice before it goes.
        """
        if self._evicted < len(self.starts):
            return None
        self._evicted = 0
        return np.asarray(self._matrices[0][0][self._head : self._size, : self.keys].any(axis=0))

    def renumber(self, kept: Array) -> None:
        """The columns of some keys, in their order, are all that there are from now on."""
        self._rebuild(self.starts, np.arange(len(self.starts)), _room(len(kept)), kept)

    def merge(self, starts: Array, keys: Array, fields: Sequence[Array]) -> None:
        """Combine entries into the store: slice start, key number and the fields of all partials, each a column.

        A (slice, key) that stands there several times is combined in the order of its entries. Cost: proportional to
        the entries, and to the whole store when a slice comes that is older than the newest one.
        """
        rows = self._rows(starts)
        if not len(rows):
            return
        for scans in self.scans:
            scans.touch(rows)
        cells = rows * self.keys + keys
        if (cells[1:] > cells[:-1]).all():
            self._combine(rows, keys, fields)
            return
        ordered = np.sort(cells)
        if (ordered[1:] == ordered[:-1]).any():
            rows, keys = np.divmod(np.unique(cells), self.keys)
            fields = combined(cells, fields, self._kinds)
        self._combine(rows, keys, fields)

    def _combine(self, rows: Array, keys: Array, fields: Sequence[Array]) -> None:
        position = 0
        with np.errstate(all="ignore"):
            for kind, matrices in zip(self._kinds, self._matrices, strict=True):
                incoming = fields[position : position + len(matrices)]
                position += len(matrices)
                here = [matrix[rows, keys] for matrix in matrices]
                for matrix, values in zip(matrices, kind.combine(*here, *incoming), strict=True):
                    matrix[rows, keys] = values

    def evict(self, before: int) -> None:
        """Forget the slices that start before a time."""
        gone = int(np.searchsorted(self.starts, before))
        self._head += gone
        self._evicted += gone

    def entries(self, low: int, high: int) -> Iterator[Array]:
        """The non-empty cells of the slices that start in ``[low, high)``: starts, key numbers, then all fields.

        The first partial of a store is the row count; a cell is empty where it is 0.
        """
        first, last = np.searchsorted(self.starts, [low, high]) + self._head
        rows, columns = np.nonzero(self._matrices[0][0][first:last])
        yield self._starts[first:last][rows]
        yield columns
        for fields in self._matrices:
            for matrix in fields:
                yield matrix[first:last][rows, columns]

    def _rows(self, starts: Array) -> Array:
        """Matrix rows of slices, made where they do not exist."""
        kept = self.starts
        place = np.searchsorted(kept, starts)
        known = kept[np.minimum(place, len(kept) - 1)] == starts if len(kept) else np.zeros(len(starts), np.bool_)
        fresh = distinct(starts[~known])
        if len(fresh):
            later = not len(kept) or fresh[0] > kept[-1]
            if later and self._size + len(fresh) > len(self._starts) and self._head * 3 > len(kept):
                self._slide()
            if later and self._size + len(fresh) <= len(self._starts):
                self._starts[self._size : self._size + len(fresh)] = fresh
                self._size += len(fresh)
            else:
                kept = self.starts
                merged = np.concatenate([kept, fresh]) if later else np.union1d(kept, fresh)
                self._rebuild(merged, np.searchsorted(merged, kept), self._matrices[0][0].shape[1])
        return np.searchsorted(self.starts, starts) + self._head

    def _slide(self) -> None:
        """Give back the room of evicted slices: the kept ones move there, in the memory that there is."""
        head, size = self._head, self._size
        self._head, self._size = 0, size - head
        self._starts[: self._size] = self._starts[head:size]
        for kind, fields in zip(self._kinds, self._matrices, strict=True):
            for matrix, identity in zip(fields, kind.identity, strict=True):
                matrix[: self._size] = matrix[head:size]
                matrix[self._size : size] = identity
        for scans in self.scans:
            scans.forget()

    def _rebuild(self, starts: Array, old_rows: Array, columns: int, keys: Array | None = None) -> None:
        """New matrices for ``starts`` with spare room; ``old_rows`` says where the kept slices go.

        ``keys`` are the columns that stay, None: all.
        """
        room = max(64, len(starts) + len(starts) // 2)
        kept = slice(self._head, self._size)
        matrices = []
        for kind, fields in zip(self._kinds, self._matrices, strict=True):
            blank = kind.blank((room, columns))
            for fresh, old in zip(blank, fields, strict=True):
                cells = old[kept] if keys is None else old[kept][:, keys]
                fresh[old_rows, : cells.shape[1]] = cells
            matrices.append(blank)
        self._matrices = matrices
        for scans in self.scans:
            scans.reset()
        self._head, self._size = 0, len(starts)
        self._starts = np.concatenate([starts, np.zeros(room - len(starts), np.int64)])


def _room(keys: int) -> int:
    """Columns for so many keys, and some more."""
    return max(8, 1 << max(keys - 1, 0).bit_length())


def distinct(times: Array) -> Array:
    """Each of some times once, ascending; mostly they ascend already, and nothing needs to be sorted or hashed."""
    steps = np.diff(times)
    if not len(times) or (steps < 0).any():
        return np.unique(times)
    return times[np.append(True, steps > 0)]
