"""Small multiples: one value column, a small figure for each key, all on the same axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bokeh.models import Column, ColumnDataSource, DataRange1d, Div, InlineStyleSheet, Range1d, Row, Select, Spacer

from workbench.widgets.figures import Panel, key_columns, key_source, update
from workbench.widgets.hover import WindowBounds
from workbench.widgets.keys import short_label
from workbench.widgets.points import Points
from workbench.widgets.theme import CONTROLS, LIGHT, NOTE, Theme
from workbench.widgets.values import Kind

#: Figures at most: more than a page can draw five times a second are of no use.
MOST = 12
#: Pixels of a figure at least; all are alike, and the page puts as many side by side as it has room for.
WIDTH, HEIGHT = 270, 160
_GRID = {"display": "grid", "grid-template-columns": f"repeat(auto-fill, minmax({WIDTH}px, 1fr))"}


class Multiples:
    """Figures are made when first shown; their number follows the keys."""

    def __init__(self, kinds: Mapping[str, Kind], x_range: Range1d, bounds: WindowBounds) -> None:
        self._kinds, self._range, self._bounds = dict(kinds), x_range, bounds
        self._values = DataRange1d(range_padding=0.08)
        self._theme = LIGHT
        self.panels: list[Panel] = []
        self.keys: list[ColumnDataSource] = []
        sheet = InlineStyleSheet(css=CONTROLS)
        self.value = Select(options=list(kinds), value=next(iter(kinds)), width=200, stylesheets=[sheet])
        self._note = Div(text="", disable_math=True, styles=NOTE, stylesheets=[sheet])
        self._figures = Row(Spacer(width=0, height=0), sizing_mode="stretch_width", styles=_GRID)
        self.root = Column(Row(self.value, self._note), self._figures, sizing_mode="stretch_width", visible=False)

    def show(self, points: Points, labels: Sequence[str]) -> None:
        """Draw the points of the chosen column, a figure for each label as far as ``MOST`` goes."""
        shown = labels[:MOST]
        self._note.text = f"the first {MOST} of {len(labels)} keys" if len(labels) > MOST else ""
        for slot in range(len(self.panels), len(shown)):
            keys = key_source([labels[slot]], slot)
            panel = Panel(labels[slot], self._range, self._bounds, HEIGHT, keys, y_range=self._values)
            self.keys.append(keys)
            panel.make_small(HEIGHT)
            panel.recolour(self._theme)
            self.panels.append(panel)
        for slot, label in enumerate(shown):
            panel = self.panels[slot]
            panel.entitle(short_label(label))
            panel.measure(self._kinds[self.value.value])
            update(self.keys[slot], key_columns([label], slot))
            panel.show(points.of(slot), slot, band=True)
        figures = [panel.figure for panel in self.panels[: len(shown)]]
        if self._figures.children != figures:
            self._figures.children = figures

    def recolour(self, to: Theme) -> None:
        """Take the colours of another theme."""
        self._theme = to
        for panel in self.panels:
            panel.recolour(to)
