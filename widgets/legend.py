"""The legend of all panels, above the first one."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.core.properties import value
from bokeh.models import CustomJS, GlyphRenderer, Legend, LegendItem

from workbench.widgets import theme
from workbench.widgets.figures import Panel
from workbench.widgets.theme import Theme

#: All lines of a key follow the sample in the legend, which changes over after this.
_MUTE = """
const muted = !cb_obj.item.renderers[0].muted
for (const line of lines[items.indexOf(cb_obj.item)]) line.muted = muted
"""


class KeyLegend:
    """An entry for each key on show; a click mutes a key everywhere."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        self._panels = panels
        self.model = Legend(
            orientation="horizontal",
            location="top_left",
            click_policy="mute",
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
        self._click = CustomJS(args={"items": [], "lines": []}, code=_MUTE)
        self.model.js_on_event("legend_item_click", self._click)
        panels[0].figure.add_layout(self.model, "above")

    def recolour(self, to: Theme) -> None:
        """Take the ink of another theme."""
        self.model.label_text_color = to.ink

    def show(self, labels: Sequence[str], width: int) -> None:
        """Entries for ``labels``, in as many columns as ``width`` pixels allow."""
        items = list(self.model.items)
        items += [
            LegendItem(label=value(labels[slot]), renderers=[self._sample(slot)])
            for slot in range(len(items), len(labels))
        ]
        if len(items) > len(self.model.items):
            self._panels[0].arrange()
            self.model.items = items
            self._click.args = {
                "items": items,
                "lines": [
                    [line for panel in self._panels for line in panel.lines[slot]] for slot in range(len(items))
                ],
            }
        for slot, item in enumerate(items):
            label = value(_short(labels[slot]) if slot < len(labels) else "")
            if item.label != label:
                item.label = label
            item.visible = slot < len(labels)
        longest = max((len(_short(label)) for label in labels), default=1)
        columns = max(1, min(len(labels) or 1, width // (36 + 8 * longest)))
        if self.model.ncols != columns:
            self.model.ncols = columns
        self.model.visible = bool(labels)

    def _sample(self, slot: int) -> GlyphRenderer:
        """A line without data for the legend.

        BokehJS draws the whole legend anew, a canvas for each entry, whenever anything changes that can be reached
        from its items. With lines of twenty live keys in it, that took half of the page's time.
        """
        sample = self._panels[0].sample(slot)
        self._panels[0].samples.append(sample)
        return sample


def _short(label: str) -> str:
    return label if len(label) <= 28 else f"{label[:27]}…"
