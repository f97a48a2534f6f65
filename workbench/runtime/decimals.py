"""Decimals: exact arithmetic, and conversions to and from numbers and text.

Arrow computes what stays within its 38 digits; what does not, and what is rounded, goes value by value through
:mod:`decimal`, each distinct value once where it is of one argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Context,
    Decimal,
    InvalidOperation,
    localcontext,
)
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.algebra.decimals import Word, halves, words
from workbench.logical.decimals import MOST
from workbench.logical.expressions import Call
from workbench.runtime.values import Kernel, Value, by_value, checked, division_by_zero, on_arrays, overflow

#: Room for the product of two decimals, and a quotient that is rounded afterwards.
_EXACT = Context(prec=2 * MOST + 4, rounding=ROUND_HALF_UP)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
#: Integers up to here, and powers of ten up to there, are doubles without an error.
_EXACT_INTEGER, _EXACT_POWER = 1 << 53, 22


def rounded(value: Decimal, kind: pa.DataType) -> Decimal:
    """A value with as many digits behind the point as the type has, half away from zero.

    Raises ArrowInvalid where it does not fit.
    """
    try:
        with localcontext(_EXACT):
            found = value.quantize(Decimal(1).scaleb(-kind.scale))
    except InvalidOperation:  # more digits than any decimal has
        found = Decimal("NaN")
    if not found.is_finite() or (found and found.adjusted() >= kind.precision - kind.scale):
        raise pa.ArrowInvalid(f"{value} has too many digits")
    return found


def to_decimal(value: Value, target: pa.DataType) -> Value:
    """Numbers, booleans and text as decimals, rounded half up. Raises ArrowInvalid where one does not fit."""
    if is_.is_boolean(value.type):
        value = pc.cast(value, pa.int8())
    if is_.is_integer(value.type):
        value = pc.cast(pc.cast(value, pa.int64()), pa.decimal128(19, 0))
    if is_.is_decimal(value.type):
        return _rescaled(value, target)
    read: Callable[[Any], Decimal] = _from_text if is_.is_string(value.type) else _from_float(value.type)
    return by_value(lambda each: rounded(read(each), target))(Call(target, "decimal", ()), value)


def _rescaled(value: Value, target: pa.DataType) -> Value:
    if value.type.scale > target.scale:
        return _to_places(value, target.scale, target, "half_towards_infinity", ROUND_HALF_UP)
    return _cast(value, target)


def _from_text(text: str) -> Decimal:
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        raise pa.ArrowInvalid(f"'{text}' is no decimal number")
    return Decimal(stripped)


def _from_float(kind: pa.DataType) -> Callable[[float], Decimal]:
    """The number that is shown for a double, or for a float: 1.005 has a tie at two digits, whatever its bits."""

    return lambda number: Decimal(repr(number) if is_.is_float64(kind) else str(np.float32(number)))


def to_float(value: Value, target: pa.DataType) -> Value:
    """The doubles nearest to decimals, or the floats. Arrow multiplies by the power of ten, which is none exactly."""
    if isinstance(value, pa.Scalar):
        return pa.scalar(float(value.as_py()) if value.is_valid else None, target)
    scale, (low, high) = value.type.scale, words(value)
    valid, units = value.is_valid().to_numpy(zero_copy_only=False), low.view(np.int64)
    exact = (high == units >> 63) & (np.abs(units) <= _EXACT_INTEGER) & (scale <= _EXACT_POWER)
    doubles = units / 10.0**scale
    for row in np.flatnonzero(valid & ~exact):
        doubles[row] = float(value[int(row)].as_py())
    return pa.array(doubles, pa.float64(), mask=~valid).cast(target, safe=False)


def text_of(value: Value) -> Value:
    """Decimals as text, with all digits behind the point and never with an exponent."""
    if isinstance(value, pa.Scalar):
        return pa.scalar(f"{value.as_py():f}" if value.is_valid else None, pa.string())
    coded = value.dictionary_encode()
    return pa.array([f"{each:f}" for each in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def _sum_like(kernel: Callable[..., Value], exact: Callable[[Decimal, Decimal], Decimal]) -> Kernel:
    """Arrow's own kernel where its type is that of the language, which it is up to 38 digits."""
    by_row = _by_row(exact)

    def run(call: Call, left: Value, right: Value) -> Value:
        if call.type.precision < MOST:
            return checked(kernel)(call, left, right)
        return by_row(call, left, right)

    return run


def _by_row(exact: Callable[[Decimal, Decimal], Decimal | None], *, safe: bool = False) -> Kernel:
    """A kernel row by row; what does not fit into the type of the call is an error, or NULL where it is ``safe``."""

    def fitted(value: Decimal, kind: pa.DataType) -> Decimal | None:
        try:
            return rounded(value, kind)
        except pa.ArrowInvalid:
            if safe:
                return None
            raise

    @on_arrays
    def run(call: Call, left: pa.Array, right: pa.Array) -> pa.Array:
        found: list[Decimal | None] = []
        with localcontext(_EXACT):
            for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True):
                value = None if a is None or b is None else exact(a, b)
                found.append(None if value is None else fitted(value, call.type))
        return pa.array(found, call.type)

    def guarded(call: Call, left: Value, right: Value) -> Value:
        try:
            return run(call, left, right)
        except ZeroDivisionError:
            raise division_by_zero(call) from None
        except pa.ArrowInvalid:
            raise overflow(call) from None

    return guarded


def _divided(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise ZeroDivisionError
    return left / right


def _rest(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise ZeroDivisionError
    return left % right


def _positive_rest(left: Decimal, right: Decimal) -> Decimal:
    rest = _rest(left, right)
    return (rest + right) % right if rest < 0 < right else rest


def _div(call: Call, left: Value, right: Value) -> Value:
    """The whole part of the quotient, as a bigint."""
    whole = replace(call, type=pa.decimal128(MOST, 0))
    quotients = _by_row(lambda a, b: _divided(a, b).to_integral_value(ROUND_DOWN))(whole, left, right)
    return checked(pc.cast)(call, quotients, call.type)


def _rounding(mode: str, exact: str) -> Kernel:
    def run(call: Call, value: Value, digits: Value | None = None) -> Value:
        places = 0 if digits is None else digits.as_py()
        if places is None:
            return pa.scalar(None, call.type)
        try:
            return _to_places(value, max(min(places, value.type.scale), -MOST), call.type, mode, exact)
        except pa.ArrowInvalid:
            raise overflow(call) from None

    return run


def _to_places(value: Value, places: int, target: pa.DataType, mode: str, exact: str) -> Value:
    """Decimals rounded to so many digits behind the point, in a type that has room for those."""
    if value.type.precision < MOST and places >= 0:
        roomy = pc.cast(value, pa.decimal128(value.type.precision + 1, value.type.scale))
        return _cast(pc.round(roomy, places, mode), target)

    def one(number: Decimal) -> Decimal:
        with localcontext(_EXACT):
            return rounded(number.quantize(Decimal(1).scaleb(-places), exact), target)

    return by_value(one)(Call(target, "round", ()), value)


def _cast(value: Value, target: pa.DataType) -> Value:
    return pc.cast(value, options=pc.CastOptions(target_type=target, allow_decimal_truncate=False))


def _half(word: Word) -> Kernel:
    return on_arrays(lambda call, value: halves(value, word))


#: The halves of decimals, which SQL has no functions for: plans feed aggregates with them.
HALVES = {f"decimal_{word}": _half(word) for word in Word}
#: What takes the place of the kernel of the same function where its first argument is a decimal.
KERNELS: dict[str, Kernel] = {
    "add": _sum_like(pc.add_checked, lambda a, b: a + b),
    "subtract": _sum_like(pc.subtract_checked, lambda a, b: a - b),
    "multiply": _sum_like(pc.multiply_checked, lambda a, b: a * b),
    "divide": _by_row(_divided),
    "try_divide": _by_row(lambda a, b: a / b if b else None, safe=True),
    "modulo": _by_row(_rest),
    "pmod": _by_row(_positive_rest),
    "div": _div,
    "round": _rounding("half_towards_infinity", ROUND_HALF_UP),
    "bround": _rounding("half_to_even", ROUND_HALF_EVEN),
    "floor": _rounding("down", ROUND_FLOOR),
    "ceil": _rounding("up", ROUND_CEILING),
}
