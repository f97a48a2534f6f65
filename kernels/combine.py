"""Combining partial aggregates: plain arithmetic that works on NumPy arrays and, compiled, on scalars.

Each ``lift_*`` makes the fields of a partial aggregate from one value (or an array of values), each
``combine_*`` merges the fields of two partials of neighbouring rows, left before right. They are associative, so
any tree over the rows gives the same answer (floating-point rounding aside). An ``invert_*`` takes rows away from
the left, ``combine(prefix, invert(total, prefix)) == total``; there is one only where it is exact whatever the
prefix was, so that a result depends on its own rows alone. The one exception, :func:`invert_fast`, rounds: it is for
those who ask for ``numerics='fast'``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def pick(take: Any, yes: Any, no: Any) -> Any:
    """``yes`` where ``take`` holds, else ``no``. Compiled, it is a branch (see :mod:`workbench.kernels.jit`)."""
    return np.where(take, yes, no)


def frexp(x: Any) -> Any:
    """Mantissa in [0.5, 1) and exponent of 2; (x, 0) of 0, NaN and inf. Compiled, it is the C library's."""
    return np.frexp(x)


def precedes(a: Any, b: Any) -> Any:
    """``a < b`` in the order of values, in which NaN is the greatest; numbers, or texts in an object array."""
    return (a < b) | ((a == a) & (b != b))


def alike(a: Any, b: Any) -> Any:
    """Whether neither of two precedes the other: equal, or both NaN."""
    return (a == b) | ((a != a) & (b != b))


def lift_value(x: Any) -> Any:
    """The value is its own partial."""
    return (x,)


def combine_add(a: Any, b: Any) -> Any:
    """Sum of two counts or floats. Identity 0."""
    return (a + b,)


def invert_add(total: Any, prefix: Any) -> Any:
    """What is left of an integer sum; exact, since integers of one width are a group even where they wrap."""
    return (total - prefix,)


#: What the second field of a fast sum counts: values of +inf from the lowest bit on, of -inf from this one on.
MINUS = 1 << 32


def lift_fast(x: Any) -> Any:
    """A float as its finite part and, in one integer, how many values are +inf and -inf; NaN is one of each.

    So what is not finite can be taken away again, which ``inf - inf`` could not. Good for less than 2**31 such values
    in a window.
    """
    nan = x != x
    plus, minus = (x == np.inf) | nan, (x == -np.inf) | nan
    return (pick(x - x == 0.0, x, 0.0), plus * np.int64(1) + minus * np.int64(MINUS))


def combine_fast(a: Any, a_counts: Any, b: Any, b_counts: Any) -> Any:
    """Sum of two. Identity (0, 0)."""
    return (a + b, a_counts + b_counts)


def invert_fast(total: Any, total_counts: Any, prefix: Any, prefix_counts: Any) -> Any:
    """What is left of a sum of floats, off by the rounding of the total and of the prefix; counts are exact."""
    return (total - prefix, total_counts - prefix_counts)


def combine_min(a: Any, b: Any) -> Any:
    """Smaller of two; NaN if one is NaN. Identity: the largest value of the type, +inf for floats."""
    return (np.minimum(a, b),)


def combine_max(a: Any, b: Any) -> Any:
    """Larger of two; NaN if one is NaN. Identity: the smallest value of the type, -inf for floats."""
    return (np.maximum(a, b),)


def lift_wide(x: Any) -> Any:
    """A signed 64-bit integer as 128 bits in two's complement: (low unsigned, high signed)."""
    return (np.uint64(x), x >> np.int64(63))


def combine_wide(a_low: Any, a_high: Any, b_low: Any, b_high: Any) -> Any:
    """Sum of two 128-bit integers; exact for 2**64 rows of any int64. Identity (0, 0)."""
    low = a_low + b_low
    return (low, a_high + b_high + (low < a_low))


def invert_wide(total_low: Any, total_high: Any, prefix_low: Any, prefix_high: Any) -> Any:
    """Difference of two 128-bit integers."""
    return (total_low - prefix_low, total_high - prefix_high - (total_low < prefix_low))


def lift_moments(x: Any) -> Any:
    """One value: n = 1, mean = x, m2 = 0; mean and m2 are NaN where x is not finite, as a variance of it would be."""
    return (1.0 + 0.0 * (x != x), x + x * 0.0, x * 0.0)


def combine_moments(a_n: Any, a_mean: Any, a_m2: Any, b_n: Any, b_mean: Any, b_m2: Any) -> Any:
    """Pairwise update of count, mean and sum of squared deviations (Chan, Golub, LeVeque 1983). Identity zeros."""
    n = a_n + b_n
    delta = b_mean - a_mean
    share = b_n / np.maximum(n, 1.0)
    # Each factor meets a weight of 0 before they meet each other: inf * 0 would be NaN.
    return (n, a_mean + delta * share, a_m2 + b_m2 + (delta * a_n) * (delta * share))


def lift_moments4(x: Any) -> Any:
    """One value: n = 1, mean = x, m2 = m3 = m4 = 0; all but n NaN where x is not finite."""
    return (1.0 + 0.0 * (x != x), x + x * 0.0, x * 0.0, x * 0.0, x * 0.0)


def combine_moments4(
    a_n: Any, a_mean: Any, a_m2: Any, a_m3: Any, a_m4: Any, b_n: Any, b_mean: Any, b_m2: Any, b_m3: Any, b_m4: Any
) -> Any:
    """Pairwise update of count, mean and the sums of the 2nd to 4th power of deviations (Pebay 2008, 2.1).

    ``m2`` comes out bit by bit as in :func:`combine_moments`. Identity zeros.
    """
    n = a_n + b_n
    delta = b_mean - a_mean
    whole = np.maximum(n, 1.0)
    b_share, a_share = b_n / whole, a_n / whole
    step = delta * b_share
    square = (delta * a_n) * step
    m3 = a_m3 + b_m3 + square * (delta * (a_share - b_share)) + 3.0 * delta * (a_share * b_m2 - b_share * a_m2)
    m4 = (
        a_m4
        + b_m4
        + square * delta * delta * (a_share * a_share - a_share * b_share + b_share * b_share)
        + 6.0 * delta * delta * (a_share * a_share * b_m2 + b_share * b_share * a_m2)
        + 4.0 * delta * (a_share * b_m3 - b_share * a_m3)
    )
    return (n, a_mean + step, a_m2 + b_m2 + square, m3, m4)


def lift_comoments(x: Any, y: Any) -> Any:
    """One pair: n = 1, the means are x and y, the co-moment and both m2 are 0; NaN where a value is not finite."""
    return (1.0 + 0.0 * (x != x), x + x * 0.0, y + y * 0.0, x * 0.0 + y * 0.0, x * 0.0, y * 0.0)


def combine_comoments(
    a_n: Any, a_x: Any, a_y: Any, a_xy: Any, a_xx: Any, a_yy: Any,
    b_n: Any, b_x: Any, b_y: Any, b_xy: Any, b_xx: Any, b_yy: Any,
) -> Any:  # fmt: skip
    """Pairwise update of count, means, co-moment and both sums of squared deviations (Pebay 2008, 3.1). Zeros."""
    n = a_n + b_n
    share = b_n / np.maximum(n, 1.0)
    dx, dy = b_x - a_x, b_y - a_y
    return (
        n,
        a_x + dx * share,
        a_y + dy * share,
        a_xy + b_xy + (dx * a_n) * (dy * share),
        a_xx + b_xx + (dx * a_n) * (dx * share),
        a_yy + b_yy + (dy * a_n) * (dy * share),
    )


def lift_product(x: Any) -> Any:
    """A factor as mantissa and exponent of 2, so that no product on the way is too large or too small."""
    mantissa, exponent = frexp(x)
    return (mantissa, exponent + np.int64(0))


def combine_product(a: Any, a_exponent: Any, b: Any, b_exponent: Any) -> Any:
    """Product of two; the exponent is 0 where the mantissa is 0, NaN or inf. Identity 1 = 0.5 * 2**1."""
    mantissa, shift = frexp(a * b)
    plain = (mantissa != 0.0) & (mantissa - mantissa == 0.0)
    return (mantissa, (a_exponent + b_exponent + shift) * plain)


def lift_pair(order: Any, x: Any) -> Any:
    """A value with what it is ordered by; both zeros are one value, as in keys."""
    return (order + 0, x + 0)


def combine_earliest(a_order: Any, a: Any, b_order: Any, b: Any) -> Any:
    """The pair that comes first by (order, value), NaN last. Identity: the greatest of both types."""
    take = precedes(b_order, a_order) | (alike(a_order, b_order) & precedes(b, a))
    return (pick(take, b_order, a_order), pick(take, b, a))


def combine_latest(a_order: Any, a: Any, b_order: Any, b: Any) -> Any:
    """The pair that comes last by (order, value), NaN last. Identity: the least of both types."""
    take = precedes(a_order, b_order) | (alike(a_order, b_order) & precedes(a, b))
    return (pick(take, b_order, a_order), pick(take, b, a))


def lift_least(order: Any, x: Any, known: Any) -> Any:
    """A value that may be NULL with what it is ordered by; the rank puts NULL (1) behind every value (0)."""
    return (order + 0, np.int64(1) - known, x + 0)


def lift_greatest(order: Any, x: Any, known: Any) -> Any:
    """A value that may be NULL with what it is ordered by; the rank puts NULL (0) before every value (1)."""
    return (order + 0, np.int64(0) + known, x + 0)


def combine_least(a_order: Any, a_rank: Any, a: Any, b_order: Any, b_rank: Any, b: Any) -> Any:
    """The triple that comes first by (order, rank, value), NaN last. Identity: the greatest order with rank 2."""
    tie = (b_rank < a_rank) | ((a_rank == b_rank) & precedes(b, a))
    take = precedes(b_order, a_order) | (alike(a_order, b_order) & tie)
    return (pick(take, b_order, a_order), pick(take, b_rank, a_rank), pick(take, b, a))


def combine_greatest(a_order: Any, a_rank: Any, a: Any, b_order: Any, b_rank: Any, b: Any) -> Any:
    """The triple that comes last by (order, rank, value), NaN last. Identity: the least order with rank -1."""
    tie = (a_rank < b_rank) | ((a_rank == b_rank) & precedes(a, b))
    take = precedes(a_order, b_order) | (alike(a_order, b_order) & tie)
    return (pick(take, b_order, a_order), pick(take, b_rank, a_rank), pick(take, b, a))
