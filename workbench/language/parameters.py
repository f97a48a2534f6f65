"""``{{name}}`` in SQL: values from outside as constants of the syntax tree, never as text of the statement."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Number
from typing import Any

import numpy as np
from sqlglot import exp

from workbench.errors import QueryError, Span, did_you_mean
from workbench.language.sql import SqlText
from workbench.logical.decimals import MOST, plain, type_of_literal
from workbench.time import format_duration

#: The most values that one list may have: each is a constant of the plan.
MOST_VALUES = 10_000

_IN_TEXT = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


#: Where a duration is an interval: behind `+` or `-`, and in a frame.
_BESIDE_TIMES = (exp.Add, exp.Sub, exp.WindowSpec)


def fill_in(text: SqlText, select: exp.Select, parameters: Mapping[str, object]) -> exp.Select:
    """The statement with a constant in place of every parameter. A list is the values of ``IN``, or an array.

    Raises QueryError, with the place, for an unknown name, a value that is no constant, and a known name between
    quotes, where it would be mere text.
    """
    for literal in select.find_all(exp.Literal):
        _refuse_in_text(text, literal, parameters)
    for node in list(select.find_all(exp.Placeholder)):
        if _is_parameter(node):
            _replace(text, node, parameters)
    return select


def read_value(text: str) -> object:
    """The value of ``--param name=text``: a number, true, false or null, text between quotes, or text as it is."""
    words: dict[str, object] = {"true": True, "false": False, "null": None}
    stripped = text.strip()
    if stripped.casefold() in words:
        return words[stripped.casefold()]
    if _NUMBER.fullmatch(stripped):
        return float(stripped) if set(stripped) & set(".eE") else int(stripped)
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        return stripped[1:-1]
    return text


def is_constant(value: object) -> bool:
    """Whether a value can be a parameter."""
    try:
        _node(value)
    except QueryError:
        return False
    return True


def _is_parameter(node: exp.Placeholder) -> bool:
    """The outer of the two placeholders that sqlglot makes of ``{{name}}``; ``{name}`` and ``:name`` have one."""
    inner = node.this
    return bool(node.args.get("widget")) and isinstance(inner, exp.Placeholder) and inner.this is not None


def _replace(text: SqlText, node: exp.Placeholder, parameters: Mapping[str, object]) -> None:
    name, span = node.this.name, _span(text, node.this.this)
    if name not in parameters:
        known = [key for key in parameters if not key.startswith("_") and is_constant(parameters[key])]
        hint = did_you_mean(name, known, "parameter")
        if not hint.startswith("did"):
            hint = f"define `{name}` in the notebook, or give it: `--param {name}=...`"
        raise text.error(f"unknown parameter `{name}`", span, hint=hint)
    try:
        made = _node(parameters[name])
    except QueryError as error:
        raise text.error(f"the parameter `{name}` {error.message}", span, hint=error.hint) from None
    if isinstance(_plain(parameters[name]), timedelta) and isinstance(node.parent, _BESIDE_TIMES):
        made = exp.Interval(this=made)
    if node.arg_key == "alias" or isinstance(node.parent, exp.Table):
        raise text.error(f"the parameter `{name}` is a value and cannot stand for a name", span)
    for part in made.walk():
        part.meta.update(start=span.start, end=span.end - 1)
    around = node.parent
    if isinstance(around, exp.In) and isinstance(made, exp.Array):
        if not made.expressions:
            raise text.error(f"the parameter `{name}` is an empty list, which nothing is in", span)
        others = [each for each in around.expressions if each is not node]
        around.set("field", None)
        around.set("expressions", [*others, *made.expressions])
    else:
        node.replace(made)


def _span(text: SqlText, name: exp.Expr) -> Span:
    """The place of a parameter with its brackets."""
    place = next(i for i, token in enumerate(text.tokens) if token.start == name.meta["start"])
    first, last = text.tokens[max(place - 2, 0)], text.tokens[min(place + 2, len(text.tokens) - 1)]
    return Span(first.start, last.end + 1)


def _refuse_in_text(text: SqlText, node: exp.Literal, parameters: Mapping[str, object]) -> None:
    found = next((name for name in _IN_TEXT.findall(node.this) if name in parameters), None)
    if node.is_string and found is not None:
        raise text.error(
            f"`{{{{{found}}}}}` between quotes is text, not the parameter",
            node,
            hint=f"write {{{{{found}}}}} without quotes; `||` joins texts",
        )


#: What pandas has for a missing value, beside None.
_MISSING = ("NaTType", "NAType")


def _node(value: Any) -> exp.Expr:
    """The constant that a value is, as a node."""
    value = _plain(value)
    if value is None or type(value).__name__ in _MISSING:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return exp.Literal.string(str.__str__(value))  # an enum of texts would show its name
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, timedelta):
        return exp.Literal.string(_duration(value))
    if isinstance(value, datetime):
        _refuse_nanoseconds(value)
        return _cast(value.isoformat(sep=" "), "timestamp")
    if isinstance(value, date):
        return _cast(value.isoformat(), "date")
    if hasattr(value, "tolist") and getattr(value, "ndim", 1) == 1:
        value = value.tolist()  # arrays, and columns of pandas
    if isinstance(value, list | tuple | range | set | frozenset):
        return exp.Array(expressions=[_member(each) for each in _bounded(value)])
    hint = "numbers, text, booleans, dates, times, durations and lists of them are"
    if isinstance(value, Number):
        hint = "give it as `float(x)`, `int(x)` or a `Decimal`"
    if isinstance(value, Enum):
        hint = "its `.value` may be one"
    if hasattr(value, "observe") and hasattr(value, "value"):
        hint = "a widget is not read again when it moves: put its `.value` into a variable, and run the cell"
    raise QueryError(f"is a `{type(value).__name__}`, which is no constant", hint=hint)


def _plain(value: Any) -> Any:
    """The value that a scalar of NumPy holds; everything else as it is.

    Of times finer than microseconds NumPy would make integers.
    """
    own = isinstance(value, np.datetime64 | np.timedelta64 | np.ndarray)
    if own and value.dtype.kind in "mM" and np.datetime_data(value.dtype)[0] == "ns":
        micros = value.astype(f"{value.dtype.kind}8[us]")
        if np.any((micros != value) & ~np.isnat(value)):
            raise _nanoseconds()
        value = micros
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def _bounded(values: Any) -> Iterable[object]:
    if len(values) > MOST_VALUES:
        raise QueryError(
            f"has {len(values):,} values; a list may have {MOST_VALUES:,}",
            hint="make it a static table, `workbench.table(...)`, and join with it",
        )
    return sorted(values, key=repr) if isinstance(values, set | frozenset) else values


def _member(value: object) -> exp.Expr:
    node = _node(value)
    if isinstance(node, exp.Array):
        raise QueryError("is a list of lists", hint="one list of plain values works")
    return node


def _number(value: int | float) -> exp.Expr:
    if not math.isfinite(value):
        return _cast(str(value), "double")
    node = exp.Literal(this=str(abs(value)), is_string=False)
    return exp.Neg(this=node) if value < 0 else node


def _decimal(value: Decimal) -> exp.Expr:
    digits = len(value.as_tuple().digits)
    if not value.is_finite() or max(digits, -int(value.as_tuple().exponent), value.adjusted() + 1) > MOST:
        raise QueryError(f"is `{value}`, which is no decimal of up to {MOST} digits")
    kind = type_of_literal(plain(value))
    return _cast(f"{value:f}", f"decimal({kind.precision}, {kind.scale})")


def _cast(text: str, kind: str) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind, dialect="spark"))


def _duration(value: timedelta) -> str:
    _refuse_nanoseconds(value)
    return format_duration((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds)


def _refuse_nanoseconds(value: object) -> None:
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        raise _nanoseconds()


def _nanoseconds() -> QueryError:
    return QueryError("has nanoseconds, which no time here has", hint="round it to microseconds")
