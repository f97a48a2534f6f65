"""From a text with statements to logical queries."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.language.binder import bind_statement
from workbench.language.sql import parse_statements
from workbench.logical import Query, Stream


def parse_queries(
    text: str, streams: Mapping[str, Stream], *, name: str, default_stream: str | None = None
) -> tuple[Query, ...]:
    """The queries of a text, one per statement, in order; at least one.

    ``streams`` are the known sources by name, ``default_stream`` the one that a statement without FROM reads. One
    statement gets ``name``; several get ``name``, ``name_2``, ``name_3`` ...

    Raises QueryError, with the place in ``text``, for the first thing that is wrong in any statement: either all
    of them are right or none is returned. No text is ever executed.
    """
    sql, statements = parse_statements(text)
    return tuple(
        bind_statement(
            sql,
            statement,
            streams,
            name=name if number == 1 else f"{name}_{number}",
            default_stream=default_stream,
        )
        for number, statement in enumerate(statements, start=1)
    )
