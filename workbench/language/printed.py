"""A query as SQL and as Python that mean it again."""

from __future__ import annotations

import pyarrow as pa

from workbench.errors import QueryError
from workbench.logical import (
    AnyWindow,
    Backwards,
    Band,
    Calendar,
    CountWindow,
    Cumulating,
    LastRows,
    Literal,
    MeasureWindow,
    Punctuation,
    Query,
    Session,
    UserWindow,
    Window,
)
from workbench.logical.expressions import quote_name
from workbench.logical.joins import joins_of
from workbench.time import format_duration, format_time


def sql_of(query: Query) -> str:
    """The statement, one clause a line; parsing it gives an equal query.

    Raises QueryError for windows that have no form in GROUP BY, and for joins.
    """
    if joins_of(query.where):
        raise QueryError("a query with a join cannot be written as SQL yet", hint="its cell has the text")
    items = ",\n       ".join(map(str, (*query.keys, *query.values)))
    groups = [*(str(named.expression) for named in query.keys), _form(query)]
    clauses = [
        f"SELECT {items}",
        f"FROM {quote_name(query.stream.name)}",
        f"WHERE {query.where}" if query.where is not None else "",
        f"GROUP BY {', '.join(groups)}",
        f"HAVING {query.having}" if query.having is not None else "",
        f"FILL {query.fill.name}" if query.fill is not None else "",
    ]
    return "\n".join(filter(None, clauses))


def _form(query: Query) -> str:
    """The window form of GROUP BY that gives the query's windows."""
    time, (first, *others) = quote_name(query.stream.time), query.windows
    if all(isinstance(window, Window) for window in query.windows):
        return f"zoom({time}, {', '.join(_text(window.label) for window in query.windows)})"
    form = None if others else _single(time, first)
    if form is None:
        raise QueryError(f"the window `{first.label}` cannot be written as SQL")
    return form


def _single(time: str, window: AnyWindow) -> str | None:
    match window:
        case Session(gap, joins):
            form = "session_window" if joins else "gap_window"
            return f"{form}({time}, {_duration(gap) if isinstance(gap, int) else gap})"
        case CountWindow(size, slide):
            return f"count_window({size}, {slide})"
        case Punctuation(condition):
            return f"punctuation_window({condition})"
        case LastRows(rows, every, offset):
            return f"last({rows}, {_duration(every)}, {_duration(offset)})"
        case UserWindow():
            return window.label
        case MeasureWindow(measure, size, slide, offset):
            numbers = ", ".join(map(window.shown, (size, slide, offset)))
            dropped = ", 'drop'" if window.backwards is Backwards.DROP else ""
            return f"measure_window({measure}, {numbers}{dropped})"
        case Cumulating(size, step, offset):
            return f"cumulate_window({time}, {_duration(size)}, {_duration(step)}, {_duration(offset)})"
        case Band(start, end):
            return f"band_window({time}, {_text(format_time(start))}, {_text(format_time(end))})"
        case Calendar(unit, zone, count):
            return f"calendar_window({time}, {_text(f'{count} {unit}s')}, {_text(zone)})"
    return None


def _duration(micros: int) -> str:
    return _text(format_duration(micros))


def _text(value: str) -> str:
    return str(Literal(pa.string(), value))
