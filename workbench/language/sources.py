"""The FROM clause: which stream a statement reads."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from workbench.errors import did_you_mean
from workbench.language.sql import SqlText
from workbench.logical import Stream


def bind_source(
    text: SqlText, select: exp.Select, streams: Mapping[str, Stream], default: str | None
) -> tuple[Stream, str]:
    """The stream of FROM, or the one called ``default`` without FROM, and the name that may stand before columns.

    Names are matched without regard to case. Raises QueryError for an unknown source, for everything that is not
    a source, and for a stream without a proper time column.
    """
    clause = select.args.get("from_")
    if clause is not None:
        stream = _find(text, clause.this, _source_name(text, clause.this), streams)
        return stream, clause.this.alias or stream.name
    if default is None:
        known = did_you_mean("", streams, "source")
        raise text.error("the query has no FROM", select, hint=f"name a source; {known}")
    stream = _find(text, select, default, streams)
    return stream, stream.name


def _source_name(text: SqlText, table: exp.Expr) -> str:
    extras = {part for part, value in table.args.items() if value} - {"this", "db", "catalog", "alias"}
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or extras:
        raise text.error(
            "FROM needs the name of a source", table, hint="prepare the rows before they become a source"
        )
    return ".".join(part.name for part in table.parts)


def _find(text: SqlText, place: exp.Expr, name: str, streams: Mapping[str, Stream]) -> Stream:
    by_fold = {known.casefold(): stream for known, stream in streams.items()}
    stream = by_fold.get(name.casefold())
    if stream is None:
        hint = did_you_mean(name, streams, "source")
        raise text.error(f"unknown source `{name}`", place, hint=hint)
    if stream.time not in stream.schema.names:
        hint = did_you_mean(stream.time, stream.schema.names, "column")
        raise text.error(f"`{stream.name}` has no column `{stream.time}` for its time", place, hint=hint)
    kind = stream.schema.field(stream.time).type
    if not pa.types.is_timestamp(kind):
        message = f"the time column `{stream.time}` of `{stream.name}` must be a timestamp, got `{kind}`"
        raise text.error(message, place)
    return stream
