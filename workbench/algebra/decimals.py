"""Decimals in partials: each is an int64 there, the number of its last digits, and sums of them have 128 bits.

Of a type of more than 18 digits, sums, means and extremes take the two halves of that number instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from workbench.algebra.partials import Array, Fields
from workbench.errors import DataError

_MOST, _NARROW = 38, 18


class Word(StrEnum):
    """The halves of a decimal: the upper 64 bits, and the lower ones less 2 ** 63, an int64 of the same order."""

    HIGH = "high"
    LOW = "low"


def is_wide(kind: pa.DataType) -> bool:
    """Whether a type is that of decimals with more digits than an int64 has."""
    return bool(is_.is_decimal128(kind)) and kind.precision > _NARROW


def halves(values: pa.Array, word: Word) -> pa.Array:
    """One half of each decimal, int64; NULL stays."""
    low, high = words(values)
    half = high if word is Word.HIGH else (low ^ _SIGN).view(np.int64)
    return pa.array(half, mask=values.is_null().to_numpy(zero_copy_only=False))


def of_halves(high: Array, low: Array, empty: Array, kind: pa.DataType) -> pa.Array:
    """Inverse of :func:`halves`; NULL where ``empty``."""
    return of_words(low.view(np.uint64) ^ _SIGN, high, empty, kind)


_SIGN = np.uint64(1 << 63)


def units(values: pa.Array, text: str) -> pa.Array:
    """Decimals as int64 numbers of their last digits: 1.25 is 125 of a ``decimal(10, 2)``.

    Raises DataError, which names the expression ``text``, for one beyond 64 bits.
    """
    low, high = words(values)
    numbers = low.view(np.int64)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    far = np.flatnonzero(valid & (high != numbers >> 63))
    if len(far):
        raise DataError(
            f"`{text}`: `{values[int(far[0])]}` has too many digits for an aggregate, which takes up to 18",
            hint="`CAST(... AS decimal(18, 4))` has fewer behind the point, `CAST(... AS double)` is not exact",
        )
    return pa.array(numbers, mask=~valid)


def words(values: pa.Array) -> tuple[Array, Array]:
    """The low (uint64) and the high (int64) halves of decimals; anything where NULL."""
    data = values.buffers()[1]
    pairs = np.frombuffer(data, np.int64) if data else np.zeros(0, np.int64)
    pairs = pairs.reshape(-1, 2)[values.offset : values.offset + len(values)]
    return pairs[:, 0].view(np.uint64), pairs[:, 1]


def of_units(numbers: Array, empty: Array, kind: pa.DataType) -> pa.Array:
    """Inverse of :func:`units`; NULL where ``empty``."""
    return of_words(numbers.view(np.uint64), numbers >> 63, empty, kind)


def of_words(low: Array, high: Array, empty: Array, kind: pa.DataType) -> pa.Array:
    """Inverse of :func:`words`; NULL where ``empty``."""
    pairs = np.stack([low.view(np.int64), high], axis=1)
    mask = pa.array(~empty)
    return pa.Array.from_buffers(kind, len(low), [mask.buffers()[1], pa.py_buffer(pairs)], int(empty.sum()))


def sum_type(kind: pa.DataType) -> pa.DataType:
    """The type of a sum: ten digits more."""
    return pa.decimal128(min(kind.precision + 10, _MOST), kind.scale)


def mean_type(kind: pa.DataType) -> pa.DataType:
    """The type of a mean: four digits more, all behind the point."""
    return pa.decimal128(min(kind.precision + 4, _MOST), min(kind.scale + 4, _MOST))


def means(low: Array, high: Array, counts: Array, more: int) -> tuple[Array, Array]:
    """The quotients of 128-bit sums and counts, with ``more`` digits than the sums, half away from zero; as words."""
    divisors = np.maximum(counts, 1)
    totals, factor = low.view(np.int64), 10**more
    limit = (1 << 61) // factor
    near = (high == totals >> 63) & (totals < limit) & (totals > -limit) & (divisors < 1 << 61)
    scaled = np.where(near, totals, 0) * factor
    whole = (2 * np.abs(scaled) + divisors) // (2 * divisors)
    quotients = np.where(scaled < 0, -whole, whole)
    lows, highs = quotients.view(np.uint64), quotients >> 63
    for row in np.flatnonzero(~near):
        exact = _nearest((int(high[row]) << 64 | int(low[row])) * factor, int(divisors[row]))
        lows[row], highs[row] = exact & _LOW, exact >> 64
    return lows, highs


def _nearest(total: int, count: int) -> int:
    """A quotient, half away from zero."""
    return (2 * abs(total) + count) // (2 * count) * (-1 if total < 0 else 1)


def _wide_sums(fields: Sequence[Fields]) -> list[int]:
    """The sums of decimals of which both halves were summed alone, from those sums and the counts."""
    rows = zip(*(cells.tolist() for partial in fields for cells in partial), strict=True)
    return [((h1 << 64 | h0) << 64) + (l1 << 64 | l0) + (count << 63) for h0, h1, l0, l1, count in rows]


def _of_integers(numbers: Sequence[int], empty: Array, kind: pa.DataType) -> tuple[pa.Array, Array]:
    """Decimals of the numbers of their last digits, NULL where ``empty``; and which the type does not hold."""
    far = np.array([abs(number) >= 10**kind.precision for number in numbers], np.bool_)
    kept = [0 if beyond else number for number, beyond in zip(numbers, far.tolist(), strict=True)]
    low = np.array([number & _LOW for number in kept], np.uint64)
    return of_words(low, np.array([number >> 64 for number in kept], np.int64), empty | far, kind), far


_LOW = (1 << 64) - 1


def lower_sums(
    fields: Sequence[Fields], argument: pa.DataType, kind: pa.DataType, text: str | None = None
) -> pa.Array:
    """Sums from their partials. One that the type does not hold is an error that names ``text``; NULL without it."""
    empty = fields[-1][0] == 0
    if not is_wide(argument):
        low, high = fields[0]
        return of_words(low, high, empty, kind)
    found, far = _of_integers(_wide_sums(fields), empty, kind)
    if text is not None:
        _refuse(far, kind, text)
    return found


def lower_means(fields: Sequence[Fields], argument: pa.DataType, kind: pa.DataType, text: str) -> pa.Array:
    """Means from the partials of sums; as :func:`lower_sums`."""
    counts, more = fields[-1][0], kind.scale - argument.scale
    if not is_wide(argument):
        low, high = fields[0]
        return of_words(*means(low, high, counts, more), counts == 0, kind)
    pairs = zip(_wide_sums(fields), counts.tolist(), strict=True)
    found, far = _of_integers([_nearest(total * 10**more, max(n, 1)) for total, n in pairs], counts == 0, kind)
    _refuse(far, kind, text)
    return found


def _refuse(far: Array, kind: pa.DataType, text: str) -> None:
    if far.any():
        raise DataError(
            f"decimal overflow in `{text}`: a window's does not fit into {kind.precision} digits, "
            f"{kind.scale} of them behind the point",
            hint="`CAST(... AS decimal(p, s))` makes room",
        )
