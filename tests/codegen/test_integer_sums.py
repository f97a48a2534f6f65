"""Exact sums in the narrowest arithmetic: Python's integers, over batches that force every change of width."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codegen import IntegerSums

SMALL = st.integers(-100, 100)
MIDDLE = st.integers(-(2**31), 2**31 - 1)
LARGE = st.sampled_from([2**63 - 1, -(2**63), 2**62, 1, -1, 0])
BATCHES = st.lists(st.one_of(*(st.lists(values, max_size=30) for values in (SMALL, MIDDLE, LARGE))), max_size=6)


@settings(max_examples=60, deadline=None)
@given(BATCHES, st.lists(st.integers(1, 40), min_size=1, max_size=3))
def test_sums_are_those_of_python(batches: list[list[int]], sizes: list[int]) -> None:
    sums = IntegerSums(sizes)
    seen: list[int] = []
    for batch in batches:
        found, fits = sums.push(np.array(batch, np.int64))
        for column, value in enumerate(batch):
            seen.append(value)
            for q, size in enumerate(sizes):
                expected = sum(seen[-size:])
                if -(2**63) <= expected < 2**63:
                    assert found[q, column] == expected
                    assert fits is None or fits[q, column]
                else:
                    assert fits is not None
                    assert not fits[q, column]


def test_the_width_follows_the_values() -> None:
    """Case N7: 2**63 - 1, 1, -1 in windows of two: the second does not fit, the third is 0."""
    sums = IntegerSums([2])
    assert sums.push(np.arange(10, dtype=np.int32))[0].dtype == np.int32
    found, fits = sums.push(np.array([2**63 - 1, 1, -1]))
    assert sums.width == 128
    assert fits is not None
    assert fits[0].tolist() == [False, False, True]
    assert found[0, 2] == 0
    assert sums.push(np.array([7]))[0].tolist() == [[6]]
    assert sums.push(np.array([1]))[0].tolist() == [[8]]
    assert sums.width == 32


def test_a_first_row_near_the_limit() -> None:
    """9 was the row before: 9 + 2**63 - 1 does not fit, in the same way in a window as in a plain sum."""
    sums = IntegerSums([1, 2])
    found, fits = sums.push(np.array([9, 2**63 - 1]))
    assert found[0].tolist() == [9, 2**63 - 1]
    assert fits is not None
    assert fits.tolist() == [[True, True], [True, False]]
