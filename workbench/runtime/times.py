"""The kernels of times. A timestamp is an instant; its parts and its days are those of UTC."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import DataError
from workbench.logical.expressions import Call
from workbench.logical.formats import DATE_UNITS, UNITS, Piece, reading_pattern, time_format, unit_of
from workbench.logical.types import TIMESTAMP, is_temporal
from workbench.runtime.casts import cast
from workbench.runtime.values import Kernel, Value, by_value, checked, null, nulls, on_arrays, overflow

Array = npt.NDArray[Any]

_DAY = 86_400_000_000
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _part(kernel: Kernel, **options: Any) -> Kernel:
    return lambda call, value: pc.cast(kernel(value, **options), call.type)


def _date_trunc(call: Call, unit: pa.Scalar, value: Value) -> Value:
    if not unit.is_valid:
        return null(call)
    return pc.floor_temporal(value, unit=unit_of(unit.as_py(), UNITS))


def _trunc(call: Call, value: Value, unit: pa.Scalar) -> Value:
    if not unit.is_valid:
        return null(call)
    return pc.cast(pc.floor_temporal(value, unit=unit_of(unit.as_py(), DATE_UNITS)), pa.date32())


def _days(value: Value) -> Value:
    return pc.cast(value, pa.int32())


def _date_add(call: Call, value: Value, days: Value) -> Value:
    return pc.cast(checked(pc.add_checked)(call, _days(value), days), pa.date32())


def _date_sub(call: Call, value: Value, days: Value) -> Value:
    return pc.cast(checked(pc.subtract_checked)(call, _days(value), days), pa.date32())


def _datediff(call: Call, end: Value, start: Value) -> Value:
    return checked(pc.subtract_checked)(call, _days(end), _days(start))


@on_arrays
def _add_months(call: Call, value: pa.Array, months: pa.Array) -> pa.Array:
    """The same day of another month, or its last day where it is shorter."""
    valid = pc.and_(pc.is_valid(value), pc.is_valid(months)).to_numpy(zero_copy_only=False)
    days = _days(value).fill_null(0).to_numpy().astype("M8[D]")
    shift = months.fill_null(0).to_numpy(zero_copy_only=False).astype("m8[M]")
    moved = _same_day(days, days.astype("M8[M]") + shift)
    return _dates(call, moved, valid)


def _dates(call: Call, days: Array, valid: Array) -> pa.Array:
    """Dates from days since 1970, which must be no more than a date holds."""
    if np.any(valid & (days != days.astype(np.int32))):
        raise overflow(call)
    return pa.array(days.astype(np.int32), pa.int32(), mask=~valid).cast(pa.date32())


def _same_day(days: Array, months: Array) -> Array:
    """The days of ``months`` that have the number of ``days`` in theirs, or their last ones."""
    offset = days - days.astype("M8[M]").astype("M8[D]")
    last = (months + 1).astype("M8[D]") - np.timedelta64(1, "D")
    return np.minimum(months.astype("M8[D]") + offset, last).astype(np.int64)


def _shift_months(call: Call, value: Value, months: Value) -> Value:
    """The same, for an instant as well: the time of day stays."""
    if pa.types.is_date(value.type):
        return _add_months(call, value, months)
    day = pc.floor_temporal(value, unit="day")
    in_day = pc.subtract(pc.cast(value, pa.int64()), pc.cast(day, pa.int64()))
    to_micros = checked(partial(pc.cast, target_type=pa.timestamp("us")))
    moved = to_micros(call, _add_months(call, pc.cast(day, pa.date32()), months))
    return pc.cast(checked(pc.add_checked)(call, pc.cast(moved, pa.int64()), in_day), call.type)


def _shift(call: Call, value: Value, micros: Value) -> Value:
    return pc.cast(checked(pc.add_checked)(call, pc.cast(value, pa.int64()), micros), call.type)


@on_arrays
def _last_day(call: Call, value: pa.Array) -> pa.Array:
    valid = value.is_valid().to_numpy(zero_copy_only=False)
    months = _days(value).fill_null(0).to_numpy().astype("M8[D]").astype("M8[M]")
    return _dates(call, (months + 1).astype("M8[D]").astype(np.int64) - 1, valid)


@on_arrays
def _make_date(call: Call, year: pa.Array, month: pa.Array, day: pa.Array) -> pa.Array:
    valid = np.logical_and.reduce([each.is_valid().to_numpy(zero_copy_only=False) for each in (year, month, day)])
    days, right = _to_days(*(each.fill_null(1).to_numpy(zero_copy_only=False) for each in (year, month, day)))
    wrong = np.flatnonzero(valid & ~right)
    if len(wrong):
        shown = "-".join(str(each[int(wrong[0])]) for each in (year, month, day))
        raise DataError(f"`{call}`: there is no day {shown}")
    return _dates(call, days, valid)


def _to_days(year: Array, month: Array, day: Array) -> tuple[Array, Array]:
    """Days since 1970, and whether there is such a day."""
    months = ((year.astype(np.int64) - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("M8[M]")
    days = months.astype("M8[D]").astype(np.int64) + day - 1
    last = (months + 1).astype("M8[D]").astype(np.int64)
    return days, (month >= 1) & (month <= 12) & (day >= 1) & (days < last)


def _named(names: tuple[str, ...], length: int, kernel: Kernel, **options: Any) -> Kernel:
    """The name of a part that counts from 1, cut to ``length`` characters."""
    short = pa.array([name[:length] for name in names])

    def run(call: Call, value: Value) -> Value:
        index = pc.subtract(kernel(value, **options), 1)
        return (
            short.take(index)
            if isinstance(index, pa.Array)
            else short[index.as_py()]
            if index.is_valid
            else null(call)
        )

    return run


_WEEK = {"count_from_zero": False, "week_start": 7}


@on_arrays
def _date_format(call: Call, value: pa.Array, format: pa.Array) -> pa.Array:
    if format.null_count:
        return pa.nulls(len(value), call.type)
    parts = [
        _written(piece, value, call) for piece in time_format(format[0].as_py() if len(format) else "", reading=False)
    ]
    return pc.binary_join_element_wise(*parts, "") if parts else pc.if_else(pc.is_valid(value), "", None)


def _written(piece: Piece, value: pa.Array, call: Call) -> Value:
    """A piece of a format, for every time."""
    if not piece.letter:
        return pc.if_else(pc.is_valid(value), piece.text, pa.scalar(None, pa.string()))
    if piece.letter == "E":
        return _named(_DAYS, 3 if piece.count < 4 else 9, pc.day_of_week, **_WEEK)(call, value)
    if piece.letter == "M" and piece.count > 2:
        return _named(_MONTHS, 3 if piece.count < 4 else 9, pc.month)(call, value)
    if piece.letter == "S":
        micros = pc.subtract(pc.cast(value, pa.int64()), pc.cast(pc.floor_temporal(value, unit="second"), pa.int64()))
        number = pc.divide(micros, 10 ** (6 - piece.count))
    elif piece.letter == "y":
        number = pc.year(value)
        if piece.count == 2:
            number = pc.subtract(number, pc.multiply(pc.divide(number, 100), 100))
    else:
        kernels = {"M": pc.month, "d": pc.day, "H": pc.hour, "m": pc.minute, "s": pc.second}
        number = kernels[piece.letter](value)
    return pc.utf8_lpad(pc.cast(number, pa.string()), piece.count, "0")


def _read(call: Call, text: Value, format: pa.Scalar) -> Value:
    """Instants from text in a format, in microseconds."""
    if not format.is_valid:
        return nulls(call, text)
    return _read_as(reading_pattern(time_format(format.as_py(), reading=True)))(call, text)


def _read_as(pattern: str) -> Kernel:
    @on_arrays
    def run(call: Call, text: pa.Array) -> pa.Array:
        found = pc.extract_regex(text, pattern)
        valid = text.is_valid().to_numpy(zero_copy_only=False)
        right = found.is_valid().to_numpy(zero_copy_only=False)
        numbers = {}
        for place, field in enumerate(found.type):
            digits = pc.if_else(found.is_valid(), pc.struct_field(found, [place]), "1")
            if field.name == "S":
                digits = pc.utf8_rpad(digits, 6, "0")
            numbers[field.name] = pc.cast(digits, pa.int64()).to_numpy()
        one, zero = np.ones(len(text), np.int64), np.zeros(len(text), np.int64)
        days, exist = _to_days(numbers["y"], numbers.get("M", one), numbers.get("d", one))
        hour, minute, second, micros = (numbers.get(letter, zero) for letter in "HmsS")
        wrong = np.flatnonzero(valid & ~(right & exist & (hour < 24) & (minute < 60) & (second < 60)))
        if len(wrong):
            raise DataError(
                f"`{call}`: cannot read '{text[int(wrong[0])]}' in this format",
                hint="every text must fit the format from end to end",
            )
        total = days * _DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
        return pa.array(total, pa.int64(), mask=~valid).cast(TIMESTAMP)

    return run


def _parsed(kernel: Kernel) -> Kernel:
    """``to_date`` and its like: a time, or text in a format; text without one is cast before."""

    def run(call: Call, value: Value, format: pa.Scalar | None = None) -> Value:
        if format is not None:
            return kernel(call, _read(call, value, format))
        target = call.type if is_temporal(call.type) else TIMESTAMP
        return kernel(call, cast(value, target, str(call)) if pa.types.is_string(value.type) else value)

    return run


def _as_type(call: Call, value: Value) -> Value:
    return pc.cast(value, call.type)


def _since(unit: int) -> Kernel:
    """Whole units of ``unit`` microseconds since 1970, rounded down."""

    def run(call: Call, value: Value) -> Value:
        micros = pc.cast(value, pa.int64())
        whole = pc.divide(micros, unit)
        behind = pc.less(micros, pc.multiply(whole, unit))
        return pc.subtract(whole, pc.cast(behind, pa.int64()))

    return run


def _instant(unit: int) -> Kernel:
    return lambda call, value: pc.cast(checked(pc.multiply_checked)(call, value, unit), call.type)


def _timestamp_seconds(call: Call, seconds: Value) -> Value:
    micros = pc.trunc(pc.multiply(seconds, 1e6))
    finite = pc.if_else(pc.is_finite(micros), micros, pa.scalar(None, pa.float64()))
    return pc.cast(checked(partial(pc.cast, target_type=pa.int64()))(call, finite), call.type)


def _from_utc(call: Call, value: Value, zone: pa.Scalar) -> Value:
    """The instant whose UTC reading is that of the clock in a zone."""
    if not zone.is_valid:
        return null(call)
    micros = pc.cast(value, pa.int64())
    local = pc.cast(pc.local_timestamp(pc.cast(value, pa.timestamp("us", zone.as_py()))), pa.int64())
    far = pc.greater_equal(micros, _TABLES_END)
    if (pc.any(far) if isinstance(far, pa.Array) else far).as_py():
        quarters = pc.divide(pc.if_else(far, micros, _TABLES_END), _QUARTER)
        offsets = by_value(partial(_offset, ZoneInfo(zone.as_py())))(replace(call, type=pa.int64()), quarters)
        local = pc.if_else(far, checked(pc.add_checked)(call, pc.if_else(far, micros, 0), offsets), local)
    return pc.cast(local, call.type)


#: Arrow reads the tables of zones, which end in 2037, and not the rule that goes on behind them.
_TABLES_END = 2_114_380_800_000_000
_QUARTER = 900_000_000
#: 400 years, after which the calendar begins anew, in quarters of an hour.
_CYCLE = 14_025_312


def _offset(zone: ZoneInfo, quarter: int) -> int:
    """What the clock of a zone is ahead of UTC, in microseconds, at a quarter of an hour since 1970 from 2037 on."""
    if quarter > 10 * _CYCLE:  # beyond the last year that Python has
        quarter = quarter % _CYCLE + _CYCLE
    ahead = datetime.fromtimestamp(quarter * 900, zone).utcoffset()
    return ahead // timedelta(microseconds=1) if ahead is not None else 0


KERNELS: dict[str, Kernel] = {
    "shift": _shift,
    "shift_months": _shift_months,
    "year": _part(pc.year),
    "quarter": _part(pc.quarter),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "dayofweek": _part(pc.day_of_week, **_WEEK),
    "weekday": _part(pc.day_of_week),
    "dayofyear": _part(pc.day_of_year),
    "weekofyear": _part(pc.iso_week),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "dayname": _named(_DAYS, 3, pc.day_of_week, **_WEEK),
    "monthname": _named(_MONTHS, 3, pc.month),
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "date_add": _date_add,
    "date_sub": _date_sub,
    "datediff": _datediff,
    "add_months": _add_months,
    "last_day": _last_day,
    "make_date": _make_date,
    "date_format": _date_format,
    "to_date": _parsed(_as_type),
    "to_timestamp": _parsed(_as_type),
    # Cut towards zero where `unix_seconds` is rounded down: that is how Spark has it.
    "unix_timestamp": _parsed(lambda call, value: pc.divide(pc.cast(value, pa.int64()), 1_000_000)),
    "unix_date": lambda call, value: _days(value),
    "date_from_unix_date": lambda call, value: pc.cast(value, pa.date32()),
    "unix_seconds": _since(1_000_000),
    "unix_millis": _since(1_000),
    "unix_micros": lambda call, value: pc.cast(value, pa.int64()),
    "timestamp_seconds": _timestamp_seconds,
    "timestamp_millis": _instant(1_000),
    "timestamp_micros": _instant(1),
    "from_utc_timestamp": _from_utc,
}
