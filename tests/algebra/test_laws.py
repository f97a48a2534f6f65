"""The laws of the monoids, on values at the edges of their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.algebra import PARTIALS

INT = st.one_of(st.integers(-5, 5), st.sampled_from([-(2**63), 2**63 - 1, 2**62]))
FLOAT = st.one_of(st.integers(-80, 80).map(lambda n: n / 8), st.sampled_from([np.nan, np.inf, -np.inf, -0.0, -1e300]))


def lifted(name: str, value: Any) -> tuple[Any, ...]:
    kind = PARTIALS[name]
    column = np.array([value], kind.input or "int64")
    with np.errstate(all="ignore"):
        return tuple(
            np.asarray(field, spec.dtype) for field, spec in zip(kind.lift(column), kind.fields, strict=True)
        )


def combined(name: str, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        return PARTIALS[name].combine(*left, *right)


def values_of(name: str) -> st.SearchStrategy[Any]:
    if PARTIALS[name].input is None:
        return st.just(1)
    return INT if PARTIALS[name].input == "int64" else FLOAT


@pytest.mark.parametrize("name", sorted(PARTIALS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_identity_and_associativity(name: str, data: st.DataObject) -> None:
    kind = PARTIALS[name]
    a, b, c = (lifted(name, data.draw(values_of(name))) for _ in range(3))
    identity = tuple(np.array([value], field.dtype) for value, field in zip(kind.identity, kind.fields, strict=True))
    for one in (a, combined(name, a, b)):
        np.testing.assert_equal(combined(name, identity, one), combined(name, one, identity))
        np.testing.assert_equal([x + 0 for x in combined(name, identity, one)], [x + 0 for x in one])
    left = combined(name, combined(name, a, b), c)
    right = combined(name, a, combined(name, b, c))
    if name == "moments":  # rounding apart
        for x, y in zip(left, right, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_equal(left, right)
    if kind.idempotent:
        np.testing.assert_equal(combined(name, a, a), a)
    if kind.commutative and name != "moments":
        np.testing.assert_equal(combined(name, a, b), combined(name, b, a))
    if kind.invert is not None:
        total = combined(name, a, b)
        np.testing.assert_equal(kind.invert(*total, *a), b)
        np.testing.assert_equal(kind.invert(*kind.invert(*combined(name, total, c), *a), *b), c)


def test_wide_sums_are_exact_beyond_64_bits() -> None:
    """Case N7: 2**63 - 1, 1 and -1: no wrap on the way."""
    parts = [lifted("sum_int", value) for value in (2**63 - 1, 1, -1)]
    total = combined("sum_int", combined("sum_int", parts[0], parts[1]), parts[2])
    low, high = (int(field[0]) for field in total)
    assert (high << 64) + low == 2**63 - 1


@given(st.lists(INT, min_size=1, max_size=20))
def test_wide_sums_equal_python_integers(values: list[int]) -> None:
    total = lifted("sum_int", values[0])
    for value in values[1:]:
        total = combined("sum_int", total, lifted("sum_int", value))
    low, high = (int(field[0]) for field in total)
    assert (high << 64) + low == sum(values)
