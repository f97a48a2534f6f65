"""From a text with statements to logical queries."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.language.binder import bind_statement
from workbench.language.parameters import fill_in
from workbench.language.relations import Catalog
from workbench.language.sql import parse_statements
from workbench.logical import Query, Stream


def parse_queries(
    text: str, known: Catalog | Mapping[str, Stream], *, name: str, default_stream: str | None = None
) -> tuple[Query, ...]:
    """The queries of a text, one per statement, in order; at least one.

    ``known`` is what names can stand for, at least the sources by name; ``default_stream`` the source that a
    statement without FROM reads. One statement gets ``name``; several get ``name``, ``name_2``, ``name_3`` ...

    Raises QueryError, with the place in ``text``, for the first thing that is wrong in any statement: either all
    of them are right or none is returned. No text is ever executed.
    """
    catalog = known if isinstance(known, Catalog) else Catalog(known)
    sql, statements = parse_statements(text)
    return tuple(
        bind_statement(
            sql,
            fill_in(sql, statement, catalog.parameters),
            catalog,
            name=name if number == 1 else f"{name}_{number}",
            default=default_stream,
        )
        for number, statement in enumerate(statements, start=1)
    )
