"""Time as int64 microseconds since the epoch, and durations in words. A leaf.

Inside the project a time is always an ``int`` (or int64 array) of microseconds, a duration likewise; units are
converted at the source. :func:`parse_duration` and :func:`format_duration` are inverse to each other.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from workbench.errors import QueryError

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

#: Largest duration and distance from the epoch that is accepted: half of the int64 range, so that sums of a
#: time and a duration never wrap.
LIMIT = 2**62
#: 400 years, after which the calendar begins again.
CYCLE = 146_097 * DAY

_UNITS = {
    "week": WEEK,
    "day": DAY,
    "hour": HOUR,
    "minute": MINUTE,
    "second": SECOND,
    "millisecond": MILLISECOND,
    "microsecond": MICROSECOND,
}
_ALIASES = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "min": "minute",
    "m": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "us": "microsecond",
}
_CALENDAR = {"month", "quarter", "year", "mon", "y"}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)?\s*([A-Za-zµ]+)\s*,?")


def parse_duration(text: str) -> int:
    """Microseconds of a text such as ``'15 minutes'``, ``'1 hour 30 min'``, ``'250ms'``, ``'day'``.

    Raises :class:`~workbench.errors.QueryError` for an unknown unit, a calendar unit (a month has no fixed
    length) or a value that is not a whole number of microseconds. The sign is kept; callers that need a
    positive duration say so themselves.
    """
    if not isinstance(text, str):
        raise QueryError(f"a duration is text such as '10 minutes', got {text!r}")
    rest = text.strip()
    if rest.casefold().startswith("interval "):
        rest = rest[9:].strip()
    if not rest:
        raise QueryError("expected a duration such as `10 seconds`, got an empty text")
    total = 0
    position = 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None:
            raise QueryError(
                f"cannot read the duration `{text}`", hint="write a number and a unit, such as `10 seconds`"
            )
        number, unit = match.group(1) or "1", match.group(2).casefold()
        total += _micros(number, unit, text)
        position = match.end()
    if abs(total) > LIMIT:
        raise QueryError(f"the duration `{text}` is too long")
    return total


def _micros(number: str, unit: str, text: str) -> int:
    singular = unit[:-1] if unit.endswith("s") and len(unit) > 2 else unit
    name = _ALIASES.get(unit) or _ALIASES.get(singular) or singular
    if name in _CALENDAR:
        raise QueryError(f"`{text}` has no fixed length, so it cannot be a duration", hint="use days or weeks")
    if name not in _UNITS:
        known = ", ".join(_UNITS)
        raise QueryError(f"unknown unit `{unit}` in the duration `{text}`", hint=f"units are {known}")
    whole, _, fraction = number.lstrip("+-").partition(".")
    scaled = int(whole + fraction) * _UNITS[name]
    value, remainder = divmod(scaled, 10 ** len(fraction))
    if remainder:
        raise QueryError(f"`{text}` is not a whole number of microseconds")
    return -value if number.startswith("-") else value


def format_duration(micros: int) -> str:
    """The shortest exact text of a duration, such as ``'15 minutes'`` or ``'1 hour 30 minutes'``."""
    if micros == 0:
        return "0 seconds"
    sign, rest = ("-", -micros) if micros < 0 else ("", micros)
    parts = []
    for name, unit in _UNITS.items():
        if name == "week" and rest % WEEK:
            continue
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{sign}{count} {name}{'' if count == 1 else 's'}")
    return " ".join(parts)


def is_unit(word: str) -> bool:
    """Whether a word names a unit of durations, such as ``hours`` or ``min``."""
    name = word.casefold()
    return name in _ALIASES or name.removesuffix("s") in _UNITS


def format_time(micros: int) -> str:
    """ISO text of a time in UTC, without a fraction where it is whole: ``'2013-01-01 10:15:00'``.

    Any time that a row may have: a year may have five digits, where somebody took milliseconds for seconds.
    """
    cycles, rest = divmod(micros, CYCLE)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rest)
    year = moment.year + 400 * cycles
    return f"{year:04}-" + moment.strftime("%m-%d %H:%M:%S" + (".%f" if micros % SECOND else ""))
