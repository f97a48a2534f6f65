"""The kernels behind the scalar functions, on Arrow arrays and scalars. NULL in, NULL out, unless it says so.

Every kernel is called with the call it computes, for its type and for errors, and with its argument values,
already of the types that :mod:`workbench.logical.functions` demands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.errors import DataError
from workbench.logical.expressions import Call
from workbench.logical.types import TIMESTAMP, type_name

Value: TypeAlias = "pa.Array | pa.Scalar"
Kernel = Callable[..., Value]


def cast(value: Value, target: pa.DataType, text: str) -> Value:
    """``value`` as ``target``; a fraction is cut towards zero. Raises DataError if a value does not fit.

    ``text`` names the expression in the error.
    """
    if value.type == target:
        return value
    options = pc.CastOptions(
        target_type=target,
        # An integer beyond 2^53 becomes the nearest double, as everywhere; a float must fit into an integer.
        allow_float_truncate=is_.is_integer(value.type),
        allow_decimal_truncate=True,
    )
    try:
        return pc.cast(_prepared(value, target), options=options)
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"`{text}`: a value does not fit into `{type_name(target)}` ({reason})") from None


def _prepared(value: Value, target: pa.DataType) -> Value:
    """``value`` where Arrow's own cast means what SQL's does."""
    if is_.is_floating(value.type) and is_.is_integer(target):
        return pc.trunc(value)
    if is_.is_timestamp(value.type) and is_.is_date(target):
        return pc.cast(value, TIMESTAMP)
    if is_.is_string(value.type) and target != pa.string():
        value = pc.utf8_trim_whitespace(value)
        # Arrow reads text without a zone only as an instant without a zone.
        return pc.cast(value, pa.timestamp("us")) if is_.is_timestamp(target) else value
    return value


def _checked(kernel: Kernel) -> Kernel:
    """Arithmetic with Arrow's overflow checks."""

    def run(call: Call, *arguments: Value) -> Value:
        try:
            return kernel(*arguments)
        except pa.ArrowInvalid as error:
            if "divide by zero" in str(error):
                raise _division_by_zero(call) from None
            raise DataError(
                f"`{call}` overflows `{type_name(call.type)}`",
                hint=f"use a wider type, such as `CAST({call.arguments[0]} AS double)`",
            ) from None

    return run


def _plain(kernel: Kernel, **options: Any) -> Kernel:
    """An Arrow function that already means what the language means."""
    return lambda call, *arguments: kernel(*arguments, **options)


def _division_by_zero(call: Call) -> DataError:
    divisor = call.arguments[1]
    return DataError(f"division by zero in `{call}`", hint=f"`nullif({divisor}, 0)` gives NULL instead of an error")


def _compare(smaller: Kernel, *, swap: bool = False) -> Kernel:
    """A comparison in which NaN equals NaN and is greater than every number, as in Spark."""

    def run(call: Call, left: Value, right: Value) -> Value:
        if swap:
            left, right = right, left
        if not is_.is_floating(left.type) or not (_has_nan(left) or _has_nan(right)):
            return smaller(left, right)
        # Two steps of order: whether it is NaN, then the numbers among themselves.
        left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
        by_nan = smaller(pc.cast(left_nan, pa.int8()), pc.cast(right_nan, pa.int8()))
        return pc.if_else(pc.or_(left_nan, right_nan), by_nan, smaller(left, right))

    return run


def _has_nan(value: Value) -> bool:
    if isinstance(value, pa.Scalar):
        return bool(value.is_valid and value.as_py() != value.as_py())
    return bool(pc.any(pc.is_nan(value)).as_py())


_equal, _less = _compare(pc.equal), _compare(pc.less)


def _in(call: Call, value: Value, *choices: Value) -> Value:
    """NULL where nothing is equal but a choice is NULL."""
    result = _equal(call, value, choices[0])
    for choice in choices[1:]:
        result = pc.or_kleene(result, _equal(call, value, choice))
    return result


def _nullif(call: Call, value: Value, unwanted: Value) -> Value:
    same = pc.fill_null(_equal(call, value, unwanted), False)
    return pc.if_else(same, pa.scalar(None, call.type), value)


def _extreme(first_wins: Callable[[Call, Value, Value], Value]) -> Kernel:
    """The argument that wins against all others; NULL arguments do not take part."""

    def run(call: Call, *arguments: Value) -> Value:
        best = arguments[0]
        for value in arguments[1:]:
            keep = pc.or_kleene(first_wins(call, best, value), pc.is_null(value))
            best = pc.if_else(pc.fill_null(keep, False), best, value)
        return best

    return run


def _modulo(call: Call, left: Value, right: Value) -> Value:
    """The remainder with the sign of ``left``. Arrow has none, so NumPy computes where neither side is NULL."""
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    if pc.any(pc.and_(valid, pc.equal(right, pa.scalar(0, right.type)))).as_py():
        raise _division_by_zero(call)
    # NULL is replaced by 1, whose remainder is thrown away again by the mask.
    one = pa.scalar(1, call.type)
    with np.errstate(invalid="ignore"):
        rest = np.fmod(_numpy(pc.coalesce(left, one)), _numpy(pc.coalesce(right, one)))
    if rest.ndim == 0:
        return pa.scalar(rest.item() if valid.as_py() else None, call.type)
    return pc.if_else(valid, pa.array(rest, call.type), pa.scalar(None, call.type))


def _numpy(value: Value) -> np.ndarray[Any, Any]:
    if isinstance(value, pa.Scalar):
        return np.asarray(value.as_py(), value.type.to_pandas_dtype())
    return np.asarray(value.to_numpy(zero_copy_only=False))


def _round(call: Call, value: Value, digits: Value | None = None) -> Value:
    places = 0 if digits is None else digits.as_py()
    if places is None:
        return pa.scalar(None, call.type)
    rounded = _checked(pc.round)(call, value, places, "half_towards_infinity")
    # -0.4 becomes 0.0, not -0.0, as in Spark.
    return pc.add(rounded, pa.scalar(0, call.type))


def _whole(kernel: Kernel) -> Kernel:
    return lambda call, value: cast(kernel(value), call.type, str(call))


def _ln(call: Call, value: Value) -> Value:
    """NULL for zero and below, as in Spark."""
    positive = pc.invert(pc.less_equal(value, pa.scalar(0.0)))
    return pc.if_else(positive, pc.ln(value), pa.scalar(None, call.type))


def _substring(call: Call, value: Value, position: Value, count: Value | None = None) -> Value:
    """Characters from ``position`` on, counted from 1, or from the end where it is negative."""
    first, width = position.as_py(), None if count is None else count.as_py()
    if width is not None and width <= 0:
        return pc.if_else(pc.is_valid(value), pa.scalar(""), pa.scalar(None, call.type))
    if first < 0:
        stop = None if width is None or first + width >= 0 else first + width
        return pc.utf8_slice_codeunits(value, first, stop)
    start = max(first - 1, 0)
    return pc.utf8_slice_codeunits(value, start, None if width is None else start + width)


def _part(kernel: Kernel, **options: Any) -> Kernel:
    def run(call: Call, value: Value) -> Value:
        return pc.cast(kernel(pc.cast(value, TIMESTAMP), **options), call.type)

    return run


#: The kernel of every function but those that guard their arguments, which the evaluator itself knows.
KERNELS: dict[str, Kernel] = {
    "not": _plain(pc.invert),
    "equal": _equal,
    "not_equal": _compare(pc.not_equal),
    "less": _less,
    "less_equal": _compare(pc.less_equal),
    "greater": _compare(pc.less, swap=True),
    "greater_equal": _compare(pc.less_equal, swap=True),
    "in": _in,
    "like": lambda call, value, pattern: pc.match_like(value, pattern.as_py()),
    "is_null": _plain(pc.is_null),
    "is_not_null": _plain(pc.is_valid),
    "nullif": _nullif,
    "least": _extreme(_compare(pc.less_equal)),
    "greatest": _extreme(_compare(pc.less_equal, swap=True)),
    "add": _checked(pc.add_checked),
    "subtract": _checked(pc.subtract_checked),
    "multiply": _checked(pc.multiply_checked),
    "divide": _checked(pc.divide_checked),
    "modulo": _modulo,
    "negate": _checked(pc.negate_checked),
    "abs": _checked(pc.abs_checked),
    "round": _round,
    "floor": _whole(pc.floor),
    "ceil": _whole(pc.ceil),
    "sqrt": _plain(pc.sqrt),
    "exp": _plain(pc.exp),
    "ln": _ln,
    "power": _plain(pc.power),
    "length": _plain(pc.utf8_length),
    "lower": _plain(pc.utf8_lower),
    "upper": _plain(pc.utf8_upper),
    "trim": _plain(pc.utf8_trim, characters=" "),
    "substring": _substring,
    "concat": lambda call, *parts: pc.binary_join_element_wise(*parts, "", null_handling="emit_null"),
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "dayofweek": _part(pc.day_of_week, count_from_zero=False, week_start=7),
}
