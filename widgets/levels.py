"""Which zoom level a plot shows: pure functions of the visible range and its width in pixels."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.results import Level
from workbench.time import DAY, HOUR, MINUTE, SECOND, format_duration

#: Windows per pixel above which a level is too fine to be seen, for a first choice and with a level on show.
FIRST, FINER, COARSER = 1.5, 1.25, 1.75
#: Windows per pixel below which the finest level looks coarse, so that a finer one is worth an offer.
SPARSE = 1 / 24
#: Pixels for each window of the level that is offered then, at least.
_ROOM = 4
_SLIDES = (
    *(n * SECOND // 1_000 for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    DAY,
)


def density(level: Level, span: int, width: int) -> float:
    """Windows per pixel when ``span`` microseconds of a level are drawn on ``width`` pixels.

    Windows with bounds of their own count by what they are about as long as; 0 where nobody knows.
    """
    distance = level.slide or level.size
    return span / distance / max(1, width) if distance else 0.0


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


def finer_level(levels: Sequence[Level], span: int, width: int) -> str | None:
    """A level worth adding below the finest one for this range, None while that one is fine enough.

    It overlaps as the finest one does, and its slide divides the finest one's, so that windows of both begin
    together and slices are shared.
    """
    finest = levels[0]
    if not finest.regular or density(finest, span, width) > SPARSE:
        return None
    least = span * _ROOM // max(1, width)
    slides = [each for each in _SLIDES if each < finest.slide and finest.slide % each == 0]
    for slide in (each for each in slides if each >= least):
        size, rest = divmod(finest.size * slide, finest.slide)
        if not rest and len(format_duration(size).split()) == 2:  # one number and one unit
            return format_duration(size) + (f" / {format_duration(slide)}" if size != slide else "")
    return None


def _finest(levels: Sequence[Level], span: int, width: int, limit: float) -> int:
    fitting = (position for position, level in enumerate(levels) if density(level, span, width) <= limit)
    return next(fitting, len(levels) - 1)
