"""Many kinds of windows asked at once say what each says by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.logical import Band, Calendar, ContextFree, Cumulating, Window
from workbench.plan import Chosen, GridSet, Span, grid_of
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
    found = listed(grids.select(starts, [Span(starts, after, until)]), starts)
    expected = []
    for place, window in enumerate(windows):
        own = grid_of(window).select(starts, after, until)
        expected += [(place, *each) for each in zip(own.starts.tolist(), own.ends.tolist(), strict=True)]
    assert found == expected


def listed(chosen: Chosen, starts: np.ndarray) -> list[tuple[int, int, int]]:
    """Kind, start and end of windows; the slices of each are those that start in it."""
    windows = list(
        zip(chosen.kinds.tolist(), chosen.bounds.starts.tolist(), chosen.bounds.ends.tolist(), strict=True)
    )
    for (_, start, end), first, last in zip(windows, chosen.first, chosen.last, strict=True):
        assert starts[first:last].tolist() == [time for time in starts.tolist() if start <= time < end]
    return windows


@given(st.lists(WINDOWS, min_size=1, max_size=6), SLICES, st.lists(TIMES, min_size=3, max_size=3), st.data())
def test_spans_one_behind_the_other_are_those_of_each(
    windows: list[ContextFree], slices: list[int], times: list[int], data: st.DataObject
) -> None:
    """With all slices, with some of them, and up to another time for each kind."""
    grids, starts = GridSet(windows), np.array(sorted(slices), np.int64)
    some = np.array([time for time in starts if data.draw(st.booleans())], np.int64)
    one, two, three = sorted(times)
    spans = [Span(some, one, two), Span(starts, two, three), Span(some, three, grids.next_ends(three))]
    found = listed(grids.select(starts, spans), starts)
    expected = []
    for place, window in enumerate(windows):
        grid = grid_of(window)
        for own, after, until in ((some, one, two), (starts, two, three), (some, three, grid.next_end(three))):
            part = grid.select(own, after, until)
            expected += [(place, *each) for each in zip(part.starts.tolist(), part.ends.tolist(), strict=True)]
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
    starts = np.array([0, year])
    chosen = grids.select(starts, [Span(starts, -1, 2 * year)])
    assert (chosen.kinds.tolist(), chosen.bounds.starts.tolist()) == ([0, 0], [0, year])
    _, count, wide = grids._near(Span(starts, -1, np.array([2 * year])))
    assert (count.tolist(), wide) == ([0], [0])


@pytest.mark.parametrize("until", [10, np.array([10, 20])])
def test_until_may_differ_by_kind(until: int | np.ndarray) -> None:
    """Case: tumbling windows of 5 and of 10, a slice in each: of the second kind the one that ends at 20 as well."""
    starts = np.array([0, 5, 10])
    chosen = GridSet([Window(5, 5), Window(10, 10)]).select(starts, [Span(starts, 0, until)])
    last = [] if isinstance(until, int) else [(1, 20)]
    assert list(zip(chosen.kinds.tolist(), chosen.bounds.ends.tolist(), strict=True)) == [
        (0, 5),
        (0, 10),
        (1, 10),
        *last,
    ]
