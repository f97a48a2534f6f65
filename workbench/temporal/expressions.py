"""Signals: columns of a stream as functions of time, and what can be written with them (*TiLT* §4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from workbench.errors import QueryError
from workbench.temporal.nodes import (
    Apply,
    Constant,
    Node,
    Reduce,
    Reducer,
    Sample,
    Trailing,
    Tumbling,
    Window,
    per_row,
    shifted,
    walk,
    written,
)
from workbench.time import LIMIT, parse_duration

#: The source of signals that name none.
DEFAULT = "rows"


def duration(given: str | timedelta, what: str) -> int:
    """Microseconds of a text such as ``'10 seconds'`` or a timedelta; QueryError where it is not longer than 0."""
    if isinstance(given, timedelta):
        micros = round(given / timedelta(microseconds=1))
    elif isinstance(given, str):
        micros = parse_duration(given)
    else:
        raise QueryError(f"{what} is a duration such as `'10 seconds'`, got `{given!r}`")
    if not 0 < micros <= LIMIT:
        raise QueryError(f"{what} must be longer than 0, got `{given}`")
    return micros


def signal(column: str, of: str = DEFAULT, hold: str | timedelta | None = None) -> Expression:
    """The column as a function of time: at every time the value of the last row at or before it.

    A row's value ends where the next row of its key comes, or ``hold`` after its time if that is given and sooner. A
    row without a value ends the value before it. Of rows with one time the last that came counts. ``of`` names the
    table, where there are several.
    """
    if not isinstance(column, str) or not column:
        raise QueryError(f"a signal is named by its column, got `{column!r}`")
    return Expression(Sample(of, column, None if hold is None else duration(hold, "`hold`")))


def _binary(operation: str) -> Callable[[Expression, Any], Expression]:
    def method(self: Expression, other: Any) -> Expression:
        return Expression(Apply(operation, (self.node, operand(other))))

    return method


def _reflected(operation: str) -> Callable[[Expression, Any], Expression]:
    def method(self: Expression, other: Any) -> Expression:
        return Expression(Apply(operation, (operand(other), self.node)))

    return method


def _unary(operation: str, text: str = "") -> Callable[[Expression], Expression]:
    def method(self: Expression) -> Expression:
        return Expression(Apply(operation, (self.node,)))

    method.__doc__ = text
    return method


class Expression:
    """A function of time. Arithmetic, comparisons and ``& | ~`` work on the values of one time.

    Where an operand has no value, neither has the result; nor where a divisor is 0, or the argument of a logarithm is
    not above 0. Comparisons are 1 and 0.
    """

    __slots__ = ("node",)
    __array_ufunc__ = None  # NumPy's numbers leave the operation to us

    def __init__(self, node: Node) -> None:
        self.node = node

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _binary("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _binary("divide"), _reflected("divide")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __and__, __or__ = _binary("and"), _binary("or")
    __rand__, __ror__ = _reflected("and"), _reflected("or")
    __neg__, __invert__ = _unary("negate"), _unary("not")
    __eq__ = _binary("equal")  # type: ignore[assignment]
    __ne__ = _binary("not_equal")  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    abs = _unary("abs", "Without its sign.")
    sqrt = _unary("sqrt", "The square root; NaN of what is below 0.")
    log = _unary("log", "The natural logarithm; no value where it is not above 0.")
    exp = _unary("exp", "e to the power of it.")
    is_missing = _unary("is_missing", "1 where there is no value, 0 elsewhere.")

    def __bool__(self) -> bool:
        raise QueryError(
            "a signal is neither true nor false: it is a function of time",
            hint="write `&`, `|` and `~` for and, or and not, and `.where(condition)` for a choice",
        )

    def __repr__(self) -> str:
        return written(self.node)

    def where(self, condition: Any) -> Expression:
        """The value where the condition holds, none elsewhere."""
        return Expression(Apply("where", (self.node, operand(condition))))

    def fill(self, other: Any) -> Expression:
        """The value, or that of ``other`` where there is none (imputation)."""
        return Expression(Apply("fill", (self.node, operand(other))))

    def least(self, other: Any) -> Expression:
        """The smaller of two values."""
        return Expression(Apply("least", (self.node, operand(other))))

    def greatest(self, other: Any) -> Expression:
        """The larger of two values."""
        return Expression(Apply("greatest", (self.node, operand(other))))

    def shift(self, back: str | timedelta) -> Expression:
        """The value so long before: ``~x[t - back]``."""
        return Expression(shifted(self.node, duration(back, "a shift")))

    def ahead(self, by: str | timedelta) -> Expression:
        """The value so long after: ``~x[t + by]``. Results wait for it."""
        return Expression(shifted(self.node, -duration(by, "a shift")))

    def previous(self, rows: int = 1) -> Expression:
        """The value so many rows before the row that counts now (`lag`)."""
        return self._neighbour(rows)

    def following(self, rows: int = 1) -> Expression:
        """The value so many rows after the row that counts now (`lead`). Results wait for it."""
        return self._neighbour(-rows)

    def age(self) -> Expression:
        """Seconds since the time of the row that counts now."""
        return self._sample("`age`", kind="age")

    def interpolate(self) -> Expression:
        """The straight line between the row that counts now and the next one (resampling)."""
        value, age = self, self.age()
        after = self._neighbour(-1)
        until = after._sample("`interpolate`", kind="age")  # below 0: that row is still to come
        step = (after - value) * (age / (age - until))
        return (value + step).fill(value.where(age == 0))

    def window(self, width: str | timedelta) -> Windowed:
        """The values that begin in ``(t - width, t]``: a window that slides with the time."""
        return Windowed(self.node, Trailing(duration(width, "the width of a window")))

    def tumbling(self, width: str | timedelta) -> Windowed:
        """The values in the window ``[k * width, (k + 1) * width)`` around the time. Results wait for its end."""
        return Windowed(self.node, Tumbling(duration(width, "the width of a window")))

    def _neighbour(self, rows: int) -> Expression:
        if not isinstance(rows, int) or isinstance(rows, bool) or rows == 0 or abs(rows) > 1_000_000:
            raise QueryError(f"the number of rows is a whole number from 1 to 1,000,000, got `{abs(rows)!r}`")
        return self._sample("rows before and after", rows=rows)

    def _sample(self, asked: str, rows: int = 0, kind: str | None = None) -> Expression:
        node = self.node
        if not isinstance(node, Sample):
            raise QueryError(
                f"{asked} are those of a column, got the expression `{written(node)}`",
                hint="ask for them on `signal(...)`, and compute with what they give",
            )
        moved = replace(node, previous=node.previous + rows, what=kind or node.what)
        return Expression(moved)


@dataclass(frozen=True)
class Windowed:
    """The values of a window, to be reduced to one. Without a value in it: a count of 0, no value for the others."""

    node: Node
    over: Window

    def __post_init__(self) -> None:
        """QueryError for a window that would need values of expressions at times that are not there yet."""
        if isinstance(self.over, Tumbling) and per_row(self.node) is None:
            raise QueryError(
                f"a tumbling window holds values of rows, got the expression `{written(self.node)}`",
                hint="use `.window(...)`, which ends at the time it is asked for",
            )

    def _reduce(self, reducer: Reducer) -> Expression:
        return Expression(Reduce(reducer, self.node, self.over))

    def count(self) -> Expression:
        """How many values there are."""
        return self._reduce(Reducer.COUNT)

    def sum(self) -> Expression:
        """Their sum."""
        return self._reduce(Reducer.SUM)

    def mean(self) -> Expression:
        """Their mean, each with the same weight."""
        return self._reduce(Reducer.MEAN)

    def min(self) -> Expression:
        """The smallest."""
        return self._reduce(Reducer.MIN)

    def max(self) -> Expression:
        """The largest."""
        return self._reduce(Reducer.MAX)

    def var(self) -> Expression:
        """Their variance (of a sample); none for less than two."""
        return self._reduce(Reducer.VAR)

    def std(self) -> Expression:
        """Their standard deviation (of a sample); none for less than two."""
        return self._reduce(Reducer.STD)

    def skewness(self) -> Expression:
        """Their skewness; none where all are equal."""
        return self._reduce(Reducer.SKEWNESS)

    def kurtosis(self) -> Expression:
        """Their excess kurtosis; none where all are equal."""
        return self._reduce(Reducer.KURTOSIS)

    def rms(self) -> Expression:
        """The square root of the mean of their squares."""
        square = Expression(self.node) * Expression(self.node)
        return Windowed(square.node, self.over).mean().sqrt()


def operand(given: Any) -> Node:
    """The node of an expression, or of a number."""
    if isinstance(given, Expression):
        return given.node
    if given is None:
        return Constant(None)
    if isinstance(given, Windowed):
        raise QueryError(
            "a window has many values, where one is needed",
            hint="take one of them all, such as `.mean()`, `.max()` or `.count()`",
        )
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise QueryError(f"expected a signal or a number, got `{given!r}`") from None
    return Constant(value)


def sources_of(node: Node) -> list[str]:
    """The names of the tables that a node reads, in order of first use."""
    return list(dict.fromkeys(each.source for each in walk(node) if isinstance(each, Sample)))
