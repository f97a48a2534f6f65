"""The windows on show as an HTML table, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.logical.types import is_numeric
from workbench.results import QueryResults, Status
from workbench.results.keys import key_values
from workbench.time import MINUTE, format_time
from workbench.widgets.export import rows_on_show
from workbench.widgets.keys import Key, part_label

#: Rows of a table at most.
ROWS = 100
_STYLE = (
    "<style>table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}"
    "th{position:sticky;top:0;background:var(--wq-raised);text-align:right;font-weight:600}"
    "th,td{padding:3px 6px;border-bottom:1px solid var(--wq-grid);white-space:nowrap;"
    "max-width:28em;overflow:hidden;text-overflow:ellipsis}td{text-align:right}"
    "th.t,td.t{text-align:left}.o{color:var(--wq-muted)}.r{color:var(--wq-busy)}</style>"
)
_MISSING = '<span class="o">&ndash;</span>'
_LOOKS = {Status.PROVISIONAL.name.lower(): "t o", Status.REVISED.name.lower(): "t r"}


def table_html(results: QueryResults, level: int, start: int, end: int, keys: Sequence[Key]) -> str:
    """The newest ``ROWS`` windows of a level that end in ``[start, end]`` microseconds, of some keys.

    All columns are there, those that no line can show too, and numbers of their own, integers and decimals to the
    last digit.
    """
    ends = _ends(results, level, start, end, keys)
    if not len(ends):
        return _STYLE + '<p style="color:var(--wq-muted)">no window in this range</p>'
    since = int(np.partition(ends, -ROWS)[-ROWS]) if len(ends) > ROWS else start
    table = rows_on_show(results, level, since, end, keys)
    newest = np.argsort(-table["window_end"].cast(pa.int64()).to_numpy(), kind="stable")[:ROWS]
    table = table.take(pa.array(newest))
    bounds = zip(*(table[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")), strict=True)
    by = [name for name, _ in results.schema.keys]
    values = results.schema.values
    columns = {name: _written(table[name]) for name in (*by, *dict(values), "status")}
    sides = {name: "" if is_numeric(kind) else "t" for name, kind in values}
    heads = [("window (UTC)", "t"), *((name, "t") for name in by), *sides.items(), ("status", "t")]
    head = "".join(f'<th scope="col" class="{side}">{escape(name)}</th>' for name, side in heads)
    lines = []
    for place, (first, last) in enumerate(bounds):
        cells = [(_bounds(first, last), "t")]
        cells += [(escape(part_label(columns[name][place])), "t") for name in by]
        cells += [(_cell(columns[name][place]), side) for name, side in sides.items()]
        status = columns["status"][place]
        cells.append((status, _LOOKS.get(status, "t")))
        lines.append("<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in cells) + "</tr>")
    more = len(ends) - len(lines)
    note = f'<p style="color:var(--wq-muted)">{more:,} earlier rows in this range</p>' if more else ""
    return f"{_STYLE}<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{note}"


def _ends(results: QueryResults, level: int, start: int, end: int, keys: Sequence[Key]) -> np.ndarray[Any, Any]:
    """The ends in ``[start, end]`` of all windows of the keys."""
    shape = results.schema.levels[level]
    size = shape.size if shape.regular else 0
    series = results.series(level, start - size if size else None, end - size + 1, keys, values=())
    ends = np.broadcast_to(series.ends, series.status.shape)
    found: np.ndarray[Any, Any] = ends[(series.status != Status.ABSENT) & (ends >= start) & (ends <= end)]
    return found


def _bounds(start: int, end: int) -> str:
    """Start and end, without seconds where both are whole minutes, the end without what it shares of the date."""
    first, last = format_time(start), format_time(end)
    (day, _), (other, _) = first.split(), last.split()
    year = len("-01-01")
    shared = len(day) + 1 if day == other else len(day) - year + 1 if day[:-year] == other[:-year] else 0
    if start % MINUTE == end % MINUTE == 0:
        first, last = first[:-3], last[:-3]
    return f"{first} &ndash; {last[shared:]}"


def _written(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times as texts, as there may be some that Python has no value for."""
    if not pa.types.is_timestamp(column.type):
        return key_values(column)
    return [None if each is None else format_time(each) for each in column.cast(pa.int64()).to_pylist()]


def _cell(value: Any) -> str:
    if value is None or value != value:
        return _MISSING
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        return f"{value:,.0f}" if whole else f"{value:,.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Decimal):
        return f"{value:,f}"
    return escape(part_label(value))
