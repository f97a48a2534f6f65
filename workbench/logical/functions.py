"""The closed list of scalar functions: how many arguments, of which types, and what comes out.

:data:`FUNCTIONS` is by canonical name, the ``function`` of a :class:`~workbench.logical.expressions.Call`;
:data:`SQL_FUNCTIONS` by what can be written in SQL, aliases included. The meaning is Spark's in ANSI mode:
arithmetic on integers is checked, ``/`` gives a double, division by zero is an error, conditions are three-valued,
NaN equals itself and is greater than every number, times are read in UTC. Where this differs from Spark is told in
``docs/sql.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from workbench.errors import QueryError
from workbench.logical import formats
from workbench.logical import signatures as sig
from workbench.logical.expressions import INFIX
from workbench.logical.signatures import BIGINT, BOOL, DATE, DOUBLE, INT, STRING, Resolver, Signature, Types, fixed
from workbench.logical.types import TIMESTAMP


@dataclass(frozen=True)
class ScalarFunction:
    """One function of the list.

    ``arity`` is the least and the largest number of arguments, ``resolve(types)`` gives the signature for
    arguments of these types and raises QueryError where they do not fit. Arguments at the positions ``constants``
    must be literals, whose values ``check`` takes, None for the other arguments: it raises QueryError for those that
    cannot be read. ``typed`` gives the type of the value where a constant decides that, from the types and values.
    """

    name: str
    arity: tuple[int, int]
    resolve: Resolver
    aliases: tuple[str, ...] = ()
    constants: tuple[int, ...] = ()
    check: Check | None = None
    typed: Callable[..., pa.DataType] | None = None


#: Looks at the arguments of a call, of which only the constants have a value.
Check: TypeAlias = "Callable[..., object]"

ANY_NUMBER_OF = 1_000_000

_condition, _text = sig.all_of(BOOL), sig.all_of(STRING)
_pattern = sig.all_of(STRING, BOOL)


def _like(_: None, pattern: str | None) -> None:
    if pattern is not None:
        formats.check_like(pattern)


def _regex(_: None, pattern: str | None, *more: object) -> None:
    if pattern is not None:
        formats.check_pattern(pattern)


def _regex_and_text(_: None, pattern: str | None, replacement: str | None) -> None:
    if pattern is not None and replacement is not None:
        formats.check_replacement(pattern, replacement)


def _regex_group(_: None, pattern: str | None, group: int | None = 1) -> None:
    if pattern is not None and group is not None:
        formats.group_pattern(pattern, group)


def _reading(_: None, format: str | None = None) -> None:
    if format is not None:
        formats.reading_pattern(formats.time_format(format, reading=True))


def _writing(_: None, format: str | None) -> None:
    if format is not None:
        formats.time_format(format, reading=False)


def _instant_unit(unit: str | None, _: None) -> None:
    if unit is not None:
        formats.unit_of(unit, formats.UNITS)


def _date_unit(_: None, unit: str | None) -> None:
    if unit is not None:
        formats.unit_of(unit, formats.DATE_UNITS)


def _zone(_: None, zone: str | None) -> None:
    if zone is not None:
        formats.check_zone(zone)


def _field(_: None, delimiter: object, number: int | None) -> None:
    if number == 0:
        raise QueryError("the parts of a text are numbered from 1, or from the end from -1; got 0")


def _operators() -> list[ScalarFunction]:
    """Operators, keywords and what chooses between values."""
    return [
        ScalarFunction("or", (2, 2), _condition),
        ScalarFunction("and", (2, 2), _condition),
        ScalarFunction("not", (1, 1), _condition),
        ScalarFunction("equal", (2, 2), sig.comparison),
        ScalarFunction("null_safe_equal", (2, 2), sig.comparison, ("equal_null",)),
        ScalarFunction("not_equal", (2, 2), sig.comparison),
        ScalarFunction("less", (2, 2), sig.comparison),
        ScalarFunction("less_equal", (2, 2), sig.comparison),
        ScalarFunction("greater", (2, 2), sig.comparison),
        ScalarFunction("greater_equal", (2, 2), sig.comparison),
        ScalarFunction("in", (2, ANY_NUMBER_OF), sig.comparison),
        ScalarFunction("like", (2, 2), _pattern, constants=(1,), check=_like),
        ScalarFunction("ilike", (2, 2), _pattern, constants=(1,), check=_like),
        ScalarFunction("rlike", (2, 2), _pattern, ("regexp", "regexp_like"), constants=(1,), check=_regex),
        ScalarFunction("is_null", (1, 1), sig.null_test, ("isnull",)),
        ScalarFunction("is_not_null", (1, 1), sig.null_test, ("isnotnull",)),
        ScalarFunction("case", (2, ANY_NUMBER_OF), sig.case, ("if",)),
        ScalarFunction("coalesce", (1, ANY_NUMBER_OF), sig.common, ("ifnull", "nvl")),
        ScalarFunction("nvl2", (3, 3), sig.nvl2),
        ScalarFunction("nullif", (2, 2), sig.nullif),
        ScalarFunction("nullifzero", (1, 1), sig.arithmetic),
        ScalarFunction("zeroifnull", (1, 1), sig.beside_zero),
        ScalarFunction("least", (2, ANY_NUMBER_OF), sig.common),
        ScalarFunction("greatest", (2, ANY_NUMBER_OF), sig.common),
        ScalarFunction("shift", (2, 2), sig.shifted),
        ScalarFunction("shift_months", (2, 2), sig.shifted_months),
    ]


def _numbers() -> list[ScalarFunction]:
    of_one = (
        "sqrt", "cbrt", "exp", "expm1", "ln", "log10", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "tanh", "degrees", "radians", "rint",
    )  # fmt: skip
    return [
        ScalarFunction("add", (2, 2), sig.operator("add")),
        ScalarFunction("subtract", (2, 2), sig.operator("subtract")),
        ScalarFunction("multiply", (2, 2), sig.operator("multiply")),
        ScalarFunction("divide", (2, 2), sig.operator("divide", sig.doubles)),
        ScalarFunction("try_divide", (2, 2), sig.operator("try_divide", sig.doubles)),
        ScalarFunction("div", (2, 2), sig.integral_division),
        ScalarFunction("modulo", (2, 2), sig.operator("modulo"), ("mod",)),
        ScalarFunction("pmod", (2, 2), sig.operator("pmod")),
        ScalarFunction("negate", (1, 1), sig.arithmetic, ("negative",)),
        ScalarFunction("positive", (1, 1), sig.arithmetic),
        ScalarFunction("abs", (1, 1), sig.arithmetic),
        ScalarFunction("sign", (1, 1), sig.doubles, ("signum",)),
        ScalarFunction("round", (1, 2), sig.rounding, constants=(1,), typed=sig.rounded),
        ScalarFunction("bround", (1, 2), sig.rounding, constants=(1,), typed=sig.rounded),
        ScalarFunction("floor", (1, 1), sig.to_whole),
        ScalarFunction("ceil", (1, 1), sig.to_whole, ("ceiling",)),
        *(ScalarFunction(name, (1, 1), sig.doubles) for name in of_one),
        ScalarFunction("log", (1, 2), sig.doubles),
        ScalarFunction("power", (2, 2), sig.doubles, ("pow",)),
        ScalarFunction("atan2", (2, 2), sig.doubles),
        ScalarFunction("hypot", (2, 2), sig.doubles),
        ScalarFunction("isnan", (1, 1), sig.nan_test),
        ScalarFunction("nanvl", (2, 2), sig.doubles),
        ScalarFunction("pi", (0, 0), fixed(DOUBLE)),
        ScalarFunction("e", (0, 0), fixed(DOUBLE)),
    ]


def _texts() -> list[ScalarFunction]:
    text_test, text_to_int = fixed(BOOL, STRING, STRING), fixed(INT, STRING, STRING)
    return [
        ScalarFunction("length", (1, 1), sig.all_of(STRING, INT), ("char_length", "character_length", "len")),
        ScalarFunction("octet_length", (1, 1), sig.all_of(STRING, INT)),
        ScalarFunction("lower", (1, 1), _text, ("lcase",)),
        ScalarFunction("upper", (1, 1), _text, ("ucase",)),
        ScalarFunction("initcap", (1, 1), _text),
        ScalarFunction("reverse", (1, 1), _text),
        ScalarFunction("trim", (1, 2), _text, constants=(1,)),
        ScalarFunction("btrim", (1, 2), _text, constants=(1,)),
        ScalarFunction("ltrim", (1, 2), _text, constants=(1,)),
        ScalarFunction("rtrim", (1, 2), _text, constants=(1,)),
        ScalarFunction("substring", (2, 3), fixed(STRING, STRING, INT, INT), ("substr",), constants=(1, 2)),
        ScalarFunction("substring_index", (3, 3), fixed(STRING, STRING, STRING, INT), constants=(1, 2)),
        ScalarFunction("left", (2, 2), fixed(STRING, STRING, INT), constants=(1,)),
        ScalarFunction("right", (2, 2), fixed(STRING, STRING, INT), constants=(1,)),
        ScalarFunction("lpad", (2, 3), fixed(STRING, STRING, INT, STRING), constants=(1, 2)),
        ScalarFunction("rpad", (2, 3), fixed(STRING, STRING, INT, STRING), constants=(1, 2)),
        ScalarFunction("repeat", (2, 2), fixed(STRING, STRING, INT), constants=(1,)),
        ScalarFunction("concat", (1, ANY_NUMBER_OF), sig.joined_text),
        ScalarFunction("concat_ws", (2, ANY_NUMBER_OF), sig.joined_text, constants=(0,)),
        ScalarFunction("replace", (2, 3), _text, constants=(1, 2)),
        ScalarFunction("translate", (3, 3), _text, constants=(1, 2)),
        ScalarFunction("split_part", (3, 3), fixed(STRING, STRING, STRING, INT), constants=(1, 2), check=_field),
        ScalarFunction("locate", (2, 2), text_to_int, constants=(0,)),
        ScalarFunction("instr", (2, 2), text_to_int, constants=(1,)),
        ScalarFunction("ascii", (1, 1), sig.all_of(STRING, INT)),
        ScalarFunction("startswith", (2, 2), text_test, constants=(1,)),
        ScalarFunction("endswith", (2, 2), text_test, constants=(1,)),
        ScalarFunction("contains", (2, 2), text_test, constants=(1,)),
        ScalarFunction("regexp_replace", (3, 3), _text, constants=(1, 2), check=_regex_and_text),
        ScalarFunction(
            "regexp_extract", (2, 3), fixed(STRING, STRING, STRING, INT), constants=(1, 2), check=_regex_group
        ),
        ScalarFunction("regexp_count", (2, 2), text_to_int, constants=(1,), check=_regex),
    ]


def _times() -> list[ScalarFunction]:
    parts = (
        "year", "quarter", "month", "dayofweek", "weekday", "dayofyear", "weekofyear", "hour", "minute", "second",
    )  # fmt: skip
    since = ("unix_seconds", "unix_millis", "unix_micros")
    units = ("timestamp_millis", "timestamp_micros")
    return [
        *(ScalarFunction(name, (1, 1), sig.date_part) for name in parts),
        ScalarFunction("day", (1, 1), sig.date_part, ("dayofmonth",)),
        ScalarFunction("dayname", (1, 1), fixed(STRING, DATE)),
        ScalarFunction("monthname", (1, 1), fixed(STRING, DATE)),
        ScalarFunction(
            "date_trunc", (2, 2), fixed(TIMESTAMP, STRING, TIMESTAMP), constants=(0,), check=_instant_unit
        ),
        ScalarFunction("trunc", (2, 2), fixed(DATE, DATE, STRING), constants=(1,), check=_date_unit),
        ScalarFunction("date_add", (2, 2), fixed(DATE, DATE, INT), ("dateadd",)),
        ScalarFunction("date_sub", (2, 2), fixed(DATE, DATE, INT)),
        ScalarFunction("datediff", (2, 2), fixed(INT, DATE, DATE)),
        ScalarFunction("add_months", (2, 2), fixed(DATE, DATE, INT)),
        ScalarFunction("last_day", (1, 1), fixed(DATE, DATE)),
        ScalarFunction("make_date", (3, 3), fixed(DATE, INT, INT, INT)),
        ScalarFunction("date_format", (2, 2), fixed(STRING, TIMESTAMP, STRING), constants=(1,), check=_writing),
        ScalarFunction("to_date", (1, 2), sig.date_of, ("date",), constants=(1,), check=_reading),
        ScalarFunction("to_timestamp", (1, 2), sig.timestamp_of, ("timestamp",), constants=(1,), check=_reading),
        ScalarFunction(
            "unix_timestamp", (1, 2), sig.seconds_of, ("to_unix_timestamp",), constants=(1,), check=_reading
        ),
        ScalarFunction("unix_date", (1, 1), fixed(INT, DATE)),
        ScalarFunction("date_from_unix_date", (1, 1), fixed(DATE, INT)),
        *(ScalarFunction(name, (1, 1), fixed(BIGINT, TIMESTAMP)) for name in since),
        ScalarFunction("timestamp_seconds", (1, 1), fixed(TIMESTAMP, DOUBLE)),
        *(ScalarFunction(name, (1, 1), fixed(TIMESTAMP, BIGINT)) for name in units),
        ScalarFunction(
            "from_utc_timestamp", (2, 2), fixed(TIMESTAMP, TIMESTAMP, STRING), constants=(1,), check=_zone
        ),
    ]


#: Every scalar function by theme, and by canonical name.
THEMES = {"choices": _operators(), "numbers": _numbers(), "text": _texts(), "time": _times()}
FUNCTIONS = {function.name: function for functions in THEMES.values() for function in functions}

#: Functions that SQL writes as operators or keywords; their canonical names are not SQL.
SYNTAX_ONLY = {
    "or", "and", "not", "equal", "null_safe_equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "in", "like", "ilike", "rlike", "is_null", "is_not_null", "case", "add", "subtract", "multiply", "divide", "div",
    "modulo", "negate", "shift", "shift_months",
}  # fmt: skip

#: What can be written as ``name(...)`` in SQL, folded: names and aliases.
SQL_FUNCTIONS = {
    name: function
    for function in FUNCTIONS.values()
    for name in (*(() if function.name in SYNTAX_ONLY else (function.name,)), *function.aliases)
}


#: Functions that SQL writes with a sign before one argument, or an interval behind it.
_SIGNS = {**INFIX, "negate": "-", "shift": "+", "shift_months": "+"}


def resolve_call(function: ScalarFunction, types: Types, written: str | None = None) -> Signature:
    """The signature of one call; raises QueryError naming the function for a wrong number or type of arguments.

    ``written`` is its name where the user wrote one, which may be an alias.
    """
    shown = written or _SIGNS.get(function.name, function.name)
    check_arity(shown, function.arity, len(types))
    try:
        return function.resolve(types)
    except QueryError as error:
        raise QueryError(f"`{shown}` {error.message}", hint=error.hint) from None


def check_arity(name: str, arity: tuple[int, int], given: int) -> None:
    """Raise QueryError if ``name`` does not take ``given`` arguments; ``arity`` is least and largest, inclusive."""
    least, largest = arity
    if least <= given <= largest:
        return
    if largest == ANY_NUMBER_OF:
        wanted = f"at least {least}"
    else:
        wanted = str(least) if least == largest else f"{least} to {largest}"
    noun = "argument" if wanted in ("1", "at least 1") else "arguments"
    raise QueryError(f"`{name}` takes {wanted} {noun}, got {given}")
