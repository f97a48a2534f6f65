"""Constants of the SQL as typed literals, and the conversions that nobody has to write."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as is_

from workbench.algebra import Aggregate
from workbench.errors import QueryError
from workbench.logical.decimals import ARITHMETIC, is_decimal, literal_decimal, type_of_literal
from workbench.logical.expressions import INFIX, AggregateCall, Call, Cast, Expression, Literal, operands
from workbench.logical.functions import ScalarFunction
from workbench.logical.types import is_integer, is_number, is_temporal, type_name


def number(text: str) -> Literal:
    """A number as it stands: the narrowest of ``int`` and ``bigint``, or ``double`` with a point or an exponent."""
    if not text.lstrip("+-").isdigit():
        value = float(text)
        if not math.isfinite(value):
            raise QueryError(f"the number `{text}` is too large for a `double`")
        return Literal(pa.float64(), value)
    whole = int(text)
    if not -(2**63) <= whole < 2**63:
        raise QueryError(f"the number `{text}` is too large for a `bigint`", hint=f"write `{text}.0`")
    return Literal(pa.int32() if -(2**31) <= whole < 2**31 else pa.int64(), whole)


def moment(text: str, kind: pa.DataType) -> Literal:
    """A date or a timestamp from ISO text; without a zone it is UTC. ``kind`` is the type of the literal."""
    try:
        if is_.is_date32(kind):
            return Literal(kind, date.fromisoformat(text.strip()))
        value = datetime.fromisoformat(text.strip())
    except ValueError:
        example = "2013-01-31" if is_.is_date32(kind) else "2013-01-31 10:15:00"
        noun = "date" if is_.is_date32(kind) else "timestamp"
        raise QueryError(f"cannot read '{text}' as a {noun}", hint=f"write it as '{example}'") from None
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return Literal(kind, value)


def convert(expression: Expression, target: pa.DataType) -> Expression:
    """``expression`` with the type ``target``: a literal is retyped, everything else gets a ``CAST``.

    Raises QueryError for an integer that does not fit.
    """
    if expression.type == target:
        return expression
    if not isinstance(expression, Literal):
        return Cast(target, expression)
    value = expression.value
    _check_fits(value, target)
    if isinstance(value, int | Decimal) and is_.is_floating(target):
        return Literal(target, float(value))
    if isinstance(value, Decimal) and is_decimal(target):
        return Literal(target, value)
    if is_integer(expression.type) and value is not None and target == pa.string():
        return Literal(target, str(value))
    if value is None or is_number(target) or (is_.is_timestamp(target) and isinstance(value, datetime)):
        return Literal(target, value)
    return Cast(target, expression)


def beside_decimals(arguments: list[Expression], function: ScalarFunction) -> list[Expression]:
    """Constant numbers beside a decimal as decimals of their own digits, so that ``price > 0.1`` is exact.

    Not beside a float, where all are doubles. Whole numbers keep their type in functions, as in Spark.
    """
    kinds = [each.type for each in arguments if not isinstance(each, Literal)]
    if not any(map(is_decimal, kinds)) or any(map(is_.is_floating, kinds)):
        return arguments
    taken = is_number if function.name in INFIX or function.name in ARITHMETIC else is_.is_floating
    return [
        _as_decimal(each) if isinstance(each, Literal) and taken(each.type) and position not in function.constants
        else each
        for position, each in enumerate(arguments)
    ]  # fmt: skip


def _as_decimal(constant: Literal) -> Literal:
    assert isinstance(constant.value, int | float)
    value = literal_decimal(constant.value)
    return constant if value is None else Literal(type_of_literal(value), value)


def fold_cast(argument: Expression, target: pa.DataType, *, safe: bool = False) -> Expression:
    """``CAST(argument AS target)``; a time written as text becomes a literal at once. ``safe`` for ``TRY_CAST``.

    Raises QueryError for a constant that does not fit.
    """
    value = argument.value if isinstance(argument, Literal) else None
    if isinstance(value, str) and is_temporal(target) and not safe:
        return moment(value, target)
    if not safe:
        _check_fits(value, target)
    return argument if argument.type == target else Cast(target, argument, safe)


def _check_fits(value: object, target: pa.DataType) -> None:
    if isinstance(value, int) and is_.is_integer(target) and abs(2 * value + 1) >= 1 << target.bit_width:
        raise QueryError(f"the number `{value}` does not fit into `{type_name(target)}`")


def joined(expression: Expression) -> Expression:
    """Text constants between ``||`` as the one constant that they are; everything else as it is."""
    if not isinstance(expression, Call) or expression.function != "concat":
        return expression
    parts = [joined(each) for each in expression.arguments]
    texts = [each.value for each in parts if isinstance(each, Literal) and isinstance(each.value, str)]
    return Literal(expression.type, "".join(texts)) if len(texts) == len(parts) else expression


def times_from_text(arguments: list[Expression], constants: tuple[int, ...]) -> list[Expression]:
    """Text constants beside a date or a timestamp as times: the one conversion that needs no ``CAST``.

    Not at the positions ``constants``, where text is a unit or a format. Beside both a date and a timestamp it is
    the latter, in which they meet.
    """
    kinds = sorted((each.type for each in arguments if is_temporal(each.type)), key=is_.is_date32)
    if not kinds:
        return arguments
    return [
        moment(argument.value, kinds[0])
        if isinstance(argument, Literal) and isinstance(argument.value, str) and position not in constants
        else argument
        for position, argument in enumerate(arguments)
    ]


def aggregate_call(aggregate: Aggregate, arguments: tuple[Expression, ...]) -> AggregateCall:
    """A call of an aggregate; decimals are doubles to those that do not take them. Raises QueryError."""
    try:
        kind = aggregate.result_type(operands(arguments))
    except QueryError:
        if not any(is_decimal(each.type) for each in arguments):
            raise
        arguments = tuple(convert(each, pa.float64()) if is_decimal(each.type) else each for each in arguments)
        kind = aggregate.result_type(operands(arguments))
    return AggregateCall(kind, aggregate.name, arguments)
