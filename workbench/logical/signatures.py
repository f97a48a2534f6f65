"""What functions take and give: from the types of the arguments of one call to its signature.

Every resolver raises QueryError where the types do not fit; the message goes on behind the function's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from workbench.errors import QueryError
from workbench.logical.decimals import ARITHMETIC, decimal_of, is_decimal, rounded_type
from workbench.logical.types import (
    TIMESTAMP,
    can_cast,
    common_type,
    is_integer,
    is_number,
    is_numeric,
    is_temporal,
    type_name,
)

Types: TypeAlias = tuple[pa.DataType, ...]

BOOL, INT, BIGINT, DOUBLE, STRING, DATE = (
    pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.date32(),
)  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """The types to which the arguments of one call are converted, and the type of its value."""

    parameters: Types
    result: pa.DataType


Resolver: TypeAlias = Callable[[Types], Signature]


def unfit(wanted: str, types: Types) -> QueryError:
    """The error for arguments of other types than ``wanted`` says."""
    return QueryError(f"takes {wanted}, got {', '.join(f'`{type_name(kind)}`' for kind in types)}")


def arithmetic(types: Types) -> Signature:
    """Numbers, which meet in the wider type."""
    meet = common_type(types)
    if not is_numeric(meet):
        raise unfit("numbers", types)
    return Signature((meet,) * len(types), meet)


def operator(name: str, otherwise: Resolver = arithmetic) -> Resolver:
    """An operator of two numbers, which keeps the digits of decimals; other numbers are resolved ``otherwise``."""

    def resolve(types: Types) -> Signature:
        meet = arithmetic(types).result
        if not is_decimal(meet):
            return otherwise(types)
        left, right = (meet if pa.types.is_null(kind) else decimal_of(kind) for kind in types)
        return Signature((left, right), ARITHMETIC[name](left, right))

    return resolve


def beside_zero(types: Types) -> Signature:
    """A number, in the type in which it meets the 0 that stands in for it."""
    return arithmetic((*types, INT))


def doubles(types: Types) -> Signature:
    """Numbers, computed as doubles."""
    arithmetic(types)
    return Signature((DOUBLE,) * len(types), DOUBLE)


def nan_test(types: Types) -> Signature:
    """A number, of which NaN is asked."""
    arithmetic(types)
    return Signature((DOUBLE,), BOOL)


def rounding(types: Types) -> Signature:
    """A number and a number of digits."""
    number = arithmetic(types[:1]).result
    if not all(is_integer(kind) for kind in types[1:]):
        raise unfit("a number and a whole number of digits", types)
    return Signature((number, INT)[: len(types)], number)


def rounded(types: Types, number: object, digits: int | None = 0) -> pa.DataType:
    """The type of a number that is rounded to so many digits: a decimal keeps only those."""
    return rounded_type(types[0], digits or 0) if is_decimal(types[0]) else types[0]


def to_whole(types: Types) -> Signature:
    """A number, of which a bigint is made, of a decimal one without digits behind the point."""
    (number,) = arithmetic(types).parameters
    if not is_decimal(number):
        return Signature((number,), BIGINT)
    return Signature((number,), rounded_type(number, 0) if number.scale else number)


def integral_division(types: Types) -> Signature:
    """Integers or decimals, divided as bigint."""
    if any(map(is_decimal, types)) and is_decimal(common_type(types)):
        return Signature(operator("divide")(types).parameters, BIGINT)
    if not all(is_integer(kind) or pa.types.is_null(kind) for kind in types):
        raise unfit("integers", types)
    return Signature((BIGINT, BIGINT), BIGINT)


def comparison(types: Types) -> Signature:
    """Values of one kind."""
    meet = common(types).result
    return Signature((meet,) * len(types), BOOL)


def common(types: Types) -> Signature:
    """Values of one kind, of which one is the result."""
    meet = common_type(types)
    if pa.types.is_null(meet):
        raise QueryError("takes no bare NULL alone", hint="give it a type, such as `CAST(NULL AS double)`")
    if not (is_numeric(meet) or is_temporal(meet) or meet in (BOOL, STRING)):
        raise unfit("numbers, text, times or booleans", types)
    return Signature((meet,) * len(types), meet)


def nullif(types: Types) -> Signature:
    """Values of one kind, of which the first is the result; a decimal keeps its type."""
    found = common(types)
    if not is_decimal(found.result) or not is_decimal(types[0]):
        return found
    return Signature((types[0], found.result), types[0])


def case(types: Types) -> Signature:
    """Condition, value, condition, value, ... and maybe the value of ELSE."""
    last = len(types) - 1
    is_condition = [position % 2 == 0 and position < last for position in range(len(types))]
    all_of(BOOL)(tuple(kind for kind, flag in zip(types, is_condition, strict=True) if flag))
    meet = common(tuple(kind for kind, flag in zip(types, is_condition, strict=True) if not flag)).result
    return Signature(tuple(BOOL if flag else meet for flag in is_condition), meet)


def nvl2(types: Types) -> Signature:
    """Anything, and two values of one kind."""
    meet = common(types[1:]).result
    return Signature((types[0], meet, meet), meet)


def all_of(wanted: pa.DataType, result: pa.DataType | None = None) -> Resolver:
    """Arguments of exactly one type, or NULL."""

    def resolve(types: Types) -> Signature:
        if any(kind not in (wanted, pa.null()) for kind in types):
            raise unfit(f"`{type_name(wanted)}`", types)
        return Signature((wanted,) * len(types), result or wanted)

    return resolve


def null_test(types: Types) -> Signature:
    """Anything."""
    return Signature(types, BOOL)


def joined_text(types: Types) -> Signature:
    """Text, and what has one text alone: it is cast."""
    if not all(can_cast(kind, STRING) for kind in types):
        raise unfit("text", types)
    return Signature((STRING,) * len(types), STRING)


def fixed(result: pa.DataType, *parameters: pa.DataType) -> Resolver:
    """Arguments of given types, or of those that convert to them without loss; the last may be left out."""

    def resolve(types: Types) -> Signature:
        if not all(map(_converts, types, parameters)):
            wanted = ", ".join(f"`{type_name(kind)}`" for kind in parameters[: max(len(types), 1)])
            raise unfit(wanted, types)
        return Signature(parameters[: len(types)], result)

    return resolve


def _converts(source: pa.DataType, target: pa.DataType) -> bool:
    if source in (target, pa.null()):
        return True
    if is_temporal(target):
        return is_temporal(source)
    if is_decimal(source):
        return bool(pa.types.is_floating(target))
    return is_number(target) and is_number(source) and (not is_integer(target) or is_integer(source))


date_part = fixed(INT, TIMESTAMP)


def shifted(types: Types) -> Signature:
    """A time and the microseconds to shift it by: a date becomes a timestamp."""
    if not is_temporal(types[0]):
        raise unfit("a timestamp or a date beside an INTERVAL", types[:1])
    kind = types[0] if pa.types.is_timestamp(types[0]) else TIMESTAMP
    return Signature((kind, BIGINT), kind)


def shifted_months(types: Types) -> Signature:
    """A time and the months to shift it by: a date stays one."""
    if not is_temporal(types[0]):
        raise unfit("a timestamp or a date beside an INTERVAL", types[:1])
    return Signature((types[0], INT), types[0])


def timestamp_of(types: Types) -> Signature:
    """``to_timestamp``: text, with a format or without, or a time."""
    return _parsed(TIMESTAMP, types)


def date_of(types: Types) -> Signature:
    """``to_date``: text, with a format or without, or a time."""
    return _parsed(DATE, types)


def seconds_of(types: Types) -> Signature:
    """``unix_timestamp``: text, with a format or without, or a time."""
    return Signature(_parsed(TIMESTAMP, types).parameters, BIGINT)


def _parsed(target: pa.DataType, types: Types) -> Signature:
    if is_temporal(types[0]) and len(types) == 1:
        return Signature((target,), target)
    return Signature(all_of(STRING)(types).parameters, target)
