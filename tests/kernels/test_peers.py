"""Rows of one key and time taken together, and results spread over them again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.kernels import peers
from workbench.kernels.jit import jit
from workbench.kernels.peers import count_moments, next_moment, own, spread
from workbench.kernels.streaming import deal, stream


@cache
def begin_moments(compresses: bool) -> Callable[..., None]:
    """The kernel of a processor that puts lanes side by side, and of one that does not."""
    with mock.patch.object(peers, "_COMPRESSES", compresses):
        compiled = jit(peers._begin_moments, keep=False)
        compiled(np.arange(1), np.array([0, 1]), 0, 1, np.zeros(1, np.int32), np.zeros(1, np.int64))
    return compiled


def moments(times: list[int], runs: list[int], cut: int, compresses: bool) -> list[int]:
    """Found in two parts, as by two threads."""
    found: list[int] = []
    for low, high in ((0, cut), (cut, len(times))):
        count = count_moments(np.array(times), np.array(runs), low, high)
        starts, when = np.full(count + 1, -1, np.int32), np.full(count + 1, -1)
        begin_moments(compresses)(np.array(times), np.array(runs), low, high, starts[:-1], when[:-1])
        assert starts[-1] == when[-1] == -1, "the next part's"
        assert when[:-1].tolist() == [times[row] for row in starts[:-1]]
        found += starts[:-1].tolist()
    return found


@pytest.mark.parametrize("compresses", [True, False])
def test_a_moment_begins_with_another_time_or_another_key(compresses: bool) -> None:
    """The example of the module; and a key that begins with the time at which the one before it ended."""
    for cut in range(8):
        assert moments([1, 1, 2, 2, 2, 2, 3], [0, 5, 7], cut, compresses) == [0, 2, 5, 6]


@pytest.mark.parametrize("compresses", [True, False])
@given(rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=60), data=st.data())
def test_moments_are_the_distinct_pairs_of_key_and_time(
    compresses: bool, rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    rows = sorted(rows)
    keys = [key for key, _ in rows]
    runs = [row for row in range(len(rows)) if row == 0 or keys[row] != keys[row - 1]] + [len(rows)]
    found = moments([time for _, time in rows], runs, data.draw(st.integers(0, len(rows))), compresses)
    assert found == [rows.index(pair) for pair in sorted(set(rows))]


@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=6), min_size=1, max_size=4), st.data())
def test_times_ascend_in_each_run_if_they_do_in_both_parts(runs: list[list[int]], data: st.DataObject) -> None:
    times = np.array([time for run in runs for time in run])
    ends = np.cumsum([0, *map(len, runs)])
    cut = data.draw(st.integers(0, len(times)))
    found = [count_moments(times, ends, *part) for part in ((0, cut), (cut, len(times)))]
    assert (min(found) >= 0) == all(sorted(run) == run for run in runs)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20), st.integers(0, 20))
def test_the_next_moment_is_the_first_that_begins_there_or_later(rows: list[tuple[int, int]], row: int) -> None:
    rows, row = sorted(rows), min(row, len(rows))
    runs = [place for place in range(len(rows)) if place == 0 or rows[place][0] != rows[place - 1][0]]
    begin = [place for place in range(len(rows)) if rows.index(rows[place]) == place]
    expected = min([place for place in begin if place >= row], default=len(rows))
    assert next_moment(np.array([time for _, time in rows]), np.array([*runs, len(rows)]), row) == expected


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(0, 3), st.integers(1, 30))
def test_every_row_has_the_value_of_its_moment_and_no_other_row_is_touched(
    sizes: list[int], before: int, step: int
) -> None:
    at = np.cumsum([before, *sizes]).astype(np.int32)
    values = np.arange(len(sizes)) + 10.0
    whole: Any = np.full(int(at[-1]) + 4, -1.0)
    spread(values, at, whole[before : at[-1]])
    dealt: Any = np.full(int(at[-1]) + 4, -1.0)
    owners = np.full(int(at[-1]) - before + 3, -1, np.int16)
    own(at, owners)
    rows, room = int(at[-1]) - before, np.append(values, np.full(8, np.nan))  # for a line
    sent = 0
    for ready in [*range(0, rows, step), rows]:
        sent = deal(room, owners, dealt[before : at[-1]], sent, ready)
    streamed, sent = np.full(len(values) + 2, -1.0), 0
    for ready in [*range(0, len(values), step), len(values)]:
        sent = stream(values, streamed[1:-1], sent, ready)
    assert streamed.tolist() == [-1.0, *values, -1.0]
    expected = (
        [-1.0] * before + [value for value, n in zip(values, sizes, strict=True) for _ in range(n)] + [-1.0] * 4
    )
    assert whole.tolist() == dealt.tolist() == expected
