"""Keys of results: dense codes of key tuples, with NULL, NaN and both zeros each one key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array = npt.NDArray[Any]

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
    """Python values of a key column, fit to be compared and hashed, of which Arrow makes the column again.

    Times and days beyond the year 9999, for which Python has no values, are the numbers that Arrow keeps.
    """
    try:
        values = array.to_pylist()
    except OverflowError:
        values = list(map(_moment, array))
    if pa.types.is_floating(array.type):
        return [value if value is None else _NAN if value != value else value + 0.0 for value in values]
    return values


def _moment(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except OverflowError:
        return value.value


class KeyIndex:
    """Keys by place, in order of appearance."""

    def __init__(self) -> None:
        self.keys: list[tuple[Any, ...]] = []
        self.places: dict[tuple[Any, ...], int] = {}

    def number(self, keys: Sequence[pa.Array], rows: int) -> Array:
        """The place of every row's key; new keys get the next free one. No key columns: the key ``()``."""
        codes, distinct = encode_keys(keys) if keys else (np.zeros(rows, np.int64), [()])
        places = np.empty(len(distinct), np.int64)
        for position, key in enumerate(distinct):
            place = self.places.get(key)
            if place is None:
                place = self.places[key] = len(self.keys)
                self.keys.append(key)
            places[position] = place
        return places[codes]

    def find(self, keys: Sequence[tuple[Any, ...]] | None) -> list[tuple[Any, ...]]:
        """Those of the keys that are there; None: all."""
        return list(self.keys) if keys is None else [key for key in keys if key in self.places]
