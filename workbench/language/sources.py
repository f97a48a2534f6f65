"""The FROM clause: which stream a statement reads, through which sub-selects, joined with which tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.language.clauses import refuse_clauses
from workbench.language.joins import JoinBinder
from workbench.language.parameters import fill_in
from workbench.language.relations import Catalog, Relation, Visible, folded, name_of, source_name
from workbench.language.scalars import ExpressionBinder, Scope
from workbench.language.sql import SqlText, parse_statements
from workbench.logical import Stream

#: Clauses that a sub-select may have: it projects and filters rows.
_CLAUSES = {"expressions", "from_", "where", "joins", "with_"}
_AGGREGATED = "a sub-select computes columns and keeps rows; windows and aggregates belong to the statement around it"


class SourceBinder:
    """Binds the FROM clauses of one text."""

    def __init__(self, text: SqlText, catalog: Catalog, default: str | None) -> None:
        self._text = text
        self._catalog = catalog
        self._default = default
        self._joins = JoinBinder(text, catalog)

    def bind(self, select: exp.Select, known: Mapping[str, Relation] | None = None) -> Relation:
        """The rows that a SELECT is about; ``known`` are the sub-selects that it can name, folded.

        Raises QueryError for an unknown source, for everything that is not a source, and for a stream without a
        proper time column.
        """
        known = {**(known or {}), **self._named(select, known or {})}
        clause = select.args.get("from_")
        if clause is None:
            if self._default is None:
                names = did_you_mean("", self._catalog.streams, "source")
                raise self._text.error("the query has no FROM", select, hint=f"name a source; {names}")
            relation = self._find(select, self._default, {})
        else:
            relation = self._item(clause.this, known)
        for join in select.args.get("joins") or []:
            relation = self._joins.bind(join, relation, known)
        return relation

    def derived(self, select: exp.Expr, name: str, known: Mapping[str, Relation]) -> Relation:
        """The rows of a sub-select, under its name."""
        if not isinstance(select, exp.Select):
            raise self._text.error("a sub-select must be a SELECT", select)
        for clause in ("group", "having"):
            node = select.args.get(clause)
            if node is not None:
                place = node if clause == "group" else node.this
                raise self._text.error(f"a sub-select or snippet has no `{_WORDS[clause]}`", place, hint=_AGGREGATED)
        refuse_clauses(self._text, select, _CLAUSES)
        inner = self.bind(select, known)
        binder = ExpressionBinder(self._text, Scope(inner, "a sub-select"))
        conditions = inner.conditions
        if select.args.get("where") is not None:
            condition = ExpressionBinder(self._text, Scope(inner, "WHERE")).condition(select.args["where"].this)
            conditions = (*conditions, condition)
        columns: dict[str, Visible] = {}
        for item in select.expressions:
            for column in self._projected(item, name, inner, binder):
                if column.name.casefold() in columns:
                    raise self._text.error(
                        f"`{name}` has two columns `{column.name}`", item, hint="rename one with AS"
                    )
                columns[column.name.casefold()] = column
        return Relation(name, inner.stream, tuple(columns.values()), conditions)

    def _projected(self, item: exp.Expr, name: str, inner: Relation, binder: ExpressionBinder) -> list[Visible]:
        """The columns that an item of a sub-select stands for."""
        if isinstance(item, exp.Star) and not any(item.args.values()):
            shown = [c for c in inner.columns if c.qualifier == inner.name or c.name.casefold() not in inner.merged]
            return [Visible(name, column.name, column.expression) for column in shown]
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and not any(item.this.args.values()):
            mine = [c for c in inner.columns if c.qualifier.casefold() == item.table.casefold()]
            if not mine:
                hint = did_you_mean(item.table, inner.qualifiers, "source")
                raise self._text.error(f"unknown source `{item.table}`", item, hint=hint)
            return [Visible(name, column.name, column.expression) for column in mine]
        node = item.unalias()
        bound = binder.bind(node)
        named = item.alias or (node.name if isinstance(node, exp.Column) else "")
        if not named:
            raise self._text.error("a computed column of a sub-select needs a name", item, hint="give it one with AS")
        return [Visible(name, named, bound)]

    def _named(self, select: exp.Select, known: Mapping[str, Relation]) -> dict[str, Relation]:
        """The sub-selects of WITH, each of which sees those before it."""
        clause = select.args.get("with_")
        if clause is None:
            return {}
        if clause.args.get("recursive"):
            raise self._text.error("`WITH RECURSIVE` is not supported", clause, hint=_AGGREGATED)
        found: dict[str, Relation] = {}
        for entry in clause.expressions:
            if entry.args["alias"].args.get("columns"):
                raise self._text.error(
                    "names of columns behind `WITH` are not supported", entry, hint="use AS inside"
                )
            if entry.alias.casefold() in found:
                raise self._text.error(
                    f"`WITH` names `{entry.alias}` twice", entry.args["alias"], hint="give one of them another name"
                )
            found[entry.alias.casefold()] = self.derived(entry.this, entry.alias, {**known, **found})
        return found

    def _item(self, node: exp.Expr, known: Mapping[str, Relation]) -> Relation:
        """One entry of FROM."""
        if isinstance(node, exp.Subquery):
            extras = [part for part, value in node.args.items() if value and part not in ("this", "alias")]
            if extras:
                word = _BEHIND.get(extras[0], extras[0].strip("_").upper())
                raise self._text.error(f"`{word}` behind a sub-select is not supported", node, hint=_AGGREGATED)
            return self.derived(node.this, name_of(self._text, node, "sub-select"), known)
        name = source_name(self._text, node)
        return _renamed(self._find(node, name, known), name_of(self._text, node, name))

    def _find(self, place: exp.Expr, name: str, known: Mapping[str, Relation]) -> Relation:
        """What a name stands for: a sub-select of WITH, a snippet, or a source, in this order."""
        if name.casefold() in known:
            return known[name.casefold()]
        snippet = folded(self._catalog.snippets, name)
        if snippet is not None:
            return self._snippet(*snippet)
        stream = folded(self._catalog.streams, name)
        if stream is None:
            raise self._unknown(place, name, known)
        return Relation.of(self._checked(place, stream[1]), stream[0])

    def _unknown(self, place: exp.Expr, name: str, known: Mapping[str, Relation]) -> QueryError:
        table = folded(self._catalog.tables, name)
        if table is not None:
            hint = f"FROM takes a stream: `FROM stream JOIN {table[0]} ON ...`"
            return self._text.error(f"`{table[0]}` is a static table, which has no time", place, hint=hint)
        if name.casefold() in map(str.casefold, self._catalog.hidden):
            hint = f"add `--with {name}` to the first line of the cell"
            return self._text.error(f"`{name}` is a snippet that this cell does not use", place, hint=hint)
        names = [*self._catalog.streams, *self._catalog.snippets, *(each.name for each in known.values())]
        return self._text.error(f"unknown source `{name}`", place, hint=did_you_mean(name, names, "source"))

    def _snippet(self, name: str, sql: str) -> Relation:
        """The rows of a saved statement, which knows the sources but not itself."""
        snippets = {key: text for key, text in self._catalog.snippets.items() if key != name}
        try:
            return bind_snippet(name, sql, replace(self._catalog, snippets=snippets), self._default)
        except QueryError as error:
            message = f"in the snippet `{name}`: {error.message}"
            raise QueryError(message, hint=error.hint, sql=error.sql, span=error.span) from None

    def _checked(self, place: exp.Expr, stream: Stream) -> Stream:
        if stream.time not in stream.schema.names:
            hint = did_you_mean(stream.time, stream.schema.names, "column")
            raise self._text.error(f"`{stream.name}` has no column `{stream.time}` for its time", place, hint=hint)
        kind = stream.schema.field(stream.time).type
        if not pa.types.is_timestamp(kind):
            message = f"the time column `{stream.time}` of `{stream.name}` must be a timestamp, got `{kind}`"
            raise self._text.error(message, place)
        return stream


_WORDS = {"group": "GROUP BY", "having": "HAVING"}
#: What the parts of a sub-select that stand behind its bracket are called.
_BEHIND = {"pivots": "PIVOT", "sample": "TABLESAMPLE", "laterals": "LATERAL VIEW"}


def bind_snippet(name: str, sql: str, catalog: Catalog, default: str | None) -> Relation:
    """The rows of a saved statement: one SELECT without windows."""
    text, statements = parse_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"a snippet is one statement, got {len(statements)}")
    select = fill_in(text, statements[0], catalog.parameters)
    return SourceBinder(text, catalog, default).derived(select, name, {})


def _renamed(relation: Relation, name: str) -> Relation:
    columns = tuple(replace(column, qualifier=name) for column in relation.columns)
    return replace(relation, name=name, columns=columns)
