"""OVER: windows that slide by one row. Every row has a result of its own, from the rows of its key before it.

A frame ends at the current row and begins a number of rows or a time before it. As in SQL, a frame by time holds all
rows of the current row's own time (its peers), a frame by rows does not. Rows of equal time are ordered by the values
that the query itself reads of them, in the order of their names, so that no order of arrival shows in a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from workbench.errors import QueryError
from workbench.logical.expressions import AggregateCall, Expression, walk
from workbench.time import SECOND, format_duration


@dataclass(frozen=True)
class RowsFrame:
    """The current row and the ``preceding`` rows of its key before it, or all of them (None)."""

    preceding: int | None

    def __post_init__(self) -> None:
        if self.preceding is not None and self.preceding < 0:
            raise QueryError(
                f"the number of rows before the current one must not be negative, got `{self.preceding}`"
            )

    def __str__(self) -> str:
        start = "UNBOUNDED" if self.preceding is None else str(self.preceding)
        return f"ROWS BETWEEN {start} PRECEDING AND CURRENT ROW"


@dataclass(frozen=True)
class RangeFrame:
    """The rows of the key at most ``preceding`` microseconds before the current row's time, or all of them (None).

    Both ends are inclusive: ``[time - preceding, time]``.
    """

    preceding: int | None

    def __post_init__(self) -> None:
        if self.preceding is not None and self.preceding < 0:
            raise QueryError(
                f"the time before the current row must not be negative, got `{format_duration(self.preceding)}`"
            )

    def __str__(self) -> str:
        start = "UNBOUNDED"
        if self.preceding is not None:
            whole, part = divmod(self.preceding, SECOND)
            start = f"INTERVAL '{whole}{f'.{part:06}'.rstrip('0') if part else ''}' SECOND"
        return f"RANGE BETWEEN {start} PRECEDING AND CURRENT ROW"


Frame: TypeAlias = RowsFrame | RangeFrame


@dataclass(frozen=True)
class OverCall(Expression):
    """An aggregate over the frame of a row. Partition and order are the query's: its keys, and its stream's time."""

    call: AggregateCall
    frame: Frame

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.call,)

    def __str__(self) -> str:
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
