"""The status strip above the plots, as HTML. Pure text; every value from outside is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from workbench.time import format_duration, format_time
from workbench.widgets import theme

#: Seconds without a row after which the strip says so.
_QUIET = 5.0
_STATES = {"running": "good", "finished": "good", "failed": "bad", "error": "bad"}


def strip_html(status: Mapping[str, Any], level: str, error: str | None = None) -> str:
    """One line of facts, and a red one below where there is an error.

    Known entries of ``status``, each optional: ``state`` (text), ``rows_per_second`` (number), ``quiet_seconds`` (how
    long no row has come, told from some seconds on while it runs), ``watermark`` (int microseconds), ``lag``
    (microseconds from the watermark to the latest row), ``late_rows`` (int), ``batch_seconds`` (number),
    ``state_bytes`` (int), ``kept_rows`` (int), ``reworked`` (what rows out of order have made necessary, a count by
    name, of which zeros are left out), ``error`` and ``hint`` (texts). ``level`` is the text of the level on show;
    ``error`` comes before the one in ``status``.
    """
    facts = []
    if status.get("state"):
        state = str(status["state"])
        colour = _STATES.get(state.casefold(), "busy")
        facts.append(f'<span style="color:var(--wq-{colour})">&#9679;</span> <b>{escape(state)}</b>')
    quiet = status.get("quiet_seconds")
    if quiet is not None and quiet >= _QUIET:
        facts.append(f'<span style="color:var(--wq-busy)">no row for {quiet:,.0f} s</span>')
    facts.append(_fact("level", level))
    facts += [_fact(name, write(status[entry])) for entry, name, write in _FACTS if status.get(entry) is not None]
    line = "".join(f'<span style="white-space:nowrap">{fact}</span>' for fact in facts)
    html = (
        f'<div style="display:flex;flex-wrap:wrap;gap:2px 14px;font:13px {theme.FONT};color:var(--wq-ink);'
        f'font-variant-numeric:tabular-nums">{line}</div>'
    )
    text = error or status.get("error")
    if text:
        hint = "" if error or not status.get("hint") else f"\nhint: {status['hint']}"
        html += (
            f'<div role="alert" style="margin-top:4px;font:13px {theme.FONT};color:var(--wq-bad);'
            f'white-space:pre-wrap">{escape(str(text) + hint)}</div>'
        )
    return html


def _duration(micros: int) -> str:
    """A duration in its largest two units: the strip has little room."""
    return " ".join(format_duration(int(micros)).split()[:4])


def _bytes(size: int) -> str:
    scaled = float(size)
    for unit in ("B", "kB", "MB"):
        if scaled < 1_000:
            return f"{scaled:.0f} {unit}" if unit == "B" or scaled >= 10 else f"{scaled:.1f} {unit}"
        scaled /= 1_000
    return f"{scaled:,.1f} GB"


def _counted(work: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in work.items() if count)


#: Facts in their order: the entry of the status, its name on show, how it is written.
_FACTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("rows_per_second", "rows/s", lambda rate: f"{float(rate):,.0f}"),
    ("watermark", "watermark", lambda time: format_time(int(time))),
    ("lag", "lag", _duration),
    ("late_rows", "late rows", lambda rows: f"{int(rows):,}"),
    ("batch_seconds", "batch", lambda seconds: f"{float(seconds):.2f} s"),
    ("state_bytes", "state", _bytes),
    ("kept_rows", "rows kept", lambda rows: f"{int(rows):,}"),
    ("reworked", "out of order", _counted),
)


def _fact(name: str, value: str) -> str:
    return f'<span style="color:var(--wq-muted)">{name}:</span> {escape(value)}'
