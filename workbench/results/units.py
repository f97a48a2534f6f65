"""Numbers as windows along a measure count them: exact, in whole numbers of a power of ten."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.errors import DataError

Array = npt.NDArray[Any]

#: The most units that a value or a bound may be away from zero: all of them are doubles, and sums of two never wrap.
FARTHEST = 2**52
#: All bits of a double but its sign: those of negative ones count the other way.
_MAGNITUDE = np.int64(2**63 - 1)


@dataclass(frozen=True)
class Unit:
    """How values of a ``type`` are counted: in whole numbers of ``10 ** -digits``.

    A value has reached a bound if it is at least that. Integers and decimals are compared exactly; a double with the
    double nearest to the bound, so that 0.3 has reached 0.3; a float as the decimal number that it is shown as.
    """

    type: pa.DataType
    digits: int

    @property
    def bound_type(self) -> pa.DataType:
        """The type of bounds: that of the values, in its widest form."""
        if is_.is_integer(self.type):
            return pa.int64()
        if self._decimal:
            return pa.decimal128(38, max(self.digits, self.type.scale))
        return pa.float64()

    def bounds(self, cells: Array) -> pa.Array:
        """Bounds by the number of their units."""
        if is_.is_floating(self.bound_type):
            return pa.array(cells / 10.0**self.digits)
        if is_.is_integer(self.bound_type):
            return pa.array(cells)
        whole = pa.array(cells).cast(pa.decimal128(38, 0))
        return _rescaled(whole, self.digits).cast(self.bound_type)

    def reached(self, values: pa.Array) -> tuple[Array, Array]:
        """The last bound that each value has reached, and which values are numbers: not NULL, NaN or infinite.

        Raises DataError for a value too far from zero.
        """
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        if is_.is_floating(self.type):
            if self.type == pa.float32():
                values = values.cast(pa.string()).cast(pa.float64())
            numbers = values.fill_null(np.nan).to_numpy(zero_copy_only=False)
            valid = np.isfinite(numbers)
            numbers, scale = np.where(valid, numbers, 0.0), 10.0**self.digits
            guess = np.floor(numbers * scale)
            if (np.abs(guess) > FARTHEST).any():
                raise self._too_large(pa.array(numbers))
            # The product is rounded, so it may be one off; the quotient is the double nearest to the bound.
            guess += (guess + 1) / scale <= numbers
            guess -= guess / scale > numbers
            return guess.astype(np.int64), valid
        try:
            whole = pc.floor(_rescaled(self._finer(values), -self.digits)) if self._decimal else values
            cells = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            raise self._too_large(values) from None
        if (np.abs(cells) > FARTHEST).any():
            raise self._too_large(values)
        return cells, valid

    def places(self, values: pa.Array) -> Array:
        """Integers in the order of the values, which are numbers (anything where they are not); see :meth:`value_at`.

        Raises DataError for a decimal of more than 18 digits.
        """
        if is_.is_floating(self.type):
            numbers = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False) + 0.0
            bits = numbers.view(np.int64)
            return np.where(bits < 0, bits ^ _MAGNITUDE, bits)
        try:
            whole = _rescaled(self._finer(values), -max(self.digits, self.type.scale)) if self._decimal else values
            return whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            raise self._too_large(values) from None

    def value_at(self, place: int) -> int | float | Decimal:
        """The value that :meth:`places` has put there."""
        if is_.is_floating(self.type):
            return float(np.int64(place if place >= 0 else place ^ int(_MAGNITUDE)).view(np.float64))
        return Decimal(place).scaleb(-max(self.digits, self.type.scale)) if self._decimal else place

    @property
    def _decimal(self) -> bool:
        return bool(is_.is_decimal(self.type))

    def _finer(self, values: pa.Array) -> pa.Array:
        return values.cast(pa.decimal128(38, max(self.digits, self.type.scale)))

    def _too_large(self, values: pa.Array) -> DataError:
        worst = pc.max(pc.abs(values)).as_py()
        return DataError(
            f"the measure `{worst}` is too large to be counted in units of `{10.0**-self.digits:g}`",
            hint=f"windows along a measure reach to {FARTHEST} units",
        )


def _rescaled(values: pa.Array, digits: int) -> pa.Array:
    """Decimals times ``10 ** -digits``: the same digits with the point elsewhere."""
    kind = pa.decimal128(38, values.type.scale + digits)
    return pa.Array.from_buffers(kind, len(values), values.buffers(), values.null_count, values.offset)
