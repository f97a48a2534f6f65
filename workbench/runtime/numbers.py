"""The kernels of numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.logical.expressions import Call
from workbench.runtime.casts import cast
from workbench.runtime.values import (
    Kernel,
    Value,
    by_value,
    checked,
    division_by_zero,
    in_numpy,
    null,
    on_arrays,
    overflow,
    plain,
)

Array = npt.NDArray[Any]


@on_arrays
def _modulo(call: Call, left: pa.Array, right: pa.Array) -> pa.Array:
    """The remainder with the sign of ``left``. Arrow has none."""
    _refuse_zero(call, left, right)
    return in_numpy(np.fmod)(call, left, right)


@on_arrays
def _pmod(call: Call, left: pa.Array, right: pa.Array) -> pa.Array:
    """The remainder, made positive by adding ``right`` where it is negative, as Spark does."""
    _refuse_zero(call, left, right)

    def positive(x: Array, y: Array) -> Array:
        rest = np.fmod(x, y)
        # A negative divisor changes nothing, and adding it could leave the type.
        return np.where((rest < 0) & (y > 0), np.fmod(rest + y, y), rest)

    return in_numpy(positive)(call, left, right)


@on_arrays
def _div(call: Call, left: pa.Array, right: pa.Array) -> pa.Array:
    """The quotient of integers, cut towards zero."""
    _refuse_zero(call, left, right)
    smallest = pc.and_(pc.equal(left, -(2**63)), pc.equal(right, -1))
    if pc.any(smallest).as_py():
        raise overflow(call)
    return in_numpy(lambda x, y: np.where((x % y != 0) & ((x < 0) != (y < 0)), x // y + 1, x // y))(call, left, right)


def _refuse_zero(call: Call, left: pa.Array, right: pa.Array) -> None:
    zero = pc.and_(pc.is_valid(left), pc.equal(right, pa.scalar(0, right.type)))
    if pc.any(zero).as_py():
        raise division_by_zero(call)


def _try_divide(call: Call, left: Value, right: Value) -> Value:
    """NULL where the divisor is zero."""
    return pc.divide(left, pc.if_else(pc.equal(right, 0.0), null(call), right))


def _rounded(mode: str, decimal_mode: str) -> Kernel:
    """Rounding to decimal digits of what is printed, as in Spark: ``1.005`` has a tie at 2, whatever its bits."""

    def exact(number: float, places: int) -> float:
        shown = Decimal(repr(number))
        if not shown.is_finite() or int(shown.as_tuple().exponent) >= -places:
            return number
        return float(shown.quantize(Decimal(1).scaleb(-places), decimal_mode))

    def quick(call: Call, value: pa.Array, *, places: int) -> pa.Array:
        numbers = value.fill_null(0).to_numpy()
        with np.errstate(over="ignore"):
            scaled = np.abs(numbers) * 10.0**places
        inside = scaled < 2.0**52  # else nothing is behind the last of these digits, or it is no number
        rounded = pc.round(pa.array(np.where(inside, numbers, 0.0)), places, mode).to_numpy().copy()
        scaled[~inside] = 0
        for row in np.flatnonzero(np.abs(scaled % 1 - 0.5) <= 1e-9 * np.maximum(scaled, 1)) if places else ():
            rounded[row] = exact(float(numbers[row]), places)
        result = np.where(inside, rounded, numbers)
        return pa.array(result, pa.float64(), mask=value.is_null().to_numpy(zero_copy_only=False))

    def run(call: Call, value: Value, digits: Value | None = None) -> Value:
        places = 0 if digits is None else digits.as_py()
        if places is None:
            return null(call)
        if is_.is_integer(call.type):
            return _rounded_integer(call, value, places, mode)
        doubles = pc.cast(value, pa.float64())
        if abs(places) > _EXACT_POWER:
            rounded = by_value(partial(exact, places=places))(replace(call, type=pa.float64()), doubles)
        else:
            rounded = on_arrays(partial(quick, places=places))(call, doubles)
        # -0.4 becomes 0.0, not -0.0, as in Spark.
        return pc.cast(pc.add(rounded, 0.0), call.type, safe=False)

    return run


#: Ten to this power, and to all below, is a double without an error.
_EXACT_POWER = 22


def _rounded_integer(call: Call, value: Value, places: int, mode: str) -> Value:
    """The same of an integer, as a bigint on the way: 10^3 need not be a tinyint for 0 to be its multiple."""
    wide = pc.cast(value, pa.int64())
    if places >= -18:
        wide = checked(pc.round)(call, wide, min(places, 0), mode)
    else:
        beyond = pc.greater if mode == "half_to_even" else pc.greater_equal
        far = pc.or_(beyond(wide, _HALF), beyond(pa.scalar(-_HALF), wide))
        if places == -19 and pc.fill_null(pc.any(far) if isinstance(far, pa.Array) else far, False).as_py():
            raise overflow(call)
        wide = pc.multiply(wide, 0)
    return checked(partial(pc.cast, target_type=call.type))(call, wide)


#: What is rounded to the power of ten behind the last that a bigint has, 10^19, and not to 0.
_HALF = 5 * 10**18


def _whole(kernel: Kernel) -> Kernel:
    """A bigint; Arrow would make a double of an integer, which has one as it is."""

    def run(call: Call, value: Value) -> Value:
        return cast(value if is_.is_integer(value.type) else kernel(value), call.type, str(call))

    return run


def _atan2(call: Call, y: Value, x: Value) -> Value:
    """The angle; a zero is 0.0, as in Spark, and never -0.0."""
    return pc.atan2(pc.add(y, 0.0), pc.add(x, 0.0))


def _power(call: Call, base: Value, exponent: Value) -> Value:
    """1 and -1 to the power of NaN or infinity are NaN, as in Java; C has 1."""
    lost = pc.and_(pc.equal(pc.abs(base), 1.0), pc.invert(pc.is_finite(exponent)))
    return pc.if_else(lost, math.nan, pc.power(base, exponent))


def _above(lowest: float, kernel: Kernel) -> Kernel:
    """A logarithm: NULL at ``lowest`` and below, as in Spark."""

    def run(call: Call, value: Value) -> Value:
        return pc.if_else(pc.invert(pc.less_equal(value, lowest)), kernel(value), null(call))

    return run


def _log(call: Call, base: Value, value: Value | None = None) -> Value:
    """The natural logarithm of one argument, or that of the second to the base of the first."""
    if value is None:
        return _above(0.0, pc.ln)(call, base)
    defined = pc.invert(pc.or_(pc.less_equal(base, 0.0), pc.less_equal(value, 0.0)))
    return pc.if_else(defined, pc.divide(pc.ln(value), pc.ln(base)), null(call))


def _nanvl(call: Call, value: Value, otherwise: Value) -> Value:
    return pc.if_else(pc.is_null(value), null(call), pc.if_else(pc.is_nan(value), otherwise, value))


def _sign(call: Call, value: Value) -> Value:
    """-1, 0 or 1; a zero keeps its sign."""
    return pc.if_else(pc.equal(value, 0.0), value, pc.sign(value))


def _isnan(call: Call, value: Value) -> Value:
    return pc.fill_null(pc.is_nan(value), False)


def _constant(number: float) -> Kernel:
    return lambda call: pa.scalar(number, call.type)


KERNELS: dict[str, Kernel] = {
    "add": checked(pc.add_checked),
    "subtract": checked(pc.subtract_checked),
    "multiply": checked(pc.multiply_checked),
    "divide": checked(pc.divide_checked),
    "try_divide": _try_divide,
    "div": _div,
    "modulo": _modulo,
    "pmod": _pmod,
    "negate": checked(pc.negate_checked),
    "positive": lambda call, value: value,
    "abs": checked(pc.abs_checked),
    "sign": _sign,
    "round": _rounded("half_towards_infinity", ROUND_HALF_UP),
    "bround": _rounded("half_to_even", ROUND_HALF_EVEN),
    "rint": plain(pc.round, round_mode="half_to_even"),
    "floor": _whole(pc.floor),
    "ceil": _whole(pc.ceil),
    "sqrt": plain(pc.sqrt),
    "cbrt": in_numpy(np.cbrt),
    "exp": plain(pc.exp),
    "expm1": in_numpy(np.expm1),
    "ln": _above(0.0, pc.ln),
    "log": _log,
    "log10": _above(0.0, pc.log10),
    "log2": _above(0.0, pc.log2),
    "log1p": _above(-1.0, pc.log1p),
    "power": _power,
    "sin": plain(pc.sin),
    "cos": plain(pc.cos),
    "tan": plain(pc.tan),
    "asin": plain(pc.asin),
    "acos": plain(pc.acos),
    "atan": plain(pc.atan),
    "atan2": _atan2,
    "sinh": in_numpy(np.sinh),
    "cosh": in_numpy(np.cosh),
    "tanh": in_numpy(np.tanh),
    "hypot": in_numpy(np.hypot),
    "degrees": in_numpy(np.degrees),
    "radians": in_numpy(np.radians),
    "isnan": _isnan,
    "nanvl": _nanvl,
    "pi": _constant(math.pi),
    "e": _constant(math.e),
}
