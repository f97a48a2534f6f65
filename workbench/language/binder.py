"""Bind one SELECT statement against the streams: clauses to the parts of a logical Query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from workbench.algebra import AGGREGATES
from workbench.language.clauses import bind_fill, check_key, refuse_clauses
from workbench.language.over import OverBinder, has_over
from workbench.language.relations import Catalog
from workbench.language.scalars import ExpressionBinder, Scope
from workbench.language.sources import SourceBinder
from workbench.language.sql import SqlText
from workbench.language.windows import bind_form, is_form, refuse_form
from workbench.logical import AnyWindow, Column, EachRow, Expression, Field, Literal, Named, Query
from workbench.logical.expressions import aggregate_calls, quote_name

#: Clauses that a statement may have.
_CLAUSES = {"expressions", "from_", "where", "group", "having", "fill", "joins", "with_", "windows"}

#: Columns that every result has, ``window_number`` in a sink alone; no key or value may take their names.
RESULT_COLUMNS = ("query", "level", "window_start", "window_end", "window_number", "status", "revision")

#: What a statement may call the bounds of a window: qualifier and name.
_WINDOW_VALUES = (("", "window"), ("window", "start"), ("window", "end"), ("", "window_start"), ("", "window_end"))

_NO_WINDOW_HINT = "add `window({time}, '10 minutes')` or `zoom({time}, '15 minutes / 1 minute', '1 day / 1 hour')`"


@dataclass(frozen=True)
class _Group:
    """What GROUP BY says: the keys with their own names, and the windows of its one form."""

    keys: dict[Expression, str]
    windows: tuple[AnyWindow, ...]


def bind_statement(text: SqlText, select: exp.Select, catalog: Catalog, *, name: str, default: str | None) -> Query:
    """The query that a statement means; ``default`` names the source of a statement without FROM.

    Raises QueryError for everything that does not make sense.
    """
    return _StatementBinder(text, select, catalog, default).query(name)


class _StatementBinder:
    def __init__(self, text: SqlText, select: exp.Select, catalog: Catalog, default: str | None) -> None:
        self._text = text
        self._select = select
        refuse_clauses(text, select, _CLAUSES)
        self._relation = SourceBinder(text, catalog, default).bind(select)

    def query(self, name: str) -> Query:
        where = self._select.args.get("where")
        condition = None if where is None else self._binder("WHERE").condition(where.this)
        if has_over(self._select):
            group, items = self._each_row()
        else:
            group = self._group()
            items = list(self._items(group))
        keys = self._name_keys(group.keys, items)
        values = tuple(Named(alias, bound) for _, alias, bound in items if Named(alias, bound) not in keys)
        self._check_names(keys, items)
        if not values:
            place = next(iter(self._select.expressions), self._select)
            raise self._text.error("the query computes nothing", place, hint="add an aggregate such as `count(*)`")
        aliases = {alias.casefold(): bound for _, alias, bound in items}
        having = self._select.args.get("having")
        kept = None
        if having is not None:
            kept = self._binder("HAVING", keys=frozenset(group.keys), aliases=aliases).condition(having.this)
        relation, fill = self._relation, bind_fill(self._text, self._select, group.windows, items)
        return Query(name, relation.stream, relation.filter_with(condition), keys, group.windows, values, kept, fill)

    def _each_row(self) -> tuple[_Group, list[tuple[exp.Expr, str, Expression]]]:
        """What the select items with OVER are partitioned by, and all items."""
        for clause in ("group", "having", "fill"):
            if self._select.args.get(clause) is not None:
                raise self._text.error(
                    "OVER gives a result for each row; GROUP BY, HAVING and FILL are about groups",
                    self._select.args[clause],
                    hint="write two queries; their rows are read once all the same",
                )
        row, aggregate = self._binder("OVER"), self._binder("OVER", keys=frozenset())
        over = OverBinder(self._text, self._select, self._relation.view, row.bind, aggregate.bind)
        scope = Scope(self._relation, "SELECT beside OVER", over=over.call)
        items = []
        for item in self._select.expressions:
            node = item.unalias()
            bound = ExpressionBinder(self._text, scope).bind(node)
            if isinstance(bound, Literal):
                raise self._text.error("a constant needs no column of its own", node)
            items.append((item, item.alias or self._own_name(node, bound), bound))
        return _Group({key: getattr(key, "name", str(key)) for key in over.keys}, (EachRow(),)), items

    def _binder(
        self,
        clause: str,
        *,
        keys: frozenset[Expression] | None = None,
        aliases: Mapping[str, Expression] | None = None,
    ) -> ExpressionBinder:
        scope = Scope(self._relation, clause, keys, aliases or {})
        return ExpressionBinder(self._text, scope)

    def _group(self) -> _Group:
        clause = self._select.args.get("group")
        if clause is None:
            hint = self._no_window_hint()
            raise self._text.error("the query has no GROUP BY with a window", self._select, hint=hint)
        for kind, value in clause.args.items():
            if value and kind != "expressions":
                raise self._text.error(f"`GROUP BY {kind.upper()}` is not supported", clause, hint="name the keys")
        keys: dict[Expression, str] = {}
        form: tuple[exp.Expr, tuple[AnyWindow, ...]] | None = None
        for node in map(self._resolve_item, clause.expressions):
            if is_form(node):
                windows = self._form(node)
                if form is not None:
                    raise self._text.error(
                        "a query has one window form", node, hint="give all levels in one `zoom(...)`"
                    )
                form = (node, windows)
            else:
                key = self._key(node)
                keys.setdefault(key, self._own_name(node, key))
        if form is None:
            raise self._text.error("GROUP BY has no window", clause, hint=self._no_window_hint())
        return _Group(keys, form[1])

    def _no_window_hint(self) -> str:
        return _NO_WINDOW_HINT.format(time=quote_name(self._relation.view.time))

    def _form(self, node: exp.Expr) -> tuple[AnyWindow, ...]:
        return bind_form(self._text, node, self._relation.view, self._binder("a window form").bind)

    def _key(self, node: exp.Expr) -> Expression:
        if isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            raise self._text.error("grouping sets are not supported", node, hint="write one query for each")
        key = self._binder("GROUP BY").bind(node)
        if isinstance(key, Literal):
            raise self._text.error("a constant cannot be a key", node)
        check_key(self._text, node, key)
        return key

    def _resolve_item(self, node: exp.Expr) -> exp.Expr:
        """The select item that a number or an alias in GROUP BY stands for; a column of that name comes first."""
        items: list[exp.Expr] = self._select.expressions
        if isinstance(node, exp.Literal) and not node.is_string:
            if not node.this.isdigit() or not 1 <= int(node.this) <= len(items):
                raise self._text.error(
                    f"`{node.this}` is not the number of a select item: they go from 1 to {len(items)}", node
                )
            return items[int(node.this) - 1].unalias()
        columns = {name.casefold() for name in self._relation.names}
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() not in columns:
            for item in items:
                if item.alias.casefold() == node.name.casefold():
                    return item.unalias()
        return node

    def _items(self, group: _Group) -> Iterator[tuple[exp.Expr, str, Expression]]:
        """The select items that have a value of their own: node, result name, expression.

        An item may use the names of those before it, where no column has the name.
        """
        aliases: dict[str, Expression] = {}
        columns = set(map(str.casefold, self._relation.names))
        for item in self._select.expressions:
            node = item.unalias()
            if is_form(node) and node.name.casefold() not in AGGREGATES:  # `last` is a form in GROUP BY alone
                if self._form(node) != group.windows:
                    raise refuse_form(self._text, node, "SELECT")
            elif self._is_window_value(node):
                if item.alias:
                    hint = "they are in every result, as `window_start` and `window_end`; leave out the name"
                    raise self._text.error("the bounds of a window keep their names", item, hint=hint)
            else:
                bound = self._binder("SELECT", keys=frozenset(group.keys), aliases=aliases).bind(node)
                if not aggregate_calls(bound) and isinstance(bound, Literal):
                    raise self._text.error("a constant is neither a key nor an aggregate", node)
                if item.alias and item.alias.casefold() not in columns:
                    aliases[item.alias.casefold()] = bound
                yield item, item.alias or self._own_name(node, bound), bound

    def _is_window_value(self, node: exp.Expr) -> bool:
        """``window``, its ``start`` and ``end``, ``window_start`` and ``window_end``: in every result anyway."""
        path = (node.table.casefold(), node.name.casefold()) if isinstance(node, exp.Column) else ()
        own = {name.casefold() for name in self._relation.names}
        return path in _WINDOW_VALUES and not {"window", path[-1]} & own

    def _own_name(self, node: exp.Expr, bound: Expression) -> str:
        """The result name of an item without an alias: the column's name, or the text of the expression."""
        found = self._relation.find(node.name, node.table) if isinstance(node, exp.Column) else []
        if found:
            return found[0].name
        if isinstance(bound, Column) or (isinstance(bound, Field) and isinstance(node, exp.Column)):
            return bound.name
        return str(bound)

    def _name_keys(
        self, keys: dict[Expression, str], items: list[tuple[exp.Expr, str, Expression]]
    ) -> tuple[Named, ...]:
        """Every key with the name that the SELECT list gives it first, or its own."""
        names: dict[Expression, str] = {}
        for _, alias, bound in items:
            names.setdefault(bound, alias)
        return tuple(Named(names.get(key, own), key) for key, own in keys.items())

    def _check_names(self, keys: tuple[Named, ...], items: list[tuple[exp.Expr, str, Expression]]) -> None:
        """Every column of the result has a name of its own."""
        selected = {bound for _, _, bound in items}
        clause = self._select.args.get("group") or self._select.expressions[0]
        hidden = [(clause, key.name) for key in keys if key.expression not in selected]
        taken = dict.fromkeys(RESULT_COLUMNS, "every result has a column")
        for node, name in [*((node, alias) for node, alias, _ in items), *hidden]:
            reason = taken.get(name.casefold())
            if reason is not None:
                raise self._text.error(f"{reason} `{name}`", node, hint="give it another name with AS")
            taken[name.casefold()] = "there is already a result column"
