"""Times as people and programs write them into files: formats such as ``dd.MM.yyyy HH:mm``, seconds since 1970.

Letters are Spark's; one letter or two, numbers may have one digit or two. ``%d.%m.%Y`` of Python means the same. A
zone is a distance from UTC, or UTC by name; the day of the week is read and not looked at.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import SourceError
from workbench.feeds.times import MICROS

_FULL = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTHS = tuple(name[:3] for name in _FULL)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ZONE = ("zone", r"[+-]\d{2}:?\d{2}|z|utc|gmt")
#: What a run of a letter reads, by the part of the time that it gives.
_READS = {
    "yyyy": ("year", r"\d{4}"), "yy": ("short", r"\d{2}"), "MMM": ("name", "|".join(_MONTHS)),
    "M": ("month", r"\d{1,2}"), "d": ("day", r"\d{1,2}"), "H": ("hour", r"\d{1,2}"), "h": ("half", r"\d{1,2}"),
    "m": ("minute", r"\d{2}"), "s": ("second", r"\d{2}"), "S": ("fraction", r"\d{1,6}"), "a": ("noon", "am|pm"),
    "MMMM": ("full", "|".join(_FULL)), "Z": _ZONE, "X": _ZONE, "XXX": _ZONE,
    "EEE": ("weekday", "|".join(name[:3] for name in _WEEKDAYS)), "EEEE": ("weekday", "|".join(_WEEKDAYS)),
}  # fmt: skip
_PYTHON = {
    "%Y": "yyyy", "%y": "yy", "%m": "MM", "%b": "MMM", "%d": "dd", "%H": "HH", "%I": "hh", "%M": "mm", "%S": "ss",
    "%f": "SSSSSS", "%p": "a", "%B": "MMMM", "%z": "Z", "%a": "EEE", "%A": "EEEE",
}  # fmt: skip
#: Ticks a second of numbers that count from 1970.
EPOCHS = {"epoch s": 1, "epoch ms": 1_000, "epoch us": 1_000_000, "epoch ns": 1_000_000_000}
#: Seconds from 1990 to 2100: what counts from 1970 and lies in between has its unit by its size alone.
_PLAUSIBLE = (631_152_000, 4_102_444_800)
_DAYS = (
    "dd.MM.yyyy", "dd.MM.yy", "dd/MM/yyyy", "MM/dd/yyyy", "dd/MM/yy", "MM/dd/yy", "yy/MM/dd", "dd-MM-yyyy",
    "MM-dd-yyyy", "dd-MM-yy", "MM-dd-yy", "yy-MM-dd", "yyyy-MM-dd", "yyyy/MM/dd", "yyyy.MM.dd", "yyyyMMdd",
    "dd-MMM-yyyy", "dd-MMM-yy", "dd MMM yyyy", "dd/MMM/yyyy", "MMM dd, yyyy", "MMM dd yyyy", "dd MMMM yyyy",
    "MMMM dd, yyyy", "EEE, dd MMM yyyy",
)  # fmt: skip
_CLOCKS = (
    "HH:mm", "HH:mm:ss", "HH:mm:ss.SSSSSS", "HH:mm:ss,SSSSSS", "hh:mm a", "hh:mm:ss a", "hh:mma", "HHmm", "HHmmss",
)  # fmt: skip
_GAPS = (" ", "'T'", ", ", ":")
_CLOCKED = ("", "HHmmss", *map("".join, product(_GAPS, _CLOCKS, ("", " Z", "Z"))))
_HINT = "such as 'dd.MM.yyyy HH:mm', 'MM/dd/yyyy hh:mm a', '%d.%m.%Y' or 'epoch ms'"
_DAY = 86_400


def check(format: str) -> None:
    """Raises SourceError for a format that cannot be read with."""
    if format not in EPOCHS:
        _pattern(format)


def guesses(texts: Any, formats: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Those of ``formats`` (of all that are known without it) in which every text is a time; NULL counts for none."""
    texts = texts.drop_null()
    if not len(texts):
        return ()
    if formats is None:
        first = texts[0].as_py().strip()
        days = [day for day in _DAYS if re.match(_pattern(day).removesuffix("$"), first)]
        formats = tuple(day + clock for day in days for clock in _CLOCKED)
        formats = tuple(each for each in formats if re.match(_pattern(each), first))
    fitting = [each for each in formats if fits(texts, each)]
    # `May` is short and whole.
    return tuple(each for each in fitting if "MMMM" not in each or each.replace("MMMM", "MMM") not in fitting)


def epochs(numbers: Any) -> tuple[str, ...]:
    """The one unit in which all numbers (or texts of such) are times between 1990 and 2100, if there is one."""
    try:
        bounds = pc.min_max(numbers.cast(pa.float64())).as_py()
    except pa.ArrowInvalid:
        return ()
    low, high = _PLAUSIBLE
    for name, ticks in EPOCHS.items():
        if bounds["min"] is not None and low * ticks <= bounds["min"] and bounds["max"] < high * ticks:
            return (name,)
    return ()


def fits(column: Any, format: str) -> bool:
    """Whether all values of a column are times in a format, and there is one."""
    counted = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not (pa.types.is_string(column.type) or (counted and format in EPOCHS)):
        return False
    try:
        read(column, format)
    except pa.ArrowInvalid:
        return False
    return column.null_count < len(column)


def read(column: Any, format: str) -> Any:
    """Instants in microseconds, UTC, of texts in a format, or of numbers since 1970; NULL stays NULL.

    Two digits of a year are those of 2000 to 2099; without a zone a time counts as UTC. Raises pyarrow's ArrowInvalid
    that names the first value that is no such time, or has more digits than microseconds.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if format in EPOCHS:
        return _since(column, EPOCHS[format])
    texts = pc.utf8_trim_whitespace(column)
    found = pc.extract_regex(texts, pattern=_pattern(format))
    fits = found.is_valid()
    parts = {
        field.name: pc.if_else(fits, pc.struct_field(found, [place]), None) for place, field in enumerate(found.type)
    }
    days, exist = _days(parts)
    seconds, clock = _seconds(parts, len(column))
    micros = _numbers(pc.utf8_rpad(parts["fraction"], 6, "0")) if "fraction" in parts else 0
    ahead, zone = _offsets(parts, len(column))
    wrong = column.is_valid().to_numpy(zero_copy_only=False) & ~(_flags(fits) & exist & clock & zone)
    if wrong.any():
        raise pa.ArrowInvalid(f"'{column[int(np.argmax(wrong))]}' is no time like `{format}`")
    total = (days * _DAY + seconds - ahead) * 1_000_000 + micros
    return pa.array(total, pa.int64(), mask=~_flags(column.is_valid())).cast(MICROS)


def _offsets(parts: dict[str, Any], length: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Seconds by which the clock of a zone is ahead of UTC, and whether there may be such a zone."""
    zero = np.zeros(length, np.int64)
    if "zone" not in parts:
        return zero, zero == 0
    signed = pc.match_substring_regex(pc.coalesce(parts["zone"], ""), r"^[+-]")
    digits = pc.replace_substring(pc.if_else(signed, parts["zone"], "+0000"), ":", "")
    hours, minutes = (_numbers(pc.utf8_slice_codeunits(digits, low, low + 2)) for low in (1, 3))
    west = _flags(pc.starts_with(digits, "-"))
    return np.where(west, -1, 1) * (hours * 60 + minutes) * 60, (hours <= 15) & (minutes < 60)


def _days(parts: dict[str, Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Days since 1970, and whether there is such a day."""
    year = _numbers(parts["year"]) if "year" in parts else _numbers(parts["short"]) + 2000
    written = next((name for name in ("name", "full") if name in parts), None)
    if written is not None:
        names = pc.utf8_slice_codeunits(pc.utf8_lower(parts[written]), 0, 3)
        month = pc.index_in(names, value_set=pa.array(_MONTHS)).fill_null(0).to_numpy() + 1
    else:
        month = _numbers(parts["month"])
    day = _numbers(parts["day"])
    months = ((year - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("M8[M]")
    days = months.astype("M8[D]").astype(np.int64) + day - 1
    after = (months + 1).astype("M8[D]").astype(np.int64)
    return days, (month >= 1) & (month <= 12) & (day >= 1) & (days < after)


def _seconds(parts: dict[str, Any], length: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Seconds since midnight, and whether a clock shows such a time."""
    zero = np.zeros(length, np.int64)
    minute, second = (_numbers(parts[name]) if name in parts else zero for name in ("minute", "second"))
    hour = _numbers(parts["hour"]) if "hour" in parts else zero
    right = (hour < 24) & (minute < 60) & (second < 60)
    if "half" in parts:
        half = _numbers(parts["half"])
        right &= (half >= 1) & (half <= 12)
        hour = half % 12 + 12 * _flags(pc.equal(pc.utf8_lower(parts["noon"]), "pm").fill_null(False))
    return (hour * 60 + minute) * 60 + second, right


def _since(column: Any, ticks: int) -> Any:
    """Instants of ``ticks`` a second since 1970, with nothing cut off."""
    if pa.types.is_floating(column.type):
        # From JSON, where 1.7e9 seconds stand as a double, which is good to a quarter of a microsecond.
        return pc.round(pc.multiply(column, 1_000_000 / ticks)).cast(pa.int64()).cast(MICROS)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    pattern = r"^(?P<whole>-?\d{1,19})(?:\.(?P<rest>\d{1,9}))?$"
    found = pc.extract_regex(pc.utf8_trim_whitespace(column), pattern=pattern)
    valid, fits = _flags(column.is_valid()), _flags(found.is_valid())
    whole = pc.struct_field(found, [0]).cast(pa.int64()).fill_null(0).to_numpy()
    rest = pc.utf8_rpad(pc.coalesce(pc.struct_field(found, [1]), ""), 9, "0")
    nanos = pc.if_else(found.is_valid(), rest, "0").cast(pa.int64()).to_numpy()
    # A whole number of ticks, and billionths of a tick.
    scale = 1_000_000 / ticks
    if scale >= 1:
        micros = whole * int(scale) + nanos * int(scale) // 1_000_000_000
        exact = nanos * int(scale) % 1_000_000_000 == 0
        fits &= (np.abs(whole) < np.iinfo(np.int64).max // int(scale)) & ((nanos == 0) | (whole >= 0))
    else:
        micros, exact = whole // 1_000, (whole % 1_000 == 0) & (nanos == 0)
    wrong = valid & ~(fits & exact)
    if wrong.any():
        raise pa.ArrowInvalid(f"'{column[int(np.argmax(wrong))]}' is no number since 1970 in whole microseconds")
    return pa.array(micros, pa.int64(), mask=~valid).cast(MICROS)


def _numbers(digits: Any) -> npt.NDArray[np.int64]:
    """Numbers of texts of digits, 1 for NULL."""
    filled = pc.if_else(pc.equal(pc.coalesce(digits, ""), ""), "1", digits)
    numbers: npt.NDArray[np.int64] = filled.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _flags(values: Any) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return flags


@lru_cache(maxsize=4096)
def _pattern(format: str) -> str:
    """The regular expression of a whole text in a format, with a group for each part of a time."""
    format = re.sub(r"%[A-Za-z]", lambda match: _PYTHON.get(match[0], match[0]), format)
    parts, seen = [], set()
    for match in re.finditer(r"'([^']*)'|([A-Za-z%])\2*|[^A-Za-z'%]+", format):
        letters = match[0] if match[2] else None
        if letters is None:
            parts.append(re.escape(match[0] if match[1] is None else match[1]))
            continue
        short = letters[0] if len(letters) <= 2 or letters[0] == "S" else "EEE" if letters == "E" else ""
        found = _READS.get(letters) or _READS.get(short)
        if found is None:
            raise SourceError(f"the time format `{format}` has `{letters}`, which is not known", hint=_HINT)
        if found[0] in seen:
            raise SourceError(f"the time format `{format}` says the {found[0]} twice", hint=_HINT)
        seen.add(found[0])
        digits = rf"\d{{{len(letters)}}}" if _adjacent(format, match) else found[1]
        parts.append(f"(?P<{found[0]}>{digits})")
    for some in (("year", "short"), ("month", "name", "full"), ("day",)):
        if not seen.intersection(some):
            raise SourceError(f"the time format `{format}` has no {some[0]}", hint=_HINT)
    if ("half" in seen) != ("noon" in seen):
        raise SourceError(f"the time format `{format}` needs both of `hh` and `a`, or `HH`", hint=_HINT)
    return f"(?i)^{''.join(parts)}$"


def _adjacent(format: str, match: re.Match[str]) -> bool:
    """Whether two-letter digits touch others, as in ``yyyyMMdd``: then each has as many digits as letters."""
    neighbours = format[max(match.start() - 1, 0) : match.start()] + format[match.end() : match.end() + 1]
    return match[0] in ("MM", "dd", "HH", "mm", "ss") and any(each in "yMdHms" for each in neighbours)
