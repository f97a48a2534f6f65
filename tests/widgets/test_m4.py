"""M4 against a plain loop, and the properties that make it the same picture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workbench.widgets.m4 import m4

Floats = npt.NDArray[np.float64]
matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(0, 40), st.integers(1, 4)),
    elements=st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, -0.0, np.nan, 1.0])),
)


@given(values=matrices, data=st.data())
def test_every_column_keeps_first_least_greatest_last(values: Floats, data: st.DataObject) -> None:
    rows, keys = values.shape
    columns = np.sort(np.array(data.draw(st.lists(st.integers(-3, 6), min_size=rows, max_size=rows)), np.int64))
    picked = m4(columns, values)
    distinct = np.unique(columns)
    assert picked.shape == (4 * len(distinct), keys)
    for position, column in enumerate(distinct):
        inside = np.flatnonzero(columns == column)
        for key in range(keys):
            chosen = picked[4 * position : 4 * position + 4, key]
            there = [row for row in inside if not np.isnan(values[row, key])]
            if not there:
                assert chosen.tolist() == [-1] * 4
                continue
            assert set(chosen) <= set(there)
            assert chosen[0] == there[0]
            assert chosen[-1] == there[-1]
            assert values[chosen, key].min() == values[there, key].min()
            assert values[chosen, key].max() == values[there, key].max()
            assert sorted(chosen) == chosen.tolist()


def test_one_column_by_hand() -> None:
    #  value  5 . 9 1 7     row 1 is a gap
    values = np.array([[5.0], [np.nan], [9.0], [1.0], [7.0]])
    assert m4(np.zeros(5, np.int64), values)[:, 0].tolist() == [0, 2, 3, 4]
