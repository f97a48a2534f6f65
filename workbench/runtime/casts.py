"""CAST and TRY_CAST on Arrow arrays and scalars."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.errors import DataError
from workbench.logical.decimals import is_decimal
from workbench.logical.types import TIMESTAMP, is_number, type_name
from workbench.runtime.decimals import text_of, to_decimal, to_float
from workbench.runtime.values import Value

_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_SPECIAL = {"inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf", "-infinity": "-inf"}
_MICROS = 1_000_000
#: What may stand around a number or a time as text: white space and control characters, such as NULs of old files.
_BLANKS = "".join(map(chr, range(33)))


def cast(value: Value, target: pa.DataType, text: str) -> Value:
    """``value`` as ``target``; a fraction is cut towards zero, or rounded half up for a decimal.

    Raises DataError if a value does not fit.

    ``text`` names the expression in the error.
    """
    if value.type == target:
        return value
    if is_.is_null(value.type):
        return pc.cast(value, target)
    try:
        if target == pa.string() and not is_.is_string(value.type):
            return _as_text(value)
        if target == pa.bool_():
            return _as_boolean(value)
        if is_decimal(target):
            return to_decimal(value, target)
        if is_.is_decimal(value.type) and is_.is_floating(target):
            return to_float(value, target)
        return pc.cast(_prepared(value, target), options=_options(value.type, target))
    except (pa.ArrowInvalid, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        hint = "`TRY_CAST(x AS ...)` gives NULL instead of an error" if text.startswith("CAST(") else None
        raise DataError(f"`{text}`: a value does not fit into `{type_name(target)}` ({reason})", hint=hint) from None


def try_cast(value: Value, target: pa.DataType, text: str) -> Value:
    """The same, with NULL where a value does not fit: then every distinct value is tried alone."""
    try:
        return cast(value, target, text)
    except DataError:
        if isinstance(value, pa.Scalar):
            return pa.scalar(None, target)
    coded = value.dictionary_encode()
    results = pa.concat_arrays(
        [_alone(coded.dictionary.slice(row, 1), target) for row in range(len(coded.dictionary))]
    )
    return results.take(coded.indices)


def _alone(value: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return cast(value, target, "")
    except DataError:
        return pa.nulls(1, target)


def _options(source: pa.DataType, target: pa.DataType) -> pc.CastOptions:
    return pc.CastOptions(
        target_type=target,
        # An integer beyond 2^53 becomes the nearest double, as everywhere; a float must fit into an integer.
        allow_float_truncate=is_.is_integer(source) or is_.is_floating(target),
        allow_decimal_truncate=True,
    )


def _prepared(value: Value, target: pa.DataType) -> Value:
    """``value`` where Arrow's own cast means what SQL's does."""
    if is_.is_floating(value.type) and is_.is_integer(target):
        return pc.trunc(value)
    if is_.is_timestamp(value.type) and is_.is_date(target):
        return pc.cast(value, TIMESTAMP)
    if is_.is_timestamp(value.type) and is_number(target):
        return _seconds(value, target)
    if is_number(value.type) and is_.is_timestamp(target):
        return _micros(value)
    if is_.is_string(value.type) and target != pa.string():
        value = pc.ascii_trim(value, characters=_BLANKS)
        if is_.is_floating(target):
            return pc.coalesce(_special(value), pc.replace_substring_regex(value, r"^([+-]?[\d.].*)[dDfF]$", r"\1"))
        if is_.is_integer(target):
            return _decimal(value)
        return _read_date(value) if is_.is_date(target) else _moments(value)
    return value


def _decimal(value: Value) -> Value:
    """An integer's text: with a plus, which Arrow does not read, and not in hexadecimal, which it does."""
    strange = pc.match_substring_regex(value, "^[+-]*0[xX]")
    if (pc.any(strange) if isinstance(strange, pa.Array) else strange).as_py():
        raise pa.ArrowInvalid("a hexadecimal number")
    return pc.replace_substring_regex(value, r"^\+(\d)", r"\1")


#: How Spark takes the text of a time that ISO would write at greater length, step by step.
_DAY_STEPS = (
    (r"^(\d{4})$", r"\1-01-01"),
    (r"^(\d{4}-\d{1,2})$", r"\1-01"),
    (r"^(\d{4}-)(\d-)", r"\10\2"),
    (r"^(\d{4}-\d\d-)(\d)($|[ T])", r"\10\2\3"),
)
_TIME_STEPS = (
    (r"^(\S{10}[ T])(\d)($|:)", r"\10\2\3"),
    (r"^(\S{10}[ T]\d\d:)(\d)($|[^\d])", r"\10\2\3"),
    (r"^(\S{10}[ T]\d\d:\d\d:)(\d)($|[^\d])", r"\10\2\3"),
    (r"(\.\d{6})\d+", r"\1"),
    (r" ?(UTC|GMT|Z)$", "Z"),
    (r"(:\d\d(?:\.\d*)?) ?([+-])(\d)($|:)", r"\1\20\3\4"),
    (r"(:\d\d(?:\.\d*)?) ([+-])", r"\1\2"),
)


def _stepwise(value: Value, steps: tuple[tuple[str, str], ...]) -> Value:
    for pattern, replacement in steps:
        value = pc.replace_substring_regex(value, pattern, replacement)
    return value


def _read_date(value: Value) -> Value:
    """The ISO text of a date; what stands behind it is not looked at."""
    return pc.replace_substring_regex(_stepwise(value, _DAY_STEPS), r"^(\d{4}-\d\d-\d\d)[ T](?s:.*)$", r"\1")


def _moments(value: Value) -> Value:
    """Instants from text, which is ISO's as a rule."""
    try:
        return _instants(value)
    except pa.ArrowInvalid:
        return _instants(_stepwise(value, (*_DAY_STEPS, *_TIME_STEPS)))


def _instants(value: Value) -> Value:
    """Instants from text: Arrow reads such with a zone and such without as two types."""
    zoned = pc.match_substring_regex(value, r":.*(Z|[+-]\d{2}(:?\d{2})?)$")
    no_text = pa.scalar(None, pa.string())
    with_zone = pc.cast(pc.if_else(zoned, value, no_text), TIMESTAMP)
    without = pc.cast(pc.if_else(zoned, no_text, value), pa.timestamp("us"))
    return pc.coalesce(with_zone, pc.cast(without, TIMESTAMP))


def _special(value: Value) -> Value:
    """The names that Spark has for infinity, as Arrow reads them; NULL for everything else."""
    lowered = pc.utf8_lower(value)
    if isinstance(lowered, pa.Scalar):
        return pa.scalar(_SPECIAL.get(lowered.as_py() or ""), pa.string())
    return pa.array(_SPECIAL.values()).take(pc.index_in(lowered, value_set=pa.array(_SPECIAL)))


def _seconds(value: Value, target: pa.DataType) -> Value:
    """Seconds since 1970, rounded down for an integer."""
    micros = pc.cast(pc.cast(value, pa.timestamp("us", value.type.tz)), pa.int64())
    seconds = pc.divide(pc.cast(micros, pa.float64(), safe=False), float(_MICROS))
    if is_.is_floating(target):
        return seconds
    rest = pc.subtract(micros, pc.multiply(pc.divide(micros, _MICROS), _MICROS))
    return pc.subtract(pc.divide(micros, _MICROS), pc.cast(pc.less(rest, 0), pa.int64()))


def _micros(value: Value) -> Value:
    """Microseconds from seconds."""
    if is_.is_floating(value.type):
        return pc.cast(pc.trunc(pc.multiply(pc.cast(value, pa.float64()), float(_MICROS))), pa.int64())
    return pc.multiply_checked(pc.cast(value, pa.int64()), _MICROS)


def _as_boolean(value: Value) -> Value:
    if is_number(value.type) or is_.is_decimal(value.type):
        return pc.not_equal(value, pa.scalar(0, value.type))
    lowered = pc.utf8_lower(pc.ascii_trim(value, characters=_BLANKS))
    is_true, is_false = pc.is_in(lowered, pa.array(_TRUE)), pc.is_in(lowered, pa.array(_FALSE))
    strange = pc.and_(pc.is_valid(lowered), pc.invert(pc.or_(is_true, is_false)))
    if pc.any(strange).as_py() if isinstance(strange, pa.Array) else strange.as_py():
        first = lowered.filter(strange)[0] if isinstance(strange, pa.Array) else lowered
        raise pa.ArrowInvalid(f"'{first}' is neither true nor false")
    return pc.if_else(pc.is_valid(lowered), is_true, pa.scalar(None, pa.bool_()))


def _as_text(value: Value) -> Value:
    if is_.is_timestamp(value.type):
        return _instant_text(value)
    if is_.is_decimal(value.type):
        return text_of(value)
    if not is_.is_floating(value.type):
        return pc.cast(value, pa.string())
    if isinstance(value, pa.Scalar):
        return pa.scalar(_number_text(value.as_py(), value.type) if value.is_valid else None, pa.string())
    coded = value.dictionary_encode()
    return pa.array([_number_text(each, value.type) for each in coded.dictionary.to_pylist()], pa.string()).take(
        coded.indices
    )


def _instant_text(value: Value) -> Value:
    """``2013-01-31 10:15:00.5``: the fraction without zeros at its end."""
    whole = pc.cast(pc.cast(value, pa.timestamp("us", value.type.tz)), pa.timestamp("us"))
    return pc.replace_substring_regex(pc.cast(whole, pa.string()), r"\.?0*$", "")


def _number_text(value: float, kind: pa.DataType) -> str:
    """As Java prints it: the shortest digits that read back, ``E`` from 10^7 on and below 10^-3."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    number: Any = np.float32(value) if is_.is_float32(kind) else np.float64(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, _, exponent = np.format_float_scientific(number, unique=True, trim="0").partition("e")
    if mantissa.endswith(".0"):  # of one digit: Java then gives the nearest text of two
        mantissa = f"{value:.1e}".partition("e")[0]
    return f"{mantissa}E{int(exponent)}"
