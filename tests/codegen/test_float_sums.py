"""Fast sums of floats against sums of each window's own rows, and what they are documented to get wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codegen import FloatSums, float_sums
from workbench.runtime.textbook import float_sum


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that short streams reach every corner."""
    monkeypatch.setattr(float_sums, "PIECE", 16)


def pushed(sums: FloatSums, values: np.ndarray, cuts: list[int]) -> np.ndarray:
    parts = [sums.push(part) for part in np.split(values, sorted(min(cut, len(values)) for cut in cuts))]
    return np.concatenate(parts, axis=1)


SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=3)
CUTS = st.lists(st.integers(0, 900), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 900), SIZES, CUTS, st.integers(0, 1_000))
def test_well_behaved_sums_are_right_to_a_relative_1e_9(
    rows: int, sizes: list[int], cuts: list[int], seed: int
) -> None:
    """Positive values within four powers of ten, so that no window is small beside what was added before."""
    values = 10.0 ** np.random.default_rng(seed).uniform(-2, 2, rows)
    found = pushed(FloatSums(sizes), values, cuts)
    for q, size in enumerate(sizes):
        expected = [math.fsum(values[max(0, row + 1 - size) : row + 1]) for row in range(rows)]
        np.testing.assert_allclose(found[q], expected, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(SIZES, CUTS, st.integers(0, 1_000), st.sampled_from([0.002, 0.05, 0.5]))
def test_nan_and_infinities_are_in_their_own_windows_only(
    sizes: list[int], cuts: list[int], seed: int, share: float
) -> None:
    """Beside multiples of 1/8, whose sums are exact: so are these."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-40, 40, 700) / 8
    chosen = rng.random(700) < share
    values[chosen] = rng.choice([np.nan, np.inf, -np.inf], int(chosen.sum()))
    found = pushed(FloatSums(sizes), values, cuts)
    for q, size in enumerate(sizes):
        expected = [float_sum(values[max(0, row + 1 - size) : row + 1].tolist()) for row in range(700)]
        np.testing.assert_array_equal(found[q], expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 300), st.sampled_from([1e90, 1e308]))
def test_a_large_value_spoils_later_windows_until_sums_are_computed_afresh(
    size: int, place: int, large: float
) -> None:
    """As documented: windows of ones behind it are 0 or so, at most ``period`` rows long; then all are right."""
    sums = FloatSums([size])
    values = np.ones(place + size + 2 * sums.periods[0])
    values[place] = large
    (found,) = sums.push(values)
    expected = np.minimum(np.arange(len(values)) + 1.0, size)
    behind = place + size
    np.testing.assert_array_equal(found[:place], expected[:place])
    np.testing.assert_array_equal(found[place:behind], large)
    assert found[behind] != expected[behind] or size == 1
    np.testing.assert_array_equal(found[behind + sums.periods[0] :], expected[behind + sums.periods[0] :])


def test_results_go_where_they_are_wanted() -> None:
    out = np.empty((1, 3))
    assert FloatSums([2]).push(np.array([1, 2, 3]), out) is out
    assert out.tolist() == [[1.0, 3.0, 5.0]]


@pytest.mark.parametrize("sizes", [[], [0], [3, -1]])
def test_windows_without_rows_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="a window has at least 1 row"):
        FloatSums(sizes)
