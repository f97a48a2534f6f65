"""Which expressions have a value for every row and never raise, so that when they are asked changes no result.

An error is part of what a query means: ``y <> 0 AND x / y > 1`` must not divide where ``y`` is zero, and ``x / y > 1
AND z`` must raise even where ``z`` is false. So only conditions that are here may change places (*Grizzly* §6.2.1).
The list is short of the truth where it is in doubt.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as is_

from workbench.logical.expressions import Call, Cast, Column, Expression, Field, Literal
from workbench.logical.joins import TableColumn
from workbench.logical.types import NUMBERS, is_integer, is_number

#: Functions without an error of their own, whatever their arguments.
_FUNCTIONS = frozenset(
    (
        "and", "or", "not", "equal", "null_safe_equal", "not_equal", "less", "less_equal", "greater",
        "greater_equal", "in", "is_null", "is_not_null", "case", "coalesce", "nullif", "nullifzero", "zeroifnull",
        "nvl2", "least", "greatest", "like", "ilike", "rlike", "startswith", "endswith", "contains", "length",
        "lower", "upper", "try_divide", "positive", "sign", "sqrt", "cbrt", "exp", "ln", "log", "log10", "log2",
        "power", "sin", "cos", "tan", "atan", "atan2", "hypot", "degrees", "radians", "isnan", "nanvl", "year",
        "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "hour", "minute", "second",
        "unix_seconds", "unix_millis", "unix_micros", "unix_date",
    )
)  # fmt: skip
#: Arithmetic that overflows integers, while floats become infinite.
_FLOATING = frozenset(("add", "subtract", "multiply", "negate", "abs"))


def never_raises(expression: Expression, schema: pa.Schema) -> bool:
    """Whether an expression over rows of a schema raises for none of them. What is unknown counts as raising."""
    if not all(never_raises(child, schema) for child in expression.children):
        return False
    match expression:
        case Literal():
            return True
        case Column() | TableColumn():
            # A column that is stored in another type is converted, and may not fit.
            place = schema.get_field_index(expression.stored)
            return place >= 0 and schema.field(place).type == expression.type
        case Field():
            return True
        case Cast():
            return expression.safe or _fits(expression.argument.type, expression.type)
        case Call():
            if expression.function in _FLOATING:
                return all(map(is_.is_floating, (expression.type, *(child.type for child in expression.children))))
            return expression.function in _FUNCTIONS
    return False


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of a type has one in another."""
    if source == target:
        return True
    if is_number(source) and is_number(target):
        widens = NUMBERS.index(source) <= NUMBERS.index(target)
        return widens and (is_integer(source) or is_.is_floating(target))
    return bool(target == pa.string() and (is_integer(source) or is_.is_boolean(source)))
