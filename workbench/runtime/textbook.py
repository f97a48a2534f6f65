"""Every aggregate once more, from the textbook: plain Python over the rows of one window, nothing shared.

The other half of the oracle (:mod:`workbench.runtime.reference`). A function gets the rows as pairs of event time
and argument values, in any order; what a result is stands here in its plainest form, with exact fractions where
floating-point numbers would round.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

from workbench.algebra import user
from workbench.algebra.aggregates import Operands
from workbench.errors import DataError

#: Digits to compute decimals with: twice those that one may have, and some.
_DIGITS = 80
#: Event time in microseconds and the values of the arguments.
Row = tuple[int, tuple[Any, ...]]


def recompute(function: str, operands: Operands, rows: Sequence[Row]) -> Any:
    """The aggregate of the rows of a window: a Python value, None for NULL."""
    if "#" in function:
        return _user_defined(user.definition(function), [values for _, values in rows if None not in values])
    if function in _OF_ROWS:
        return _OF_ROWS[function](rows)
    if not operands.types:
        return len(rows)
    if function in _OF_PAIRS:
        pairs = [values for _, values in rows if None not in values]
        return _OF_PAIRS[function](pairs)
    values = [values[0] for _, values in rows if values[0] is not None]
    if function in _WITH_CONSTANTS:
        return _WITH_CONSTANTS[function](values, operands)
    return _OF_VALUES[function](values)


def depends_on_order(function: str) -> bool:
    """Whether the order of rows matters: only to a user's aggregate that does not commute."""
    return "#" in function and not user.definition(function).commutative


def _user_defined(entry: user.Definition, rows: list[tuple[Any, ...]]) -> Any:
    """The user's own functions, one row after the other."""
    if not rows:
        return None
    state = user.state_of(entry)
    total = state(*(identity for _, _, identity in entry.fields))
    for row in rows:
        values = [float(x) if dtype == "float64" else x for x, dtype in zip(row, entry.inputs, strict=True)]
        total = state(*entry.combine(total, state(*entry.lift(*values))))
    return entry.lower(total)


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], Decimal):
        with localcontext(prec=_DIGITS):
            return sum(values)
    if isinstance(values[0], int):
        total = sum(values)
        if not -(2**63) <= total < 2**63:
            raise DataError("integer overflow")
        return total
    return float_sum(values)


def float_sum(values: Sequence[float]) -> float:
    """The exactly rounded sum, with the IEEE rules for inf and NaN."""
    infinities = {value for value in values if math.isinf(value)}
    if any(math.isnan(value) for value in values) or len(infinities) == 2:
        return math.nan
    return infinities.pop() if infinities else math.fsum(values)


def _try_sum(values: list[Any]) -> Any:
    try:
        return _sum(values)
    except DataError:
        return None


def _average(values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], Decimal):
        with localcontext(prec=_DIGITS):
            return (sum(values) / len(values)).quantize(values[0].scaleb(-4), ROUND_HALF_UP)
    return (sum(values) if isinstance(values[0], int) else float_sum(values)) / len(values)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _extreme(pick: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def extreme(values: list[Any]) -> Any:
        if any(map(_is_nan, values)):
            return math.nan
        return pick(values) if values else None

    return extreme


def _range(values: list[Any]) -> Any:
    if not values:
        return None
    return _extreme(max)(values) - _extreme(min)(values)


def _deviations(values: list[Any]) -> list[Fraction] | None:
    """Exact distances from the mean; None where a value is not finite."""
    if not all(math.isfinite(value) for value in values):
        return None
    exact = [Fraction(float(value)) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    return [value - mean for value in exact]


def _moment(deviations: list[Fraction], power: int) -> Fraction:
    return sum((deviation**power for deviation in deviations), Fraction()) / len(deviations)


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _variance(values: list[Any], sample: bool) -> Any:
    divisor = len(values) - sample
    if divisor < 1:
        return None
    deviations = _deviations(values)
    return math.nan if deviations is None else float(_moment(deviations, 2) * len(values) / divisor)


def _skewness(values: list[Any]) -> Any:
    """Third standardised moment of the population."""
    if not values:
        return None
    deviations = _deviations(values)
    if deviations is None:
        return math.nan
    variance = _moment(deviations, 2)
    return None if variance == 0 else float(_moment(deviations, 3) / variance) / math.sqrt(variance)


def _kurtosis(values: list[Any]) -> Any:
    """Fourth standardised moment of the population, less the 3 of the normal distribution."""
    if not values:
        return None
    deviations = _deviations(values)
    if deviations is None:
        return math.nan
    variance = _moment(deviations, 2)
    return None if variance == 0 else float(_moment(deviations, 4) / variance**2 - 3)


def _covariance(pairs: list[tuple[Any, ...]], sample: bool) -> Any:
    divisor = len(pairs) - sample
    if divisor < 1:
        return None
    left, right = (_deviations([pair[side] for pair in pairs]) for side in (0, 1))
    if left is None or right is None:
        return math.nan
    return float(sum((x * y for x, y in zip(left, right, strict=True)), Fraction()) / divisor)


def _correlation(pairs: list[tuple[Any, ...]]) -> Any:
    if len(pairs) < 2:
        return None
    left, right = (_deviations([pair[side] for pair in pairs]) for side in (0, 1))
    if left is None or right is None:
        return math.nan
    if not any(left) or not any(right):
        return None
    together = sum((x * y for x, y in zip(left, right, strict=True)), Fraction())
    return float(together) / math.sqrt(_moment(left, 2)) / math.sqrt(_moment(right, 2)) / len(pairs)


def _float_product(values: list[Any]) -> float:
    """Exact and rounded once; zero times inf is NaN, a product beyond the range of floats is inf or 0."""
    numbers = [float(value) for value in values]
    if any(map(math.isnan, numbers)) or (0.0 in numbers and any(map(math.isinf, numbers))):
        return math.nan
    sign = math.prod(math.copysign(1.0, value) for value in numbers)
    if any(map(math.isinf, numbers)):
        return sign * math.inf
    exact = math.prod((Fraction(abs(value)) for value in numbers), start=Fraction(1))
    try:
        return sign * float(exact)
    except OverflowError:
        return sign * math.inf


def _product(values: list[Any]) -> Any:
    return _float_product(values) if values else None


def _geometric_mean(values: list[Any]) -> Any:
    if not values:
        return None
    numbers = [float(value) for value in values]
    if any(value < 0 or math.isnan(value) for value in numbers):
        return math.nan
    if 0.0 in numbers:
        return math.nan if math.inf in numbers else 0.0
    return math.exp(float_sum([math.log(value) for value in numbers]) / len(numbers))


def order(value: Any) -> tuple[Any, ...]:
    """A key that sorts values with NaN after all others."""
    return (1, 0) if _is_nan(value) else (0, value)


def _first(rows: Sequence[Row]) -> Any:
    known = [(time, values[0]) for time, values in rows if values[0] is not None]
    return min(known, key=lambda row: (row[0], order(row[1])))[1] if known else None


def _last(rows: Sequence[Row]) -> Any:
    known = [(time, values[0]) for time, values in rows if values[0] is not None]
    return max(known, key=lambda row: (row[0], order(row[1])))[1] if known else None


def _first_value(rows: Sequence[Row]) -> Any:
    """Of the earliest rows, NULL only if none of them has a value."""
    earliest = min((time for time, _ in rows), default=None)
    return _first([row for row in rows if row[0] == earliest])


def _last_value(rows: Sequence[Row]) -> Any:
    latest = max((time for time, _ in rows), default=None)
    return _last([row for row in rows if row[0] == latest])


def _min_by(rows: Sequence[Row]) -> Any:
    known = [values for _, values in rows if values[1] is not None]
    if not known:
        return None
    least = min(order(by) for _, by in known)
    tied = [value for value, by in known if order(by) == least and value is not None]
    return min(tied, key=order) if tied else None


def _max_by(rows: Sequence[Row]) -> Any:
    known = [values for _, values in rows if values[1] is not None]
    if not known:
        return None
    greatest = max(order(by) for _, by in known)
    tied = [value for value, by in known if order(by) == greatest and value is not None]
    return max(tied, key=order) if tied else None


def _m4(rows: Sequence[Row]) -> Any:
    values = [values[0] for _, values in rows if values[0] is not None]
    if not values:
        return None
    return {
        "first": _first(rows),
        "last": _last(rows),
        "min": _extreme(min)(values),
        "max": _extreme(max)(values),
    }


def _histogram(values: list[Any], operands: Operands) -> Any:
    """How many values lie below the first edge, in each bin [edge, next edge), and from the last edge on."""
    if len(operands.types) == 2:
        edges = [float(edge) for edge in operands.constants[1]]
    else:
        low, high, bins = operands.constants[1:4]
        edges = [low + (high - low) * step / bins for step in range(bins)] + [high]
    counts = [0] * (len(edges) + 1)
    for value in values:
        counts[len(edges) if _is_nan(value) else bisect_right(edges, float(value))] += 1
    return counts


def _truth(test: Callable[[list[bool]], bool]) -> Callable[[list[Any]], Any]:
    return lambda values: test(values) if values else None


def _quantiles(values: list[Any], q: float, method: str) -> Any:
    """By rank q * (n - 1) of the sorted values; between two rows as the method says."""
    if not values:
        return None
    if any(map(_is_nan, values)):
        return math.nan
    rank = q * (len(values) - 1)
    line = sorted(map(float, values))
    low, high, part = line[math.floor(rank)], line[math.ceil(rank)], rank - math.floor(rank)
    if method == "nearest":
        return line[round(rank)]
    if method == "lower" or part == 0 or low == high:
        return low
    return {"linear": low * (1 - part) + high * part, "midpoint": low / 2 + high / 2, "higher": high}[method]


def _each(one: Callable[[float], Any], given: Any, values: list[Any]) -> Any:
    """One answer, or a list of them for an array of quantiles."""
    if not values:
        return None
    return [one(q) for q in given] if isinstance(given, tuple) else one(given)


def _quantile(values: list[Any], operands: Operands) -> Any:
    method = operands.constant(2, "linear")
    return _each(lambda q: _quantiles(values, q, method), operands.constant(1), values)


def _approx_quantile(values: list[Any], operands: Operands) -> Any:
    """What the sketch gives as long as it has kept every value: the ceil(q * n)-th one."""

    def one(q: float) -> float:
        if any(map(_is_nan, values)):
            return math.nan
        return float(sorted(values)[max(math.ceil(q * len(values)), 1) - 1])

    return _each(one, operands.constant(1), values)


def _frequencies(values: list[Any]) -> Counter[tuple[Any, ...]]:
    return Counter(map(order, values))


def _mode(values: list[Any]) -> Any:
    if not values:
        return None
    counts = _frequencies(values)
    most = max(counts.values())
    best = min(value for value, count in counts.items() if count == most)
    return math.nan if best[0] else best[1]


_OF_VALUES: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "count_if": lambda values: sum(map(bool, values)),
    "sum": _sum,
    "try_sum": _try_sum,
    "avg": _average,
    "min": _extreme(min),
    "max": _extreme(max),
    "range": _range,
    "var_samp": lambda values: _variance(values, True),
    "var_pop": lambda values: _variance(values, False),
    "stddev_samp": lambda values: _root(_variance(values, True)),
    "stddev_pop": lambda values: _root(_variance(values, False)),
    "skewness": _skewness,
    "kurtosis": _kurtosis,
    "product": _product,
    "geometric_mean": _geometric_mean,
    "bool_and": _truth(all),
    "bool_or": _truth(any),
    "median": lambda values: _quantiles(values, 0.5, "linear"),
    "mode": _mode,
    "count_distinct": lambda values: len(_frequencies(values)),
    "approx_count_distinct": lambda values: len(_frequencies(values)),
}

_OF_PAIRS: dict[str, Callable[[list[tuple[Any, ...]]], Any]] = {
    "covar_samp": lambda pairs: _covariance(pairs, True),
    "covar_pop": lambda pairs: _covariance(pairs, False),
    "corr": _correlation,
}

_OF_ROWS: dict[str, Callable[[Sequence[Row]], Any]] = {
    "first": _first,
    "last": _last,
    "first_value": _first_value,
    "last_value": _last_value,
    "min_by": _min_by,
    "max_by": _max_by,
    "m4": _m4,
}

_WITH_CONSTANTS: dict[str, Callable[[list[Any], Operands], Any]] = {
    "histogram": _histogram,
    "quantile": _quantile,
    "approx_quantile": _approx_quantile,
}
