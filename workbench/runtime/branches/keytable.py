"""The keys of a branch, numbered in order of appearance."""

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


class KeyTable:
    """Keys by number. Without key columns there is the one key ``()``."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self._keys: list[tuple[Any, ...]] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._written = 0

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

    def changes(self) -> dict[int, pa.RecordBatch]:
        """The blocks with a key that is not written yet, by number; they count as written from now on."""
        written, self._written = self._written, len(self._keys)
        if written == len(self._keys):
            return {}
        return {
            number: self._block(number) for number in range(written // KEY_BLOCK, -(-len(self._keys) // KEY_BLOCK))
        }

    def _block(self, number: int) -> pa.RecordBatch:
        first = number * KEY_BLOCK
        arrays = self.arrays(first, first + KEY_BLOCK)
        arrays = arrays or [pa.array([0] * min(KEY_BLOCK, len(self._keys) - first), pa.int8())]
        return pa.record_batch(arrays, names=[str(i) for i in range(len(arrays))])

    def restore(self, blocks: dict[int, pa.RecordBatch]) -> None:
        """Number the keys of written blocks, by number, as they were."""
        for number in sorted(blocks):
            self.number(blocks[number])
        self._written = len(self._keys)
