"""The time axis of a dashboard: which range is visible, and how it moves."""

from __future__ import annotations

import time

from bokeh.models import InlineStyleSheet, RadioButtonGroup, Range1d

from workbench.results import Level
from workbench.time import HOUR, MILLISECOND
from workbench.widgets.theme import CONTROLS

ALL, FOLLOW, HOLD = 0, 1, 2


class TimeAxis:
    """One range for all figures, in one of three modes: ``ALL`` shows everything kept, ``FOLLOW`` keeps its width and
    moves with the newest window, ``HOLD`` stays where it is. A pan or zoom in a page means ``HOLD``.
    """

    def __init__(self) -> None:
        now = time.time() * 1_000
        self.range = Range1d(now - HOUR // 1_000, now)
        self.modes = RadioButtonGroup(
            labels=["All", "Follow", "Hold"], active=ALL, stylesheets=[InlineStyleSheet(css=CONTROLS)]
        )
        self._moving = False
        self.range.on_change("start", self._moved)
        self.range.on_change("end", self._moved)

    @property
    def mode(self) -> int:
        """``ALL``, ``FOLLOW`` or ``HOLD``."""
        return int(self.modes.active)

    @property
    def visible(self) -> tuple[int, int]:
        """Start and end of the visible range, microseconds."""
        return round(self.range.start * 1_000), round(self.range.end * 1_000)

    def show(self, start: int, end: int) -> None:
        """Show ``[start, end]`` microseconds and hold it."""
        self._move(start, end)
        self.modes.active = HOLD

    def follow(self, mode: int) -> None:
        """Take another mode."""
        self.modes.active = mode

    def advance(self, shape: Level, extent: tuple[int, int] | None) -> None:
        """Move to the newest window of a level where the mode says so; ``extent``: its oldest start, newest end."""
        if self.mode == HOLD or extent is None:
            return
        # A regular window is drawn at its end, one with bounds of its own from its start on.
        first, newest = extent[0] + (shape.size if shape.regular else 0), extent[1]
        start, end = self.visible
        if self.mode == ALL:
            # With a border, so that the marks at both ends are whole; a window alone stands in the middle. The start
            # stays where it is while windows come.
            border = max(newest - first, MILLISECOND) // 50
            self._move(first - shape.slide, max(newest + border, first + shape.slide))
        else:
            edge = newest + (end - start) // 51
            self._move(edge - (end - start), edge)

    def _move(self, start: int, end: int) -> None:
        if (start, end) == self.visible:
            return
        self._moving = True
        try:
            self.range.update(start=start / 1_000, end=end / 1_000)
        finally:
            self._moving = False

    def _moved(self, _attr: str, _old: object, _new: object) -> None:
        if not self._moving:
            self.modes.active = HOLD
