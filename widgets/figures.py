"""One figure of one value column: its sources, a line for each key, bands, marks. Bokeh models only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    CDSView,
    ColumnDataSource,
    DataRange1d,
    GlyphRenderer,
    Line,
    LinearColorMapper,
    Patches,
    Range1d,
    Scatter,
)

from workbench.results import Status
from workbench.widgets import theme
from workbench.widgets.axes import time_figure
from workbench.widgets.hover import WindowBounds, line_hover
from workbench.widgets.points import Array, Band, Points
from workbench.widgets.theme import Theme

#: Marks of revised windows that a panel draws at most; more would hide the lines.
_MARKS = 2_000


class Panel:
    """The figure of one value column. Slot ``i`` of its lines shows the key at position ``i``.

    ``first`` is the position of the colour of slot 0; ``y_range`` may be shared with other panels.
    """

    def __init__(
        self,
        name: str,
        x_range: Range1d,
        bounds: WindowBounds,
        height: int,
        *,
        first: int = 0,
        y_range: DataRange1d | None = None,
    ) -> None:
        self.name = name
        self.final = ColumnDataSource({})
        self.open = ColumnDataSource({})
        self.dots = ColumnDataSource(_marks(np.empty(0), np.empty(0), np.empty(0)))
        self.revised = ColumnDataSource(_marks(np.empty(0), np.empty(0), np.empty(0)))
        self.bands = ColumnDataSource({"xs": [], "ys": [], "key": np.empty(0)})
        self.lines: list[tuple[GlyphRenderer, GlyphRenderer]] = []
        self._first = first
        self._theme = theme.LIGHT
        self._colours = LinearColorMapper(low=-0.5, high=len(theme.LIGHT.palette) - 0.5, palette=theme.LIGHT.palette)
        self.hovers = [line_hover(name, bounds, Status.FINAL), line_hover(name, bounds, Status.PROVISIONAL)]
        fitting = y_range or DataRange1d(range_padding=0.08)
        self.figure = time_figure(name, x_range, fitting, height, self.hovers)
        by_key = {"field": "key", "transform": self._colours}
        below = Patches(xs="xs", ys="ys", fill_color=by_key, fill_alpha=theme.BAND_ALPHA, line_color=None)
        dot = Scatter(x="x", y="y", size=5, marker="circle", line_color=None, fill_color=by_key)
        ring = Scatter(x="x", y="y", size=8, marker="diamond", line_color=by_key, fill_color=None, line_width=1.6)
        self._under = [_renderer(self.bands, below)]
        self._over = [_renderer(self.dots, dot), _renderer(self.revised, ring)]
        #: Lines without data, one a key: what a legend shows.
        self.samples: list[GlyphRenderer] = []
        self.arrange()

    def show(self, points: Points, labels: Sequence[str], *, band: bool = False) -> None:
        """Draw ``points``, one line per label; sources whose data has not changed stay untouched."""
        count = max(len(labels), len(self.lines))
        _extend(self.final, _columns(points.final(), count))
        _update(self.open, _columns(points.provisional(), count))
        _update(self.dots, _marks(*points.dots(), first=self._first))
        x, y, keys = points.revised()
        _update(self.revised, _marks(x[-_MARKS:], y[-_MARKS:], keys[-_MARKS:], first=self._first))
        _update(self.bands, _patches(points.band if band else None, self._first))
        self._grow(len(labels))
        for slot, renderers in enumerate(self.lines):
            for renderer in renderers:
                renderer.name = labels[slot] if slot < len(labels) else None

    def make_small(self, width: int, height: int) -> None:
        """A figure of so many pixels with its borders, with fewer ticks and less room around the frame."""
        self.figure.update(
            sizing_mode="fixed",
            width=width,
            height=height,
            frame_height=None,
            min_border_left=62,
            min_border_right=14,
        )
        self.figure.xaxis.ticker.desired_num_ticks = 4

    def entitle(self, text: str) -> None:
        """Name the figure above it instead of along its value axis."""
        title = self.figure.title
        if title.text != text:
            self.figure.yaxis.axis_label = None
            title.update(text=text, text_font=theme.FONT, text_font_size="12px", text_font_style="bold")

    def recolour(self, to: Theme) -> None:
        """Take the colours of another theme."""
        if to is self._theme:
            return
        self._theme = to
        self._colours.palette = list(to.palette)
        for slot, renderers in enumerate(self.lines):
            for renderer in (*renderers, *self.samples[slot : slot + 1]):
                for glyph in (renderer.glyph, renderer.muted_glyph):
                    glyph.line_color = to.colour(self._first + slot)

    def arrange(self) -> None:
        """Tell the figure what it draws, from the bottom to the top."""
        lines = (part for line in self.lines for part in line)
        self.figure.renderers = [*self.samples, *self._under, *lines, *self._over]

    def _grow(self, count: int) -> None:
        """Add lines until there are ``count``."""
        fresh = [self._line(slot) for slot in range(len(self.lines), count)]
        if not fresh:
            return
        self.lines += fresh
        self.arrange()
        for position, hover in enumerate(self.hovers):
            hover.renderers = [line[position] for line in self.lines]

    def sample(self, slot: int) -> GlyphRenderer:
        """A line in the colour of a slot that shows nothing: one point, which is nowhere."""
        style = {"x": "x", "y": "y", "line_color": self._theme.colour(self._first + slot), "line_width": 2.5}
        faint = Line(**style | {"line_alpha": theme.MUTED_ALPHA})
        return _renderer(ColumnDataSource({"x": [np.nan], "y": [np.nan]}), Line(**style), faint)

    def _line(self, slot: int) -> tuple[GlyphRenderer, GlyphRenderer]:
        """The final and the provisional line of a slot."""
        style = {
            "x": f"x{slot}",
            "y": f"y{slot}",
            "line_color": self._theme.colour(self._first + slot),
            "line_width": 1.8,
            "line_join": "round",
        }
        open_style = style | {"line_dash": list(theme.OPEN_DASH), "line_alpha": theme.OPEN_ALPHA}
        return tuple(
            _renderer(source, Line(**look), Line(**look | {"line_alpha": theme.MUTED_ALPHA}))
            for source, look in ((self.final, style), (self.open, open_style))
        )


def _renderer(source: ColumnDataSource, glyph: Any, muted: Any = None) -> GlyphRenderer:
    # Built by hand: `figure.line` makes five glyphs for each line, of which two are ever seen.
    return GlyphRenderer(
        data_source=source, view=CDSView(), glyph=glyph, muted_glyph=muted or glyph, nonselection_glyph=None
    )


def _columns(points: Points, count: int) -> dict[str, Array]:
    """Source columns of all slots, NaN in slots without a key: ``x0, y0, x1, ...``, times in milliseconds.

    For the hover: ``n0`` the rows of the window where they are counted, ``w0`` and ``e0`` its bounds where the level
    does not give them, ``s0`` the status where there is anything but the usual.
    """
    columns = {}
    rows, keys = points.y.shape
    blank = np.full(rows, np.nan)
    told: dict[str, Array | None] = {"n": points.count, "w": None, "e": None, "s": None}
    if points.starts is not None and points.ends is not None:
        told |= {"w": points.starts / 1_000, "e": points.ends / 1_000}
    if (points.status == Status.REVISED).any():
        told["s"] = points.status
    for slot in range(count):
        there = slot < keys
        columns[f"x{slot}"] = np.ascontiguousarray(points.x[:, slot]) / 1_000 if there else blank
        columns[f"y{slot}"] = np.ascontiguousarray(points.y[:, slot]) if there else blank
        for name, matrix in told.items():
            if matrix is not None:
                columns[f"{name}{slot}"] = np.ascontiguousarray(matrix[:, slot]) if there else blank
    return columns


def _marks(x: Array, y: Array, keys: Array, first: int = 0) -> dict[str, Array]:
    return {"x": x / 1_000, "y": y, "key": (keys + first) % len(theme.LIGHT.palette)}


def _patches(band: Band | None, first: int) -> dict[str, Any]:
    """A polygon for each run of each key's band: along the high side, back along the low one."""
    xs, ys, keys = [], [], []
    for key in range(band.x.shape[1] if band else 0):
        assert band is not None
        there = ~np.isnan(band.low[:, key])
        edges = np.flatnonzero(np.diff(there, prepend=False, append=False))
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            x = band.x[start:end, key] / 1_000
            xs.append(np.r_[x, x[::-1]])
            ys.append(np.r_[band.high[start:end, key], band.low[start:end, key][::-1]])
            keys.append((key + first) % len(theme.LIGHT.palette))
    return {"xs": xs, "ys": ys, "key": np.array(keys, np.int64)}


def _update(source: ColumnDataSource, columns: Mapping[str, Any]) -> None:
    old = source.data
    if old.keys() == columns.keys() and all(_same(old[name], columns[name]) for name in columns):
        return
    source.data = dict(columns)


def _extend(source: ColumnDataSource, columns: Mapping[str, Array]) -> None:
    """As :func:`_update`, but where rows were added at the end (and perhaps dropped at the beginning), only those go
    to pages: Jupyter's server lets through about a megabyte a second, and silently drops the rest.
    """
    old = source.data
    if old.keys() == columns.keys() and "x0" in columns and len(old["x0"]) and len(columns["x0"]):
        dropped = int(np.searchsorted(np.asarray(old["x0"]), columns["x0"][0]))
        kept = len(old["x0"]) - dropped
        if 0 < kept < len(columns["x0"]) and all(
            np.array_equal(np.asarray(old[name])[dropped:], column[:kept], equal_nan=column.dtype.kind == "f")
            for name, column in columns.items()
        ):
            source.stream({name: column[kept:] for name, column in columns.items()}, rollover=len(columns["x0"]))
            return
    _update(source, columns)


def _same(left: Any, right: Any) -> bool:
    if isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return np.array_equal(np.asarray(left), right, equal_nan=right.dtype.kind == "f")
