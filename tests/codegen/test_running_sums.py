"""Running sums against sums of each window's own rows, and what those of floats are documented to get wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codegen import RunningSums, running_sums
from workbench.runtime.textbook import float_sum


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that short streams reach every corner."""
    monkeypatch.setattr(running_sums, "PIECE", 16)


def pushed(sums: RunningSums, values: np.ndarray, cuts: list[int]) -> np.ndarray:
    """Pushed in batches, every second of them one that may be written to, which it is behind the back of the sums.

    Of each three batches one goes past the caches, to a place that is as little aligned as any.
    """
    parts = []
    for number, part in enumerate(np.split(values, sorted(min(cut, len(values)) for cut in cuts))):
        batch = part.copy()
        batch.flags.writeable = number % 2 == 0
        room = np.full((len(sums.sizes), len(part) + 3), 55, sums.dtype)
        out = room[:, 1 : 1 + len(part)] if number % 3 == 0 else None
        parts.append(sums.push(batch, out, past=out is not None))
        assert (np.delete(room, np.s_[1 : 1 + len(part)], axis=1) == 55).all()
        if batch.flags.writeable:
            batch[:] = 77
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
    found = pushed(RunningSums(sizes), values, cuts)
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
    found = pushed(RunningSums(sizes), values, cuts)
    for q, size in enumerate(sizes):
        expected = [float_sum(values[max(0, row + 1 - size) : row + 1].tolist()) for row in range(700)]
        np.testing.assert_array_equal(found[q], expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 300), st.sampled_from([1e90, 1e308]))
def test_a_large_value_spoils_later_windows_until_sums_are_computed_afresh(
    size: int, place: int, large: float
) -> None:
    """As documented: windows of ones behind it are 0 or so, at most ``period`` rows long; then all are right."""
    sums = RunningSums([size])
    values = np.ones(place + size + 2 * sums.periods[0])
    values[place] = large
    (found,) = pushed(sums, values, list(range(10, len(values), 10)))
    expected = np.minimum(np.arange(len(values)) + 1.0, size)
    behind = place + size
    np.testing.assert_array_equal(found[:place], expected[:place])
    np.testing.assert_array_equal(found[place:behind], large)
    assert found[behind] != expected[behind] or size == 1
    right = behind + sums.periods[0] + 10
    np.testing.assert_array_equal(found[right:], expected[right:])


def test_results_go_where_they_are_wanted() -> None:
    out = np.empty((1, 3))
    assert RunningSums([2]).push(np.array([1, 2, 3]), out) is out
    assert out.tolist() == [[1.0, 3.0, 5.0]]


@pytest.mark.parametrize("sizes", [[], [0], [3, -1]])
def test_windows_without_rows_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="a window has at least 1 row"):
        RunningSums(sizes)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([np.int32, np.int64]), st.integers(0, 900), SIZES, CUTS, st.integers(0, 1_000))
def test_integers_are_exact_where_the_sum_fits(
    dtype: type[np.signedinteger[Any]], rows: int, sizes: list[int], cuts: list[int], seed: int
) -> None:
    """And modulo the width of the type where not: values of its whole range, of which some windows fit."""
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    values = rng.integers(limits.min, limits.max, rows, dtype, endpoint=True)
    values[rng.random(rows) < 0.5] //= 1 << 20
    found = pushed(RunningSums(sizes, dtype), values, cuts)
    exact, width = [int(value) for value in values], 1 << limits.bits
    for q, size in enumerate(sizes):
        sums = [sum(exact[max(0, row + 1 - size) : row + 1]) for row in range(rows)]
        assert found[q].tolist() == [(each - int(limits.min)) % width + int(limits.min) for each in sums]


@pytest.mark.parametrize("dtype", [np.float32, np.uint32, np.bool_])
def test_other_types_are_refused(dtype: type) -> None:
    with pytest.raises(TypeError, match="running sums are of integers or of float64"):
        RunningSums([3], dtype)


def test_rows_that_no_window_reaches_are_let_go() -> None:
    """Many batches of a row become few parts; long ones are kept as they are."""
    sums = RunningSums([40], np.int64)
    for _ in range(500):
        sums.push(np.ones(1, np.int64))
    assert len(sums._rows._parts) <= 4
    assert sums._rows._held < 40 + 16
    batch = np.ones(64, np.int64)
    batch.flags.writeable = False
    sums.push(batch)
    assert sums._rows._parts[-1] is batch
    assert len(sums._rows._parts) == 1
