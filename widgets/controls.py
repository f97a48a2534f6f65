"""The buttons and texts around the plots. Bokeh models only; what they do is the view's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from html import escape
from typing import Any

from bokeh.models import (
    Column,
    Div,
    InlineStyleSheet,
    Model,
    RadioButtonGroup,
    Row,
    Select,
    Toggle,
)

from workbench.widgets.export import KINDS
from workbench.widgets.picker import KeyPicker
from workbench.widgets.theme import CONTROLS, FONT, Theme

AUTO = "auto"
#: What the export menu says while nothing is asked for.
NOTHING = "Export"
_BANDS = ("band: auto", "band: on", "band: off")


class Shown(IntEnum):
    """What stands below the strip."""

    LINES = 0
    MULTIPLES = 1
    TABLE = 2
    PLAN = 3
    CODE = 4


class Controls:
    """The header, the strip of facts, and the boxes of table and code."""

    def __init__(self, title: str, modes: RadioButtonGroup, keys: KeyPicker, theme: str, bands: bool) -> None:
        sheets = [InlineStyleSheet(css=CONTROLS)]
        self._title = Div(
            text=f'<span style="font:600 16px {FONT};color:var(--wq-ink)">{escape(title)}</span>',
            disable_math=True,
            margin=(9, 10, 0, 8),
        )
        self.views = RadioButtonGroup(
            labels=["Lines", "Multiples", "Table", "Plan", "Code"], active=0, stylesheets=sheets
        )
        self.level = Select(options=[AUTO], value=AUTO, width=180, stylesheets=sheets)
        self.pause = Toggle(label="Pause", stylesheets=sheets)
        self.options = Toggle(label="Options", stylesheets=sheets)
        # Not higher than the line of facts, which would push the plots down and up as it comes and goes.
        self.finer = Toggle(label="", visible=False, margin=(-3, 5, -3, 5), stylesheets=sheets)
        self.bands = Select(options=list(_BANDS), value=_BANDS[0], width=122, visible=bands, stylesheets=sheets)
        self.theme = Select(
            options=[(AUTO, "theme: auto"), ("light", "light"), ("dark", "dark")],
            value=theme, width=130, stylesheets=sheets,
        )  # fmt: skip
        self.menu = Select(options=[NOTHING], value=NOTHING, width=86, visible=False, stylesheets=sheets)
        for model in (self.views, modes, self.pause, self.level, self.menu, self.options):
            model.margin = (5, 3)  # so that all of them stand in one line where a page has the room
        self.header = Row(
            self._title, self.views, modes, self.pause, self.level, self.menu, self.options,
            sizing_mode="stretch_width",
            styles={"flex-wrap": "wrap", "row-gap": "0"},
        )  # fmt: skip
        line = Row(
            *keys.line, self.bands, self.theme, keys.told, sizing_mode="stretch_width", styles={"flex-wrap": "wrap"}
        )
        self.choices = Column(line, keys.chips, sizing_mode="stretch_width", visible=False)
        self.strip = Div(text="", disable_math=True, sizing_mode="stretch_width", margin=(2, 8, 4, 8))
        self.facts = Row(self.strip, self.finer, sizing_mode="stretch_width")
        box = {"max-height": "460px", "overflow": "auto", "color": "var(--wq-ink)", "font": f"13px {FONT}"}
        # A key or a pattern such as `\\(a\\)` is a text, never a formula.
        plain = {"disable_math": True, "sizing_mode": "stretch_width", "visible": False}
        self.table = Div(text="", **plain, styles=box)
        self.plan = Div(text="", **plain, styles=box | {"max-height": "none"})
        self.code = Div(text="", **plain, styles=box)
        self.offered: str | None = None

    @property
    def inputs(self) -> list[tuple[Model, str]]:
        """What a page may change."""
        values = [(model, "value") for model in (self.level, self.bands, self.theme, self.menu)]
        return [*values, *((model, "active") for model in (self.views, self.pause, self.options, self.finer))]

    @property
    def shown(self) -> Shown:
        """What stands below the strip."""
        return Shown(int(self.views.active))

    @property
    def state(self) -> tuple[Any, ...]:
        """Differs where the picture must be drawn anew."""
        return (self.shown, self.bands.value)

    def band(self, few: bool) -> bool:
        """Whether bands are drawn; left to itself, with ``few`` keys."""
        return {_BANDS[0]: few, _BANDS[1]: True}.get(str(self.bands.value), False)

    def levels(self, labels: Sequence[str]) -> None:
        """The levels that can be pinned."""
        self.level.options = [(AUTO, "level: auto"), *((label, label) for label in labels)]

    def offer(self, level: str | None) -> None:
        """Show the button that adds a level, or hide it."""
        if level != self.offered:
            self.offered = level
            self.finer.update(label=f"+ {level}" if level else "", visible=level is not None)

    def allow_export(self, kinds: Sequence[str] = KINDS) -> None:
        """Show the menu of files; for owners that can hand a file to a page."""
        self.menu.update(options=[NOTHING, *kinds], visible=True)

    def leave(self) -> None:
        """Take away all that asks the kernel: for a picture that has none."""
        self.header.children = [self._title]
        self.finer.visible = False

    def tell_code(self, texts: Mapping[str, str]) -> None:
        """Show the texts of a query."""
        parts = [
            f'<div style="font-weight:600;margin:6px 0 2px">{escape(name)}</div>'
            f'<pre style="margin:0;padding:8px 10px;background:var(--wq-raised);white-space:pre-wrap;'
            f'font:12.5px/1.45 ui-monospace,Menlo,Consolas,monospace">{escape(text)}</pre>'
            for name, text in texts.items()
        ]
        html = "".join(parts) or '<p style="color:var(--wq-muted)">nothing is known of the query</p>'
        if html != self.code.text:
            self.code.text = html

    def recolour(self, root: Column, to: Theme) -> None:
        """Give everything below ``root`` the colours of a theme."""
        root.styles = {"background-color": to.paper, "color": to.ink, **to.variables()}
