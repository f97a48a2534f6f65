"""OVER: windows that slide by one row. Every row has a result of its own, from the rows of its key before it.

A frame begins a number of rows or a time before the current row, and ends with it or some rows or time before it. As
in SQL, a frame by time that ends with the current row holds all rows of its time (its peers), a frame by rows does
not. Rows of equal time are ordered by the values that the query itself reads of them, in the order of their names, so
that no order of arrival shows in a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from workbench.errors import QueryError
from workbench.logical.expressions import AggregateCall, Expression, walk
from workbench.time import SECOND, format_duration


@dataclass(frozen=True)
class RowsFrame:
    """From ``preceding`` rows of the key before the current row, or the first one (None), to ``until`` before it.

    ``until`` 0 is the current row itself. Empty where the key has no row so far back.
    """

    preceding: int | None
    until: int = 0

    def __post_init__(self) -> None:
        for rows in (self.preceding or 0, self.until):
            if rows < 0:
                raise QueryError(f"the number of rows before the current one must not be negative, got `{rows}`")
        _check_order(self, str)

    @property
    def single(self) -> bool:
        """Whether it never holds more than one row."""
        return self.preceding == self.until

    def __str__(self) -> str:
        return f"ROWS {_between(self, str)}"


@dataclass(frozen=True)
class RangeFrame:
    """The rows of the key between ``preceding`` (None: any time) and ``until`` microseconds before the row's time.

    Both ends are inclusive: ``[time - preceding, time - until]``.
    """

    preceding: int | None
    until: int = 0

    def __post_init__(self) -> None:
        for time in (self.preceding or 0, self.until):
            if time < 0:
                raise QueryError(
                    f"the time before the current row must not be negative, got `{format_duration(time)}`"
                )
        _check_order(self, format_duration)

    @property
    def single(self) -> bool:
        """Never: there may be any number of rows at one time."""
        return False

    def __str__(self) -> str:
        return f"RANGE {_between(self, _seconds)}"


Frame: TypeAlias = RowsFrame | RangeFrame


def _check_order(frame: Frame, text: Callable[[int], str]) -> None:
    if frame.preceding is not None and frame.preceding < frame.until:
        raise QueryError(
            f"the frame ends before it begins: `{text(frame.preceding)}` before the row, and `{text(frame.until)}`",
            hint="the larger distance comes first, as in `BETWEEN 5 PRECEDING AND 1 PRECEDING`",
        )


def _between(frame: Frame, text: Callable[[int], str]) -> str:
    start = "UNBOUNDED" if frame.preceding is None else text(frame.preceding)
    end = f"{text(frame.until)} PRECEDING" if frame.until else "CURRENT ROW"
    return f"BETWEEN {start} PRECEDING AND {end}"


def _seconds(time: int) -> str:
    whole, part = divmod(time, SECOND)
    return f"INTERVAL '{whole}{f'.{part:06}'.rstrip('0') if part else ''}' SECOND"


@dataclass(frozen=True)
class OverCall(Expression):
    """An aggregate over the frame of a row. Partition and order are the query's: its keys, and its stream's time."""

    call: AggregateCall
    frame: Frame

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.call,)

    def __str__(self) -> str:
        if self.call.function == "first_value" and self.frame.single and self.frame.until:
            rows = f", {self.frame.until}" if self.frame.until > 1 else ""
            return f"lag({self.call.arguments[0]}{rows})"
        return f"{self.call} OVER ({self.frame})"


@dataclass(frozen=True)
class EachRow:
    """The windows of an OVER query: one for each row, whose bounds are both the row's time."""

    @property
    def label(self) -> str:
        """Always the same: a query has one level of it."""
        return "each row"


def over_calls(expression: Expression) -> list[OverCall]:
    """The aggregates over frames in an expression, left to right."""
    return [node for node in walk(expression) if isinstance(node, OverCall)]


def beside_frames(expression: Expression) -> list[Expression]:
    """The leaves of an expression that are read of the row itself, outside all frames."""
    if isinstance(expression, OverCall):
        return []
    if not expression.children:
        return [expression]
    return [leaf for child in expression.children for leaf in beside_frames(child)]
