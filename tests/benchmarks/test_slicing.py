"""The alternatives to slices are right, and slices take no more room than they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import alternatives
from benchmarks.workloads import slicing_memory

ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(-9, 9)), min_size=1, max_size=60)


@pytest.mark.parametrize("name", alternatives.NAMES)
@given(ROWS, st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_alternatives_add_up_each_window(name: str, rows: list[tuple[int, int]], widths: list[int]) -> None:
    """Times are in any order but never late: the delay is longer than all of them."""
    times, values = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    sums = np.zeros((len(widths), int(times.max()) // min(widths) + 2), np.int64)
    getattr(alternatives, f"_{name}")(times, values, np.array(widths), 61, sums)
    for width, found in zip(widths, sums, strict=True):
        for number, total in enumerate(found.tolist()):
            assert total == sum(v for t, v in rows if t // width == number)


def test_state_is_near_the_bare_numbers_and_does_not_grow_with_rows() -> None:
    """Case: 23 slices of 1,000 keys and four partials, of a fifth as many rows, and of twice that."""
    kept, written, bare = slicing_memory.state(1)
    assert kept <= 2 * bare
    assert written <= 2 * bare
    again = slicing_memory.state(2)
    assert again[0] == kept
    assert abs(again[1] / written - 1) < 0.05
