"""Moments, their partials, distances and scans, made block by block by threads, against Python on the rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, groupby
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.algebra import PARTIALS
from workbench.codegen.over import FrameKernel
from workbench.runtime.over_blocks import Places, moment_blocks, row_blocks

CHUNK = 4
KERNEL = FrameKernel(PARTIALS["sum_float"])
RUNS = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=30).map(sorted), min_size=1, max_size=3)


@given(RUNS, st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_blocks_are_made_as_a_whole_is(runs: list[list[int]], block: int, threads: int, united: bool) -> None:
    times, ends = np.array([time for run in runs for time in run]), np.cumsum([0, *map(len, runs)])
    values = [float(3**row % 101) for row in range(len(times))]
    with (
        mock.patch("workbench.codegen.over.CHUNK", CHUNK),
        mock.patch("workbench.runtime.over_blocks.CHUNK", CHUNK),
        mock.patch("workbench.runtime.over_blocks._BLOCK", block),
        ThreadPoolExecutor(threads) as pool,
    ):
        blocks = moment_blocks(pool, threads, times, ends) if united else row_blocks(len(times))
        assert blocks is not None
        fields: list[tuple[Any, ...] | None] = [(np.array(values),), None]
        places = Places([KERNEL, KERNEL], (times, ends, fields), blocks, united, {0}, stepped=True)
        rows = places.fill(pool, threads)

    keyed = list(enumerate((run, time) for run, own in enumerate(runs) for time in own))
    groups = [[row for row, _ in own] for _, own in groupby(keyed, lambda each: each[1])]
    if not united:
        groups = [[row] for row, _ in keyed]
    sums = [sum(values[row] for row in group) for group in groups]
    assert rows.at.tolist() == ([group[0] for group in groups] + [len(values)] if united else [])
    assert rows.times.tolist() == [times[group[0]] for group in groups]
    assert rows.runs.tolist() == [sum(group[0] < end for group in groups) for end in ends]
    assert places.values[1] is None
    assert places.values[0] is not None
    assert places.values[0][0].tolist() == sums
    cuts = [slice(low, low + CHUNK) for low in range(0, len(sums), CHUNK)]
    (prefixes,), (suffixes,) = places.scans[0]
    assert prefixes.tolist() == [total for cut in cuts for total in accumulate(sums[cut])]
    assert suffixes.tolist() == [total for cut in cuts for total in [*accumulate(sums[cut][::-1])][::-1]]
    distances = [{int(d) for d in np.diff(rows.times[cut])} for cut in cuts]
    assert rows.steps.tolist() == [d.copy().pop() if len(d) == 1 else 0 for d in distances]


def test_rows_out_of_order_are_in_no_blocks() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert moment_blocks(pool, 2, np.array([1, 2, 1]), np.array([0, 3])) is None
        assert moment_blocks(pool, 2, np.array([1, 2, 1]), np.array([0, 2, 3])) is not None
