"""What SQL writes with words and signs instead of ``name(...)``: how each becomes calls of the closed list."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.language.literals import fold_cast, number
from workbench.language.type_names import named_type
from workbench.logical import Expression, Literal
from workbench.logical.formats import escaped_like
from workbench.logical.types import can_cast, is_integer, is_temporal, type_name
from workbench.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND, WEEK, parse_duration


class Binder(Protocol):
    """Who binds what is around a node (:class:`~workbench.language.scalars.ExpressionBinder`), as handlers see it."""

    def inner(self, node: exp.Expr) -> Expression:
        """A part of the expression."""

    def call(self, name: str, node: exp.Expr, arguments: list[Expression]) -> Expression:
        """A call of the closed list, with the types of its arguments checked."""

    def error(self, message: str, node: exp.Expr, *, hint: str | None = None) -> QueryError:
        """An error that underlines a node."""

    def at(self, node: exp.Expr) -> AbstractContextManager[None]:
        """Where a node's value is read: a fault without a place underlines the node."""

    def source(self, node: exp.Expr) -> str:
        """What the user has written for a node."""


#: Operators and keywords by the class of their node.
OPERATORS: dict[type[exp.Expr], str] = {
    exp.Or: "or",
    exp.And: "and",
    exp.EQ: "equal",
    exp.NullSafeEQ: "null_safe_equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.IntDiv: "div",
    exp.Mod: "modulo",
    exp.DPipe: "concat",
}

#: What ``EXTRACT(... FROM ts)`` and ``date_part`` know, and the functions that they stand for.
PARTS = {
    "year": "year", "y": "year", "years": "year", "quarter": "quarter", "month": "month", "mon": "month",
    "week": "weekofyear", "day": "day", "d": "day", "dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear",
    "hour": "hour", "h": "hour", "minute": "minute", "min": "minute", "m": "minute",
}  # fmt: skip
_OTHER_PARTS = {
    **dict.fromkeys(("second", "seconds", "sec", "s"), "`second(t)` gives the whole seconds"),
    "epoch": "`unix_seconds(t)` gives the seconds since 1970",
}
#: Units of ``timestampdiff`` in microseconds.
_UNITS = {
    "week": WEEK, "day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND, "millisecond": MILLISECOND,
    "microsecond": MICROSECOND,
}  # fmt: skip
_TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_MONTHS = {"month": 1, "months": 1, "quarter": 3, "quarters": 3, "year": 12, "years": 12}
_DATE_SHIFTS: dict[type[exp.Expr], str] = {exp.Add: "date_add", exp.Sub: "date_sub"}


def _operator(binder: Binder, node: exp.Expr) -> Expression:
    if isinstance(node, (exp.Add, exp.Sub)) and _is_interval(node.expression):
        return _shift(binder, node)
    sides = [binder.inner(node.this), binder.inner(node.expression)]
    name = OPERATORS[type(node)]
    if name == "add" and all(pa.types.is_string(side.type) for side in sides):
        raise binder.error("`+` takes numbers, got text", node, hint="`||` joins texts")
    if name == "subtract" and all(is_temporal(side.type) for side in sides):
        hint = "`timestampdiff(SECOND, start, end)` and `datediff(end, start)` give numbers"
        raise binder.error("the time between two times has no type here", node, hint=hint)
    if pa.types.is_date32(sides[0].type) and is_integer(sides[1].type):
        name = _DATE_SHIFTS.get(type(node), name)
    call = binder.call(name, node, sides)
    return binder.call("not", node, [call]) if node.args.get("negate") else call


def _is_interval(node: exp.Expr) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Interval) or (isinstance(node, exp.Add) and _is_interval(node.this))


def _shift(binder: Binder, node: exp.Expr) -> Expression:
    """A time and an interval: a date stays one if the interval is written in days and weeks."""
    value = binder.inner(node.this)
    months, micros = _interval(binder, node.expression)
    if isinstance(node, exp.Sub):
        months, micros = -months, -micros
    if months and micros:
        raise binder.error("months and days cannot be in one interval", node.expression, hint="add two intervals")
    if months:
        return binder.call("shift_months", node, [value, Literal(pa.int64(), months)])
    if pa.types.is_date32(value.type) and micros % DAY == 0 and not _has_clock(node.expression):
        return binder.call("date_add", node, [value, Literal(pa.int32(), micros // DAY)])
    return binder.call("shift", node, [value, Literal(pa.int64(), micros)])


def _interval(binder: Binder, node: exp.Expr) -> tuple[int, int]:
    """Months and microseconds of an interval."""
    node = node.unnest()
    if isinstance(node, exp.Add):
        sides = _interval(binder, node.this), _interval(binder, node.expression)
        return sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]
    unit = node.args.get("unit")
    plain = isinstance(node.this, exp.Literal) and (unit is None or isinstance(unit, exp.Var))
    if not plain:
        raise binder.error("cannot read this INTERVAL", node, hint="write it as INTERVAL '90 minutes'")
    text, name = node.this.this, "" if unit is None else unit.name.casefold()
    with binder.at(node):
        if name in _MONTHS:
            if not text.lstrip("+-").isdigit():
                raise QueryError(f"`{text} {name}` is not a whole number of months")
            return int(text) * _MONTHS[name], 0
        return 0, parse_duration(f"{text} {name}".strip())


def _has_clock(node: exp.Expr) -> bool:
    """Whether an interval has a unit shorter than a day, which makes a timestamp of a date however long it is."""
    written = " ".join(part.name for part in node.find_all(exp.Literal, exp.Var))
    return any(unit[0] not in "dw" for unit in re.findall("[a-zµ]+", written.casefold()))


def _alone(binder: Binder, node: exp.Expr) -> Expression:
    raise binder.error(
        "an `INTERVAL` stands behind `+` or `-` and a time", node, hint="such as `ts + INTERVAL '90 minutes'`"
    )


def _distinct_from(binder: Binder, node: exp.Expr) -> Expression:
    same = binder.call("null_safe_equal", node, [binder.inner(node.this), binder.inner(node.expression)])
    return binder.call("not", node, [same])


def _escape(binder: Binder, node: exp.Expr) -> Expression:
    """``LIKE ... ESCAPE``: the pattern with the usual backslash."""
    like, escape = node.this, node.expression
    pattern = binder.inner(like.expression)
    constant = pattern.value if isinstance(pattern, Literal) else None
    if not isinstance(constant, str) or not isinstance(escape, exp.Literal) or type(like) is exp.RegexpLike:
        raise binder.error("`ESCAPE` takes one character, behind a constant pattern of `LIKE`", node)
    with binder.at(escape):
        plain = Literal(pa.string(), escaped_like(constant, escape.this))
    call = binder.call(OPERATORS[type(like)], like, [binder.inner(like.this), plain])
    return binder.call("not", node, [call]) if like.args.get("negate") else call


def _negate(binder: Binder, node: exp.Expr) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        with binder.at(node):
            return number(f"-{inner.this}")
    if isinstance(inner, exp.TryCast) and binder.source(inner)[:1].isdigit():  # with its type, such as 128Y
        return _as_type(binder, node, inner, number(f"-{inner.this.this}"))
    return binder.call("negate", node, [binder.inner(inner)])


def _is(binder: Binder, node: exp.Expr) -> Expression:
    value = binder.inner(node.this)
    if isinstance(node.expression, exp.Null):
        return binder.call("is_null", node, [value])
    if isinstance(node.expression, exp.Boolean):
        return binder.call("null_safe_equal", node, [value, binder.inner(node.expression)])
    raise binder.error("`IS` takes NULL, TRUE, FALSE or DISTINCT FROM", node)


def _not(binder: Binder, node: exp.Expr) -> Expression:
    inner = node.this.unnest()
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return binder.call("is_not_null", node, [binder.inner(inner.this)])
    return binder.call("not", node, [binder.inner(inner)])


def _in(binder: Binder, node: exp.Expr) -> Expression:
    if not node.expressions:
        if not (node.args.get("query") or node.args.get("field")):
            raise binder.error("there is nothing between the brackets of `IN`", node)
        raise binder.error(
            f"`{binder.source(node)}` is not supported",
            node,
            hint="`IN` takes a list of values; a join finds the rows that have a partner in a table",
        )
    return binder.call("in", node, [binder.inner(each) for each in (node.this, *node.expressions)])


def _between(binder: Binder, node: exp.Expr) -> Expression:
    value = binder.inner(node.this)
    low = binder.call("greater_equal", node, [value, binder.inner(node.args["low"])])
    high = binder.call("less_equal", node, [value, binder.inner(node.args["high"])])
    return binder.call("and", node, [low, high])


def _case(binder: Binder, node: exp.Expr) -> Expression:
    arguments = []
    subject = None if node.this is None else binder.inner(node.this)
    for branch in node.args["ifs"]:
        condition = binder.inner(branch.this)
        if subject is not None:
            condition = binder.call("equal", branch, [subject, condition])
        arguments += [condition, binder.inner(branch.args["true"])]
    if node.args.get("default") is not None:
        arguments.append(binder.inner(node.args["default"]))
    return binder.call("case", node, arguments)


def _cast(binder: Binder, node: exp.Expr) -> Expression:
    if node.args.get("default"):
        hint = "`coalesce(TRY_CAST(x AS int), 0)` has a value where one does not fit"
        raise binder.error("`DEFAULT` inside `CAST` is not supported", node, hint=hint)
    return _as_type(binder, node, node, binder.inner(node.this))


def _as_type(binder: Binder, node: exp.Expr, cast: exp.Expr, argument: Expression) -> Expression:
    """``argument`` with the type that ``cast`` names. Raises QueryError at ``node``."""
    with binder.at(node):
        target = named_type(cast.args["to"])
        if not can_cast(argument.type, target):
            raise QueryError(f"cannot convert `{type_name(argument.type)}` to `{type_name(target)}`")
        return fold_cast(argument, target, safe=bool(cast.args.get("safe")))


def _extract(binder: Binder, node: exp.Expr) -> Expression:
    return _part(binder, node, node.this, node.expression)


def _part(binder: Binder, node: exp.Expr, part: exp.Expr, time: exp.Expr) -> Expression:
    name = part.name.casefold()
    if name not in PARTS:
        hint = _OTHER_PARTS.get(name) or did_you_mean(name, PARTS, "part")
        raise binder.error(f"unknown part of a time `{name}`", node, hint=hint)
    return binder.call(PARTS[name], node, [binder.inner(time)])


def _trim(binder: Binder, node: exp.Expr) -> Expression:
    characters = node.args.get("expression")
    written = binder.source(node).casefold()
    if characters is not None and " from " not in written.replace("\n", " "):
        raise binder.error(
            "`trim` takes 1 argument, got 2", node, hint="`TRIM(BOTH 'x' FROM s)` and `btrim(s, 'x')` work"
        )
    arguments = [node.this] if characters is None else [node.this, characters]
    return binder.call(_TRIMS[node.args.get("position") or ""], node, [binder.inner(each) for each in arguments])


def _trim_side(binder: Binder, node: exp.Expr) -> Expression:
    """``ltrim(s)``; with two arguments Spark takes the characters first, and others the text."""
    if len(node.expressions) == 2:
        side = "LEADING" if node.name.casefold() == "ltrim" else "TRAILING"
        raise binder.error(
            f"`{node.name}` takes 1 argument, got 2", node, hint=f"`TRIM({side} 'x' FROM s)` says which is the text"
        )
    return binder.call(node.name.casefold(), node, [binder.inner(each) for each in node.expressions])


def _date_add(binder: Binder, node: exp.Expr) -> Expression:
    """``date_add(d, days)``, in Spark also with a unit before the number."""
    if len(node.expressions) == 3:
        raise binder.error(f"`{node.name}` takes a date and days", node, hint="such as `t + INTERVAL '2' HOUR`")
    return binder.call("date_add", node, [binder.inner(each) for each in node.expressions])


def _date_part(binder: Binder, node: exp.Expr) -> Expression:
    """``date_part('hour', ts)``: ``EXTRACT`` with a comma."""
    parts = node.expressions
    if len(parts) != 2 or not isinstance(parts[0], exp.Literal):
        raise binder.error(f"`{node.name}` takes the name of a part and a time", node, hint="`EXTRACT(hour FROM ts)`")
    return _part(binder, node, parts[0], parts[1])


def _difference(binder: Binder, node: exp.Expr) -> Expression:
    """``timestampdiff(SECOND, start, end)``: whole units; ``datediff(end, start)`` with two dates are days."""
    parts = node.expressions
    if len(parts) != 3 and node.name.casefold() != "timestampdiff":
        return binder.call("datediff", node, [binder.inner(each) for each in parts])
    unit = _UNITS.get(parts[0].name.casefold()) if len(parts) == 3 else None
    if unit is None:
        hint = f"such as `timestampdiff(SECOND, start, end)`; units are {', '.join(_UNITS)}"
        raise binder.error(f"`{node.name}` takes a unit and two times", node, hint=hint)
    start, end = (binder.call("unix_micros", each, [binder.inner(each)]) for each in parts[1:])
    between = binder.call("subtract", node, [end, start])
    return binder.call("div", node, [between, Literal(pa.int64(), unit)])


def _position(binder: Binder, node: exp.Expr) -> Expression:
    """``POSITION('x' IN s)``, or the same with a comma."""
    inner = node.expressions[0] if node.expressions else None
    if isinstance(inner, exp.In) and inner.args.get("field") is not None:
        return binder.call("locate", node, [binder.inner(inner.this), binder.inner(inner.args["field"])])
    return binder.call("locate", node, [binder.inner(each) for each in node.expressions])


def refuse_unsteady(binder: Binder, node: exp.Expr) -> None:
    """Raise QueryError for a name of SQL whose value is another one each time it is asked."""
    if node.name.casefold() in _UNSTEADY:
        raise binder.error(
            f"`{node.name}` is not supported: no result depends on when or how often a row is processed",
            node,
            hint="a moment can be given as a parameter, `{{name}}`, or as TIMESTAMP '2013-01-31 10:15:00'",
        )


_UNSTEADY = {
    "current_date",
    "current_timestamp",
    "curdate",
    "now",
    "rand",
    "random",
    "randn",
    "uuid",
    "localtimestamp",
}

Handler = Callable[[Binder, exp.Expr], Expression]

HANDLERS: dict[type[exp.Expr], Handler] = {
    **dict.fromkeys(OPERATORS, _operator),
    exp.NullSafeNEQ: _distinct_from,
    exp.Escape: _escape,
    exp.Interval: _alone,
    exp.Boolean: lambda binder, node: Literal(pa.bool_(), bool(node.this)),
    exp.Null: lambda binder, node: Literal(pa.null(), None),
    exp.RawString: lambda binder, node: Literal(pa.string(), node.this),
    exp.Paren: lambda binder, node: binder.inner(node.this),
    exp.Neg: _negate,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Trim: _trim,
}

#: The same for what is written as ``name(...)`` and is more than one function.
NAMED_HANDLERS: dict[str, Handler] = {
    "date_part": _date_part,
    "datepart": _date_part,
    "timestampdiff": _difference,
    "datediff": _difference,
    "date_diff": _difference,
    "position": _position,
    **dict.fromkeys(("ltrim", "rtrim"), _trim_side),
    **dict.fromkeys(("dateadd", "date_add"), _date_add),
}
