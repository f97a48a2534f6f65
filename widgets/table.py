"""The windows on show as an HTML table, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from workbench.results import QueryResults, Status
from workbench.time import MINUTE, format_time
from workbench.widgets.keys import Key, key_label
from workbench.widgets.reading import aligned

#: Rows of a table at most.
ROWS = 100
_STYLE = (
    "<style>table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}"
    "th{position:sticky;top:0;background:var(--wq-raised);text-align:right;font-weight:600}"
    "th,td{padding:3px 6px;border-bottom:1px solid var(--wq-grid);white-space:nowrap}"
    "td{text-align:right}th.t,td.t{text-align:left}.o{color:var(--wq-muted)}.r{color:var(--wq-busy)}</style>"
)


def table_html(results: QueryResults, level: int, start: int, end: int, keys: Sequence[Key]) -> str:
    """The newest ``ROWS`` windows of a level that end in ``[start, end]`` microseconds, of some keys."""
    shape, names = results.schema.levels[level], results.schema.numeric
    since = start - shape.size if shape.regular else None
    series = aligned(results.series(level, since, end - (shape.size if shape.regular else 0) + 1, keys), keys)
    ends = np.broadcast_to(series.ends, series.status.shape)
    there = (series.status != Status.ABSENT) & (ends >= start) & (ends <= end)
    rows, columns = np.nonzero(there)
    order = np.lexsort((columns, -ends[rows, columns]))[:ROWS]
    by = ", ".join(name for name, _ in results.schema.keys)
    heads = ["window (UTC)", *([by] if by else []), *names, "status"]
    text = {0, len(heads) - 1, *([1] if by else [])}
    head = "".join(
        f'<th class="{"t" if place in text else ""}">{escape(name)}</th>' for place, name in enumerate(heads)
    )
    lines = []
    for row, column in zip(rows[order], columns[order], strict=True):
        status = Status(int(series.status[row, column]))
        cells = [(_bounds(int(series.starts[row]), int(ends[row, column])), "t")]
        if by:
            cells.append((escape(key_label(keys[column])), "t"))
        cells += [(_number(series.values[name][row, column]), "") for name in names]
        cells.append((status.name.lower(), {Status.PROVISIONAL: "t o", Status.REVISED: "t r"}.get(status, "t")))
        lines.append("<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in cells) + "</tr>")
    if not lines:
        return _STYLE + '<p style="color:var(--wq-muted)">no window in this range</p>'
    more = len(rows) - len(lines)
    note = f'<p style="color:var(--wq-muted)">{more:,} earlier rows in this range</p>' if more else ""
    return f"{_STYLE}<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{note}"


def _bounds(start: int, end: int) -> str:
    """Start and end, without seconds where both are whole minutes, the end without what it shares of the date."""
    first, last = format_time(start), format_time(end)
    (day, _), (other, _) = first.split(), last.split()
    year = len("-01-01")
    shared = len(day) + 1 if day == other else len(day) - year + 1 if day[:-year] == other[:-year] else 0
    if start % MINUTE == end % MINUTE == 0:
        first, last = first[:-3], last[:-3]
    return f"{first} &ndash; {last[shared:]}"


def _number(value: float) -> str:
    if np.isnan(value):
        return '<span class="o">&ndash;</span>'
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:,.6g}"
