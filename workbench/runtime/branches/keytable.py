"""The keys of a branch, numbered in order of appearance.

Keys that nothing refers to any more are let go, all at once and only when they are more than half, so what that costs
is paid by the rows that had brought them. Those that stay move up and keep their order::

    numbers   0   1   2   3   4   5   6   7               0   1   2
    keys      a   b   c   d   e   f   g   h       ->      c   f   h
    in use            x           x       x               x   x   x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.results import key_values

Array = npt.NDArray[Any]

#: Keys to a block of keys.
KEY_BLOCK = 1024
#: As long as there are no more keys than these, none are let go.
FEW = 64


class KeyTable:
    """Keys by number. Without key columns there is the one key ``()``."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self._keys: list[tuple[Any, ...]] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._written = 0
        self._blocks = 0  # that are stored

    def __len__(self) -> int:
        return len(self._keys)

    def number(self, keys: pa.RecordBatch) -> Array:
        """The numbers of keys; unknown ones get the next."""
        if not self.types:
            distinct: Sequence[tuple[Any, ...]] = [()] * len(keys)
        else:
            distinct = list(zip(*(key_values(column) for column in keys.columns), strict=True))
        numbers = np.empty(len(distinct), np.int64)
        for position, key in enumerate(distinct):
            number = self._index.get(key)
            if number is None:
                number = self._index[key] = len(self._keys)
                self._keys.append(key)
            numbers[position] = number
        return numbers

    def adopt(self, older: KeyTable) -> None:
        """Take over the keys of another table and their numbers, none of them written."""
        self._keys, self._index, self._written = older._keys, older._index, 0

    @property
    def many(self) -> bool:
        """Whether there are enough to look for those that are not in use."""
        return len(self._keys) > FEW

    def wasteful(self, used: Array) -> bool:
        """Whether fewer than half of the keys are in use: a flag for each."""
        return 2 * int(np.count_nonzero(used)) < len(self._keys)

    def keep(self, kept: Array) -> None:
        """Let go of all keys but some, by number ascending, which are numbered anew in their order."""
        self._keys = [self._keys[number] for number in kept.tolist()]
        self._index = {key: number for number, key in enumerate(self._keys)}
        self._written = 0

    def arrays(self, first: int = 0, last: int | None = None) -> list[pa.Array]:
        """The key columns, in order of the keys' numbers, of the numbers ``[first, last)``."""
        return self._columns(self._keys[first:last])

    def _columns(self, chosen: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        columns = zip(*chosen, strict=True) if chosen else [[] for _ in self.types]
        return [pa.array(list(column), kind) for column, kind in zip(columns, self.types, strict=False)]

    def taken(self, numbers: Array) -> list[pa.Array]:
        """The key columns of some keys by number. What costs are those keys, not all that there have ever been."""
        if len(numbers) >= len(self._keys):
            return [column.take(pa.array(numbers)) for column in self.arrays()]
        return self._columns([self._keys[number] for number in numbers.tolist()])

    def changes(self) -> tuple[dict[int, pa.RecordBatch], range]:
        """The blocks with a key that is not written yet, by number, and the numbers of those that are gone.

        All count as written from now on.
        """
        written, self._written = self._written, len(self._keys)
        stored, self._blocks = self._blocks, -(-len(self._keys) // KEY_BLOCK)
        first = written // KEY_BLOCK if written < len(self._keys) else self._blocks
        return {number: self._block(number) for number in range(first, self._blocks)}, range(self._blocks, stored)

    def _block(self, number: int) -> pa.RecordBatch:
        first = number * KEY_BLOCK
        arrays = self.arrays(first, first + KEY_BLOCK)
        arrays = arrays or [pa.array([0] * min(KEY_BLOCK, len(self._keys) - first), pa.int8())]
        return pa.record_batch(arrays, names=[str(i) for i in range(len(arrays))])

    def restore(self, blocks: dict[int, pa.RecordBatch]) -> None:
        """Number the keys of written blocks, by number, as they were."""
        for number in sorted(blocks):
            self.number(blocks[number])
        self._written, self._blocks = len(self._keys), len(blocks)
