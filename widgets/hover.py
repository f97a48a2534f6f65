"""What a plot says about the window under the mouse: key, value, bounds, status, count of rows."""

from __future__ import annotations

from html import escape

from bokeh.models import CustomJSHover, GlyphRenderer, HoverTool

from workbench.results import Status
from workbench.widgets import theme
from workbench.widgets.values import Kind, said

#: Finds the point of the line that was hit in the source that the line was cut from.
_POINT = """
const lines = special_vars.glyph_view.parent.model.data_source
const {first} = lines.data
const keys = first.length / 2
const line = special_vars.index
const open = line >= keys
const place = (first[line] + special_vars.segment_index) * keys + line % keys
const at = (name) => lines.tags[open ? 1 : 0].data[name]?.[place]
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
    + f"""
const PROVISIONAL = {Status.PROVISIONAL:d}, FINAL = {Status.FINAL:d}
"""
    + """
const status = at("s") ?? (open ? PROVISIONAL : FINAL)
const count = at("n")
const rows = count == null || isNaN(count) ? "" : ", " + count.toLocaleString("en") + (count === 1 ? " row" : " rows")
return (["", "provisional: the window is still open", "final", "revised after a late row"][status] ?? "") + rows
"""
)
_TOOLTIP = """
<div style="margin:-5px;padding:7px 10px;font:12px {font};line-height:1.5;background:var(--wq-paper, #fff);
            color:var(--wq-ink, #1f2933);border:1px solid var(--wq-rule, #cbd2d9)">
  <b>@label</b> &nbsp;{column}&nbsp; <b>$snap_y{{said}}</b><br>
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


def line_hover(column: str, bounds: WindowBounds, lines: GlyphRenderer) -> HoverTool:
    """A hover for the lines of one value column."""
    # BokehJS puts values in the place of `@name` and `$name`, also in a name such as `price@home`.
    name = escape(column).replace("@", "&#64;").replace("$", "&#36;")
    return HoverTool(
        renderers=[lines],
        tooltips=_TOOLTIP.format(font=theme.FONT.replace('"', "'"), column=name),
        formatters={
            "$snap_x": bounds.model,
            "$snap_y": said(Kind.NUMBER),
            "$x": CustomJSHover(code=_STATE),
        },
        line_policy="nearest",
        visible=False,
    )
