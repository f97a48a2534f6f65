"""The types of decimals, as Spark's ANSI rules have them: how two of them meet, and what arithmetic makes of them.

A ``decimal(p, s)`` has up to ``p`` digits, ``s`` of them behind the point. An integer beside one is a decimal without
digits behind the point, a constant one has its own digits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as is_

#: The digits of a decimal are at most these; a result that needs more gives up some behind the point, down to six.
MOST, _LEAST_SCALE = 38, 6
#: A constant from here on is written with an exponent, which makes it a double.
_EXPONENT = 1e16
#: The digits of each integer type.
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def is_decimal(kind: pa.DataType) -> bool:
    """Whether the type is a decimal of the language."""
    return bool(is_.is_decimal128(kind)) and 0 <= kind.scale <= kind.precision


def stored_decimal(kind: pa.DataType) -> pa.DataType:
    """A decimal of any width in the width that the language computes with, where it fits; else the type itself."""
    fits = is_.is_decimal(kind) and kind.precision <= MOST and 0 <= kind.scale <= kind.precision
    return pa.decimal128(kind.precision, kind.scale) if fits else kind


def decimal_of(kind: pa.DataType) -> pa.DataType:
    """The decimals that hold all values of an integer type; a decimal is its own."""
    return kind if is_decimal(kind) else pa.decimal128(_DIGITS[kind], 0)


def literal_decimal(value: int | float) -> Decimal | None:
    """A constant number with its own digits, 1.10 as 1.1; None for one that no decimal is, such as 1e30."""
    found = plain(Decimal(repr(value)))
    fits = abs(value) < _EXPONENT and max(len(found.as_tuple().digits), -int(found.as_tuple().exponent)) <= MOST
    return found if fits or isinstance(value, int) else None


def plain(value: Decimal) -> Decimal:
    """A finite value without an exponent: 1E+3 is 1000. Exact, whatever the precision of the thread's context."""
    return Decimal(f"{value:f}")


def type_of_literal(value: Decimal) -> pa.DataType:
    """The narrowest decimal that holds a constant."""
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    return pa.decimal128(max(len(digits), scale, 1), scale)


def wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type in which two decimals meet. Beyond 38 digits those behind the point are given up first."""
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    return pa.decimal128(min(whole + scale, MOST), min(scale, max(MOST - whole, 0)))


def rounded_type(kind: pa.DataType, digits: int) -> pa.DataType:
    """The type of decimals that are rounded to so many digits behind the point, or before it where negative."""
    whole, scale = kind.precision - kind.scale + 1, min(kind.scale, max(digits, 0))
    return pa.decimal128(min(max(whole, 1 - digits) + scale, MOST), scale)


def _adjusted(precision: int, scale: int) -> pa.DataType:
    if precision <= MOST:
        return pa.decimal128(precision, scale)
    return pa.decimal128(MOST, max(MOST - (precision - scale), min(scale, _LEAST_SCALE)))


def _added(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return _adjusted(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _multiplied(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def _divided(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    return _adjusted(left.precision - left.scale + right.scale + scale, scale)


def _rest(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return _adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


#: The type of what an operator makes of two decimals.
ARITHMETIC: dict[str, Callable[[pa.DataType, pa.DataType], pa.DataType]] = {
    "add": _added,
    "subtract": _added,
    "multiply": _multiplied,
    "divide": _divided,
    "try_divide": _divided,
    "modulo": _rest,
    "pmod": _rest,
}
