"""The dashboard of one query as Bokeh models: what is shown, of which range, at which level.

The view knows nothing of the way its document reaches a page: ``live`` carries it through a Jupyter comm,
``serve`` through a Bokeh server, ``save`` into a file. Whoever owns the document calls :meth:`DashboardView.refresh`
and makes sure that only one thread at a time touches view and document.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from bokeh.document import Document
from bokeh.layouts import gridplot
from bokeh.models import Column, Model

from workbench.errors import WorkbenchError
from workbench.results import QueryResults
from workbench.results.shapes import nothing_to_plot
from workbench.widgets import export, multiples
from workbench.widgets.axis import ALL, FOLLOW, HOLD, TimeAxis
from workbench.widgets.bands import Roles
from workbench.widgets.controls import AUTO, Controls, Shown
from workbench.widgets.figures import Panel, key_columns, key_source
from workbench.widgets.hover import WindowBounds
from workbench.widgets.keys import Key, key_label
from workbench.widgets.legend import KeyLegend
from workbench.widgets.levels import choose_level, finer_level
from workbench.widgets.multiples import Multiples
from workbench.widgets.picker import KeyPicker
from workbench.widgets.picture import picture
from workbench.widgets.reading import read_points
from workbench.widgets.strip import strip_html
from workbench.widgets.table import table_html
from workbench.widgets.theme import THEMES, Theme
from workbench.widgets.values import kind_of

__all__ = ["ALL", "FOLLOW", "HOLD", "Backing", "DashboardView"]

#: Width in pixels that is assumed until a page tells its own.
WIDTH = 1_000
#: Seconds between two renewals of a text.
_CALM = 1.0
#: Keys beyond which bands would hide each other, so that they are drawn only on demand.
_BANDS = 3


@dataclass(frozen=True)
class Backing:
    """What a view may know of the query behind the results; everything is optional.

    ``status()`` gives the facts of the strip (see :func:`workbench.widgets.strip.strip_html`) and is called at every
    refresh, so it must be quick. ``roles`` says which columns make a band and which one counts. ``texts()`` gives
    the query as texts by kind, such as ``SQL`` and ``Python``, ``plan()`` the shared plan as HTML.
    ``add_level(label)`` adds a zoom level to the running query, without waiting for results.
    """

    status: Callable[[], Mapping[str, Any]] = dict
    roles: Roles = field(default_factory=Roles)
    texts: Callable[[], Mapping[str, str]] = dict
    plan: Callable[[], str] = str
    add_level: Callable[[str], object] | None = None


class Pace:
    """Texts that make a page lay itself out anew are renewed at most once a second, unless there is news."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, object]] = {}

    def due(self, name: str, news: object) -> bool:
        """Whether ``name`` is to be renewed now; ``news`` is what cannot wait if it has changed."""
        now = time.monotonic()
        at, known = self._last.get(name, (-_CALM, None))
        if news == known and now - at < _CALM:
            return False
        self._last[name] = (now, news)
        return True


class DashboardView:
    """One figure per numeric value column over one linked time axis, one line per key.

    ``results`` is the store it reads, ``backing`` what is known of the query; ``top`` bounds the number of keys
    drawn, ``height`` is that of one figure in pixels; ``theme`` is ``'auto'`` (light until a page says otherwise),
    ``'light'`` or ``'dark'``. How the time axis moves is told by :class:`.axis.TimeAxis`.
    """

    def __init__(
        self,
        results: QueryResults,
        title: str = "",
        backing: Backing | None = None,
        *,
        top: int = 20,
        height: int = 170,
        theme: str = AUTO,
    ) -> None:
        results.schema.require_time()
        self.results = results
        self.title = title or results.schema.query
        self.backing = backing or Backing()
        self.level = 0
        self._error: str | None = None
        self._drawn: tuple[Any, ...] = ()
        self._version = -1
        self._keys: list[Key] = []
        self._width, self._page_theme = WIDTH, "light"
        self._pace = Pace()
        kinds = {name: kind_of(kind) for name, kind in results.schema.values if name in results.schema.numeric}
        if not kinds:
            raise nothing_to_plot(results.schema.values)
        self.axis = TimeAxis()
        self._bounds = WindowBounds()
        self.picker = KeyPicker(results, top)
        self.controls = Controls(self.title, self.axis.modes, self.picker, theme, bool(self.backing.roles.bands))
        self.keys = key_source()
        self.panels = [
            Panel(name, self.axis.range, self._bounds, height, self.keys, kind=kind) for name, kind in kinds.items()
        ]
        # The time axis is one for all: only the lowest figure names it and its times.
        for panel in self.panels[:-1]:
            panel.figure.xaxis.major_label_text_font_size = "0px"
        self.panels[-1].figure.xaxis.axis_label = self._axis_label()
        self._legend = KeyLegend(self.panels[0], self.keys)
        self.multiples = Multiples(kinds, self.axis.range, self._bounds)
        self._lines = gridplot(
            [[panel.figure] for panel in self.panels], sizing_mode="stretch_width", toolbar_location=None
        )
        self.root = Column(
            self.controls.header,
            self.controls.facts,
            self.controls.choices,
            self._lines,
            self.multiples.root,
            self.controls.table,
            self.controls.plan,
            self.controls.code,
            sizing_mode="stretch_width",
        )
        self._schema = results.schema
        self.controls.levels([level.label for level in results.schema.levels])
        self._recolour()
        self._listen()

    @property
    def inputs(self) -> list[tuple[Model, str]]:
        """The properties that a page may change; nothing else is taken from it."""
        return [
            (self.axis.range, "start"),
            (self.axis.range, "end"),
            (self.axis.modes, "active"),
            (self.panels[0].figure, "inner_width"),
            *self.controls.inputs,
            *self.picker.inputs,
            (self.multiples.value, "value"),
        ]

    @property
    def plots(self) -> list[Model]:
        """The layouts that hold figures; at most one of them is on show."""
        return [self._lines, self.multiples.root]

    @property
    def mode(self) -> int:
        """How the time axis moves: ``ALL``, ``FOLLOW`` or ``HOLD``."""
        return self.axis.mode

    @property
    def pinned(self) -> int | None:
        """Position of the level chosen by hand, None while the range chooses."""
        chosen = str(self.controls.level.value)
        return None if chosen == AUTO else self.results.level_index(chosen)

    @property
    def drawn(self) -> bool:
        """Whether a refresh has drawn anything yet."""
        return bool(self._drawn)

    @property
    def visible(self) -> tuple[int, int]:
        """Start and end of the visible range, microseconds."""
        return self.axis.visible

    @property
    def width(self) -> int:
        """Width of the plots on show in pixels, as the page told it last."""
        return multiples.WIDTH if self.controls.shown is Shown.MULTIPLES else self._width

    @property
    def theme(self) -> Theme:
        """The colours on show: those chosen by hand, else the page's."""
        chosen = str(self.controls.theme.value)
        return THEMES[self._page_theme if chosen == AUTO else chosen]

    def document(self) -> Document:
        """A new document with this view as its only root. A view can be in one document only."""
        document = Document(title=self.title)
        document.add_root(self.root)
        return document

    def show(self, start: int, end: int) -> None:
        """Show ``[start, end]`` microseconds and hold it."""
        self.axis.show(start, end)

    def follow(self, mode: int = FOLLOW) -> None:
        """Move with the newest window again, in one of the three modes."""
        self.axis.follow(mode)

    def pin(self, level: int | str | None) -> None:
        """Show this level whatever the range is; None lets the range choose again."""
        labels = [shape.label for shape in self.results.schema.levels]
        self.controls.level.value = AUTO if level is None else labels[self.results.level_index(level)]

    def pause(self, paused: bool = True) -> None:
        """Keep the picture as it is (a pan or zoom still draws anew), or go on."""
        self.controls.pause.active = paused

    def page_theme(self, name: str) -> None:
        """A page says whether it is ``'light'`` or ``'dark'``; anything else counts as light."""
        self._page_theme = name if name in THEMES else "light"
        self._recolour()

    def fail(self, message: str | None) -> None:
        """Show ``message`` in red until the next call; None takes it away."""
        if message != self._error:
            self._error = message
            self._tell()

    def export(self, kind: str) -> export.File:
        """What is on show as a file of one of ``export.KINDS`` (PNG is the page's to make)."""
        start, end = self.visible
        if kind in ("SQL", "Python"):
            content = export.text_of(self.backing.texts(), kind)
        elif kind == "SVG":
            content = picture(self.results, self.title, self.visible, level=self.level, keys=self._keys).encode()
        else:
            table = export.rows_on_show(self.results, self.level, start, end, self._keys)
            content = export.csv_bytes(table) if kind == "CSV" else export.parquet_bytes(table)
        return export.File(export.file_name(self.title, kind), content)

    def refresh(self) -> None:
        """Bring the models up to date with the store, the range and the controls.

        Without a change since the last call it costs one call of ``status`` and a few comparisons.
        """
        if self.results.schema is not self._schema:
            self._take_levels()
        paused = bool(self.controls.pause.active) and self.drawn
        if not paused:
            self._version = self.results.version
            self._advance()
        chosen = self._choose()
        if chosen != self.level:
            # Levels end at different times, so the newest window may be another one now.
            self.level = chosen
            if not paused:
                self._advance()
        version = self._version
        if self.controls.shown is Shown.TABLE and not self._pace.due("table", self.picker.state):
            version = self._drawn[0] if self._drawn else version
        wanted = (
            version, self.visible, self.width, self.level, self.picker.state, self.controls.state,
            self.multiples.value.value,
        )  # fmt: skip
        if wanted != self._drawn:
            self._draw()
            self._drawn = wanted
        self._tell()

    def _draw(self) -> None:
        self._keys = self.picker.refresh(self._version)
        shape = self.results.schema.levels[self.level]
        self._bounds.show(shape.size)
        start, end = self.visible
        labels = [key_label(key) for key in self._keys]
        match self.controls.shown:
            case Shown.TABLE:
                self.controls.table.text = table_html(self.results, self.level, start, end, self._keys)
            case Shown.PLAN:
                self.controls.plan.text = self.backing.plan()
            case Shown.CODE:
                self.controls.tell_code(self.backing.texts())
            case Shown.MULTIPLES:
                value = str(self.multiples.value.value)
                points = self._points([value, *self.backing.roles.bands.get(value, ())])[value]
                with self._freeze(len(self.multiples.panels) < len(labels)):
                    self.multiples.show(points, labels)
            case Shown.LINES:
                found = self._points(None)
                band = self.controls.band(len(labels) <= _BANDS)
                if self.keys.data["label"] != labels:
                    self.keys.data = key_columns(labels)
                with self._freeze(len(self._legend.model.items) < len(labels)):
                    self._legend.show(labels if self.results.schema.keys else [], self.width)
                for panel in self.panels:
                    panel.show(found[panel.name], band=band)

    def _points(self, values: Sequence[str] | None) -> Any:
        start, end = self.visible
        return read_points(self.results, self.level, start, end, self.width, self._keys, self.backing.roles, values)

    def _freeze(self, growing: bool) -> Any:
        """Bokeh walks the whole document after every new model and at the end of this: only where there are some."""
        document = self.root.document
        return document.models.freeze() if document and growing else nullcontext()

    def _tell(self) -> None:
        levels = self.results.schema.levels
        label = levels[self.level].label
        chosen = "auto" if self.pinned is None else "pinned"
        empty = all(self.results.extent(level) is None for level in range(len(levels)))
        paused = ", paused" if self.controls.pause.active else ""
        status = self.backing.status()
        news = (label, chosen, paused, empty, self._error, status.get("state"), status.get("error"))
        if self._pace.due("strip", news):
            shown = f"{label} ({chosen}{paused})" + (", no window yet" if empty else "")
            text = strip_html(status, shown, self._error)
            if text != self.controls.strip.text:
                self.controls.strip.text = text
        start, end = self.visible
        offer = None
        if self.backing.add_level is not None and self.drawn:
            offer = finer_level(levels, end - start, self.width)
        self.controls.offer(offer)

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
        self.axis.advance(self.results.schema.levels[self.level], self.results.extent(self.level))

    def _axis_label(self) -> str:
        regular = all(level.regular for level in self.results.schema.levels)
        return "window end (UTC)" if regular else "time (UTC)"

    def _recolour(self) -> None:
        self.controls.recolour(self.root, self.theme)
        for panel in self.panels:
            panel.recolour(self.theme)
        self._legend.recolour(self.theme)
        self.multiples.recolour(self.theme)

    def _listen(self) -> None:
        self.panels[0].figure.on_change("inner_width", self._resized)
        self.controls.theme.on_change("value", lambda attr, old, new: self._recolour())
        for model in (self.controls.views, self.controls.options):
            model.on_change("active", lambda attr, old, new: self._switch())
        self.controls.finer.on_change("active", lambda attr, old, new: self._add_level())

    def _switch(self) -> None:
        shown = self.controls.shown
        self._lines.visible = shown is Shown.LINES
        self.multiples.root.visible = shown is Shown.MULTIPLES
        self.controls.table.visible = shown is Shown.TABLE
        self.controls.plan.visible = shown is Shown.PLAN
        self.controls.code.visible = shown is Shown.CODE
        self.controls.choices.visible = bool(self.controls.options.active)

    def _resized(self, _attr: str, _old: Any, width: int) -> None:
        # A figure that is not on show has no width: the last one is still the best guess.
        self._width = width or self._width

    def _add_level(self) -> None:
        """The button was pressed: its level joins the running query; the button goes until the level is there."""
        label = self.controls.offered
        if not self.controls.finer.active or label is None or self.backing.add_level is None:
            return
        self.controls.finer.active = False
        self.fail(None)
        try:
            self.backing.add_level(label)
        except WorkbenchError as error:
            self.fail(str(error))

    def _take_levels(self) -> None:
        """The query has got or lost a level: what is on show stays on show, under its new number."""
        label = self._schema.levels[self.level].label
        self._schema = self.results.schema
        labels = [level.label for level in self._schema.levels]
        self.controls.levels(labels)
        if str(self.controls.level.value) not in labels:
            self.controls.level.value = AUTO
        self.level = labels.index(label) if label in labels else 0
        self._drawn = ()
