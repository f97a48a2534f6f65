"""Places among ascending times, by looking at all."""

from __future__ import annotations

import os
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.kernels.lookup import first_at

TIMES = st.one_of(st.integers(-20, 20), st.integers(1_000, 1_010), st.integers(-(2**62), 2**62))


@pytest.mark.parametrize("kernels", ["generic", "compiled"])
@given(st.lists(TIMES, max_size=40), st.lists(TIMES, max_size=40))
def test_the_first_at_or_after_each_time(kernels: str, ascending: list[int], times: list[int]) -> None:
    """Evenly far apart, many at one place and few far away, at both ends of all times, several of one time, none."""
    ascending.sort()
    with mock.patch.dict(os.environ, WINQUERY_KERNELS=kernels):
        found = first_at(np.array(ascending, np.int64), np.array(times, np.int64))
    assert found.tolist() == [sum(other < time for other in ascending) for time in times]
