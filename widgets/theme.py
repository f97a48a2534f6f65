"""Colours and fonts of every picture we draw, live or still, on light ground and on dark."""

from __future__ import annotations

from dataclasses import dataclass

FONT = "Inter, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"

#: A provisional result (its window is still open) is drawn with this dash and opacity.
OPEN_DASH, OPEN_ALPHA = (5, 3), 0.75

#: Opacity of a key that was muted in the legend, and of a band between two values.
MUTED_ALPHA, BAND_ALPHA = 0.08, 0.16


@dataclass(frozen=True)
class Theme:
    """One set of colours. ``palette`` has a colour for each of the first twenty keys."""

    name: str
    paper: str
    ink: str
    muted: str
    rule: str
    grid: str
    raised: str
    good: str
    busy: str
    bad: str
    palette: tuple[str, ...]

    def colour(self, position: int) -> str:
        """The colour of the key at a position; colours come again after twenty."""
        return self.palette[position % len(self.palette)]

    def variables(self) -> dict[str, str]:
        """CSS variables for everything below an element, with those by which BokehJS colours axes and legends."""
        own = {
            name: getattr(self, name)
            for name in ("paper", "ink", "muted", "rule", "grid", "raised", "good", "busy", "bad")
        }
        canvas = {
            "--bk-axis-label-text-color": self.ink,
            "--bk-major-label-text-color": self.muted,
            "--bk-axis-line-color": self.rule,
            "--bk-major-tick-line-color": self.rule,
            "--bk-grid-line-color": self.grid,
            "--bk-label-text-color": self.ink,
            "--bk-title-text-color": self.ink,
            "--bk-text-color": self.ink,
        }
        # The names by which JupyterLab calls them, for pictures made for its pages.
        lab = {
            "--jp-ui-font-color1": self.ink,
            "--jp-ui-font-color2": self.muted,
            "--jp-border-color1": self.rule,
            "--jp-layout-color1": self.paper,
            "--jp-layout-color2": self.raised,
            "--jp-brand-color1": self.colour(0),
        }
        return lab | {f"--wq-{name}": value for name, value in own.items()} | canvas | {"--wq-scheme": self.name}


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1f2933",
    muted="#5f6b7a",
    rule="#cbd2d9",
    grid="#edf0f3",
    raised="#f3f5f7",
    good="#00855f",
    busy="#b36b00",
    bad="#c92a2a",
    # Safe for colour-blind eyes: Okabe and Ito (yellow darkened to be seen on white), then Paul Tol's "muted".
    palette=(
        "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#3c3c3c", "#a89b00",
        "#332288", "#882255", "#44aa99", "#cc6677", "#117733", "#aa4499", "#88ccee", "#ddcc77",
        "#661100", "#6699cc", "#999933", "#888888",
    ),
)  # fmt: skip
DARK = Theme(
    name="dark",
    paper="#111418",
    ink="#e4e7eb",
    muted="#9aa5b1",
    rule="#4b5563",
    grid="#262c34",
    raised="#1d232a",
    good="#2fc99b",
    busy="#f0b429",
    bad="#ff7b7b",
    # The same hues in the same order, the dark ones lightened to be seen on black.
    palette=(
        "#3d9fdc", "#f0803c", "#1fc296", "#e39cc4", "#7cc8f2", "#f5b83d", "#b9bec5", "#d6c832",
        "#8f83e0", "#d0649a", "#64cdbb", "#e8919f", "#4fb36b", "#cf7cc4", "#a8dcf5", "#ecdf9a",
        "#cf7a5c", "#8fb8e6", "#c2c266", "#9ba1a8",
    ),
)  # fmt: skip
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}

#: Texts, buttons and boxes of BokehJS in the colours of the variables above; for `stylesheets` of widgets.
CONTROLS = f"""
:host {{
  --base-font: {FONT}; --font-size: 13px; --padding-vertical: 4px; --padding-horizontal: 9px;
  --color: var(--wq-ink); --background-color: var(--wq-paper); --hover-color: var(--wq-raised);
  --border-color: var(--wq-rule); --divider-color: var(--wq-rule); --placeholder-color: var(--wq-muted);
  --surface-background-color: var(--wq-raised); --default: var(--wq-paper); --default-border: var(--wq-rule);
  --default-hover: var(--wq-raised); --default-active: var(--wq-raised); --icon-color: var(--wq-muted);
  --primary: #2f6fab; --primary-border: #2f6fab; --primary-hover: #2a639a; --primary-active: #2a639a;
  color: var(--wq-ink); color-scheme: var(--wq-scheme);
}}
.bk-input, .bk-btn, label, select, option {{ font: 13px/20px {FONT}; }}
.bk-btn {{ padding: 2px 9px; }}
.bk-input {{ min-height: 26px; padding: 0 9px; }}
select.bk-input {{ appearance: auto !important; background-image: none !important; padding: 0 3px; }}
.bk-input, select, option {{ color: var(--wq-ink); background-color: var(--wq-paper); }}
.bk-btn-default {{ color: var(--wq-ink); background-color: var(--wq-paper); border-color: var(--wq-rule); }}
.bk-btn-default:hover {{ background-color: var(--wq-raised); }}
.bk-btn-default.bk-active {{
  background-color: var(--wq-raised); border-color: var(--wq-muted); font-weight: 600; box-shadow: none;
}}
"""

#: The look of a remark between controls.
NOTE = {"color": "var(--wq-muted)", "align-self": "center", "font": f"13px {FONT}"}
