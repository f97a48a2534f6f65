"""The dashboard of one query as Bokeh models: what is shown, of which range, at which level.

The view knows nothing of the way its document reaches a page: ``live`` carries it through a Jupyter comm,
``serve`` through a Bokeh server, ``save`` into a file. Whoever owns the document calls :meth:`DashboardView.refresh`
and makes sure that only one thread at a time touches view and document.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from html import escape
from typing import Any

from bokeh.document import Document
from bokeh.layouts import gridplot
from bokeh.models import Column, Div, InlineStyleSheet, Model, RadioButtonGroup, Range1d, Row, Select, Spacer

from workbench.errors import QueryError
from workbench.results import QueryResults
from workbench.time import HOUR
from workbench.widgets import theme
from workbench.widgets.figures import KeyLegend, Panel, WindowBounds
from workbench.widgets.levels import choose_level
from workbench.widgets.points import Key, key_label, rank_keys, read_points
from workbench.widgets.strip import strip_html

ALL, FOLLOW, HOLD = 0, 1, 2

#: Width in pixels that is assumed until a page tells its own.
WIDTH = 1_000

_AUTO = "auto"
_RANK_SECONDS = 10.0
_SMALL = f":host, .bk-input, .bk-btn, label {{ font: 13px {theme.FONT}; }}"


class DashboardView:
    """One figure per numeric value column over one linked time axis, one line per key.

    ``results`` is the store it reads; ``status`` returns the facts of the strip (see
    :func:`workbench.widgets.strip.strip_html`) and is called at every refresh, so it must be quick; ``top`` bounds
    the number of keys drawn, ``height`` is that of one figure in pixels.

    The time axis is in one of three modes: ``ALL`` shows everything kept, ``FOLLOW`` keeps its width and moves
    with the newest window, ``HOLD`` stays where it is. A pan or zoom in a page means ``HOLD``.
    """

    def __init__(
        self,
        results: QueryResults,
        title: str = "",
        status: Callable[[], Mapping[str, Any]] | None = None,
        *,
        top: int = 20,
        height: int = 170,
    ) -> None:
        self.results = results
        self.title = title or results.schema.query
        self.level = 0
        self._status = status or dict
        self._top = top
        self._error: str | None = None
        self._drawn: tuple[Any, ...] = ()
        self._keys: list[Key] = []
        self._ranked = (-1, 0.0)
        self._moving = False
        self._width = WIDTH
        now = time.time() * 1_000
        self._x = Range1d(now - HOUR // 1_000, now)
        self._bounds = WindowBounds()
        names = results.schema.numeric
        if not names:
            values = ", ".join(f"`{name}`" for name, _ in results.schema.values)
            raise QueryError(f"nothing to plot: {values}", hint="a line needs numbers; `results()` gives all values")
        self._panels = [Panel(name, self._x, self._bounds, height, last=name == names[-1]) for name in names]
        self._legend = KeyLegend(self._panels)
        labels = [level.label for level in results.schema.levels]
        self._select = Select(
            options=[_AUTO, *labels], value=_AUTO, width=200, stylesheets=[InlineStyleSheet(css=_SMALL)]
        )
        self._mode = RadioButtonGroup(
            labels=["All", "Follow", "Hold"], active=ALL, stylesheets=[InlineStyleSheet(css=_SMALL)]
        )
        self._strip = Div(text="", sizing_mode="stretch_width", margin=(0, 8, 4, 8))
        self.root = self._layout()
        #: The properties that a page may change; nothing else is taken from it.
        self.inputs: list[tuple[Model, str]] = [
            (self._x, "start"),
            (self._x, "end"),
            (self._mode, "active"),
            (self._select, "value"),
            (self._panels[0].figure, "inner_width"),
        ]
        self._x.on_change("start", self._moved)
        self._x.on_change("end", self._moved)
        self._panels[0].figure.on_change("inner_width", self._resized)

    @property
    def mode(self) -> int:
        """How the time axis moves: ``ALL``, ``FOLLOW`` or ``HOLD``."""
        return int(self._mode.active)

    @property
    def pinned(self) -> int | None:
        """Position of the level chosen by hand, None while the range chooses."""
        chosen = str(self._select.value)
        return None if chosen == _AUTO else self.results.level_index(chosen)

    @property
    def drawn(self) -> bool:
        """Whether a refresh has drawn anything yet."""
        return bool(self._drawn)

    @property
    def visible(self) -> tuple[int, int]:
        """Start and end of the visible range, microseconds."""
        return round(self._x.start * 1_000), round(self._x.end * 1_000)

    @property
    def width(self) -> int:
        """Width of the plots in pixels, as the page told it last."""
        return self._width

    def document(self) -> Document:
        """A new document with this view as its only root. A view can be in one document only."""
        document = Document(title=self.title)
        document.add_root(self.root)
        return document

    def show(self, start: int, end: int) -> None:
        """Show ``[start, end]`` microseconds and hold it."""
        self._move(start, end)
        self._mode.active = HOLD

    def follow(self, mode: int = FOLLOW) -> None:
        """Move with the newest window again, in one of the three modes."""
        self._mode.active = mode

    def pin(self, level: int | str | None) -> None:
        """Show this level whatever the range is; None lets the range choose again."""
        labels = [shape.label for shape in self.results.schema.levels]
        self._select.value = _AUTO if level is None else labels[self.results.level_index(level)]

    def fail(self, message: str | None) -> None:
        """Show ``message`` in red until the next call; None takes it away."""
        if message != self._error:
            self._error = message
            self._tell()

    def refresh(self) -> None:
        """Bring the models up to date with the store, the range and the controls.

        Without a change since the last call it costs one call of ``status`` and a few comparisons.
        """
        version = self.results.version
        self._advance()
        chosen = self._choose()
        if chosen != self.level:
            # Levels end at different times, so the newest window may be another one now.
            self.level = chosen
            self._advance()
        wanted = (version, self.visible, self.width, self.level)
        if wanted != self._drawn:
            document = self.root.document
            # Bokeh walks the whole document after every new model; once at the end is enough.
            with document.models.freeze() if document else nullcontext():
                self._draw(version)
            self._drawn = wanted
        self._tell()

    def _tell(self) -> None:
        label = self.results.schema.levels[self.level].label
        chosen = "auto" if self.pinned is None else "pinned"
        self._strip.text = strip_html(self._status(), f"{label} ({chosen})", self._error)

    def _draw(self, version: int) -> None:
        start, end = self.visible
        keys = self._ranked_keys(version)
        labels = [key_label(key) for key in keys]
        points = read_points(self.results, self.level, start, end, self.width, keys)
        self._bounds.show(self.results.schema.levels[self.level].size)
        for panel in self._panels:
            panel.show(points[panel.name], labels)
        self._legend.show(labels if self.results.schema.keys else [], self.width)

    def _ranked_keys(self, version: int) -> list[Key]:
        """The keys on show; beyond ``top`` of them they are ranked again only every few seconds."""
        ranked, due = self._ranked
        if version != ranked and (len(self._keys) < self._top or time.monotonic() >= due):
            self._keys = rank_keys(self.results, self._top)
            self._ranked = (version, time.monotonic() + _RANK_SECONDS)
        return self._keys

    def _choose(self) -> int:
        pinned = self.pinned
        if pinned is not None:
            return pinned
        start, end = self.visible
        levels = self.results.schema.levels
        current = self.level if self._drawn else None
        chosen = choose_level(levels, end - start, self.width, current)
        # The ring forgets old windows of fine levels first: a coarser level may still know this range.
        for level in range(chosen, len(levels)):
            extent = self.results.extent(level)
            if extent is not None and extent[0] + levels[level].size <= end and extent[1] >= start:
                return level
        return chosen

    def _advance(self) -> None:
        """Move the range to the newest window where the mode says so."""
        shape = self.results.schema.levels[self.level]
        extent = self.results.extent(self.level)
        if self.mode == HOLD or extent is None:
            return
        first, newest = extent[0] + shape.size, extent[1]
        start, end = self.visible
        span = end - start
        if self.mode == ALL:
            span = max(newest - first, shape.slide * 10) * 51 // 50
        edge = newest + span // 51
        self._move(edge - span, edge)

    def _move(self, start: int, end: int) -> None:
        if (start, end) == self.visible:
            return
        self._moving = True
        try:
            self._x.update(start=start / 1_000, end=end / 1_000)
        finally:
            self._moving = False

    def _moved(self, _attr: str, _old: Any, _new: Any) -> None:
        if not self._moving:
            self._mode.active = HOLD

    def _resized(self, _attr: str, _old: Any, width: int) -> None:
        self._width = width or WIDTH

    def _layout(self) -> Column:
        title = Div(
            text=f'<span style="font:600 16px {theme.FONT};color:{theme.INK}">{escape(self.title)}</span>',
            margin=(9, 8, 0, 8),
        )
        grid = gridplot(
            [[panel.figure] for panel in self._panels],
            sizing_mode="stretch_width",
            toolbar_location="right",
            toolbar_options={"logo": None},
        )
        spacer = Spacer(sizing_mode="stretch_width")
        header = Row(title, spacer, self._select, self._mode, sizing_mode="stretch_width")
        return Column(header, self._strip, grid, sizing_mode="stretch_width")
