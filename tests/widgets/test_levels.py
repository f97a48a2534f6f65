"""The level rule: never denser than the eye, never coarser than needed, no flipping at a border."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.results import Level
from workbench.time import DAY, HOUR, MINUTE
from workbench.widgets.levels import COARSER, FINER, FIRST, choose_level, density

LEVELS = (Level("a", 15 * MINUTE, MINUTE), Level("b", 2 * HOUR, 10 * MINUTE), Level("c", DAY, HOUR))
spans = st.integers(0, 400 * DAY)
widths = st.integers(0, 4_000)


@pytest.mark.parametrize(
    ("span", "level"),
    [(0, 0), (HOUR, 0), (25 * HOUR, 0), (26 * HOUR, 1), (10 * DAY, 1), (11 * DAY, 2), (999 * DAY, 2)],
)
def test_examples_on_a_thousand_pixels(span: int, level: int) -> None:
    assert choose_level(LEVELS, span, 1_000) == level


@given(span=spans, width=widths)
def test_first_choice_is_the_finest_that_fits(span: int, width: int) -> None:
    level = choose_level(LEVELS, span, width)
    assert density(LEVELS[level], span, width) <= FIRST or level == len(LEVELS) - 1
    assert all(density(finer, span, width) > FIRST for finer in LEVELS[:level])


@given(span=spans, width=widths, current=st.integers(0, 2))
def test_with_hysteresis_it_still_fits_and_stays(span: int, width: int, current: int) -> None:
    level = choose_level(LEVELS, span, width, current)
    assert density(LEVELS[level], span, width) <= COARSER or level == len(LEVELS) - 1
    assert all(density(finer, span, width) > FINER for finer in LEVELS[:level])
    assert choose_level(LEVELS, span, width, level) == level


@given(span=spans, width=widths, current=st.integers(0, 2))
def test_a_small_move_back_and_forth_does_not_flip(span: int, width: int, current: int) -> None:
    level = choose_level(LEVELS, span, width, current)
    moved = choose_level(LEVELS, span + span // 10, width, level)
    assert choose_level(LEVELS, span, width, moved) in (level, moved)
    if moved != level:
        assert choose_level(LEVELS, span, width, moved) == moved


def test_no_levels_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one level"):
        choose_level((), HOUR, 100)
