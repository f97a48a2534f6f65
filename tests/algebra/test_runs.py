"""Sorted runs of many rows."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.algebra import runs


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("groups", [1, 3, 70_000])
def test_groups_that_are_sorted_one_by_one_are_the_same_runs(dtype: str, groups: int) -> None:
    """Case: few groups of many rows, with NaN among them, beside what sorting all rows at once gives."""
    rng, rows = np.random.default_rng(1), 70 * groups if groups > 100 else 1_000
    group, values = rng.integers(0, groups, rows), rng.integers(-9, 9, rows).astype(dtype)
    if dtype == "float64":
        values[::7] = np.nan
    order = np.lexsort((values, group))
    assert np.bincount(group).mean() > runs._MANY
    found = runs._sorted(group, values.copy())
    np.testing.assert_array_equal(found[0], group[order])
    np.testing.assert_array_equal(found[1], values[order])
