"""Small multiples: one value column, a small figure for each key, all on the same axes."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.models import Column, DataRange1d, Div, GridBox, InlineStyleSheet, Range1d, Row, Select

from workbench.widgets.figures import Panel
from workbench.widgets.hover import WindowBounds
from workbench.widgets.points import Points
from workbench.widgets.theme import CONTROLS, LIGHT, NOTE, Theme

#: Figures at most: more than a page can draw five times a second are of no use.
MOST = 12
_HEIGHT = 96
#: Pixels beside the frame of a figure: its value axis, its right border, the room to the next one.
_BORDERS = 78 + 18 + 4


class Multiples:
    """Figures are made when first shown; their number follows the keys, their columns the width."""

    def __init__(self, names: Sequence[str], x_range: Range1d, bounds: WindowBounds) -> None:
        self._range, self._bounds = x_range, bounds
        self._values = DataRange1d(range_padding=0.08)
        self._theme = LIGHT
        self._shape: tuple[int, int] = (0, 0)
        self.panels: list[Panel] = []
        sheet = InlineStyleSheet(css=CONTROLS)
        self.value = Select(options=list(names), value=names[0], width=200, stylesheets=[sheet])
        self._note = Div(text="", styles=NOTE, stylesheets=[sheet])
        self._grid = GridBox(children=[], sizing_mode="stretch_width", spacing=4)
        # The first figure is there from the start: it tells the width.
        self._grow([""])
        self.root = Column(Row(self.value, self._note), self._grid, sizing_mode="stretch_width", visible=False)

    def columns(self, width: int) -> int:
        """How many figures stand side by side on ``width`` pixels."""
        return max(1, min(4, width // 300))

    def show(self, points: Points, labels: Sequence[str], width: int) -> None:
        """Draw the points of the chosen column, a figure for each label as far as ``MOST`` goes."""
        shown = labels[:MOST]
        self._note.text = f"the first {MOST} of {len(labels)} keys" if len(labels) > MOST else ""
        self._grow(shown)
        for slot, label in enumerate(shown):
            panel = self.panels[slot]
            panel.entitle(label)
            panel.show(points.of(slot), [label], band=True)
        self._lay_out(len(shown), self.columns(width))

    def whole_width(self, inner: int) -> int:
        """The width of one plot across the page, from the width of a small one's frame."""
        columns = max(1, self._shape[1])
        return columns * (inner + _BORDERS) - _BORDERS

    def _grow(self, labels: Sequence[str]) -> None:
        for slot in range(len(self.panels), len(labels)):
            panel = Panel(labels[slot], self._range, self._bounds, _HEIGHT, first=slot, y_range=self._values)
            panel.figure.xaxis.ticker.desired_num_ticks = 3
            panel.recolour(self._theme)
            self.panels.append(panel)

    def recolour(self, to: Theme) -> None:
        """Take the colours of another theme."""
        self._theme = to
        for panel in self.panels:
            panel.recolour(to)

    def _lay_out(self, count: int, columns: int) -> None:
        if (count, columns) != self._shape:
            self._shape = (count, columns)
            self._grid.children = [
                (panel.figure, *divmod(place, columns)) for place, panel in enumerate(self.panels[:count])
            ]
