"""Decimals in partials: each is an int64 there, the number of its last digits, and sums of them have 128 bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workbench.algebra.partials import Array
from workbench.errors import DataError

_MOST = 38


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
        total, count = (int(high[row]) << 64 | int(low[row])) * factor, int(divisors[row])
        exact = (2 * abs(total) + count) // (2 * count) * (-1 if total < 0 else 1)
        lows[row], highs[row] = exact & (1 << 64) - 1, exact >> 64
    return lows, highs
