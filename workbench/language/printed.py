"""A query as SQL and as Python that mean it again."""

from __future__ import annotations

from workbench.errors import QueryError
from workbench.logical import Query, Window
from workbench.logical.expressions import quote_name


def sql_of(query: Query) -> str:
    """The statement, one clause a line; parsing it gives an equal query.

    Raises QueryError for windows that have no form in GROUP BY.
    """
    items = ",\n       ".join(map(str, (*query.keys, *query.values)))
    groups = [*(str(named.expression) for named in query.keys), _form(query)]
    clauses = [
        f"SELECT {items}",
        f"FROM {quote_name(query.stream.name)}",
        f"WHERE {query.where}" if query.where is not None else "",
        f"GROUP BY {', '.join(groups)}",
        f"HAVING {query.having}" if query.having is not None else "",
    ]
    return "\n".join(filter(None, clauses))


def _form(query: Query) -> str:
    other = next((window for window in query.windows if not isinstance(window, Window)), None)
    if other is not None:
        raise QueryError(f"the window `{other.label}` cannot be written as SQL")
    levels = ", ".join(f"'{window.label}'" for window in query.windows)
    return f"zoom({quote_name(query.stream.time)}, {levels})"
