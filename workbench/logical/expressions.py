"""Scalar and aggregate expressions over the columns of one stream: frozen, hashable, typed by Arrow.

``str(expression)`` is its one printed form: SQL in the Spark dialect, fully parenthesised only where needed by
reading order. Equal expressions are equal objects, which is what sharing of partials rests on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa

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
}


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

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal(Expression):
    """A constant; ``value`` is a Python value or None for NULL."""

    value: bool | int | float | str | datetime | date | None

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
        texts = [f"({a})" if _needs_brackets(a) else str(a) for a in self.arguments]
        if self.function in INFIX:
            return f"{texts[0]} {INFIX[self.function]} {texts[1]}"
        if self.function == "is_null":
            return f"{texts[0]} IS NULL"
        if self.function == "is_not_null":
            return f"{texts[0]} IS NOT NULL"
        if self.function == "not":
            return f"NOT {texts[0]}"
        if self.function == "negate":
            return f"-{texts[0]}"
        if self.function == "in":
            return f"{texts[0]} IN ({', '.join(map(str, self.arguments[1:]))})"
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Cast(Expression):
    """``CAST(argument AS type)``."""

    argument: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.argument,)

    def __str__(self) -> str:
        return f"CAST({self.argument} AS {self.type})"


@dataclass(frozen=True)
class AggregateCall(Expression):
    """An aggregate of :mod:`workbench.algebra` over the rows of a window; ``count(*)`` has no argument."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments)) or '*'})"


@dataclass(frozen=True)
class Named:
    """An expression with the name of its result column."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        text = str(self.expression)
        return text if text == self.name else f"{text} AS {self.name}"


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    yield expression
    for child in expression.children:
        yield from walk(child)


def aggregate_calls(expression: Expression) -> list[AggregateCall]:
    """The aggregate calls in an expression, left to right."""
    return [node for node in walk(expression) if isinstance(node, AggregateCall)]


def _needs_brackets(expression: Expression) -> bool:
    return isinstance(expression, Call) and (
        expression.function in INFIX or expression.function in ("not", "is_null", "is_not_null", "in")
    )
