"""Scalar and aggregate expressions over the columns of one stream: frozen, hashable, typed by Arrow.

``str(expression)`` is its one printed form: SQL in the Spark dialect, with brackets only where reading it back
would give another tree. Equal expressions are equal objects, which is what sharing of partials rests on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from workbench.algebra import Operands
from workbench.algebra.registry import plain_name
from workbench.logical.types import type_name
from workbench.time import format_duration

#: SQL operators of two arguments by function name. Every other function prints as ``name(arguments)``.
INFIX = {
    "or": "OR",
    "and": "AND",
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "div": "DIV",
    "null_safe_equal": "<=>",
    "like": "LIKE",
    "ilike": "ILIKE",
    "rlike": "RLIKE",
}

#: How tightly a function's SQL form binds; what is not here is closed by its own brackets and binds tightest.
_BINDING = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), 4),
    **dict.fromkeys(("null_safe_equal", "like", "ilike", "rlike", "in", "is_null", "is_not_null"), 4),
    **dict.fromkeys(("add", "subtract", "shift", "shift_months"), 5),
    **dict.fromkeys(("multiply", "divide", "modulo", "div"), 6),
    "negate": 7,
}
_COMPARISON = 4
_CLOSED = 8
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Words that SQL does not read as a name everywhere where a name can stand.
_WORDS = frozenset(
    (
        "all", "alter", "and", "as", "between", "case", "create", "cross", "cube", "distinct", "drop", "else",
        "except", "false", "fetch", "for", "from", "glob", "grant", "having", "ilike", "inner", "insert",
        "intersect", "interval", "into", "join", "lateral", "like", "limit", "lock", "minus", "not", "notnull",
        "null", "offset", "on", "or", "outer", "partitioned_by", "qualify", "regexp", "returning", "revoke",
        "rlike", "rollback", "rollup", "select", "serdeproperties", "tablesample", "then", "true", "uncache",
        "union", "using", "values", "when", "where", "with", "xor",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Expression:
    """Base of all expressions. ``type`` is the Arrow type of its value."""

    type: pa.DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """The direct arguments, left to right."""
        return ()


@dataclass(frozen=True)
class Column(Expression):
    """A column of the stream, by its exact name in the schema."""

    name: str

    @property
    def stored(self) -> str:
        """The name of the column among the rows."""
        return self.name

    def __str__(self) -> str:
        return quote_name(self.name)


@dataclass(frozen=True)
class Literal(Expression):
    """A constant; ``value`` is a Python value, None for NULL, or a tuple for an array of constants."""

    value: bool | int | float | Decimal | str | datetime | date | tuple[Any, ...] | None

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, bool):
            return "TRUE" if self.value else "FALSE"
        if isinstance(self.value, datetime):
            return f"TIMESTAMP '{self.value.isoformat(sep=' ')}'"
        if isinstance(self.value, date):
            return f"DATE '{self.value.isoformat()}'"
        if isinstance(self.value, str):
            escaped = self.value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        if isinstance(self.value, Decimal):
            return f"{self.value:f}"
        if isinstance(self.value, tuple):
            return f"array({', '.join(str(Literal(self.type.value_type, each)) for each in self.value)})"
        return str(self.value)


@dataclass(frozen=True)
class Call(Expression):
    """A scalar function of the closed list in :mod:`workbench.logical.functions`."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def __str__(self) -> str:
        form = _FORMS.get(self.function)
        if form is not None:
            return form(self)
        if self.function in INFIX:
            return f"{_operand(self, 0)} {INFIX[self.function]} {_operand(self, 1)}"
        return f"{self.function}({_listed(self.arguments)})"


@dataclass(frozen=True)
class Cast(Expression):
    """``CAST(argument AS type)``; ``safe`` is ``TRY_CAST``, which gives NULL where a value does not fit."""

    argument: Expression
    safe: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.argument,)

    def __str__(self) -> str:
        return f"{'TRY_' * self.safe}CAST({self.argument} AS {type_name(self.type)})"


@dataclass(frozen=True)
class Field(Expression):
    """A field of a struct, by its exact name; NULL where the struct is."""

    argument: Expression
    name: str

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.argument,)

    def __str__(self) -> str:
        inner = str(self.argument)
        plain = _binding(self.argument) == _CLOSED and not isinstance(self.argument, Literal | Cast)
        return f"{inner if plain else f'({inner})'}.{quote_name(self.name)}"


@dataclass(frozen=True)
class AggregateCall(Expression):
    """An aggregate of :mod:`workbench.algebra` over the rows of a window; ``count(*)`` has no argument."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    @property
    def operands(self) -> Operands:
        """The types of the arguments, and the values of those that are constants."""
        return operands(self.arguments)

    def __str__(self) -> str:
        return f"{plain_name(self.function)}({_listed(self.arguments) or '*'})"


@dataclass(frozen=True)
class Named:
    """An expression with the name of its result column."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        text = str(self.expression)
        return text if text == self.name else f"{text} AS {quote_name(self.name)}"


def operands(arguments: tuple[Expression, ...]) -> Operands:
    """What an aggregate is called with."""
    constants = (each.value if isinstance(each, Literal) else None for each in arguments)
    return Operands(tuple(each.type for each in arguments), tuple(constants), tuple(map(str, arguments)))


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    yield expression
    for child in expression.children:
        yield from walk(child)


def aggregate_calls(expression: Expression) -> list[AggregateCall]:
    """The aggregate calls in an expression, left to right."""
    return [node for node in walk(expression) if isinstance(node, AggregateCall)]


def quote_name(name: str) -> str:
    """The name as SQL reads it back: between backticks unless it is a plain word that means nothing else."""
    plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in _WORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def _listed(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(map(str, expressions))


def _binding(expression: Expression) -> int:
    if isinstance(expression, Call):
        return _BINDING.get(expression.function, _CLOSED)
    negative = isinstance(expression, Literal) and str(expression).startswith("-")
    return _BINDING["negate"] if negative else _CLOSED


def _is_plain(expression: Expression) -> bool:
    return _binding(expression) == _CLOSED and not isinstance(expression, Literal)


def _operand(call: Call, position: int) -> str:
    """An argument, in brackets where it binds less tightly than the call, or as tightly but to the right.

    Comparisons do not chain, so there both sides count as right.
    """
    argument, own = call.arguments[position], _BINDING[call.function]
    chains = position == 0 and own != _COMPARISON
    inner = _binding(argument)
    return str(argument) if inner > own or (inner == own and chains) else f"({argument})"


def _case(call: Call) -> str:
    """``arguments`` are condition, value, condition, value, ... and, where their number is odd, the ELSE."""
    pairs = zip(call.arguments[0::2], call.arguments[1::2], strict=False)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    otherwise = f" ELSE {call.arguments[-1]}" if len(call.arguments) % 2 else ""
    return f"CASE {branches}{otherwise} END"


def _shifted(call: Call, shown: Callable[[int], str]) -> str:
    amount = call.arguments[1]
    assert isinstance(amount, Literal)
    assert isinstance(amount.value, int)
    return f"{_operand(call, 0)} {'-' if amount.value < 0 else '+'} INTERVAL '{shown(abs(amount.value))}'"


def _months(count: int) -> str:
    return f"{count} month{'s' * (count != 1)}"


def _trimmed(call: Call, side: str) -> str:
    if len(call.arguments) == 1:
        return f"{call.function}({call.arguments[0]})"
    return f"TRIM({side} {call.arguments[1]} FROM {call.arguments[0]})"


_FORMS: dict[str, Callable[[Call], str]] = {
    "is_null": lambda call: f"{_operand(call, 0)} IS NULL",
    "is_not_null": lambda call: f"{_operand(call, 0)} IS NOT NULL",
    "not": lambda call: f"NOT {_operand(call, 0)}",
    # `--x` would begin a comment, and `-2` is a constant: a minus before such always has brackets.
    "negate": lambda call: f"-{call.arguments[0]}" if _is_plain(call.arguments[0]) else f"-({call.arguments[0]})",
    "shift": lambda call: _shifted(call, format_duration),
    "shift_months": lambda call: _shifted(call, _months),
    "trim": lambda call: _trimmed(call, "BOTH"),
    "ltrim": lambda call: _trimmed(call, "LEADING"),
    "rtrim": lambda call: _trimmed(call, "TRAILING"),
    "in": lambda call: f"{_operand(call, 0)} IN ({_listed(call.arguments[1:])})",
    "case": _case,
}
