"""Slice edges are the union of all window edges and no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.logical import Window
from workbench.plan import Edges, slice_edges


def window(size: int, slide: int, offset: int = 0) -> Window:
    return Window(size, slide, offset)


WINDOWS = st.lists(
    st.builds(
        lambda slide, extra, offset: Window(slide + extra, slide, offset),
        st.integers(1, 9),
        st.integers(0, 12),
        st.integers(0, 8),
    ),
    min_size=1,
    max_size=4,
)


@given(WINDOWS)
def test_edges_are_exactly_the_starts_and_ends(windows: list[Window]) -> None:
    edges = slice_edges(windows)
    for time in range(-60, 120):
        is_edge = any((time - each.phase) % each.period == 0 for each in edges)
        is_bound = any((time - w.offset) % w.slide == 0 or (time - w.offset - w.size) % w.slide == 0 for w in windows)
        assert is_edge == is_bound


def test_a_progression_that_another_covers_is_left_out() -> None:
    minutes = [window(15, 1), window(120, 10), window(1440, 60)]
    assert slice_edges(minutes) == (Edges(1, 0),)


def test_ends_are_edges_when_the_slide_does_not_divide_the_size() -> None:
    """Case O10: 10 minutes sliding by 3."""
    assert slice_edges([window(10, 3)]) == (Edges(3, 0), Edges(3, 1))
