"""Keys as codes: dense where their range is narrow, one numbering over the parts of a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.runtime.branches.keytable import KeyTable
from workbench.runtime.keys import Codes, number_keys, unite_keys


def read(codes: Codes, columns: list[pa.Array]) -> list[tuple[object, ...]]:
    """The key of every row, by way of its code."""
    return list(zip(*(column.take(pa.array(codes.rows())).to_pylist() for column in columns), strict=True))


def test_integers_in_a_narrow_range_are_coded_by_subtraction() -> None:
    codes, (keys,) = number_keys([pa.array([-7, -3, -7], pa.int16())], 3)
    assert (codes.base, codes.rows().tolist()) == (-7, [0, 4, 0])
    assert keys.type == pa.int16()
    assert keys.to_pylist() == [-7, -6, -5, -4, -3], "keys between that no row has are among them"


@pytest.mark.parametrize("values", [[0, 1 << 61], [-(1 << 63), (1 << 63) - 1], [None, 5, 5]])
def test_other_integers_are_numbered_as_they_come(values: list[int | None]) -> None:
    codes, (keys,) = number_keys([pa.array(values, pa.int64())], len(values))
    assert codes.base == 0
    assert keys.to_pylist() == list(dict.fromkeys(values))


def test_the_largest_unsigned_integers_are_keys() -> None:
    codes, columns = number_keys([pa.array([2**64 - 1, 2**64 - 2], pa.uint64())], 2)
    assert read(codes, columns) == [(2**64 - 1,), (2**64 - 2,)]


def test_nan_is_one_key_and_both_zeros_are_one() -> None:
    codes, (keys,) = number_keys([pa.array([0.0, -0.0, math.nan, None, math.nan])], 5)
    assert codes.rows().tolist() == [0, 0, 1, 2, 1]
    assert math.copysign(1, keys[0].as_py()) == 1


NUMBERS = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([10**6, -(10**12)]))
PARTS = st.lists(
    st.lists(st.tuples(NUMBERS, st.sampled_from([None, "", "a", "b"])), min_size=1, max_size=12),
    min_size=1,
    max_size=4,
)


@given(PARTS, st.booleans())
def test_parts_share_one_numbering(parts: list[list[tuple[int | None, str | None]]], both: bool) -> None:
    rows = [row if both else row[:1] for part in parts for row in part]
    columns = [[pa.array([row[0] for row in part], pa.int64())] for part in parts]
    for part, own in zip(parts, columns, strict=True):
        own += [pa.array([row[1] for row in part], pa.string())] if both else []
    codes, keys = unite_keys([number_keys(own, len(own[0])) for own in columns])
    assert [key for own in codes for key in read(own, keys)] == rows
    distinct = list(zip(*(column.to_pylist() for column in keys), strict=True))
    assert len(set(distinct)) == len(distinct)


def test_a_shift_of_codes_costs_the_rows_nothing() -> None:
    codes = Codes(np.array([5, 6]), 5).rename(np.array([3, 4]))
    assert codes.renamed is None
    assert codes.rows().tolist() == [3, 4]
    assert Codes(np.array([0, 1]), 0, np.array([1, 0])).rename(np.array([7, 8])).rows().tolist() == [8, 7]


def test_combinations_of_narrow_ranges_are_coded_by_place() -> None:
    columns = [pa.array([3, 5, 3], pa.int8()), pa.array([-1, 0, 0], pa.int64())]
    codes, keys = number_keys(columns, 3)
    assert codes.rows().tolist() == [0, 5, 1]
    assert [column.to_pylist() for column in keys] == [[3, 3, 4, 4, 5, 5], [-1, 0, -1, 0, -1, 0]]
    assert [column.type for column in keys] == [pa.int8(), pa.int64()]


def test_combinations_that_would_be_too_many_are_numbered_as_they_come() -> None:
    columns = [pa.array([0, 99, 0]), pa.array([0, 99, 0])]
    codes, keys = number_keys(columns, 3)
    assert codes.rows().tolist() == [0, 1, 0]
    assert [column.to_pylist() for column in keys] == [[0, 99], [0, 99]]
    wide, columns_of_all = number_keys(columns, 3, 10_000)
    assert (len(columns_of_all[0]), wide.rows().tolist()) == (10_000, [0, 9_999, 0])


@pytest.mark.parametrize("numbers", [[], [4], [1, 1, 3], [0, 1, 2, 3, 4, 4]])
def test_key_columns_are_made_of_the_keys_that_are_asked_for(numbers: list[int], monkeypatch: Any) -> None:
    """A stream whose keys come and go paid in every micro-batch for all keys that there had ever been."""
    keys = [(None, 1), ("a", None), ("b", 2), ("🔑", 3), ("", 4)]
    types = (pa.string(), pa.int32())
    table = KeyTable(types)
    table.number(
        pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(zip(*keys, strict=True), types, strict=True)],
            names=["x", "y"],
        )
    )
    if len(numbers) < len(keys):
        monkeypatch.setattr(table, "arrays", None)
    columns = table.taken(np.array(numbers, np.int64))
    assert [column.type for column in columns] == list(types)
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == [keys[n] for n in numbers]
