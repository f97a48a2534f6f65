"""Many kinds of windows asked at once say what each says by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.logical import Band, Calendar, ContextFree, Cumulating, Window
from workbench.plan import GridSet, grid_of
from workbench.time import DAY

PERIODIC = st.builds(
    lambda slide, more, offset: Window(slide + more, slide, offset), *map(st.integers, (1, 0, -5), (12, 20, 5))
)
WINDOWS = st.one_of(
    PERIODIC,
    PERIODIC,
    st.builds(lambda step, n: Cumulating(step * n, step), st.integers(1, 5), st.integers(1, 4)),
    st.builds(lambda start, size: Band(start, start + size), st.integers(-20, 40), st.integers(1, 50)),
    st.just(Calendar("day", "Europe/Berlin")),
)
TIMES = st.integers(-60, 120)
SLICES = st.lists(st.one_of(TIMES, TIMES, st.sampled_from([5 * DAY, 400 * DAY])), max_size=12, unique=True)


@given(st.lists(WINDOWS, min_size=1, max_size=6), SLICES, TIMES, st.integers(0, 80), st.booleans())
def test_windows_of_all_kinds_are_those_of_each(
    windows: list[ContextFree], slices: list[int], after: int, more: int, far: bool
) -> None:
    grids, starts = GridSet(windows), np.array(sorted(slices), np.int64)
    until = after + more + far * 500 * DAY
    kinds, bounds = grids.select(starts, after, until)
    found = list(zip(kinds.tolist(), bounds.starts.tolist(), bounds.ends.tolist(), strict=True))
    expected = []
    for place, window in enumerate(windows):
        own = grid_of(window).select(starts, after, until)
        expected += [(place, *each) for each in zip(own.starts.tolist(), own.ends.tolist(), strict=True)]
    assert found == expected


@given(st.lists(WINDOWS, min_size=1, max_size=6), SLICES, TIMES)
def test_edges_and_late_slices_are_those_of_each(windows: list[ContextFree], slices: list[int], time: int) -> None:
    grids, starts = GridSet(windows), np.array(sorted(slices), np.int64)
    own = [grid_of(window) for window in windows]
    assert grids.next_ends(time).tolist() == [grid.next_end(time) for grid in own]
    assert grids.open_from(time) == min(grid.open_from(time) for grid in own)
    assert grids.missed(starts, time).tolist() == [(grid.first_end(starts) <= time).tolist() for grid in own]


def test_a_window_of_each_second_of_a_year_is_not_looked_at() -> None:
    """Case: two slices a year apart and windows of one second: two answers, not thirty million to look through."""
    grids, year = GridSet([Window(1_000_000, 1_000_000)]), 365 * DAY
    kinds, bounds = grids.select(np.array([0, year]), -1, 2 * year)
    assert (kinds.tolist(), bounds.starts.tolist()) == ([0, 0], [0, year])
    places, _, wide = grids._near(np.array([0, year]), -1, np.array([2 * year]))
    assert (len(places), wide) == (0, [0])


@pytest.mark.parametrize("until", [10, np.array([10, 20])])
def test_until_may_differ_by_kind(until: int | np.ndarray) -> None:
    """Case: tumbling windows of 5 and of 10, a slice in each: of the second kind the one that ends at 20 as well."""
    kinds, bounds = GridSet([Window(5, 5), Window(10, 10)]).select(np.array([0, 5, 10]), 0, until)
    last = [] if isinstance(until, int) else [(1, 20)]
    assert list(zip(kinds.tolist(), bounds.ends.tolist(), strict=True)) == [(0, 5), (0, 10), (1, 10), *last]
