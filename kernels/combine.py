"""Combining partial aggregates: plain arithmetic that works on NumPy arrays and, compiled, on scalars.

Each ``lift_*`` makes the fields of a partial aggregate from one value (or an array of values), each
``combine_*`` merges the fields of two partials of neighbouring rows, left before right. They are associative, so
any tree over the rows gives the same answer (floating-point rounding aside). An ``invert_*`` takes rows away from
the left, ``combine(prefix, invert(total, prefix)) == total``; there is one only where it is exact whatever the
prefix was, so that a result depends on its own rows alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def lift_value(x: Any) -> Any:
    """The value is its own partial."""
    return (x,)


def combine_add(a: Any, b: Any) -> Any:
    """Sum of two counts or floats. Identity 0."""
    return (a + b,)


def invert_add(total: Any, prefix: Any) -> Any:
    """What is left of an integer sum; exact, since integers of one width are a group even where they wrap."""
    return (total - prefix,)


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
