"""The closed list of scalar functions: how many arguments, of which types, and what comes out.

:data:`FUNCTIONS` is by canonical name, the ``function`` of a :class:`~workbench.logical.expressions.Call`;
:func:`find_function` also takes the SQL aliases. The meaning is Spark's in ANSI mode: arithmetic on integers is
checked, ``/`` gives a double, division by zero is an error, conditions are three-valued, NaN equals itself and
is greater than every number, times are read in UTC.

Where this differs from Spark: a literal such as ``1.5`` is a double, not a decimal, and there are no decimals;
``nullif`` has the common type of its arguments; ``floor`` and ``ceil`` of a NaN or of a number beyond int64 are
an error, where Spark gives 0 or the nearest integer; text is never read as a number without ``CAST``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from workbench.errors import QueryError
from workbench.logical.expressions import INFIX
from workbench.logical.types import NUMBERS, TIMESTAMP, common_type, is_number, is_temporal, type_name

Types = tuple[pa.DataType, ...]


@dataclass(frozen=True)
class Signature:
    """The types to which the arguments of one call are converted, and the type of its value."""

    parameters: Types
    result: pa.DataType


@dataclass(frozen=True)
class ScalarFunction:
    """One function of the list.

    ``arity`` is the least and the largest number of arguments, ``resolve(types)`` gives the signature for
    arguments of these types and raises QueryError where they do not fit. Arguments from position ``constant_from``
    on must be literals.
    """

    name: str
    arity: tuple[int, int]
    resolve: Callable[[Types], Signature]
    aliases: tuple[str, ...] = ()
    constant_from: int | None = None


ANY_NUMBER_OF = 1_000_000

_BOOL, _INT, _BIGINT, _DOUBLE, _STRING = pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string()


def _arithmetic(types: Types) -> Signature:
    meet = common_type(types)
    if not is_number(meet):
        raise _unfit("numbers", types)
    return Signature((meet,) * len(types), meet)


def _doubles(types: Types) -> Signature:
    _arithmetic(types)
    return Signature((_DOUBLE,) * len(types), _DOUBLE)


def _round(types: Types) -> Signature:
    number = _arithmetic(types[:1]).result
    return Signature((number, _INT)[: len(types)], number)


def _to_integer(types: Types) -> Signature:
    return Signature(_arithmetic(types).parameters, _BIGINT)


def _comparison(types: Types) -> Signature:
    meet = _common(types).result
    return Signature((meet,) * len(types), _BOOL)


def _common(types: Types) -> Signature:
    meet = common_type(types)
    if pa.types.is_null(meet):
        raise QueryError("takes no bare NULL alone", hint="give it a type, such as `CAST(NULL AS double)`")
    if not (is_number(meet) or is_temporal(meet) or meet in (_BOOL, _STRING)):
        raise _unfit("numbers, text, times or booleans", types)
    return Signature((meet,) * len(types), meet)


def _case(types: Types) -> Signature:
    last = len(types) - 1
    is_condition = [position % 2 == 0 and position < last for position in range(len(types))]
    _all_of(_BOOL)(tuple(kind for kind, flag in zip(types, is_condition, strict=True) if flag))
    meet = _common(tuple(kind for kind, flag in zip(types, is_condition, strict=True) if not flag)).result
    return Signature(tuple(_BOOL if flag else meet for flag in is_condition), meet)


def _all_of(wanted: pa.DataType, result: pa.DataType | None = None) -> Callable[[Types], Signature]:
    def resolve(types: Types) -> Signature:
        if any(kind not in (wanted, pa.null()) for kind in types):
            raise _unfit(f"`{type_name(wanted)}`", types)
        return Signature((wanted,) * len(types), result or wanted)

    return resolve


def _null_test(types: Types) -> Signature:
    return Signature(types, _BOOL)


def _date_part(types: Types) -> Signature:
    if not is_temporal(types[0]):
        raise _unfit("a timestamp or a date", types)
    return Signature((TIMESTAMP,), _INT)


def _substring(types: Types) -> Signature:
    if types[0] not in (_STRING, pa.null()) or any(kind not in NUMBERS[:4] for kind in types[1:]):
        raise _unfit("text, a position and a number of characters", types)
    return Signature((_STRING, _INT, _INT)[: len(types)], _STRING)


def _unfit(wanted: str, types: Types) -> QueryError:
    return QueryError(f"takes {wanted}, got {', '.join(f'`{type_name(kind)}`' for kind in types)}")


_condition, _text = _all_of(_BOOL), _all_of(_STRING)

#: Every scalar function, by canonical name.
FUNCTIONS = {
    function.name: function
    for function in (
        ScalarFunction("or", (2, 2), _condition),
        ScalarFunction("and", (2, 2), _condition),
        ScalarFunction("not", (1, 1), _condition),
        ScalarFunction("equal", (2, 2), _comparison),
        ScalarFunction("not_equal", (2, 2), _comparison),
        ScalarFunction("less", (2, 2), _comparison),
        ScalarFunction("less_equal", (2, 2), _comparison),
        ScalarFunction("greater", (2, 2), _comparison),
        ScalarFunction("greater_equal", (2, 2), _comparison),
        ScalarFunction("in", (2, ANY_NUMBER_OF), _comparison),
        ScalarFunction("like", (2, 2), _all_of(_STRING, _BOOL), constant_from=1),
        ScalarFunction("is_null", (1, 1), _null_test, ("isnull",)),
        ScalarFunction("is_not_null", (1, 1), _null_test, ("isnotnull",)),
        ScalarFunction("case", (2, ANY_NUMBER_OF), _case, ("if",)),
        ScalarFunction("coalesce", (1, ANY_NUMBER_OF), _common, ("ifnull", "nvl")),
        ScalarFunction("nullif", (2, 2), _common),
        ScalarFunction("least", (2, ANY_NUMBER_OF), _common),
        ScalarFunction("greatest", (2, ANY_NUMBER_OF), _common),
        ScalarFunction("add", (2, 2), _arithmetic),
        ScalarFunction("subtract", (2, 2), _arithmetic),
        ScalarFunction("multiply", (2, 2), _arithmetic),
        ScalarFunction("divide", (2, 2), _doubles),
        ScalarFunction("modulo", (2, 2), _arithmetic, ("mod",)),
        ScalarFunction("negate", (1, 1), _arithmetic, ("negative",)),
        ScalarFunction("abs", (1, 1), _arithmetic),
        ScalarFunction("round", (1, 2), _round, constant_from=1),
        ScalarFunction("floor", (1, 1), _to_integer),
        ScalarFunction("ceil", (1, 1), _to_integer, ("ceiling",)),
        ScalarFunction("sqrt", (1, 1), _doubles),
        ScalarFunction("exp", (1, 1), _doubles),
        ScalarFunction("ln", (1, 1), _doubles),
        ScalarFunction("power", (2, 2), _doubles, ("pow",)),
        ScalarFunction("length", (1, 1), _all_of(_STRING, _INT), ("char_length", "len")),
        ScalarFunction("lower", (1, 1), _text, ("lcase",)),
        ScalarFunction("upper", (1, 1), _text, ("ucase",)),
        ScalarFunction("trim", (1, 1), _text),
        ScalarFunction("substring", (2, 3), _substring, ("substr",), constant_from=1),
        ScalarFunction("concat", (1, ANY_NUMBER_OF), _text),
        ScalarFunction("year", (1, 1), _date_part),
        ScalarFunction("month", (1, 1), _date_part),
        ScalarFunction("day", (1, 1), _date_part, ("dayofmonth",)),
        ScalarFunction("hour", (1, 1), _date_part),
        ScalarFunction("minute", (1, 1), _date_part),
        ScalarFunction("dayofweek", (1, 1), _date_part),
    )
}

#: Functions that SQL writes as operators or keywords; their canonical names are not SQL.
_SYNTAX_ONLY = {
    "or", "and", "not", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "in", "like",
    "is_null", "is_not_null", "case", "add", "subtract", "multiply", "divide", "modulo", "negate",
}  # fmt: skip

#: What can be written as ``name(...)`` in SQL, folded: names and aliases.
SQL_FUNCTIONS = {
    name: function
    for function in FUNCTIONS.values()
    for name in (*(() if function.name in _SYNTAX_ONLY else (function.name,)), *function.aliases)
}


def resolve_call(function: ScalarFunction, types: Types) -> Signature:
    """The signature of one call; raises QueryError naming the function for a wrong number or type of arguments."""
    check_arity(function.name, function.arity, len(types))
    try:
        return function.resolve(types)
    except QueryError as error:
        shown = INFIX.get(function.name, function.name)
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
