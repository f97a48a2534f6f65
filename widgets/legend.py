"""The legend of all panels, above the first one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import CDSView, ColumnDataSource, CustomJS, GlyphRenderer, Legend, LegendItem, MultiLine

from workbench.widgets import theme
from workbench.widgets.figures import Panel, update
from workbench.widgets.keys import short_label
from workbench.widgets.theme import Theme

#: Which keys are muted is noted in the source of the keys, which all lines follow.
_MUTE = """
const slot = cb_obj.item.index
const muted = keys.data.muted.map((each, place) => (place === slot ? !each : each))
keys.setv({data: {...keys.data, muted}}, {sync: false})
const alpha = muted.map((each) => (each ? faint : 1))
samples.setv({data: {...samples.data, alpha}}, {sync: false})
"""


class KeyLegend:
    """An entry for each key on show; a click mutes a key everywhere."""

    def __init__(self, panel: Panel, keys: ColumnDataSource) -> None:
        self._keys = keys
        # Lines without data: BokehJS draws the whole legend anew, a canvas for each entry, whenever anything changes
        # that can be reached from its items.
        self._samples = ColumnDataSource(_sample_columns(0))
        by_key = {"field": "key", "transform": panel.colours}
        glyph = MultiLine(xs="xs", ys="ys", line_color=by_key, line_alpha="alpha", line_width=2.5)
        self._renderer = GlyphRenderer(
            data_source=self._samples, view=CDSView(), glyph=glyph, nonselection_glyph=None
        )
        panel.figure.renderers = [self._renderer, *panel.figure.renderers]
        self.model = Legend(
            orientation="horizontal",
            location="top_left",
            click_policy="none",
            border_line_color=None,
            background_fill_alpha=0,
            inactive_fill_alpha=0,
            label_text_font=theme.FONT,
            label_text_font_size="12px",
            label_text_color=theme.LIGHT.ink,
            glyph_width=18,
            glyph_height=14,
            label_height=14,
            spacing=10,
            padding=2,
            margin=4,
            visible=False,
        )
        click = CustomJS(args={"keys": keys, "samples": self._samples, "faint": theme.MUTED_ALPHA}, code=_MUTE)
        self.model.js_on_event("legend_item_click", click)
        panel.figure.add_layout(self.model, "above")

    def recolour(self, to: Theme) -> None:
        """Take the ink of another theme."""
        self.model.label_text_color = to.ink

    def show(self, labels: Sequence[str], width: int) -> None:
        """Entries for ``labels``, in as many columns as ``width`` pixels allow."""
        items = list(self.model.items)
        items += [
            LegendItem(label=value(""), renderers=[self._renderer], index=slot)
            for slot in range(len(items), len(labels))
        ]
        if len(items) > len(self._samples.data["key"]):
            update(self._samples, _sample_columns(len(items)))
        if len(items) > len(self.model.items):
            self.model.items = items
        for slot, item in enumerate(items):
            label = value(short_label(labels[slot]) if slot < len(labels) else "")
            if item.label != label:
                item.label = label
            item.visible = slot < len(labels)
        longest = max((len(short_label(label)) for label in labels), default=1)
        columns = max(1, min(len(labels) or 1, width // (36 + 8 * longest)))
        if self.model.ncols != columns:
            self.model.ncols = columns
        self.model.visible = bool(labels)


def _sample_columns(count: int) -> dict[str, list[Any]]:
    """``count`` lines in the colours of the keys that are nowhere."""
    nowhere = [[np.nan]] * count
    keys = [slot % len(theme.LIGHT.palette) for slot in range(count)]
    return {"xs": nowhere, "ys": nowhere, "key": keys, "alpha": [1.0] * count}
