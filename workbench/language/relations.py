"""What a FROM clause gives to the expressions of its statement: columns by name, and which rows are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from workbench.errors import did_you_mean
from workbench.language.sql import SqlText
from workbench.logical import Column, Expression, Stream
from workbench.logical.joins import Joined, StaticTable, conjunction, conjuncts, joins_of, uses_table
from workbench.logical.types import language_type

_T = TypeVar("_T")


@dataclass(frozen=True)
class Catalog:
    """All that names in FROM can stand for, and the values of parameters.

    ``snippets`` are saved statements by name, of which a cell sees those it asks for; ``hidden`` are the names of the
    others, for hints.
    """

    streams: Mapping[str, Stream]
    tables: Mapping[str, StaticTable] = field(default_factory=dict)
    snippets: Mapping[str, str] = field(default_factory=dict)
    hidden: Sequence[str] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Visible:
    """A column that expressions can name, alone or behind ``qualifier.``: what it stands for."""

    qualifier: str
    name: str
    expression: Expression


@dataclass(frozen=True)
class Relation:
    """The rows of a stream as a statement sees them: renamed, computed, filtered, joined; never aggregated.

    ``stream`` is the source, ``name`` what the statement calls the rows. ``conditions`` must all hold of a row;
    joins stand among them, in their order. ``merged`` are folded names of columns that ``USING`` made one: alone they
    are the stream's.
    """

    name: str
    stream: Stream
    columns: tuple[Visible, ...]
    conditions: tuple[Expression, ...] = ()
    merged: frozenset[str] = frozenset()

    @staticmethod
    def of(stream: Stream, name: str) -> Relation:
        """All rows and columns of a stream."""
        columns = (Visible(name, c.name, Column(language_type(c.type), c.name)) for c in stream.schema)
        return Relation(name, stream, tuple(columns))

    @property
    def view(self) -> Stream:
        """The stream as window forms see it: its columns under the names that they have here."""
        time = Column(language_type(self.stream.schema.field(self.stream.time).type), self.stream.time)
        own = [column for column in self.columns if column.qualifier == self.name]
        fields = {column.name: pa.field(column.name, column.expression.type) for column in own}
        renamed = next((column.name for column in own if column.expression == time), self.stream.time)
        return Stream(self.name, pa.schema(list(fields.values())), renamed, self.stream.delay)

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self.columns]

    @property
    def qualifiers(self) -> list[str]:
        """What may stand before the name of a column."""
        return list(dict.fromkeys([self.name, *(column.qualifier for column in self.columns)]))

    def find(self, name: str, qualifier: str = "") -> list[Visible]:
        """The columns of a name: none, one, or several where it is ambiguous.

        A name with the very same letters goes before those that differ in case.
        """
        mine = [c for c in self.columns if not qualifier or c.qualifier.casefold() == qualifier.casefold()]
        alike = [column for column in mine if column.name.casefold() == name.casefold()]
        if not qualifier and name.casefold() in self.merged:
            return alike[:1]
        first: dict[str, Visible] = {}
        for column in [each for each in alike if each.name == name] or alike:
            first.setdefault(column.qualifier, column)
        return list(first.values())

    def describe(self) -> str:
        """Where columns come from, for errors."""
        return " and ".join(f"`{each}`" for each in self.qualifiers)

    def hint(self, name: str, more: Sequence[str] = ()) -> str:
        """The nearest names to one that is not there."""
        return did_you_mean(name, [*self.names, *more], "column")

    def filter_with(self, condition: Expression | None) -> Expression | None:
        """The whole filter of a statement with ``condition`` as its WHERE.

        Conditions that need no table are asked before the joins, as far as none about a table stands before them.
        """
        own = () if condition is None else (condition,)
        whole = conjunction([*self.conditions, *own])
        if not joins_of(whole):
            return whole
        flat = list(conjuncts(whole))
        joins = [each for each in flat if isinstance(each, Joined)]
        asked = [each for each in flat if not isinstance(each, Joined)]
        first = next((place for place, each in enumerate(asked) if uses_table(each)), len(asked))
        return conjunction([*asked[:first], *joins, *asked[first:]])


def source_name(text: SqlText, table: exp.Expr) -> str:
    """The name that FROM or JOIN is about; raises QueryError for everything else that can stand there."""
    extras = {part for part, value in table.args.items() if value} - {"this", "db", "catalog", "alias"}
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or extras:
        raise text.error(
            "FROM needs the name of a source", table, hint="prepare the rows before they become a source"
        )
    return ".".join(part.name for part in table.parts)


def name_of(text: SqlText, node: exp.Expr, own: str) -> str:
    """The name behind ``AS`` of an entry of FROM or JOIN, else ``own``; raises QueryError for names of columns."""
    alias = node.args.get("alias")
    if alias is None:
        return own
    if alias.args.get("columns") or not isinstance(alias.this, exp.Identifier):
        raise text.error(
            "behind `AS` stands a name, without names of columns",
            alias,
            hint="a sub-select names its columns: `FROM (SELECT a AS b, ... FROM ...) AS name`",
        )
    return alias.name


def folded(known: Mapping[str, _T], name: str) -> tuple[str, _T] | None:
    """The entry of a name, whatever its case, with the name as it was given."""
    return next(((key, value) for key, value in known.items() if key.casefold() == name.casefold()), None)
