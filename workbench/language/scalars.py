"""Bind expressions: names to columns, calls to the closed lists, arguments to the types they must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from workbench.algebra import AGGREGATES, Aggregate
from workbench.errors import QueryError, did_you_mean
from workbench.language.literals import convert, fold_cast, moment, number
from workbench.language.sql import SqlText
from workbench.language.windows import FORMS, refuse_form
from workbench.logical import AggregateCall, Call, Column, Expression, Literal, Stream
from workbench.logical.expressions import operands
from workbench.logical.functions import FUNCTIONS, SQL_FUNCTIONS, ScalarFunction, check_arity, resolve_call
from workbench.logical.types import SQL_TYPES, can_cast, common_type, is_temporal, language_type, type_name

#: Operators and keywords by the class of their node.
OPERATORS: dict[type[exp.Expr], str] = {
    exp.Or: "or",
    exp.And: "and",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.Like: "like",
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "modulo",
    exp.DPipe: "concat",
}

#: What SQL knows and this language does not (yet), and the nearest thing that works.
_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Filter: ("`FILTER` is not supported", "`count_if(condition)` and `sum(if(condition, x, NULL))` work"),
    exp.Subquery: ("a subquery is not supported", "write it as a statement of its own"),
    exp.Select: ("a subquery is not supported", "write it as a statement of its own"),
    exp.Exists: ("a subquery is not supported", "write it as a statement of its own"),
    exp.Star: ("`*` is not supported", "name the columns; `count(*)` counts the rows"),
    exp.Interval: (
        "arithmetic with an `INTERVAL` is not supported",
        "an interval works inside `window(ts, size, slide)`",
    ),
    exp.NullSafeEQ: ("`<=>` is not supported", "`a = b OR (a IS NULL AND b IS NULL)` works"),
    exp.ILike: ("`ILIKE` is not supported", "`lower(x) LIKE '...'` works"),
    exp.RegexpLike: ("`RLIKE` is not supported", "`LIKE` works"),
    exp.IntDiv: ("`DIV` is not supported", "`CAST(a / b AS bigint)` works"),
    exp.Placeholder: ("a parameter is not supported", "write the value itself"),
    exp.Concat: ("text beside text is not supported", "a quote inside text is written \\', and `||` joins texts"),
}

#: Where an aggregate belongs that stands in a clause without groups.
_AGGREGATE_HINTS = {
    "WHERE": "conditions on aggregates go to HAVING",
    "SELECT beside OVER": "give it an OVER of its own, or write a query with GROUP BY",
}

#: The parts of a node that the binder looks at; a node that has another one means something else.
_UNDERSTOOD = {
    "this", "expression", "expressions", "negate", "low", "high", "ifs", "true", "default", "to", "table",
    "is_string", "safe", "typed", "_type",
}  # fmt: skip


@dataclass(frozen=True)
class Scope:
    """What an expression may use where it stands.

    ``clause`` names the place in errors. ``qualifier`` is the name that may stand before a column's.
    ``keys`` is None where single rows are seen (WHERE, GROUP BY, the argument of an aggregate); otherwise aggregates
    are allowed and columns must be part of one of the keys. ``aliases`` are folded names of select items that can
    be used, before columns. ``over`` binds an OVER, where one may be.
    """

    stream: Stream
    clause: str
    qualifier: str
    keys: frozenset[Expression] | None = None
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    over: Callable[[exp.Window], Expression] | None = None


class ExpressionBinder:
    """Binds the nodes of one text in one scope. Every fault is a QueryError that underlines the node."""

    def __init__(self, text: SqlText, scope: Scope) -> None:
        self._text = text
        self._scope = scope
        #: Columns seen so far that neither a key nor an aggregate covers, with their nodes.
        self._loose: list[tuple[Column, exp.Expr]] = []

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression that ``node`` means."""
        bound = self._bind(node)
        if self._scope.keys is not None and self._loose:
            column, place = self._loose[0]
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

    def _bind(self, node: exp.Expr) -> Expression:
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

    def _operator(self, node: exp.Expr) -> Expression:
        sides = [self._bind(node.this), self._bind(node.expression)]
        call = self._call(FUNCTIONS[OPERATORS[type(node)]], node, sides)
        return self._call(FUNCTIONS["not"], node, [call]) if node.args.get("negate") else call

    def _call(self, function: ScalarFunction, node: exp.Expr, arguments: list[Expression]) -> Expression:
        """A checked call, its arguments converted to the types that the function takes."""
        with self._text.at(node):
            arguments = _times_from_text(arguments)
            signature = resolve_call(function, tuple(argument.type for argument in arguments))
            converted = tuple(map(convert, arguments, signature.parameters))
            first_constant = len(converted) if function.constant_from is None else function.constant_from
            if not all(isinstance(argument, Literal) for argument in converted[first_constant:]):
                wanted = f"argument {first_constant + 1} of `{function.name}` must be a constant"
                raise QueryError(wanted)
            return Call(signature.result, function.name, converted)

    def _column(self, node: exp.Expr) -> Expression:
        if isinstance(node.this, exp.Star):
            raise self._refusal(node.this)
        name, qualifier = node.name, node.text("table")
        if not qualifier and name.casefold() in self._scope.aliases:
            return self._scope.aliases[name.casefold()]
        if qualifier and qualifier.casefold() != self._scope.qualifier.casefold():
            self._refuse_window_value(node, qualifier)
            hint = f"columns are those of `{self._scope.qualifier}`"
            raise self._text.error(f"unknown source `{qualifier}`", node, hint=hint)
        stream = self._scope.stream
        by_fold = {column.casefold(): column for column in reversed(stream.schema.names)}
        found = name if name in stream.schema.names else by_fold.get(name.casefold())
        if found is None:
            self._refuse_window_value(node, name)
            choices = [*stream.schema.names, *self._scope.aliases]
            hint = did_you_mean(name, choices, "column")
            raise self._text.error(f"unknown column `{name}` in `{stream.name}`", node, hint=hint)
        column = Column(language_type(stream.schema.field(found).type), found)
        self._loose.append((column, node))
        return column

    def _refuse_window_value(self, node: exp.Expr, name: str) -> None:
        if name.casefold() == "window":
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
        if node.this in self._scope.stream.schema.names and self._text.source(node).startswith('"'):
            raise self._text.error(
                f'"{node.this}" is text here, not the column', node, hint=f"write the column as `{node.this}`"
            )

    def _negate(self, node: exp.Expr) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            with self._text.at(node):
                return number(f"-{node.this.this}")
        return self._call(FUNCTIONS["negate"], node, [self._bind(node.this)])

    def _is(self, node: exp.Expr) -> Expression:
        if not isinstance(node.expression, exp.Null):
            raise self._text.error("only `IS NULL` and `IS NOT NULL` are supported", node)
        return self._call(FUNCTIONS["is_null"], node, [self._bind(node.this)])

    def _not(self, node: exp.Expr) -> Expression:
        inner = node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return self._call(FUNCTIONS["is_not_null"], node, [self._bind(inner.this)])
        return self._call(FUNCTIONS["not"], node, [self._bind(inner)])

    def _in(self, node: exp.Expr) -> Expression:
        return self._call(FUNCTIONS["in"], node, [self._bind(each) for each in (node.this, *node.expressions)])

    def _between(self, node: exp.Expr) -> Expression:
        value = self._bind(node.this)
        low = self._call(FUNCTIONS["greater_equal"], node, [value, self._bind(node.args["low"])])
        high = self._call(FUNCTIONS["less_equal"], node, [value, self._bind(node.args["high"])])
        return self._call(FUNCTIONS["and"], node, [low, high])

    def _case(self, node: exp.Expr) -> Expression:
        arguments = []
        subject = None if node.this is None else self._bind(node.this)
        for branch in node.args["ifs"]:
            condition = self._bind(branch.this)
            if subject is not None:
                condition = self._call(FUNCTIONS["equal"], branch, [subject, condition])
            arguments += [condition, self._bind(branch.args["true"])]
        if node.args.get("default") is not None:
            arguments.append(self._bind(node.args["default"]))
        return self._call(FUNCTIONS["case"], node, arguments)

    def _cast(self, node: exp.Expr) -> Expression:
        written = node.args["to"].sql(dialect="spark").casefold()
        target = SQL_TYPES.get(written)
        if target is None:
            hint = did_you_mean(written, SQL_TYPES, "type")
            raise self._text.error(f"unknown or unsupported type `{written}`", node, hint=hint)
        argument = self._bind(node.this)
        if not can_cast(argument.type, target):
            raise self._text.error(f"cannot convert `{type_name(argument.type)}` to `{type_name(target)}`", node)
        with self._text.at(node):
            return fold_cast(argument, target)

    def _function(self, node: exp.Expr) -> Expression:
        name = node.name.casefold()
        if name in SQL_FUNCTIONS:
            return self._call(SQL_FUNCTIONS[name], node, [self._bind(each) for each in node.expressions])
        if name in AGGREGATES:
            return self._aggregate(name, node, *self._aggregate_arguments(AGGREGATES[name], node))
        if name in FORMS:
            raise refuse_form(self._text, node, self._scope.clause)
        hint = did_you_mean(name, [*SQL_FUNCTIONS, *AGGREGATES, *FORMS], "function")
        raise self._text.error(f"unknown function `{node.name}`", node, hint=hint)

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
                kind = aggregate.result_type(operands(arguments))
            except QueryError as error:
                raise QueryError(f"`{self._text.source(node)}`: {error.message}", hint=error.hint) from None
        return AggregateCall(kind, aggregate.name, arguments)

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


def _times_from_text(arguments: list[Expression]) -> list[Expression]:
    """Text constants beside a date or a timestamp are times: the one conversion that needs no ``CAST``."""
    kinds = [argument.type for argument in arguments if is_temporal(argument.type)]
    if not kinds:
        return arguments
    return [
        moment(argument.value, kinds[0])
        if isinstance(argument, Literal) and isinstance(argument.value, str)
        else argument
        for argument in arguments
    ]


_Handler = Callable[[ExpressionBinder, exp.Expr], Expression]
_HANDLERS: dict[type[exp.Expr], _Handler] = {
    **dict.fromkeys(OPERATORS, ExpressionBinder._operator),
    exp.Column: ExpressionBinder._column,
    exp.Literal: ExpressionBinder._literal,
    exp.Boolean: lambda binder, node: Literal(pa.bool_(), bool(node.this)),
    exp.Null: lambda binder, node: Literal(pa.null(), None),
    exp.Paren: lambda binder, node: binder._bind(node.this),
    exp.Neg: ExpressionBinder._negate,
    exp.Not: ExpressionBinder._not,
    exp.Is: ExpressionBinder._is,
    exp.In: ExpressionBinder._in,
    exp.Between: ExpressionBinder._between,
    exp.Case: ExpressionBinder._case,
    exp.Cast: ExpressionBinder._cast,
    exp.TryCast: ExpressionBinder._cast,
    exp.Anonymous: ExpressionBinder._function,
    exp.WithinGroup: ExpressionBinder._within_group,
}
