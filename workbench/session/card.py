"""How a notebook shows the handle of a query: what it asks, how it is doing, what can be done with it. Pure text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from workbench.results import Status
from workbench.session.status import QueryStatus, unattended
from workbench.time import format_time

#: Colours of the page it stands in (JupyterLab's variables), light where it has none.
_INK, _MUTED = "var(--jp-ui-font-color1, #1f2933)", "var(--jp-ui-font-color2, #5f6b7a)"
_RULE, _RAISED = "var(--jp-border-color2, #cbd2d9)", "var(--jp-layout-color2, #f3f5f7)"
_GOOD, _BUSY, _BAD = (
    "var(--jp-success-color1, #00855f)",
    "var(--jp-warn-color1, #b36b00)",
    "var(--jp-error-color1, #c92a2a)",
)
_STATES = {"running": _GOOD, "finished": _GOOD, "failed": _BAD}
_STATUSES = tuple(status.name.lower() for status in (Status.FINAL, Status.PROVISIONAL, Status.REVISED))
_FONT = "font:13px/1.5 var(--jp-ui-font-family, sans-serif)"
_CODE = "font:12px/1.5 var(--jp-code-font-family, monospace)"


def card_html(status: QueryStatus, source: str, text: str, *, drawable: bool) -> str:
    """The handle of a query over ``source`` as HTML; everything from outside is escaped.

    ``text`` is the query as SQL, ``drawable`` whether a plot can show its results.
    """
    colour = _STATES.get(status.state, _BUSY)
    parts = [
        f'<div><b style="font-size:14px">{escape(status.query)}</b> '
        f'<span style="color:{_MUTED}">on</span> {escape(source)} &nbsp;'
        f'<span style="color:{colour}">&#9679;</span> {escape(status.state)}</div>',
        f'<div style="color:{_MUTED}">{escape(_facts(status))}</div>',
    ]
    if status.error:
        parts.append(f'<div style="color:{_BAD};white-space:pre-wrap">{escape(status.error)}</div>')
    if status.background:
        parts.append(f'<div style="color:{_MUTED}">{escape(unattended(status.background))}</div>')
    parts += [_windows(status), _calls(status.query, drawable), _details(text)]
    return f'<div style="{_FONT};color:{_INK};display:grid;gap:6px;padding:4px 0">{"".join(parts)}</div>'


def _facts(status: QueryStatus) -> str:
    facts = [f"{status.rows:,} rows read", f"{status.rows_per_s:,.0f} rows/s", f"{status.late:,} late"]
    if status.watermark is not None:
        facts.append(f"watermark {format_time(status.watermark)}")
    return " · ".join(facts)


def _windows(status: QueryStatus) -> str:
    """A line for each level: how many windows there are of each status."""
    cell = f'style="text-align:right;padding:1px 14px 1px 0;border-bottom:1px solid {_RULE}"'
    name = cell.replace("right", "left")
    heads = "".join(f"<th {cell}>{word}</th>" for word in _STATUSES)
    lines = [
        f"<tr><td {name}>{escape(label)}</td>"
        + "".join(f"<td {cell}>{counts.get(word, 0):,}</td>" for word in _STATUSES)
        + "</tr>"
        for label, counts in status.windows.items()
    ]
    return (
        f'<table style="border-collapse:collapse;margin:0;width:max-content;color:inherit;{_FONT}">'
        f"<thead><tr><th {name}>windows</th>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _calls(name: str, drawable: bool) -> str:
    """What to write into the next cell."""
    calls: Sequence[tuple[str, str]] = (
        *([(f"workbench.dashboard({name})", "a live, zoomable plot")] if drawable else []),
        (f"{name}.results()", "the windows as a DataFrame"),
        (f"{name}.plan()", "the shared plan"),
        (f"{name}.stop()", "stop it; results stay"),
    )
    shown = "".join(
        f'<code style="{_CODE};background:{_RAISED};padding:0 5px">{escape(call)}</code>'
        f'<span style="color:{_MUTED}">{use}</span>'
        for call, use in calls
    )
    return (
        '<div style="display:grid;grid-template-columns:max-content max-content;'
        f'gap:3px 12px;align-items:baseline">{shown}</div>'
    )


def _details(text: str) -> str:
    return (
        f'<details><summary style="cursor:pointer;color:{_MUTED}">the query</summary>'
        f'<pre style="{_CODE};color:{_INK};background:{_RAISED};margin:4px 0 0;padding:6px 10px;'
        'white-space:pre-wrap">'
        f"{escape(text)}</pre></details>"
    )
