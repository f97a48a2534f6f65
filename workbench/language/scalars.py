"""Bind expressions: names to columns, calls to the closed lists, arguments to the types they must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from workbench.algebra import AGGREGATES, Aggregate
from workbench.errors import QueryError, did_you_mean
from workbench.language.literals import aggregate_call, beside_decimals, convert, joined, number, times_from_text
from workbench.language.operators import HANDLERS, NAMED_HANDLERS, refuse_unsteady
from workbench.language.over_functions import OVER_FUNCTIONS, resolve_nulls
from workbench.language.relations import Relation
from workbench.language.sql import SqlText
from workbench.language.windows import is_form, refuse_form, window_forms
from workbench.logical import AggregateCall, Call, Expression, Field, Literal
from workbench.logical.functions import FUNCTIONS, SQL_FUNCTIONS, check_arity, resolve_call
from workbench.logical.types import SQL_TYPES, common_type, type_name

#: What SQL knows and this language does not (yet), and the nearest thing that works.
_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    **dict.fromkeys(
        (exp.Subquery, exp.Select, exp.Exists),
        ("a subquery is supported in FROM alone", "a join finds the rows that have a partner in a table"),
    ),
    exp.Star: ("`*` is not supported", "name the columns; `count(*)` counts the rows"),
    exp.Bracket: (
        "elements of arrays are not supported",
        "unfold the rows before they become a source; a field of a struct is `column.field`",
    ),
    exp.AtTimeZone: ("`AT TIME ZONE` is not supported", "`from_utc_timestamp(t, zone)` gives the clock of a zone"),
    exp.Parameter: ("this is no parameter", "a parameter is written `{{name}}`"),
    exp.Placeholder: ("this is no parameter", "a parameter is written `{{name}}`"),
    exp.Array: (
        "a list of values is not supported here",
        "it can stand behind `IN`, or as an argument of `quantile`",
    ),
    exp.Concat: ("text beside text is not supported", "a quote inside text is written \\', and `||` joins texts"),
}

#: Names that other dialects have, and what they are here.
_ELSEWHERE = {
    **dict.fromkeys(("tumble", "tumbling"), "`window(ts, size)` are windows that follow one another"),
    **dict.fromkeys(("hop", "hopping", "sliding", "slide"), "`window(ts, size, slide)` are windows that overlap"),
    "session": "`session_window(ts, gap)` are sessions",
    **dict.fromkeys(OVER_FUNCTIONS, "it has an OVER, such as `lag(x) OVER (PARTITION BY k ORDER BY ts)`"),
    **dict.fromkeys(
        ("time_bucket", "date_bin", "time_slice"), "`window(ts, size)` in GROUP BY; `date_trunc(unit, t)`"
    ),
    **dict.fromkeys(
        ("tumble_start", "tumble_end", "hop_start", "hop_end"), "`window_start` and `window_end` are in every result"
    ),
    **dict.fromkeys(("timestamp_trunc", "datetime_trunc"), "`date_trunc('hour', t)`"),
    **dict.fromkeys(("to_char", "strftime", "format_timestamp"), "`date_format(t, 'yyyy-MM-dd')`"),
    **dict.fromkeys(("strptime", "parse_timestamp"), "`to_timestamp(s, 'yyyy-MM-dd')`"),
    **dict.fromkeys(("timestampadd", "timestamp_add"), "`t + INTERVAL '90' MINUTE`"),
    **dict.fromkeys(
        ("string_agg", "listagg", "group_concat", "collect_list", "collect_set", "array_agg"),
        "no aggregate makes lists; `count(DISTINCT x)`, `mode(x)`, `first(x)` and `max_by(x, y)` are there",
    ),
    **dict.fromkeys(("nunique", "uniq"), "`count(DISTINCT x)`"),
    "percentile_approx": "`approx_percentile(x, q)`",
    "fillna": "`coalesce(x, 0)`",
    "convert": "`CAST(x AS int)`",
    **{name: f"`CAST(x AS {name})`" for name in SQL_TYPES if name not in SQL_FUNCTIONS},
}

#: Where an aggregate belongs that stands in a clause without groups.
_AGGREGATE_HINTS = {
    "WHERE": "conditions on aggregates go to HAVING",
    "SELECT beside OVER": "give it an OVER of its own, or write a query with GROUP BY",
}

#: The parts of a node that the binder looks at; a node that has another one means something else.
_UNDERSTOOD = {
    "this", "expression", "expressions", "negate", "low", "high", "ifs", "true", "default", "to", "table",
    "is_string", "safe", "typed", "_type", "position", "unit", "field", "db", "catalog",
}  # fmt: skip


@dataclass(frozen=True)
class Scope:
    """What an expression may use where it stands.

    ``relation`` has the columns, ``clause`` names the place in errors.
    ``keys`` is None where single rows are seen (WHERE, GROUP BY, the argument of an aggregate); otherwise aggregates
    are allowed and columns must be part of one of the keys. ``aliases`` are folded names of select items that can
    be used, before columns. ``over`` binds an OVER, where one may be.
    """

    relation: Relation
    clause: str
    keys: frozenset[Expression] | None = None
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    over: Callable[[exp.Window], Expression] | None = None


class ExpressionBinder:
    """Binds the nodes of one text in one scope. Every fault is a QueryError that underlines the node."""

    def __init__(self, text: SqlText, scope: Scope) -> None:
        self._text = text
        self._scope = scope
        #: Columns seen so far that neither a key nor an aggregate covers, with their nodes.
        self._loose: list[tuple[Expression, exp.Expr]] = []

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression that ``node`` means."""
        bound = self.inner(node)
        if self._scope.keys is not None and self._loose:
            _, place = self._loose[0]
            column = self._text.source(place)
            raise self._text.error(
                f"`{column}` is neither a key nor inside an aggregate",
                place,
                hint=f"add it to GROUP BY, or take an aggregate such as `max({column})`",
            )
        return bound

    def condition(self, node: exp.Expr) -> Expression:
        """The same for a condition, which must be a boolean."""
        bound = convert_null(self.bind(node), pa.bool_())
        if bound.type != pa.bool_():
            raise self._text.error(f"{self._scope.clause} needs a condition, got `{type_name(bound.type)}`", node)
        return bound

    def inner(self, node: exp.Expr) -> Expression:
        """A part of the expression; for handlers of what is around it."""
        mark = len(self._loose)
        bound = self._dispatch(node)
        if isinstance(bound, AggregateCall) or bound in (self._scope.keys or ()):
            del self._loose[mark:]
        return bound

    def _dispatch(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Window) and self._scope.over is not None:
            return self._scope.over(node)
        strange = [part for part, value in node.args.items() if value and part not in _UNDERSTOOD]
        handler = _HANDLERS.get(type(node))
        if handler is None or strange:
            raise self._refusal(node)
        return handler(self, node)

    def _refusal(self, node: exp.Expr) -> QueryError:
        message, hint = _REFUSED.get(type(node), (f"`{self._text.source(node)}` is not supported", ""))
        if isinstance(node, exp.Window):
            message = f"an OVER cannot be used in {self._scope.clause}"
            hint = "it goes to the SELECT list; filter what `results()` gives by its column"
        return self._text.error(message, node, hint=hint)

    def call(self, name: str, node: exp.Expr, arguments: list[Expression]) -> Expression:
        """A checked call, its arguments converted to the types that the function takes."""
        function = FUNCTIONS[name]
        with self._text.at(node):
            written = node.name if isinstance(node, exp.Anonymous) else None
            arguments = [
                joined(each) if place in function.constants else each for place, each in enumerate(arguments)
            ]
            for position in function.constants:
                if position < len(arguments) and not isinstance(arguments[position], Literal):
                    raise QueryError(f"argument {position + 1} of `{written or function.name}` must be a constant")
            arguments = beside_decimals(arguments, function)
            try:
                signature = resolve_call(function, tuple(argument.type for argument in arguments), written)
            except QueryError:
                arguments = times_from_text(arguments, function.constants)
                signature = resolve_call(function, tuple(argument.type for argument in arguments), written)
            converted = tuple(map(convert, arguments, signature.parameters))
            values = [each.value if isinstance(each, Literal) else None for each in converted]
            if function.check is not None:
                function.check(*values)
            kind = signature.result if function.typed is None else function.typed(signature.parameters, *values)
            return Call(kind, function.name, converted)

    def error(self, message: str, node: exp.Expr, *, hint: str | None = None) -> QueryError:
        """A QueryError that underlines ``node``."""
        return self._text.error(message, node, hint=hint)

    def at(self, node: exp.Expr) -> AbstractContextManager[None]:
        """Give a QueryError without a place the place of ``node``."""
        return self._text.at(node)

    def source(self, node: exp.Expr) -> str:
        """The text of ``node`` as the user wrote it."""
        return self._text.source(node)

    def _column(self, node: exp.Expr) -> Expression:
        if isinstance(node.this, exp.Star):
            raise self._refusal(node.this)
        relation = self._scope.relation
        assert isinstance(node, exp.Column)
        names = [part.name for part in node.parts]
        known = len(names) > 1 and names[0].casefold() in map(str.casefold, relation.qualifiers)
        if known or len(names) == 1 or not relation.find(names[0]):
            qualifier, name, fields = names[0] if len(names) > 1 else "", names[:2][-1], names[2:]
        else:
            qualifier, name, fields = "", names[0], names[1:]
        bound = self._named(node, name, qualifier)
        for each in fields:
            bound = self._field(node, bound, each)
        return bound

    def _field(self, node: exp.Expr, struct: Expression, name: str) -> Expression:
        """A field of a struct."""
        if not pa.types.is_struct(struct.type):
            raise self._text.error(f"`{struct}` is `{type_name(struct.type)}`, which has no field `{name}`", node)
        fields = [struct.type.field(place) for place in range(struct.type.num_fields)]
        found = next((field for field in fields if field.name.casefold() == name.casefold()), None)
        if found is None:
            hint = did_you_mean(name, [field.name for field in fields], "field")
            raise self._text.error(f"`{struct}` has no field `{name}`", node, hint=hint)
        return Field(found.type, struct, found.name)

    def _dot(self, node: exp.Expr) -> Expression:
        if isinstance(node.expression, exp.Anonymous):
            call, before = self._text.source(node.expression), self._text.source(node.this)
            hint = f"a function stands before what it takes: `{node.expression.name}({before})`"
            raise self._text.error(f"`{call}` is no field", node, hint=hint)
        return self._field(node, self.inner(node.this), node.expression.name)

    def _named(self, node: exp.Expr, name: str, qualifier: str) -> Expression:
        """The column of a name."""
        if not qualifier and name.casefold() in self._scope.aliases:
            return self._scope.aliases[name.casefold()]
        relation = self._scope.relation
        if qualifier and qualifier.casefold() not in map(str.casefold, relation.qualifiers):
            self._refuse_window_value(node, qualifier)
            hint = f"columns are those of {relation.describe()}"
            raise self._text.error(f"unknown source `{qualifier}`", node, hint=hint)
        found = relation.find(name, qualifier)
        if not found:
            self._refuse_window_value(node, name)
            refuse_unsteady(self, node)
            where = f"`{qualifier}`" if qualifier else relation.describe()
            hint = relation.hint(name, list(self._scope.aliases))
            raise self._text.error(f"unknown column `{name}` in {where}", node, hint=hint)
        if len(found) > 1:
            choices = " or ".join(f"`{each.qualifier}.{each.name}`" for each in found)
            raise self._text.error(f"`{name}` is ambiguous", node, hint=f"write {choices}")
        bound = found[0].expression
        # A computed column of a sub-select may be a constant, which needs no key.
        if not isinstance(bound, Literal):
            self._loose.append((bound, node))
        return bound

    def _refuse_window_value(self, node: exp.Expr, name: str) -> None:
        if name.casefold() in ("window", "window_start", "window_end"):
            raise self._text.error(
                f"the bounds of a window cannot be used in {self._scope.clause} yet",
                node,
                hint="they are in every result, as `window_start` and `window_end`",
            )

    def _literal(self, node: exp.Expr) -> Expression:
        if node.is_string:
            self._refuse_quoted_column(node)
            return Literal(pa.string(), node.this)
        with self._text.at(node):
            return number(node.this)

    def _refuse_quoted_column(self, node: exp.Expr) -> None:
        """Other dialects put names between double quotes; here that is text, and a filter on it a silent fault."""
        if node.this in self._scope.relation.names and self._text.source(node).startswith('"'):
            raise self._text.error(
                f'"{node.this}" is text here, not the column', node, hint=f"write the column as `{node.this}`"
            )

    def _function(self, node: exp.Expr) -> Expression:
        node = resolve_nulls(self._text, node)
        name = node.name.casefold()
        if name in NAMED_HANDLERS:
            return NAMED_HANDLERS[name](self, node)
        if name in SQL_FUNCTIONS:
            return self.call(SQL_FUNCTIONS[name].name, node, [self.inner(each) for each in node.expressions])
        if name in AGGREGATES:
            return self._aggregate(name, node, *self._aggregate_arguments(AGGREGATES[name], node))
        if is_form(node):
            raise refuse_form(self._text, node, self._scope.clause)
        refuse_unsteady(self, node)
        known = [*SQL_FUNCTIONS, *NAMED_HANDLERS, *AGGREGATES, *window_forms()]
        hint = _ELSEWHERE.get(name) or did_you_mean(name, known, "function")
        raise self._text.error(f"unknown function `{node.name}`", node, hint=hint)

    def _filter(self, node: exp.Expr) -> Expression:
        """``x FILTER (WHERE c)``: NULL is ignored by nearly all aggregates, so it is that of ``if(c, x, NULL)``."""
        call, condition = node.this, node.expression.this
        name = call.name.casefold()
        if not isinstance(call, exp.Anonymous) or name not in AGGREGATES:
            raise self._text.error("`FILTER` stands behind an aggregate", node)
        rows = replace(self._scope, clause="FILTER", keys=None, aliases={}, over=None)
        ExpressionBinder(self._text, rows).condition(condition)
        aggregate, nodes = self._aggregate_arguments(AGGREGATES[name], call)
        if not nodes:
            return self._aggregate("count_if", node, AGGREGATES["count_if"], [condition])
        if aggregate.counts_null:
            hint = f"`{name.removesuffix('_value')}` ignores NULL, and rows where the condition is not true"
            raise self._text.error(
                f"`FILTER` behind `{name}`, to which NULL is a value, is not supported", node, hint=hint
            )
        if aggregate.constant_from != 1 and len(nodes) > 1:
            hint = "a statement of its own with the condition in WHERE shares the same pass over the rows"
            raise self._text.error(f"`FILTER` behind `{name}` of several values is not supported", node, hint=hint)
        chosen = exp.Anonymous(this="if", expressions=[condition.copy(), nodes[0].copy(), exp.Null()])
        return self._aggregate(name, node, aggregate, [chosen, *nodes[1:]])

    def _within_group(self, node: exp.Expr) -> Expression:
        """``percentile_cont(q) WITHIN GROUP (ORDER BY x)``, the standard's way to write ``quantile(x, q)``."""
        function, order = node.this, node.expression.expressions
        plain = len(order) == 1 and not order[0].args.get("desc") and len(function.expressions) == 1
        if function.name.casefold() != "percentile_cont" or not plain:
            raise self._text.error(
                f"`{self._text.source(node)}` is not supported", node, hint="`quantile(x, q)` works, as does "
                "`percentile_cont(q) WITHIN GROUP (ORDER BY x)`",
            )  # fmt: skip
        return self._aggregate("quantile", node, AGGREGATES["quantile"], [order[0].this, *function.expressions])

    def _aggregate(self, name: str, node: exp.Expr, aggregate: Aggregate, nodes: list[exp.Expr]) -> Expression:
        """The call of an aggregate that ``node`` means, with the nodes of its arguments."""
        if self._scope.keys is None:
            raise self._text.error(
                f"the aggregate `{name}` cannot be used in {self._scope.clause}",
                node,
                hint=_AGGREGATE_HINTS.get(self._scope.clause),
            )
        inner = ExpressionBinder(
            self._text, replace(self._scope, clause="the argument of an aggregate", keys=None, aliases={}, over=None)
        )
        constant_from = len(nodes) if aggregate.constant_from is None else aggregate.constant_from
        arguments = tuple(
            inner._constant(each) if position >= constant_from else inner.bind(each)
            for position, each in enumerate(nodes)
        )
        with self._text.at(node):
            if arguments or aggregate.name != "count":
                check_arity(name, aggregate.arity, len(arguments))
            try:
                return aggregate_call(aggregate, arguments)
            except QueryError as error:
                raise QueryError(f"`{self._text.source(node)}`: {error.message}", hint=error.hint) from None

    def _constant(self, node: exp.Expr) -> Literal:
        """An argument that must be a constant, or an array of constants of one type."""
        is_array = isinstance(node, exp.Array) or (
            isinstance(node, exp.Anonymous) and node.name.casefold() == "array"
        )
        if not is_array:
            bound = self.bind(node)
            if not isinstance(bound, Literal):
                raise self._text.error(f"`{self._text.source(node)}` must be a constant", node)
            return bound
        members = [self._constant(each) for each in node.expressions]
        with self._text.at(node):
            kind = common_type([each.type for each in members])
            if not members or isinstance(members[0].value, tuple):
                raise QueryError("expected an array of constants", hint="such as `array(0.5, 0.9)`")
            values = pa.array([each.value for each in members], kind).to_pylist()
            return Literal(pa.list_(kind), tuple(values))

    def _aggregate_arguments(self, aggregate: Aggregate, node: exp.Expr) -> tuple[Aggregate, list[exp.Expr]]:
        """An aggregate and its arguments; ``count(*)`` and ``count(1)`` have none, DISTINCT makes it another one."""
        name, nodes = aggregate.name, list(node.expressions)
        if len(nodes) == 1 and name == "count" and isinstance(nodes[0], (exp.Star, exp.Literal)):
            return aggregate, []
        if name == "count" and not nodes:
            raise self._text.error("`count` needs an argument", node, hint="`count(*)` counts the rows")
        if nodes and isinstance(nodes[0], exp.Distinct):
            distinct = nodes[0].expressions
            if name == "count" and len(distinct) == 1:
                return AGGREGATES["count_distinct"], list(distinct)
            fault = f"takes 1 argument, got {len(distinct)}" if name == "count" else "is not supported"
            hint = "`count(DISTINCT x)` counts the distinct values of one expression"
            raise self._text.error(f"`{name}(DISTINCT ...)` {fault}", nodes[0], hint=hint)
        return aggregate, nodes


def convert_null(expression: Expression, kind: pa.DataType) -> Expression:
    """A bare NULL with a type; everything else as it is."""
    return convert(expression, kind) if pa.types.is_null(expression.type) else expression


_HANDLERS: dict[type[exp.Expr], Callable[[ExpressionBinder, exp.Expr], Expression]] = {
    **HANDLERS,
    exp.Column: ExpressionBinder._column,
    exp.Literal: ExpressionBinder._literal,
    exp.Anonymous: ExpressionBinder._function,
    exp.Dot: ExpressionBinder._dot,
    exp.Filter: ExpressionBinder._filter,
    exp.IgnoreNulls: ExpressionBinder._function,
    exp.RespectNulls: ExpressionBinder._function,
    exp.WithinGroup: ExpressionBinder._within_group,
}
