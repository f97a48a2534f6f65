"""Units of a measure against exact fractions: the bound that a value has reached, and bounds as a column has them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DataError
from workbench.results.units import FARTHEST, Unit


def last_bound(value: float, digits: int) -> int:
    """The last bound whose nearest double is at most the value."""
    units = math.floor(Fraction(value) * 10**digits) + 2
    while float(Fraction(units, 10**digits)) > value:
        units -= 1
    return units


@given(
    st.lists(
        st.one_of(
            st.floats(-1e9, 1e9),
            st.integers(-(10**9), 10**9).map(lambda n: n / 1_000),
            st.integers(-(10**9), 10**9).map(lambda n: math.nextafter(n / 1_000, math.inf)),
            st.integers(-(10**9), 10**9).map(lambda n: math.nextafter(n / 1_000, -math.inf)),
        )
    ),
    st.integers(0, 5),
)
def test_doubles_reach_the_double_nearest_to_a_bound(values: list[float], digits: int) -> None:
    reached, valid = Unit(pa.float64(), digits).reached(pa.array(values, pa.float64()))
    assert reached.tolist() == [last_bound(value, digits) for value in values]
    assert valid.all()


@given(st.lists(st.decimals(-(10**10), 10**10, places=3, allow_nan=False)), st.integers(0, 5), st.integers(0, 3))
def test_decimals_are_exact(values: list[Decimal], digits: int, skip: int) -> None:
    column = pa.array(values, pa.decimal128(20, 3))[skip:]
    reached, _ = Unit(column.type, digits).reached(column)
    assert reached.tolist() == [math.floor(value * 10**digits) for value in values[skip:]]


def test_what_is_no_number_is_told() -> None:
    for kind, values in ((pa.float64(), [1.5, None, math.nan, math.inf, -math.inf]), (pa.int32(), [1, None])):
        reached, valid = Unit(kind, 0).reached(pa.array(values, kind))
        assert reached[0] == 1
        assert valid.tolist() == [True] + [False] * (len(values) - 1)


def test_a_float_is_the_decimal_that_it_is_shown_as() -> None:
    reached, _ = Unit(pa.float32(), 1).reached(pa.array([0.3, 0.7, -0.1, 16_777.2], pa.float32()))
    assert reached.tolist() == [3, 7, -1, 167_772]


@pytest.mark.parametrize(
    ("kind", "digits", "cells", "bounds"),
    [
        (pa.int16(), 0, [-3, 70_000], [-3, 70_000]),
        (pa.float64(), 1, [3, -7], [0.3, -0.7]),
        (pa.float32(), 1, [3, -7], [0.3, -0.7]),
        (pa.decimal128(10, 2), 0, [3, -7], [Decimal("3.00"), Decimal("-7.00")]),
        (pa.decimal128(10, 2), 3, [3, -7], [Decimal("0.003"), Decimal("-0.007")]),
    ],
)
def test_bounds_are_in_the_units_of_the_column(
    kind: pa.DataType, digits: int, cells: list[int], bounds: list[Any]
) -> None:
    unit = Unit(kind, digits)
    found = unit.bounds(np.array(cells))
    assert found.type == unit.bound_type
    assert found.to_pylist() == bounds


@pytest.mark.parametrize(
    "column",
    [
        pa.array([FARTHEST + 1]),
        pa.array([-FARTHEST - 1]),
        pa.array([1.0, -1e300]),
        pa.array([Decimal("99999999999999999999.00")], pa.decimal128(30, 2)),
    ],
)
def test_values_that_cannot_be_counted_are_refused(column: pa.Array) -> None:
    with pytest.raises(DataError, match="is too large to be counted in units of `1`"):
        Unit(column.type, 0).reached(column)


@given(st.lists(st.floats(allow_nan=False)))
def test_places_of_doubles_are_in_their_order(values: list[float]) -> None:
    unit = Unit(pa.float64(), 0)
    places = unit.places(pa.array(values, pa.float64())).tolist()
    assert [unit.value_at(place) for place in places] == values
    for value, place in zip(values, places, strict=True):
        assert [place < each for each in places] == [value < each for each in values]


def test_places_of_integers_and_decimals_are_their_digits() -> None:
    assert Unit(pa.int64(), 0).places(pa.array([5, -3])).tolist() == [5, -3]
    unit = Unit(pa.decimal128(10, 2), 3)
    assert unit.places(pa.array([Decimal("1.25")], pa.decimal128(10, 2))).tolist() == [1250]
    assert unit.value_at(1250) == Decimal("1.250")
