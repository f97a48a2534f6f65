"""What a plot says about the window under the mouse: key, value, bounds, status, count of rows."""

from __future__ import annotations

from html import escape

from bokeh.models import CustomJSHover, HoverTool

from workbench.widgets import theme

#: Finds the slot of a line (``y3`` is that of the fourth key) and the point of it that was hit.
_POINT = """
const view = special_vars.glyph_view
const data = view.parent.model.data_source.data
const slot = /\\d+$/.exec(view.model.y.field)?.[0]
const at = (name) => data[name + (slot ?? "")]?.[special_vars.index]
"""
_BOUNDS = (
    _POINT
    + """
const text = (ms) => new Date(ms).toISOString().replace("T", " ").replace(/(:00)?\\.000Z$/, "").replace("Z", "")
const start = at("w") ?? value - size
const end = at("e") ?? value
const [from, to] = [text(start), text(end)]
return from + " \\u2013 " + (from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to) + " UTC"
"""
)
_STATE = (
    _POINT
    + """
const status = at("s") ?? state
const count = at("n")
const rows = count == null || isNaN(count) ? "" : ", " + count.toLocaleString("en") + (count === 1 ? " row" : " rows")
return (["", "provisional: the window is still open", "final", "revised after a late row"][status] ?? "") + rows
"""
)
_NUMBER = """
const whole = Number.isInteger(value) && Math.abs(value) < 1e15
return whole ? value.toLocaleString("en") : value.toPrecision(6)
"""
_TOOLTIP = """
<div style="margin:-5px;padding:7px 10px;font:12px {font};line-height:1.5;background:var(--wq-paper, #fff);
            color:var(--wq-ink, #1f2933);border:1px solid var(--wq-rule, #cbd2d9)">
  <b>$name</b> &nbsp;{column}&nbsp; <b>$snap_y{{number}}</b><br>
  <span style="color:var(--wq-muted, #5f6b7a)">$snap_x{{bounds}}<br>$x{{state}}</span>
</div>
"""


class WindowBounds:
    """The hover text of a window's bounds, shared by all figures; follows the size of the level on show."""

    def __init__(self) -> None:
        self.model = CustomJSHover(args={"size": 0}, code=_BOUNDS)

    def show(self, size: int) -> None:
        """Windows have ``size`` microseconds from now on; points that carry their own bounds do not ask."""
        if self.model.args["size"] != size / 1_000:
            self.model.args = {"size": size / 1_000}


def line_hover(column: str, bounds: WindowBounds, state: int) -> HoverTool:
    """A hover for lines of one value column whose points, if they do not say, have the status code ``state``."""
    return HoverTool(
        renderers=[],
        tooltips=_TOOLTIP.format(font=theme.FONT.replace('"', "'"), column=escape(column)),
        formatters={
            "$snap_x": bounds.model,
            "$snap_y": CustomJSHover(code=_NUMBER),
            "$x": CustomJSHover(args={"state": state}, code=_STATE),
        },
        line_policy="nearest",
        visible=False,
    )
