"""An empty figure over the shared time axis: tools, ticks, fonts. Colours follow the theme by CSS variables."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.models import DataRange1d, DatetimeTickFormatter, HoverTool, PanTool, PlainText, Range1d, WheelZoomTool
from bokeh.plotting import figure

from workbench.widgets import theme


def time_figure(
    name: str, x_range: Range1d, y_range: DataRange1d, height: int, hovers: Sequence[HoverTool]
) -> figure:
    """A figure of ``height`` pixels (of its frame) under the heading ``name``.

    Along the value axis the name would stand as far from it as its longest number is wide, at another place in each
    of the figures below each other, and long names would be cut off.
    """
    wheel = WheelZoomTool(dimensions="width")
    pan = PanTool(dimensions="width")
    plot = figure(
        frame_height=height,
        sizing_mode="stretch_width",
        x_axis_type="datetime",
        x_range=x_range,
        y_range=y_range,
        # The y range fits the visible part only, not the margin beyond it.
        window_axis="x",
        tools=[pan, wheel, *hovers],
        active_scroll=wheel,
        active_drag=pan,
        min_border_left=60,
        min_border_right=18,
        output_backend="canvas",
        toolbar_location=None,
        html_attributes=spoken(name),
    )
    plot.toolbar.logo = None
    plot.outline_line_color = None
    plot.background_fill_color = plot.border_fill_color = None
    plot.title.update(
        text=PlainText(text=name), text_font=theme.FONT, text_font_size="12px", text_font_style="bold", standoff=5,
        text_color=theme.LIGHT.ink,
    )  # fmt: skip
    plot.xaxis.formatter = _time_ticks()
    for axis in plot.axis:
        axis.axis_label_text_font = axis.major_label_text_font = theme.FONT
        axis.axis_label_text_font_size, axis.axis_label_text_font_style = "13px", "normal"
        axis.major_label_text_font_size = "11px"
        axis.axis_label_text_color, axis.major_label_text_color = theme.LIGHT.ink, theme.LIGHT.muted
        axis.axis_line_color = axis.major_tick_line_color = theme.LIGHT.rule
        axis.minor_tick_line_color = None
    plot.grid.grid_line_color = theme.LIGHT.grid
    return plot


def spoken(text: str) -> dict[str, str]:
    """What a screen reader says of a figure, which is a canvas to it."""
    return {"role": "figure", "aria-label": f"plot of {text}; the view Table has its values"}


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
