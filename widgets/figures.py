"""One figure of one value column: its sources, a line for each key, bands, marks. Bokeh models only.

BokehJS does so much for each renderer whenever a plot is painted that a renderer for each key took more than half of
a refresh; so one renderer draws the lines of all keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.models import (
    CDSView,
    ColumnDataSource,
    CustomJS,
    DataRange1d,
    GlyphRenderer,
    LinearColorMapper,
    MultiLine,
    Patches,
    PlainText,
    Range1d,
    Scatter,
)

from workbench.results import Status
from workbench.time import HOUR
from workbench.widgets import theme
from workbench.widgets.axes import spoken, time_figure
from workbench.widgets.hover import WindowBounds, line_hover
from workbench.widgets.points import Array, Band, Points
from workbench.widgets.theme import Theme
from workbench.widgets.values import Kind, measure, said

#: Marks of revised windows that a panel draws at most; more would hide the lines.
_MARKS = 2_000
#: Runs of changed points beyond which all points are sent.
_PATCHES = 50
#: Columns of what is drawn, a line a row: first the final ones, then the provisional ones.
_LINES = ("xs", "ys", "label", "key", "alpha", "width", "dash", "first")
_FORMS = [{"dash": [], "alpha": 1}, {"dash": list(theme.OPEN_DASH), "alpha": theme.OPEN_ALPHA}]
_WIDTHS = (1.8, 1)
_CUT = (
    Path(__file__)
    .with_name("lines.js")
    .read_text(encoding="utf-8")
    .replace("FORMS_OF_LINES", json.dumps(_FORMS))
    .replace("OPACITY_OF_MUTED", str(theme.MUTED_ALPHA))
    .replace("WIDTHS_OF_LINES", json.dumps(_WIDTHS))
)


class Panel:
    """The figure of one value column: a line for each key, the provisional part of it dashed.

    ``keys`` are the keys on show, a source made by :func:`key_source`, which panels may share, as they may share
    ``y_range``. The columns of ``final`` and ``open`` are flat, point by point and in it key by key, so that one
    buffer carries new points of all keys; ``lines.js`` cuts them into the lines drawn. Times are milliseconds.
    """

    def __init__(
        self,
        name: str,
        x_range: Range1d,
        bounds: WindowBounds,
        height: int,
        keys: ColumnDataSource,
        *,
        y_range: DataRange1d | None = None,
        kind: Kind = Kind.NUMBER,
    ) -> None:
        self.name = name
        self._title, self._kind = name, Kind.NUMBER
        self.final = ColumnDataSource(_flat(None))
        self.open = ColumnDataSource(_flat(None))
        self.dots = ColumnDataSource(_marks(np.empty(0), np.empty(0), np.empty(0)))
        self.revised = ColumnDataSource(_marks(np.empty(0), np.empty(0), np.empty(0)))
        self.bands = ColumnDataSource({"xs": [], "ys": [], "key": np.empty(0)})
        self.colours = LinearColorMapper(low=-0.5, high=len(theme.LIGHT.palette) - 0.5, palette=theme.LIGHT.palette)
        # What is drawn lives in the page alone; the hover looks the rest up in the sources it was cut from.
        lines = ColumnDataSource({name: [] for name in _LINES}, tags=[self.final, self.open])
        by_key = {"field": "key", "transform": self.colours}
        look = {"line_color": by_key, "line_alpha": "alpha", "line_width": "width", "line_dash": "dash"}
        drawn = _renderer(lines, MultiLine(xs="xs", ys="ys", **look))
        self.hover = line_hover(name, bounds, drawn)
        fitting = y_range or DataRange1d(range_padding=0.08)
        self.figure = time_figure(name, x_range, fitting, height, [self.hover])
        below = Patches(xs="xs", ys="ys", fill_color=by_key, fill_alpha=theme.BAND_ALPHA, line_color=None)
        dot = Scatter(x="x", y="y", size=5, marker="circle", line_color=None, fill_color=by_key)
        ring = Scatter(x="x", y="y", size=8, marker="diamond", line_color=by_key, fill_color=None, line_width=1.6)
        self.figure.renderers = [
            _renderer(self.bands, below),
            drawn,
            _renderer(self.dots, dot),
            _renderer(self.revised, ring),
        ]
        args = {"final": self.final, "open": self.open, "keys": keys, "range": x_range, "lines": lines}
        cut = CustomJS(args=args, code=_CUT)
        for source in (self.final, self.open, keys):
            source.js_on_change("data", cut)
        for event in ("streaming", "patching"):
            self.final.js_on_change(event, cut)
        x_range.js_on_change("start", cut)
        x_range.js_on_change("end", cut)
        measure(self.figure.yaxis[0], self._kind)
        self.measure(kind)
        # The height of the frame is known once a page has laid the figure out, and the kernel never sets it.
        self.figure.js_on_change("inner_height", cut)

    def show(self, points: Points, first: int = 0, *, band: bool = False) -> None:
        """Draw ``points``, whose keys are those on show and the first of which has the colour at ``first``.

        Sources whose data has not changed stay untouched.
        """
        self._head(bool(np.isfinite(points.y).any()))
        _extend(self.final, _flat(points.final()), points.y.shape[1])
        update(self.open, _flat(points.provisional()))
        update(self.dots, _marks(*points.dots(), first=first))
        x, y, keys = points.revised()
        update(self.revised, _marks(x[-_MARKS:], y[-_MARKS:], keys[-_MARKS:], first=first))
        update(self.bands, _patches(points.band if band else None, first))

    def make_small(self, height: int) -> None:
        """A figure so many pixels high with its borders, with fewer ticks and less room around the frame."""
        self.figure.update(
            sizing_mode="stretch_width",
            height=height,
            frame_height=None,
            min_border_left=52,
            min_border_right=14,
        )
        self.figure.xaxis.ticker.desired_num_ticks = 4

    def measure(self, kind: Kind) -> None:
        """Write values as those of a kind, at the axis and under the mouse."""
        if kind is not self._kind:
            self._kind = kind
            measure(self.figure.yaxis[0], kind)
            # What an axis spans where all values are one: of times not two milliseconds.
            self.figure.y_range.default_span = 2 * HOUR / 1_000 if kind is Kind.TIME else 2
            self.hover.formatters = {**self.hover.formatters, "$snap_y": said(kind)}

    def entitle(self, text: str) -> None:
        """Give the figure another heading."""
        self._title = text
        self._head(True)

    def _head(self, something: bool) -> None:
        """The heading, which says so where there is nothing below it: BokehJS draws no axis then."""
        text = self._title if something else f"{self._title}: no value in this range"
        if self.figure.title.text.text != text:
            self.figure.title.text = PlainText(text=text)
            self.figure.html_attributes = spoken(text)

    def recolour(self, to: Theme) -> None:
        """Take the colours of another theme."""
        if self.colours.palette != list(to.palette):
            self.colours.palette = list(to.palette)


def key_source(labels: Sequence[str] = (), first: int = 0) -> ColumnDataSource:
    """The keys of panels, the first of which has the colour at ``first``; a page notes there which ones are muted."""
    return ColumnDataSource(key_columns(labels, first))


def key_columns(labels: Sequence[str], first: int = 0) -> dict[str, Any]:
    """The columns of a :func:`key_source`."""
    places = range(first, first + len(labels))
    return {
        "label": list(labels),
        "key": [place % len(theme.LIGHT.palette) for place in places],
        "muted": [False] * len(labels),
    }


def _renderer(source: ColumnDataSource, glyph: Any) -> GlyphRenderer:
    # Built by hand: the methods of `figure` make five glyphs for each renderer, of which one is ever seen.
    return GlyphRenderer(data_source=source, view=CDSView(), glyph=glyph, muted_glyph=glyph, nonselection_glyph=None)


def _flat(points: Points | None) -> dict[str, Array]:
    """Source columns ``x`` and ``y`` of all points and keys.

    For the hover: ``n`` the rows of the window where they are counted, ``w`` and ``e`` its bounds where the level
    does not give them, ``s`` the status where there is anything but the usual.
    """
    if points is None:
        return {"x": np.empty(0), "y": np.empty(0)}
    columns = {"x": points.x / 1_000, "y": points.y}
    if points.count is not None:
        columns["n"] = points.count
    if points.starts is not None and points.ends is not None:
        columns |= {"w": points.starts / 1_000, "e": points.ends / 1_000}
    if (points.status == Status.REVISED).any():
        columns["s"] = points.status
    # Copies: sources are patched in place, and matrices may be shared.
    return {name: matrix.flatten() for name, matrix in columns.items()}


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


def update(source: ColumnDataSource, columns: Mapping[str, Any]) -> None:
    """Give a source other columns, if they are others."""
    old = source.data
    if old.keys() == columns.keys() and all(_same(old[name], columns[name]) for name in columns):
        return
    source.data = dict(columns)


def _extend(source: ColumnDataSource, columns: Mapping[str, Array], keys: int) -> None:
    """As :func:`update`, but where points of all ``keys`` were added at the end (and perhaps dropped at the
    beginning), and few others have changed, only those go to pages: a whole figure is some hundred kilobytes, which a
    page would unpack and draw several times a second.
    """
    old = source.data
    size = len(columns["x"])
    if old.keys() != columns.keys() or not size or not len(old["x"]):
        return update(source, columns)
    dropped = int(np.searchsorted(np.asarray(old["x"])[::keys], columns["x"][0])) * keys
    kept = len(old["x"]) - dropped
    if not 0 < kept <= size or (kept == size and dropped):
        return update(source, columns)
    changed = np.zeros(kept, bool)
    for name, column in columns.items():
        changed |= ~_equal(np.asarray(old[name])[dropped:], column[:kept])
    runs = np.flatnonzero(np.diff(changed, prepend=False, append=False)).reshape(-1, 2)
    if len(runs) > _PATCHES or changed.sum() > kept // 4:
        return update(source, columns)
    if len(runs):
        patches = {
            name: [(slice(dropped + start, dropped + end), column[start:end]) for start, end in runs.tolist()]
            for name, column in columns.items()
        }
        source.patch(patches)
    if kept < size:
        source.stream({name: column[kept:] for name, column in columns.items()}, rollover=size)
    return None


def _equal(left: Array, right: Array) -> Array:
    """Where two columns hold the same; NaN is NaN."""
    same: Array = left == right
    return same | (np.isnan(left) & np.isnan(right)) if right.dtype.kind == "f" else same


def _same(left: Any, right: Any) -> bool:
    if isinstance(right, np.ndarray):
        return np.array_equal(np.asarray(left), right, equal_nan=right.dtype.kind == "f")
    if isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
