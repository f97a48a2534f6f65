"""The status strip above the plots, as HTML. Pure text; every value from outside is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from workbench.time import format_time
from workbench.widgets import theme

_STATES = {"running": theme.GOOD, "finished": theme.GOOD, "failed": theme.BAD, "error": theme.BAD}


def strip_html(status: Mapping[str, Any], level: str, error: str | None = None) -> str:
    """One line of facts, and a red one below where there is an error.

    Known entries of ``status``, each optional: ``state`` (text), ``rows_per_second`` (number), ``watermark`` (int
    microseconds), ``late_rows`` (int), ``error`` (text). ``level`` is the text of the level on show; ``error``
    comes before the one in ``status``.
    """
    facts = []
    if status.get("state"):
        state = str(status["state"])
        dot = f'<span style="color:{_STATES.get(state.casefold(), theme.BUSY)}">&#9679;</span>'
        facts.append(f"{dot} <b>{escape(state)}</b>")
    if status.get("rows_per_second") is not None:
        facts.append(_fact("rows/s", f"{float(status['rows_per_second']):,.0f}"))
    if status.get("watermark") is not None:
        facts.append(_fact("watermark", format_time(int(status["watermark"]))))
    if status.get("late_rows") is not None:
        facts.append(_fact("late rows", f"{int(status['late_rows']):,}"))
    facts.append(_fact("level", level))
    line = "".join(f'<span style="white-space:nowrap">{fact}</span>' for fact in facts)
    html = (
        f'<div style="display:flex;flex-wrap:wrap;gap:2px 22px;font:13px {theme.FONT};color:{theme.INK};'
        f'font-variant-numeric:tabular-nums">{line}</div>'
    )
    text = error or status.get("error")
    if text:
        html += (
            f'<div role="alert" style="margin-top:4px;font:13px {theme.FONT};color:{theme.BAD};'
            f'white-space:pre-wrap">{escape(str(text))}</div>'
        )
    return html


def _fact(name: str, value: str) -> str:
    return f'<span style="color:{theme.MUTED}">{name}:</span> {escape(value)}'
