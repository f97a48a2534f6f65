"""The FROM clause: which stream a statement reads, through which sub-selects, joined with which tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.language.clauses import refuse_clauses
from workbench.language.literals import convert
from workbench.language.parameters import fill_in
from workbench.language.relations import Catalog, Relation, Visible
from workbench.language.scalars import ExpressionBinder, Scope
from workbench.language.sql import SqlText, parse_statements
from workbench.logical import Expression, Stream
from workbench.logical.joins import Join, Joined, Kind, StaticTable, TableColumn
from workbench.logical.types import common_type, language_type, type_name

_T = TypeVar("_T")

#: Clauses that a sub-select may have: it projects and filters rows.
_CLAUSES = {"expressions", "from_", "where", "joins", "with_"}
_AGGREGATED = "a sub-select computes columns and keeps rows; windows and aggregates belong to the statement around it"
_KINDS: dict[tuple[str, str], Kind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
}


class SourceBinder:
    """Binds the FROM clauses of one text."""

    def __init__(self, text: SqlText, catalog: Catalog, default: str | None) -> None:
        self._text = text
        self._catalog = catalog
        self._default = default

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
            relation = self._join(join, relation, known)
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
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
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
            found[entry.alias.casefold()] = self.derived(entry.this, entry.alias, {**known, **found})
        return found

    def _item(self, node: exp.Expr, known: Mapping[str, Relation]) -> Relation:
        """One entry of FROM."""
        if isinstance(node, exp.Subquery):
            return self.derived(node.this, node.alias or "sub-select", known)
        name = self._name(node)
        return _renamed(self._find(node, name, known), node.alias or name)

    def _name(self, table: exp.Expr) -> str:
        extras = {part for part, value in table.args.items() if value} - {"this", "db", "catalog", "alias"}
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or extras:
            raise self._text.error(
                "FROM needs the name of a source", table, hint="prepare the rows before they become a source"
            )
        return ".".join(part.name for part in table.parts)

    def _find(self, place: exp.Expr, name: str, known: Mapping[str, Relation]) -> Relation:
        """What a name stands for: a sub-select of WITH, a snippet, or a source, in this order."""
        if name.casefold() in known:
            return known[name.casefold()]
        snippet = _folded(self._catalog.snippets, name)
        if snippet is not None:
            return self._snippet(*snippet)
        stream = _folded(self._catalog.streams, name)
        if stream is None:
            raise self._unknown(place, name, known)
        return Relation.of(self._checked(place, stream[1]), stream[0])

    def _unknown(self, place: exp.Expr, name: str, known: Mapping[str, Relation]) -> QueryError:
        table = _folded(self._catalog.tables, name)
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

    def _join(self, node: exp.Join, left: Relation, known: Mapping[str, Relation]) -> Relation:
        """The rows of ``left`` beside those of a static table."""
        table, alias = self._table(node, known)
        kind = _KINDS.get((node.side.upper(), node.kind.upper()))
        if kind is None or node.method:
            word = " ".join(filter(None, (node.method, node.side, node.kind)))
            raise self._text.error(f"`{word} JOIN` is not supported", node, hint="`JOIN` and `LEFT JOIN` are")
        if alias.casefold() in map(str.casefold, left.qualifiers):
            raise self._text.error(
                f"`{alias}` is there twice", node, hint=f"name it anew: `JOIN {table.name} AS other`"
            )
        using = [column.name for column in node.args.get("using") or []]
        pairs, rest = self._using(node, left, table, using) if using else self._on(node, left, table, alias)
        for key, column in pairs:
            self._check_key(node, key, table, column)
        keys = tuple(convert(key, _meet(key, table, column)) for key, column in pairs)
        join = Join(table, alias, kind, keys, tuple(column for _, column in pairs))
        if Joined(pa.bool_(), join) in left.conditions:
            raise self._text.error(f"`{alias}` is joined in the same way already", node, hint="use its columns")
        right = [Visible(alias, f.name, TableColumn(language_type(f.type), join, f.name)) for f in table.schema]
        merged = left.merged | {name.casefold() for name in using}
        both = replace(
            left,
            columns=(*left.columns, *right),
            conditions=(*left.conditions, Joined(pa.bool_(), join)),
            merged=merged,
        )
        binder = ExpressionBinder(self._text, Scope(both, "ON"))
        conditions = [binder.condition(each) for each in rest]
        if conditions and kind == "left":
            raise self._text.error(
                "`LEFT JOIN` takes equalities between the stream and the table alone", rest[0],
                hint="filter the table before it is registered, or the rows in WHERE",
            )  # fmt: skip
        return replace(both, conditions=(*both.conditions, *conditions))

    def _table(self, node: exp.Join, known: Mapping[str, Relation]) -> tuple[StaticTable, str]:
        """The static table of a join and its name there."""
        if not isinstance(node.this, exp.Table):
            raise self._text.error(
                "JOIN needs the name of a static table",
                node.this,
                hint="prepare the rows, then `workbench.table(...)`",
            )
        name = self._name(node.this)
        found = _folded(self._catalog.tables, name)
        if found is None:
            streams = [*known, *self._catalog.streams, *self._catalog.snippets]
            if name.casefold() in map(str.casefold, streams):
                raise self._text.error(
                    f"a join of two streams is not supported: `{name}` is one", node.this,
                    hint="rows that do not change can be a table, `workbench.table(name, data)`; for the rest, write "
                    "a query for each stream and compare their results",
                )  # fmt: skip
            hint = did_you_mean(name, self._catalog.tables, "table")
            if not self._catalog.tables:
                hint = f"there is no table yet: `workbench.table({name!r}, data)` registers one"
            raise self._text.error(f"unknown table `{name}`", node.this, hint=hint)
        if not (node.args.get("on") or node.args.get("using")):
            raise self._text.error(
                "a join needs its condition", node.this, hint=f"such as `JOIN {found[0]} ON s.key = {found[0]}.key`"
            )
        return found[1], node.this.alias or found[0]

    def _using(
        self, node: exp.Join, left: Relation, table: StaticTable, names: list[str]
    ) -> tuple[list[tuple[Expression, str]], list[exp.Expr]]:
        pairs = []
        for name, place in zip(names, node.args["using"], strict=True):
            own = left.find(name)
            if not own:
                raise self._text.error(f"unknown column `{name}` in {left.describe()}", place, hint=left.hint(name))
            column = next((each for each in table.schema.names if each.casefold() == name.casefold()), None)
            if column is None:
                hint = did_you_mean(name, table.schema.names, "column")
                raise self._text.error(f"unknown column `{name}` in `{table.name}`", place, hint=hint)
            pairs.append((own[0].expression, column))
        return pairs, []

    def _on(
        self, node: exp.Join, left: Relation, table: StaticTable, alias: str
    ) -> tuple[list[tuple[Expression, str]], list[exp.Expr]]:
        """The pairs of a key of the stream and a column of the table that must be equal, and all other conditions."""
        place = Join(table, alias, "inner", (), ())
        right = [Visible(alias, f.name, TableColumn(language_type(f.type), place, f.name)) for f in table.schema]
        both = replace(left, columns=(*left.columns, *right))
        pairs, rest = [], []
        for condition in _all_of(node.args["on"]):
            sides = []
            if isinstance(condition, exp.EQ):
                binder = ExpressionBinder(self._text, Scope(both, "ON"))
                sides = [binder.bind(condition.this), binder.bind(condition.expression)]
            of_table = [isinstance(side, TableColumn) and side.join == place for side in sides]
            if sorted(of_table) == [False, True]:
                column = sides[of_table.index(True)]
                assert isinstance(column, TableColumn)
                pairs.append((sides[of_table.index(False)], column.name))
            else:
                rest.append(condition)
        if not pairs:
            raise self._text.error(
                f"`ON` compares nothing of the stream with a column of `{alias}`",
                node.args["on"],
                hint=f"such as `ON {left.name}.key = {alias}.key`",
            )
        return pairs, rest

    def _check_key(self, node: exp.Join, key: Expression, table: StaticTable, column: str) -> None:
        with self._text.at(node.args.get("on") or node.args["using"][0]):
            try:
                _meet(key, table, column)
            except QueryError:
                own, other = type_name(key.type), type_name(language_type(table.schema.field(column).type))
                raise QueryError(
                    f"cannot compare `{key}` of type `{own}` with `{table.name}.{column}` of type `{other}`",
                    hint="convert one of them, such as `CAST(x AS string)`",
                ) from None


_WORDS = {"group": "GROUP BY", "having": "HAVING"}


def bind_snippet(name: str, sql: str, catalog: Catalog, default: str | None) -> Relation:
    """The rows of a saved statement: one SELECT without windows."""
    text, statements = parse_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"a snippet is one statement, got {len(statements)}")
    select = fill_in(text, statements[0], catalog.parameters)
    return SourceBinder(text, catalog, default).derived(select, name, {})


def _meet(key: Expression, table: StaticTable, column: str) -> pa.DataType:
    """The type in which a key and a column of a table are compared."""
    return common_type([key.type, language_type(table.schema.field(column).type)])


def _all_of(condition: exp.Expr) -> list[exp.Expr]:
    """The conditions joined by AND, without the brackets around them."""
    inner = condition.unnest()
    return [*_all_of(inner.this), *_all_of(inner.expression)] if isinstance(inner, exp.And) else [inner]


def _renamed(relation: Relation, name: str) -> Relation:
    columns = tuple(replace(column, qualifier=name) for column in relation.columns)
    return replace(relation, name=name, columns=columns)


def _folded(known: Mapping[str, _T], name: str) -> tuple[str, _T] | None:
    """The entry of a name, whatever its case, with the name as it was given."""
    return next(((key, value) for key, value in known.items() if key.casefold() == name.casefold()), None)
