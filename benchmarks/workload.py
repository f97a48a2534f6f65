"""What a workload is: a name, a way to warm up, a run that gives figures, and the bars they are held to."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: One run's figures by name; the unit is the last part of the name (``cold_s``, ``rows_per_s``, ``ratio``).
Figures = Mapping[str, float]

#: Figures that still make a readable line.
FEW = 12

_COMPARE: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Bar:
    """A figure and the limit it must keep, such as ``Bar("cold_s", "<=", 20)``."""

    figure: str
    relation: str
    limit: float

    def holds(self, value: float) -> bool:
        """Whether ``value`` keeps the bar; NaN does not."""
        return _COMPARE[self.relation](value, self.limit)

    def __str__(self) -> str:
        return f"{self.figure}{self.relation}{self.limit:g}"


def _nothing(quick: bool) -> None:
    """The warm-up of a workload that needs none."""


@dataclass(frozen=True)
class Workload:
    """Something to measure.

    ``warm_up(quick)`` is called once before the first measured run: start a session, compile kernels, fill caches,
    all that a run is not meant to pay for. ``run(quick)`` does the work once and returns its figures; it is called
    ``repeats`` times (once if quick) and each figure's median is held against ``bars``. ``quick`` asks for a small
    input that runs in seconds: the bars are shown but say little. ``group`` is the heading it is listed under.
    ``headline`` are the figures of the last line, by default all, or those with a bar where there are more than a
    few. ``about()`` is what else a reader must know, such as the data's name: it stands in every line.
    ``draw(figures, folder)`` makes the pictures of its figures and returns their files.
    """

    name: str
    summary: str
    run: Callable[[bool], Figures]
    bars: tuple[Bar, ...] = ()
    repeats: int = 3
    warm_up: Callable[[bool], None] = _nothing
    group: str = "product"
    headline: tuple[str, ...] = ()
    about: Callable[[], Mapping[str, str]] = dict
    draw: Callable[[Figures, Path], list[Path]] | None = None

    def shown(self, figures: Mapping[str, float]) -> tuple[str, ...]:
        """Which figures the last line names."""
        if self.headline:
            return self.headline
        barred = tuple(dict.fromkeys(bar.figure for bar in self.bars))
        return tuple(figures) if len(figures) <= FEW or not barred else barred
