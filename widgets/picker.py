"""The panel where keys are chosen: search, pick, or the first few by a value. Bokeh models over ``keys``."""

from __future__ import annotations

import time

from bokeh.models import CheckboxButtonGroup, Div, InlineStyleSheet, Model, Select, TextInput

from workbench.results import QueryResults
from workbench.widgets.keys import Key, all_keys, find_keys, key_label, rank_keys
from workbench.widgets.theme import CONTROLS, NOTE

#: Keys that the search shows at most: a page stays quick whatever the number of keys.
HITS = 24
_RANK_SECONDS = 10.0
_ROWS = "most rows"
_CHIPS = (
    CONTROLS
    + """
.bk-btn-group { flex-wrap: wrap; gap: 3px; }
.bk-btn-group > .bk-btn {
  flex: 0 1 auto; max-width: 100%; overflow: hidden; text-overflow: ellipsis; border-radius: 11px !important;
}
.bk-btn.bk-active { color: #fff; background-color: #2f6fab; border-color: #2f6fab; }
"""
)
_NUMBERS = (5, 10, 20, 30, 50)


class KeyPicker:
    """Chooses the keys on show: those picked by hand if there are any, else the first ``top`` of an order."""

    def __init__(self, results: QueryResults, top: int) -> None:
        self._results = results
        self._keys: list[Key] = []
        self._ranked: tuple[object, ...] = ()
        self._due = 0.0
        self._known = 0
        self._hits: list[Key] = []
        self._picked: dict[Key, None] = {}
        self._writing = False
        sheet = InlineStyleSheet(css=CONTROLS)
        orders = [_ROWS, *(f"{way} {name}" for name in results.schema.numeric for way in ("highest", "lowest"))]
        numbers = sorted({*_NUMBERS, top})
        self.search = TextInput(placeholder="find a key", width=150, stylesheets=[sheet])
        self.chips = CheckboxButtonGroup(
            labels=[], active=[], sizing_mode="stretch_width", stylesheets=[InlineStyleSheet(css=_CHIPS)]
        )
        self.number = Select(
            options=[(str(n), f"first {n}") for n in numbers], value=str(top), width=104, stylesheets=[sheet]
        )
        self.order = Select(options=orders, value=_ROWS, width=170, stylesheets=[sheet])
        self.clear = CheckboxButtonGroup(labels=["unpick all"], active=[], stylesheets=[sheet])
        self.told = Div(text="", disable_math=True, styles=NOTE, stylesheets=[sheet])
        #: For one line, with ``told`` at its end; the chips need one or more of their own.
        self.line: list[Model] = [self.search, self.number, self.order, self.clear]
        self.inputs = [
            (self.search, "value_input"),
            (self.chips, "active"),
            (self.number, "value"),
            (self.order, "value"),
            (self.clear, "active"),
        ]
        self.search.on_change("value_input", lambda attr, old, new: self._search())
        self.chips.on_change("active", lambda attr, old, new: self._pick())
        self.clear.on_change("active", lambda attr, old, new: self._unpick())

    @property
    def picked(self) -> list[Key]:
        """The keys picked by hand, in the order of picking."""
        return list(self._picked)

    def pick(self, *keys: Key) -> None:
        """Show these keys; without any the order decides again."""
        self._picked = dict.fromkeys(keys)
        self._search()

    @property
    def state(self) -> tuple[object, ...]:
        """Differs where another choice was made."""
        return (tuple(self._picked), self.number.value, self.order.value)

    def refresh(self, version: int) -> list[Key]:
        """The keys to draw. Of more than fit they are put in order again only every few seconds."""
        top = int(self.number.value)
        choice = (version, *self.state)
        if choice != self._ranked:
            other = self._ranked[1:] != choice[1:]
            if other or len(self._keys) < top or time.monotonic() >= self._due:
                self._keys = self.picked or self._best(top)
                self._ranked, self._due = choice, time.monotonic() + _RANK_SECONDS
                self._tell()
        return self._keys

    def _best(self, top: int) -> list[Key]:
        way, _, name = str(self.order.value).partition(" ")
        if self.order.value == _ROWS:
            return rank_keys(self._results, top)
        return rank_keys(self._results, top, by=name, least=way == "lowest")

    def _tell(self) -> None:
        known = len(all_keys(self._results))
        self.told.text = f"{len(self._keys):,} of {known:,} keys on show" + (", picked" if self._picked else "")
        if known != self._known:
            self._known = known
            self._search()

    def _search(self) -> None:
        text = str(self.search.value_input or "")
        found = find_keys(all_keys(self._results), text, HITS)
        self._hits = list(dict.fromkeys([*self._picked, *found]))[: max(HITS, len(self._picked))]
        self._write()

    def _write(self) -> None:
        self._writing = True
        try:
            labels = [key_label(key) for key in self._hits]
            active = [place for place, key in enumerate(self._hits) if key in self._picked]
            if (labels, active) != (self.chips.labels, self.chips.active):
                self.chips.update(labels=labels, active=active)
        finally:
            self._writing = False

    def _pick(self) -> None:
        if self._writing:
            return
        chosen = {self._hits[place] for place in self.chips.active if place < len(self._hits)}
        if any(place >= len(self._hits) for place in self.chips.active):
            self._write()  # the page had an older list before it: nothing is picked by mistake
            return
        kept = [key for key in self._picked if key in chosen or key not in self._hits]
        self._picked = dict.fromkeys([*kept, *(key for key in self._hits if key in chosen)])

    def _unpick(self) -> None:
        if self.clear.active:
            self.clear.active = []
            self._picked = {}
            self._write()
