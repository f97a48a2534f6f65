"""What users of other systems met, in every algorithm that can run it (group N of the collected faults)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from window_algorithms import CASES

from workbench.kernels.fifo.catalogue import ALGORITHMS
from workbench.kernels.fifo.interface import Algorithm


def admitting(name: str) -> list[str]:
    return [algorithm for algorithm, (_, needs) in ALGORITHMS.items() if isinstance(CASES[name].monoid, needs)]


def over(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("algorithm", admitting(name))


def build(algorithm: str, name: str, *sizes: int) -> Algorithm:
    return ALGORITHMS[algorithm].make(CASES[name].monoid, sizes)


def rolling(algorithm: str, name: str, values: list[Any], size: int) -> list[tuple[Any, ...]]:
    """The fields of the window after each value; a larger window beside it must not matter."""
    made, results = build(algorithm, name, size, size + 2), []
    with np.errstate(all="ignore"):
        for value in values:
            made.insert(made.state, CASES[name].lift(value))
            results.append(tuple(field.item() for field in made.query(made.state, size)))
    return results


@over("sum_float")
def test_windows_of_zeros_are_exactly_zero(algorithm: str) -> None:
    """N1."""
    values = [2.06, 0.888889, 0.0, 0.0, 0.0]
    assert rolling(algorithm, "sum_float", values, 2) == [(2.06,), (2.06 + 0.888889,), (0.888889,), (0.0,), (0.0,)]
    assert rolling(algorithm, "moments", values, 2)[3:] == [(2.0, 0.0, 0.0)] * 2


@over("sum_float")
def test_keys_share_nothing(algorithm: str) -> None:
    """N2: values up to 1e15 under one key leave the single 1e-13 of the other as it is."""
    a, b = build(algorithm, "sum_float", 3), build(algorithm, "sum_float", 3)
    for value in (1e-9, 1e15, 3.5, 1e15):
        a.insert(a.state, (np.float64(value),))
    b.insert(b.state, (np.float64(1e-13),))
    assert b.query(b.state, 3) == (1e-13,)


@over("moments")
def test_a_large_value_leaves_nothing_behind(algorithm: str) -> None:
    """N3: the mean of two zeros is 0 after 3002399751580331; so is their variance."""
    assert rolling(algorithm, "moments", [3002399751580331.0, 0.0, 0.0], 2)[2] == (2.0, 0.0, 0.0)


@over("sum_float")
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, 1e90])
def test_an_infinity_lives_in_its_own_windows_only(algorithm: str, bad: float) -> None:
    """N4, N10: 1, inf, 2, 3."""
    found = rolling(algorithm, "sum_float", [1.0, bad, 2.0, 3.0], 2)
    np.testing.assert_equal(found, [(1.0,), (1.0 + bad,), (bad + 2.0,), (5.0,)])


@over("count")
def test_nan_is_a_value_and_counts(algorithm: str) -> None:
    """N5."""
    assert rolling(algorithm, "count", [math.nan] * 4, 2) == [(1,), (2,), (2,), (2,)]


@over("min_float")
@pytest.mark.parametrize("name", ["min_float", "max_float"])
def test_nan_propagates_while_it_is_in_the_window(algorithm: str, name: str) -> None:
    """N6: the same rule as for sums."""
    found = rolling(algorithm, name, [math.nan, 2.0, 3.0, 4.0], 3)
    np.testing.assert_equal(found, [(math.nan,)] * 3 + [(2.0 if name == "min_float" else 4.0,)])


@over("sum_int")
def test_integers_do_not_wrap(algorithm: str) -> None:
    """N7: 2**63 is not an int64, but it is there to be refused or let pass; the next window is 0."""
    found = rolling(algorithm, "sum_int", [2**63 - 1, 1, -1], 2)
    assert [(high << 64) + low for low, high in found] == [2**63 - 1, 2**63, 0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_is_the_identity_before_and_after(algorithm: str) -> None:
    """N8, N9: no value is no value, whatever was there; the count beside it says so."""
    name = next(name for name in ("min_int", "count") if algorithm in admitting(name))
    made, identity = build(algorithm, name, 2, 3), CASES[name].monoid.identity
    assert made.query(made.state, 2) == made.query(made.state, 3) == identity
    for value in (5, 6, 7, 8):
        made.insert(made.state, CASES[name].lift(value))
    for _ in range(3):
        assert made.query(made.state, 3) != identity
        made.evict(made.state)
    assert made.query(made.state, 2) == made.query(made.state, 3) == identity


@over("min_int")
def test_extremes_of_one_sign(algorithm: str) -> None:
    """N11: the greatest of negative numbers is negative, the least of positive ones positive."""
    assert rolling(algorithm, "max_float", [-3.0, -1.0, -2.0, -5.0], 2) == [(-3.0,), (-1.0,), (-1.0,), (-2.0,)]
    assert rolling(algorithm, "min_float", [3.0, 1.0, 2.0, 5.0], 2) == [(3.0,), (1.0,), (1.0,), (2.0,)]
    assert rolling(algorithm, "max_int", [-3, -1, -2, -5], 2) == [(-3,), (-1,), (-1,), (-2,)]
    assert rolling(algorithm, "min_int", [3, 1, 2, 5], 2) == [(3,), (1,), (1,), (2,)]
