"""JOIN: the rows of a stream beside those of a static table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.language.literals import convert
from workbench.language.relations import Catalog, Relation, Visible, folded, name_of, source_name
from workbench.language.scalars import ExpressionBinder, Scope
from workbench.language.sql import SqlText
from workbench.logical import Expression, walk
from workbench.logical.functions import FUNCTIONS, resolve_call
from workbench.logical.joins import Join, Joined, Kind, StaticTable, TableColumn
from workbench.logical.types import language_type, type_name

_KINDS: dict[tuple[str, str], Kind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
}


class JoinBinder:
    """Binds the joins of one text."""

    def __init__(self, text: SqlText, catalog: Catalog) -> None:
        self._text = text
        self._catalog = catalog

    def bind(self, node: exp.Join, left: Relation, known: Mapping[str, Relation]) -> Relation:
        """The rows of ``left`` beside those of a static table; ``known`` are the sub-selects of the statement.

        Raises QueryError for everything that is no such join.
        """
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
        name = source_name(self._text, node.this)
        found = folded(self._catalog.tables, name)
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
        if isinstance(node.args.get("on"), exp.Boolean | None) and not node.args.get("using"):
            raise self._text.error(
                "a join needs its condition", node.this, hint=f"such as `JOIN {found[0]} ON s.key = {found[0]}.key`"
            )
        return found[1], name_of(self._text, node.this, found[0])

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
            key = sides[of_table.index(False)] if sorted(of_table) == [False, True] else None
            if key is None or any(isinstance(node, TableColumn) and node.join == place for node in walk(key)):
                rest.append(condition)
            else:
                column = sides[of_table.index(True)]
                assert isinstance(column, TableColumn)
                pairs.append((key, column.name))
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


def _meet(key: Expression, table: StaticTable, column: str) -> pa.DataType:
    """The type in which a key and a column of a table are compared."""
    return resolve_call(FUNCTIONS["equal"], (key.type, language_type(table.schema.field(column).type))).parameters[0]


def _all_of(condition: exp.Expr) -> list[exp.Expr]:
    """The conditions joined by AND, without the brackets around them."""
    inner = condition.unnest()
    return [*_all_of(inner.this), *_all_of(inner.expression)] if isinstance(inner, exp.And) else [inner]
