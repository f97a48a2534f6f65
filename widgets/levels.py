"""Which zoom level a plot shows: pure functions of the visible range and its width in pixels."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.results import Level

#: Windows per pixel above which a level is too fine to be seen, for a first choice and with a level on show.
FIRST, FINER, COARSER = 1.5, 1.25, 1.75


def density(level: Level, span: int, width: int) -> float:
    """Windows per pixel when ``span`` microseconds of a level are drawn on ``width`` pixels."""
    return span / level.slide / max(1, width)


def choose_level(levels: Sequence[Level], span: int, width: int, current: int | None = None) -> int:
    """Position of the level to show; ``levels`` run from fine to coarse.

    It is the finest one with at most ``FIRST`` windows per pixel, the coarsest where none is sparse enough.
    With a ``current`` level there is hysteresis, so that a range near a border does not flip: a coarser level is
    taken only above ``COARSER`` windows per pixel, a finer one only below ``FINER`` of its own.
    """
    if not levels:
        raise ValueError("expected at least one level")
    if current is None:
        return _finest(levels, span, width, FIRST)
    if density(levels[current], span, width) > COARSER:
        return max(current, _finest(levels, span, width, COARSER))
    return min(current, _finest(levels, span, width, FINER))


def _finest(levels: Sequence[Level], span: int, width: int, limit: float) -> int:
    fitting = (position for position, level in enumerate(levels) if density(level, span, width) <= limit)
    return next(fitting, len(levels) - 1)
