"""The keys of rows as small integers: dense where that is cheap, so that no hash table is needed (*Grizzly* §6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.results import encode_columns

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Codes:
    """The code of every row: ``values - base``, or where that stands in ``renamed``."""

    values: Array
    base: int = 0
    renamed: Array | None = None

    def rows(self, chosen: slice | Array = slice(None)) -> Array:
        """The codes of some rows, int64."""
        codes = np.subtract(self.values[chosen], self.base, dtype=np.int64)
        return codes if self.renamed is None else self.renamed[codes]

    def narrow(self) -> Array:
        """The codes of all rows, int32; there are fewer than 2 ** 31."""
        if self.renamed is None and self.base == 0 and self.values.dtype == np.int32:
            return self.values
        return np.asarray(self.rows().astype(np.int32))

    def rename(self, names: Array) -> Codes:
        """The same rows with code ``names[c]`` for ``c``. A mere shift costs the rows nothing."""
        if self.renamed is None and len(names) and (np.diff(names) == 1).all():
            return Codes(self.values, self.base - int(names[0]))
        return Codes(self.values, self.base, names if self.renamed is None else names[self.renamed])


def number_keys(columns: Sequence[pa.Array], rows: int, most: int | None = None) -> tuple[Codes, list[pa.Array]]:
    """Codes below the length of the returned columns, which hold each key once, and maybe keys that no row has.

    Integers in narrow ranges are their own codes (*Grizzly* §6.2.2), all combinations of those of several columns. By
    default keys that no row has are far fewer than ``rows``; there are never more than ``most`` keys for that.
    """
    # A column of the keys, and room for each in every slice, must not cost more than the rows themselves.
    ranges = _ranges(columns, max(rows // 4, 1_024) if most is None else most)
    if len(ranges) == 1:
        ((low, span),) = ranges
        return Codes(columns[0].to_numpy(), low), [pa.array(np.arange(low, low + span), columns[0].type)]
    if ranges:
        codes, keys, inner = np.zeros(len(columns[0]), np.int64), [], math.prod(span for _, span in ranges)
        width = inner
        for column, (low, span) in zip(columns, ranges, strict=True):
            inner //= span
            codes = codes * span + np.subtract(column.to_numpy(), low, dtype=np.int64)
            values = np.tile(np.repeat(np.arange(low, low + span), inner), width // (span * inner))
            keys.append(pa.array(values, column.type))
        return Codes(codes), keys
    codes, distinct = encode_columns([_plain(column) for column in columns])
    return Codes(codes), distinct


def _ranges(columns: Sequence[pa.Array], most: int) -> list[tuple[int, int]]:
    """The least value and the length of the range of each column; none if that makes more than ``most`` keys."""
    found, keys = [], 1
    for column in columns:
        if not pa.types.is_integer(column.type) or column.null_count or not len(column):
            return []
        ends = pc.min_max(column)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        keys *= high - low + 1
        if keys > most or high >= 1 << 62:
            return []
        found.append((low, high - low + 1))
    return found


def unite_keys(parts: Sequence[tuple[Codes, list[pa.Array]]]) -> tuple[list[Codes], list[pa.Array]]:
    """One numbering for the rows of several parts, each numbered by itself; every key stands once in the columns."""
    if len(parts) == 1:
        return [parts[0][0]], parts[0][1]
    joined = [pa.concat_arrays(list(columns)) for columns in zip(*(keys for _, keys in parts), strict=True)]
    codes, distinct = number_keys(joined, sum(len(own.values) for own, _ in parts))
    bounds = np.cumsum([len(keys[0]) for _, keys in parts])
    names = np.split(codes.rows(), bounds[:-1])
    return [own.rename(renamed) for (own, _), renamed in zip(parts, names, strict=True)], distinct


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
