"""Windows along a number that a stream's rows count up: kilometres, invoice numbers, the reading of a meter.

*General Stream Slicing* §4.3 calls these *arbitrary advancing measures*: they are sliced as time is. Nothing is
rounded: sizes and edges are whole numbers of ``10 ** -digits``, and :class:`~workbench.results.Unit` says which of
them a value has reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

import pyarrow.types as is_

from workbench.errors import QueryError
from workbench.logical.expressions import Column, Expression
from workbench.logical.types import is_integer, is_number, is_temporal, type_name
from workbench.results import Unit
from workbench.results.units import FARTHEST

#: Digits behind the point that a size may have.
_DIGITS = 15


class Backwards(Enum):
    """What happens to a row whose measure is below that of an earlier row of its key."""

    ERROR = "error"
    DROP = "drop"


@dataclass(frozen=True)
class MeasureWindow:
    """``[start, start + size)`` along a measure, for every ``start = offset + k * slide``, by key.

    ``size``, ``slide`` and ``offset`` are whole numbers of ``10 ** -digits``; what a user writes goes through
    :meth:`of`. In order of event time the measure of a key's rows must not go back: a row below an earlier one is an
    error, or is left out and counted. Rows of equal time stand in the order of the measure; rows without one (NULL,
    NaN, infinite) are in no window. A window is final once the watermark has passed a row that has reached its end.
    """

    measure: Expression
    size: int
    slide: int
    offset: int = 0
    digits: int = 0
    backwards: Backwards = Backwards.ERROR

    @classmethod
    def of(
        cls, measure: Expression, size: Decimal, slide: Decimal, offset: Decimal, backwards: Backwards
    ) -> MeasureWindow:
        """The window with these numbers, in the widest exact unit. Raises QueryError for what makes no sense."""
        kind, numbers = measure.type, (size, slide, offset)
        if not (is_number(kind) or is_.is_decimal(kind)):
            hint = "windows of time are `window(ts, '10 minutes')`" if is_temporal(kind) else None
            raise QueryError(f"a measure is a number, but `{measure}` is `{type_name(kind)}`", hint=hint)
        digits = max(len(f"{number:f}".partition(".")[2].rstrip("0")) for number in numbers)
        if digits and is_integer(measure.type):
            raise QueryError(
                f"`{measure}` is `{type_name(measure.type)}`, so its windows are whole numbers, "
                f"got `{next(number for number in numbers if number != int(number))}`",
                hint=f"round it, or use `CAST({measure} AS double)`",
            )
        if digits > _DIGITS or any(abs(number) * 10**digits > FARTHEST for number in numbers):
            raise QueryError("a window of a measure has at most 15 digits", hint="round its size, slide and offset")
        units = [int(number * 10**digits) for number in numbers]
        return cls(measure, units[0], units[1], units[2], digits, backwards)

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("slide", self.slide)):
            if value <= 0:
                raise QueryError(
                    f"the {name} of a window must be positive, got `{self.shown(value)}`",
                    hint=f"such as `measure_window({self.measure}, 10, 1)`: 10 long, a new one every 1",
                )
        if self.slide > self.size:
            raise QueryError(
                f"the slide `{self.shown(self.slide)}` is longer than the window `{self.shown(self.size)}`, so rows "
                "between two windows would be lost",
                hint="make the slide at most as long as the window",
            )
        object.__setattr__(self, "offset", self.offset % self.slide)

    @property
    def unit(self) -> Unit:
        """How its bounds are counted."""
        return Unit(self.measure.type, self.digits)

    def shown(self, number: int) -> str:
        """A bound as a user writes it, such as ``2.5``."""
        return f"{Decimal(number).scaleb(-self.digits).normalize():f}"

    @property
    def label(self) -> str:
        """Such as ``'10 of km / 2.5'``."""
        measure = self.measure if isinstance(self.measure, Column) else f"({self.measure})"
        text = f"{self.shown(self.size)} of {measure}"
        if self.slide != self.size:
            text += f" / {self.shown(self.slide)}"
        return text + (f" + {self.shown(self.offset)}" if self.offset else "")
