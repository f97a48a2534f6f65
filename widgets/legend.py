"""The legend of all panels, above the first one."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.core.properties import value
from bokeh.models import GlyphRenderer, Legend, LegendItem

from workbench.widgets import theme
from workbench.widgets.figures import Panel
from workbench.widgets.theme import Theme


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
        """A line without data for the legend, which all lines of the key follow in the page.

        BokehJS draws the whole legend anew whenever data of a renderer in it change, a canvas for each entry: with
        twenty live keys that took half of the page's time.
        """
        first = self._panels[0]
        sample = first.sample(slot)
        first.samples.append(sample)
        for panel in self._panels:
            for line in panel.lines[slot]:
                sample.js_link("muted", line, "muted")
        return sample


def _short(label: str) -> str:
    return label if len(label) <= 28 else f"{label[:27]}…"
