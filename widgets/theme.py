"""Colours and fonts of every picture we draw, live or still."""

from __future__ import annotations

#: Safe for colour-blind eyes: Okabe and Ito (yellow darkened to be seen on white), then Paul Tol's "muted".
PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#3c3c3c", "#a89b00",
    "#332288", "#882255", "#44aa99", "#cc6677", "#117733", "#aa4499", "#88ccee", "#ddcc77",
    "#661100", "#6699cc", "#999933", "#888888",
)  # fmt: skip

FONT = "Inter, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"

INK, MUTED, RULE, GRID = "#1f2933", "#5f6b7a", "#cbd2d9", "#edf0f3"
GOOD, BUSY, BAD = "#009e73", "#e69f00", "#c92a2a"

#: A provisional result (its window is still open) is drawn with this dash and opacity.
OPEN_DASH, OPEN_ALPHA = (5, 3), 0.75


def colour(position: int) -> str:
    """The colour of the key at a position; colours come again after twenty."""
    return PALETTE[position % len(PALETTE)]


#: Opacity of a key that was muted in the legend.
MUTED_ALPHA = 0.08
