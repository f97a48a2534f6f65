"""Sums, moments and products: the aggregates of numbers whose partials have a fixed width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from workbench.algebra.aggregates import (
    Aggregate,
    Family,
    Operands,
    Part,
    condition,
    double,
    number,
    parts,
)
from workbench.algebra.decimals import Word, is_wide, lower_means, lower_sums, mean_type, sum_type
from workbench.algebra.partials import Array, Field, Fields, PartialKind
from workbench.errors import DataError, QueryError
from workbench.kernels import combine

Lower = Callable[[Sequence[Fields], Operands, pa.DataType, str], pa.Array]


def _floats(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, "float64", 0.0) for name in names)


KINDS = (
    PartialKind(
        "count",
        (Field("n", "int64", 0),),
        (),
        combine.lift_value,
        combine.combine_add,
        invert=combine.invert_add,
    ),
    PartialKind(
        "sum_float",
        (Field("sum", "float64", 0.0),),
        ("float64",),
        combine.lift_value,
        combine.combine_add,
        exact=False,
        fast="sum_fast",
    ),
    PartialKind(
        "sum_fast",
        (Field("finite", "float64", 0.0), Field("infinite", "int64", 0)),
        ("float64",),
        combine.lift_fast,
        combine.combine_fast,
        invert=combine.invert_fast,
        exact=False,
        rounding=True,
    ),
    PartialKind(
        "sum_int",
        (Field("low", "uint64", 0), Field("high", "int64", 0)),
        ("int64",),
        combine.lift_wide,
        combine.combine_wide,
        invert=combine.invert_wide,
    ),
    PartialKind(
        "moments",
        _floats("n", "mean", "m2"),
        ("float64",),
        combine.lift_moments,
        combine.combine_moments,
        exact=False,
    ),
    PartialKind(
        "moments4",
        _floats("n", "mean", "m2", "m3", "m4"),
        ("float64",),
        combine.lift_moments4,
        combine.combine_moments4,
        extends="moments",
        exact=False,
    ),
    PartialKind(
        "comoments",
        _floats("n", "mean_x", "mean_y", "c_xy", "m2_x", "m2_y"),
        ("float64", "float64"),
        combine.lift_comoments,
        combine.combine_comoments,
        exact=False,
    ),
    PartialKind(
        "product",
        (Field("mantissa", "float64", 0.5), Field("exponent", "int64", 1)),
        ("float64",),
        combine.lift_product,
        combine.combine_product,
        exact=False,
    ),
)


def _sum_type(operands: Operands) -> pa.DataType:
    if is_.is_decimal128(operands.types[0]):
        return sum_type(operands.types[0])
    return pa.int64() if is_.is_integer(number(operands)) else pa.float64()


def _sum_parts(operands: Operands) -> tuple[Part, ...]:
    if is_wide(operands.types[0]):
        return (*(Part("sum_int", words=(word,)) for word in Word), Part("count"))
    return parts("sum_*", "count")(operands)


def _count_type(operands: Operands) -> pa.DataType:
    return pa.int64()


def _count_parts(operands: Operands) -> tuple[Part, ...]:
    return (Part("count", tuple(range(len(operands.types)))),)


def _lower_count(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    return pa.array(fields[0][0])


def _signed(low: Array) -> Array:
    return low.view(np.int64)


def _float_total(total: Fields) -> Array:
    """The sums of floats, from a partial of ``sum_float`` or of ``sum_fast``."""
    if len(total) == 1:
        return total[0]
    finite, counts = total
    if not counts.any():
        return finite
    plus, minus = counts % combine.MINUS > 0, counts // combine.MINUS > 0
    infinite = np.where(plus, np.where(minus, np.nan, np.inf), -np.inf)
    return np.where(counts == 0, finite, infinite)


def _lower_sum(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    if is_.is_floating(kind):
        return pa.array(_float_total(fields[0]), mask=fields[1][0] == 0)
    if is_.is_decimal128(kind):
        return lower_sums(fields, operands.types[0], kind, text)
    low, high = fields[0]
    overflow = high != _signed(low) >> np.int64(63)
    if overflow.any():
        raise DataError(
            f"integer overflow in `{text}`: the sum of a window does not fit into 64 bits",
            hint=f"use `try_sum` for NULL instead, or `{text.replace('(', '(CAST(', 1)[:-1]} AS DOUBLE))`",
        )
    return pa.array(_signed(low), mask=fields[1][0] == 0)


def _lower_try_sum(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    if is_.is_floating(kind):
        return _lower_sum(fields, operands, kind, text)
    if is_.is_decimal128(kind):
        return lower_sums(fields, operands.types[0], kind)
    low, high = fields[0]
    overflow = high != _signed(low) >> np.int64(63)
    return pa.array(_signed(low), mask=overflow | (fields[1][0] == 0))


def _mean_type(operands: Operands) -> pa.DataType:
    return mean_type(operands.types[0]) if is_.is_decimal128(operands.types[0]) else double(operands)


def _lower_avg(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    if is_.is_decimal128(kind):
        return lower_means(fields, operands.types[0], kind, text)
    total, count = fields[0], fields[1][0]
    if total[0].dtype.kind == "f":
        value = _float_total(total)
    else:  # 128 bits: where the high word only repeats the sign, the low word is the whole number
        low, high = total
        narrow = high == _signed(low) >> np.int64(63)
        value = np.where(narrow, _signed(low).astype(np.float64), high * 2.0**64 + low)
    if count.all():  # the quotients as they are, no copy beside a mask
        return pa.array(value / count)
    return pa.array(value / np.maximum(count, 1), mask=count == 0)


def _moment(sample: bool, root: bool) -> Lower:
    """Variance (or its root) from the moments: M2 / n, or M2 / (n - 1) of a sample, NULL below 1 or 2 values."""

    def lower(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
        m2, count = fields[0][2], fields[1][0]
        divisor = count - int(sample)
        value = m2 / np.maximum(divisor, 1)
        return pa.array(np.sqrt(value) if root else value, mask=divisor < 1)

    return lower


def _divided(above: Array, below: Array, empty: Array) -> pa.Array:
    """The quotients; NULL where ``empty`` or where the divisor is 0, NaN where a part is NaN."""
    none = empty | (below == 0)
    with np.errstate(all="ignore"):
        return pa.array(above / np.where(none, 1.0, below), mask=none)


def _lower_skewness(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    """sqrt(n) * M3 / M2**1.5; powers are taken of the deviation's own size, so that they neither wrap nor vanish."""
    (n, _, m2, m3, _), count = fields[0], fields[1][0]
    with np.errstate(all="ignore"):
        return _divided(np.sqrt(n) * (m3 / np.where(m2 == 0, 1.0, m2)), np.sqrt(m2), count == 0)


def _lower_kurtosis(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    (n, _, m2, _, m4), count = fields[0], fields[1][0]
    with np.errstate(all="ignore"):
        ratio = n * (m4 / np.where(m2 == 0, 1.0, m2))
        return _divided(ratio - 3.0 * m2, m2, count == 0)


def _covariance(sample: bool) -> Lower:
    def lower(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
        divisor = fields[1][0] - int(sample)
        return pa.array(fields[0][3] / np.maximum(divisor, 1), mask=divisor < 1)

    return lower


def _lower_corr(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    (_, _, _, xy, xx, yy), count = fields[0], fields[1][0]
    with np.errstate(all="ignore"):
        return _divided(xy, np.sqrt(xx) * np.sqrt(yy), count < 2)


def _lower_product(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    mantissa, exponent = fields[0]
    with np.errstate(all="ignore"):
        value = np.ldexp(mantissa, np.clip(exponent, -3000, 3000).astype(np.int32))
    return pa.array(value, mask=fields[1][0] == 0)


def _geometric_parts(operands: Operands) -> tuple[Part, ...]:
    return (Part("product"), Part("count"), Part("count", below=0.0))


def _lower_geometric(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    """exp(log(product) / n); the product's sign says nothing about how many values were negative, so they count."""
    (mantissa, exponent), count, negative = fields[0], fields[1][0], fields[2][0]
    with np.errstate(all="ignore"):
        logarithm = (np.log(np.abs(mantissa)) + exponent * np.log(2.0)) / np.maximum(count, 1)
        value = np.where(negative > 0, np.nan, np.exp(logarithm))
    return pa.array(value, mask=count == 0)


def _truth_parts(operands: Operands) -> tuple[Part, ...]:
    return (Part("count", only_true=True), Part("count"))


def _lower_and(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    true, count = fields[0][0], fields[1][0]
    return pa.array(true == count, mask=count == 0)


def _lower_or(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    return pa.array(fields[0][0] > 0, mask=fields[1][0] == 0)


#: More bars than a plot has room for; each is a count of its own in every slice.
MOST_BINS = 1_000


def edges(operands: Operands) -> tuple[float, ...]:
    """The edges of a histogram's bins, ascending: given as an array, or evenly from low to high."""
    number(operands)
    if isinstance(operands.constant(1), tuple):
        if len(operands.types) != 2:
            raise QueryError("`histogram` takes an array of edges alone", hint=_HISTOGRAM_HINT)
        found = tuple(operands.constant(1))
    else:
        if len(operands.types) != 4:
            raise QueryError("`histogram` takes low, high and the number of bins", hint=_HISTOGRAM_HINT)
        low, high, bins = operands.constants[1:4]
        if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MOST_BINS:
            raise QueryError(f"the number of bins must be 1 to {MOST_BINS}, got `{bins}`", hint=_HISTOGRAM_HINT)
        found = (low, high)
    if not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in found):
        raise QueryError("the edges of a histogram must be numbers", hint=_HISTOGRAM_HINT)
    if len(operands.types) == 4:
        found = (*(low + (high - low) * step / bins for step in range(bins)), high)
    if len(found) < 2 or not all(a < b for a, b in pairwise(found)):
        raise QueryError("the edges of a histogram must ascend, two at least", hint=_HISTOGRAM_HINT)
    return found


_HISTOGRAM_HINT = "such as `histogram(x, 0, 100, 10)` or `histogram(x, array(0, 10, 100))`"


def _histogram_type(operands: Operands) -> pa.DataType:
    edges(operands)
    return pa.list_(pa.int64())


def _histogram_parts(operands: Operands) -> tuple[Part, ...]:
    return (*(Part("count", below=float(edge)) for edge in edges(operands)), Part("count"))


def _lower_histogram(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    """Differences of the counts below each edge: below the first, one a bin, from the last on (NaN too)."""
    below = np.stack([np.zeros_like(fields[0][0]), *(field[0] for field in fields)], axis=1)
    counts = np.diff(below, axis=1)
    offsets = np.arange(len(counts) + 1, dtype=np.int32) * counts.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(counts.ravel())).cast(kind)


def _family() -> list[Aggregate]:
    one, two, algebraic, distributive = (1, 1), (2, 2), Family.ALGEBRAIC, Family.DISTRIBUTIVE
    moments = parts("moments", "count")
    moments4, comoments = parts("moments4", "count"), parts("comoments", "count")
    true = (Part("count", only_true=True),)
    return [
        Aggregate("count", (0, 1), distributive, _count_type, _count_parts, _lower_count),
        Aggregate("count_if", one, distributive, _count_if_type, lambda operands: true, _lower_count),
        Aggregate("sum", one, distributive, _sum_type, _sum_parts, _lower_sum),
        Aggregate("try_sum", one, distributive, _sum_type, _sum_parts, _lower_try_sum),
        Aggregate("avg", one, algebraic, _mean_type, _sum_parts, _lower_avg),
        Aggregate("var_samp", one, algebraic, double, moments, _moment(True, False)),
        Aggregate("var_pop", one, algebraic, double, moments, _moment(False, False)),
        Aggregate("stddev_samp", one, algebraic, double, moments, _moment(True, True)),
        Aggregate("stddev_pop", one, algebraic, double, moments, _moment(False, True)),
        Aggregate("skewness", one, algebraic, double, moments4, _lower_skewness),
        Aggregate("kurtosis", one, algebraic, double, moments4, _lower_kurtosis),
        Aggregate("covar_samp", two, algebraic, double, comoments, _covariance(True)),
        Aggregate("covar_pop", two, algebraic, double, comoments, _covariance(False)),
        Aggregate("corr", two, algebraic, double, comoments, _lower_corr),
        Aggregate("product", one, distributive, double, parts("product", "count"), _lower_product),
        Aggregate("geometric_mean", one, algebraic, double, _geometric_parts, _lower_geometric),
        Aggregate("bool_and", one, distributive, condition, _truth_parts, _lower_and),
        Aggregate("bool_or", one, distributive, condition, _truth_parts, _lower_or),
        Aggregate(
            "histogram",
            (2, 4),
            algebraic,
            _histogram_type,
            _histogram_parts,
            _lower_histogram,
            constant_from=1,
        ),
    ]


def _count_if_type(operands: Operands) -> pa.DataType:
    condition(operands)
    return pa.int64()


AGGREGATES = tuple(_family())
ALIASES = {
    "mean": "avg",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
}
