"""One figure per value column: its sources, its lines by key, its hover. Bokeh models only, no logic of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.core.properties import value
from bokeh.models import (
    CDSView,
    ColumnDataSource,
    CustomJSHover,
    DataRange1d,
    DatetimeTickFormatter,
    GlyphRenderer,
    HoverTool,
    Legend,
    LegendItem,
    Line,
    PanTool,
    Range1d,
    SaveTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from workbench.widgets import theme
from workbench.widgets.points import Points

Array = npt.NDArray[Any]

_BOUNDS = """
const text = (ms) => new Date(ms).toISOString().replace("T", " ").replace(/(:00)?\\.000Z$/, "")
return text(value - size) + " \\u2013 " + text(value) + " UTC"
"""
_NUMBER = """
const whole = Number.isInteger(value) && Math.abs(value) < 1e15
return whole ? value.toLocaleString("en") : value.toPrecision(6)
"""
_TOOLTIP = """
<div style="font:12px {font};color:{ink};line-height:1.5">
  <b>$name</b> &nbsp;{column}&nbsp; <b>$snap_y{{number}}</b><br>
  <span style="color:{muted}">$snap_x{{bounds}}<br>{status}</span>
</div>
"""


class WindowBounds:
    """The hover text of a window's bounds, shared by all figures; follows the size of the level on show."""

    def __init__(self) -> None:
        self.model = CustomJSHover(args={"size": 0}, code=_BOUNDS)

    def show(self, size: int) -> None:
        """Windows have ``size`` microseconds from now on."""
        if self.model.args["size"] != size / 1_000:
            self.model.args = {"size": size / 1_000}


class Panel:
    """The figure of one value column. Slot ``i`` of its lines shows the key at position ``i``."""

    def __init__(self, name: str, x_range: Range1d, bounds: WindowBounds, height: int, last: bool) -> None:
        self.name = name
        self.final = ColumnDataSource({})
        self.open = ColumnDataSource({})
        self.dots = ColumnDataSource({"x": np.empty(0), "y": np.empty(0), "colour": []})
        self.lines: list[tuple[GlyphRenderer, GlyphRenderer]] = []
        self.hovers = [
            _hover(name, bounds, "final"),
            _hover(name, bounds, "provisional: the window is still open"),
        ]
        self.figure = _figure(name, x_range, height, self.hovers)
        # The time axis is one for all: only the lowest figure names it and its times.
        if last:
            self.figure.xaxis.axis_label = "window end (UTC)"
        else:
            self.figure.xaxis.major_label_text_font_size = "0px"
        self.figure.scatter("x", "y", source=self.dots, size=5, line_color=None, fill_color="colour", marker="circle")

    def show(self, points: Points, labels: Sequence[str]) -> None:
        """Draw ``points``, one line per label; sources whose data has not changed stay untouched."""
        count = max(len(labels), len(self.lines))
        _update(self.final, _columns(*points.final(), count))
        _update(self.open, _columns(*points.provisional(), count))
        x, y, keys = points.dots()
        # Colours as a list: BokehJS does not take an array of texts for a colour column.
        _update(self.dots, {"x": x / 1_000, "y": y, "colour": [theme.colour(key) for key in keys]})
        self._grow(len(labels))
        for slot, renderers in enumerate(self.lines):
            for renderer in renderers:
                renderer.name = labels[slot] if slot < len(labels) else None

    def _grow(self, count: int) -> None:
        """Add lines until there are ``count``."""
        fresh = [self._line(slot) for slot in range(len(self.lines), count)]
        if not fresh:
            return
        self.lines += fresh
        self.figure.renderers = [*self.figure.renderers, *(part for line in fresh for part in line)]
        for position, hover in enumerate(self.hovers):
            hover.renderers = [line[position] for line in self.lines]

    def _line(self, slot: int) -> tuple[GlyphRenderer, GlyphRenderer]:
        """The final and the provisional line of a slot."""
        style = {
            "x": f"x{slot}",
            "y": f"y{slot}",
            "line_color": theme.colour(slot),
            "line_width": 1.8,
            "line_join": "round",
        }
        open_style = style | {"line_dash": list(theme.OPEN_DASH), "line_alpha": theme.OPEN_ALPHA}
        return _renderer(self.final, style), _renderer(self.open, open_style)


class KeyLegend:
    """The legend of all panels, above the first one; a click mutes a key everywhere."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        self._panels = panels
        self.model = Legend(
            orientation="horizontal",
            location="top_left",
            click_policy="mute",
            border_line_color=None,
            background_fill_alpha=0,
            label_text_font=theme.FONT,
            label_text_font_size="12px",
            label_text_color=theme.INK,
            glyph_width=18,
            glyph_height=14,
            label_height=14,
            spacing=10,
            padding=2,
            margin=4,
            visible=False,
        )
        panels[0].figure.add_layout(self.model, "above")

    def show(self, labels: Sequence[str], width: int) -> None:
        """Entries for ``labels``, in as many columns as ``width`` pixels allow."""
        items = list(self.model.items)
        items += [
            LegendItem(label=value(labels[slot]), renderers=self._linked(slot))
            for slot in range(len(items), len(labels))
        ]
        if len(items) > len(self.model.items):
            self.model.items = items
        for slot, item in enumerate(items):
            label = value(labels[slot] if slot < len(labels) else "")
            if item.label != label:
                item.label = label
            item.visible = slot < len(labels)
        longest = max((len(label) for label in labels), default=1)
        columns = max(1, min(len(labels) or 1, width // (36 + 8 * longest)))
        if self.model.ncols != columns:
            self.model.ncols = columns
        self.model.visible = bool(labels)

    def _linked(self, slot: int) -> list[GlyphRenderer]:
        """The renderers of the first panel at a slot; those of the others follow them in the page."""
        leaders = self._panels[0].lines[slot]
        for panel in self._panels[1:]:
            for leader, follower in zip(leaders, panel.lines[slot], strict=True):
                leader.js_link("muted", follower, "muted")
        return list(leaders)


def _figure(name: str, x_range: Range1d, height: int, hovers: Sequence[HoverTool]) -> figure:
    wheel = WheelZoomTool(dimensions="width")
    pan = PanTool(dimensions="width")
    plot = figure(
        frame_height=height,
        sizing_mode="stretch_width",
        x_axis_type="datetime",
        x_range=x_range,
        # The y range fits the visible part only, not the margin beyond it.
        y_range=DataRange1d(range_padding=0.08),
        window_axis="x",
        tools=[pan, wheel, SaveTool(), *hovers],
        active_scroll=wheel,
        active_drag=pan,
        min_border_left=78,
        min_border_right=18,
        output_backend="canvas",
    )
    plot.toolbar.logo = None
    plot.outline_line_color = None
    plot.background_fill_color = plot.border_fill_color = None
    plot.yaxis.axis_label = name
    plot.xaxis.formatter = _time_ticks()
    for axis in plot.axis:
        axis.axis_label_text_font = axis.major_label_text_font = theme.FONT
        axis.axis_label_text_font_size, axis.axis_label_text_font_style = "13px", "normal"
        axis.major_label_text_font_size = "11px"
        axis.axis_label_text_color, axis.major_label_text_color = theme.INK, theme.MUTED
        axis.axis_line_color = axis.major_tick_line_color = theme.RULE
        axis.minor_tick_line_color = None
    plot.grid.grid_line_color = theme.GRID
    return plot


def _renderer(source: ColumnDataSource, style: dict[str, Any]) -> GlyphRenderer:
    # Built by hand: `figure.line` makes five glyphs for each line, of which two are ever seen.
    return GlyphRenderer(
        data_source=source,
        view=CDSView(),
        glyph=Line(**style),
        muted_glyph=Line(**style | {"line_alpha": theme.MUTED_ALPHA}),
        nonselection_glyph=None,
    )


def _time_ticks() -> DatetimeTickFormatter:
    date = "%Y-%m-%d"
    return DatetimeTickFormatter(
        milliseconds="%H:%M:%S.%3N",
        seconds="%H:%M:%S",
        minsec="%H:%M:%S",
        minutes="%H:%M",
        hourmin="%H:%M",
        hours="%H:%M",
        days="%d %b",
        months="%b %Y",
        years="%Y",
        context=DatetimeTickFormatter(
            microseconds=date,
            milliseconds=date,
            seconds=date,
            minsec=date,
            minutes=date,
            hourmin=date,
            hours=date,
            days="%Y",
            months="",
            years="",
        ),
        context_which="start",
        hide_repeats=True,
    )


def _hover(column: str, bounds: WindowBounds, status: str) -> HoverTool:
    return HoverTool(
        renderers=[],
        tooltips=_TOOLTIP.format(
            font=theme.FONT.replace('"', "'"), ink=theme.INK, muted=theme.MUTED, column=column, status=status
        ),
        formatters={"$snap_x": bounds.model, "$snap_y": CustomJSHover(code=_NUMBER)},
        line_policy="nearest",
        visible=False,
    )


def _columns(x: Array, y: Array, count: int) -> dict[str, Array]:
    """Source columns ``x0, y0, x1, ...`` of all slots, in Bokeh's milliseconds; NaN in slots without a key."""
    columns = {}
    blank = np.full(len(x), np.nan)
    for slot in range(count):
        there = slot < x.shape[1]
        columns[f"x{slot}"] = np.ascontiguousarray(x[:, slot]) / 1_000 if there else blank
        columns[f"y{slot}"] = np.ascontiguousarray(y[:, slot]) if there else blank
    return columns


def _update(source: ColumnDataSource, columns: Mapping[str, Array | list[str]]) -> None:
    old = source.data
    if old.keys() == columns.keys() and all(_same(old[name], columns[name]) for name in columns):
        return
    source.data = dict(columns)


def _same(left: Any, right: Array | list[str]) -> bool:
    if isinstance(right, list):
        return list(left) == right
    return np.array_equal(np.asarray(left), right, equal_nan=right.dtype.kind == "f")
