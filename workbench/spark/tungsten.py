"""Level 1 "tungsten": Spark's own hash aggregation by slice and key, before anything crosses to Python.

For batch DataFrames, where an aggregation has no state. Only (slice, key) partials cross then, so it pays where a
slice and key has several rows. Every partial that it offers is one that Spark computes to the same value: integers
exactly, in two halves that cannot overflow; extremes where NaN is NaN, which Spark's `min` would pass over; moments
by the same recurrences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from workbench.algebra import PartialKind
from workbench.algebra.partials import Fields
from workbench.errors import QueryError
from workbench.logical import Call, Column, Expression, Literal
from workbench.plan import Fold, Partial, SharedPlan
from workbench.runtime import wire
from workbench.runtime.keys import number_keys
from workbench.runtime.level1 import split
from workbench.spark.frames import MESSAGES, column, joined, messages
from workbench.spark.spool import Spool
from workbench.spark.worker import settle

#: Rows of a slice and key where nobody has counted them.
USUAL_ROWS = 10

_SLICE = "winquery_slice"
_HALF = 32
_PACK_ROWS = 1 << 20
#: Nanoseconds of CPU, measured on a busy 2-core cloud machine (docs/decisions/0006-dataframes-of-the-user.md): a row
#: through Spark's aggregation, a row to Python and folded there, a (slice, key) partial to Python. Only their
#: relations matter.
ROW_TUNGSTEN, ROW_ARROW, PARTIAL_CROSSES = 940.0, 2_100.0, 7_800.0
#: Comparisons and tests that mean the same in Spark and here, on values that are no floats and no times.
_PUSHED = {"and", "or", "not", "is_null", "is_not_null", "equal", "not_equal"}
_PUSHED |= {"less", "less_equal", "greater", "greater_equal", "in"}


@dataclass(frozen=True)
class _Offer:
    """How Spark computes a kind: ``width`` aggregates of one column, and these as our fields.

    What packs them in a task has no Spark context, so it cannot ask ``columns`` for their number.
    """

    width: int
    columns: Callable[[SparkColumn], list[SparkColumn]]
    fields: Callable[[PartialKind, list[pa.Array]], Fields]


def _plain(kind: PartialKind, columns: list[pa.Array]) -> Fields:
    """Fields as they come; where no row had a value, the identity."""
    return tuple(
        column.fill_null(field.identity).to_numpy(zero_copy_only=False).astype(field.dtype)
        for column, field in zip(columns, kind.fields, strict=True)
    )


def _wide(kind: PartialKind, columns: list[pa.Array]) -> Fields:
    """The sums of the upper and lower halves of integers as one of 128 bits."""
    upper, lower = (column.fill_null(0).to_numpy(zero_copy_only=False) for column in columns)
    low = (upper << _HALF).view(np.uint64) + lower.view(np.uint64)
    return low, (upper >> _HALF) + (low < lower.view(np.uint64))


def _moments(kind: PartialKind, columns: list[pa.Array]) -> Fields:
    n, mean, variance = (column.fill_null(0).to_numpy(zero_copy_only=False).astype(float) for column in columns)
    return n, mean, variance * n


def _extreme(function: Callable[[SparkColumn], SparkColumn], kind: str) -> _Offer:
    return _Offer(1, lambda x: [function(x.cast(kind))], _plain)


_OFFERS = {
    "sum_float": _Offer(1, lambda x: [F.sum(x.cast("double"))], _plain),
    "sum_int": _Offer(
        2,
        lambda x: [
            F.sum(F.shiftright(x.cast("bigint"), _HALF)),
            F.sum(x.cast("bigint").bitwiseAND(F.lit((1 << _HALF) - 1))),
        ],
        _wide,
    ),
    "moments": _Offer(
        3,
        lambda x: [F.count(x), F.avg(x.cast("double")), F.var_pop(x.cast("double"))],
        _moments,
    ),
    "min_int": _extreme(F.min, "bigint"),
    "max_int": _extreme(F.max, "bigint"),
    "min_float": _extreme(lambda x: F.when(F.max(F.isnan(x)), F.lit(float("nan"))).otherwise(F.min(x)), "double"),
    "max_float": _extreme(F.max, "double"),
}


def why_not(plan: SharedPlan) -> str | None:
    """Why a plan cannot run this way; None where it can."""
    if len(plan.folds) != 1:
        return f"{len(plan.folds)} folds would read the rows as often"
    (fold,) = plan.folds
    if fold.columns is not None or fold.gaps or plan.listed:
        return "slices depend on more than the time of a row"
    if plan.stream.future is not None:
        return "rows far in the future are told apart one by one"
    for named in fold.keys:
        if not _same_in_spark(named.expression):
            return f"the key `{named.expression}` is no plain column"
    if fold.where is not None and not _pushed(fold.where):
        return f"the filter `{fold.where}` is not one that Spark is known to answer alike"
    for partial in fold.partials:
        count = partial.kind == "count" and all(isinstance(each, Column) for each in partial.arguments)
        if not count and (partial.kind not in _OFFERS or not _numbers(partial.arguments)):
            return f"Spark has nothing equal to `{partial}`"
    return None


def break_even() -> float:
    """Rows of a slice and key from which on this costs less than to send every row to Python."""
    return PARTIAL_CROSSES / (ROW_ARROW - ROW_TUNGSTEN)


def chosen(plan: SharedPlan, asked: str) -> tuple[str, str]:
    """The variant of level 1 for a plan over a batch DataFrame, and why. Raises QueryError for one it cannot be."""
    reason = why_not(plan)
    if asked == "tungsten" and reason is not None:
        raise QueryError(f"level 1 `tungsten` cannot run this plan: {reason}", hint="leave `level1` out, or `arrow`")
    if reason is not None or asked != "auto":
        return ("arrow", f"tungsten cannot: {reason}") if reason and asked == "auto" else (asked, "as asked for")
    even = break_even()
    best = "tungsten" if even <= USUAL_ROWS else "arrow"
    return best, f"Spark's own sums cost less from {even:.0f} rows of a slice and key on, {USUAL_ROWS} are assumed"


def tungsten(plan: SharedPlan, rows: DataFrame, keys: tuple[int, ...], spool: Spool) -> DataFrame:
    """The messages of level 1 for a plan that :func:`why_not` has nothing against."""
    (fold,) = plan.folds
    stamp = F.unix_micros(column(plan.stream.time))
    edges = [stamp - F.pmod(stamp - F.lit(edge.phase), F.lit(edge.period)) for edge in plan.edges]
    start = F.greatest(*edges) if len(edges) > 1 else edges[0]
    by = [column(_name(named.expression)).alias(f"k{place}") for place, named in enumerate(fold.keys)]
    kept = rows.where(column(plan.stream.time).isNotNull())
    if fold.where is not None:
        kept = kept.where(F.expr(str(fold.where)))
    wanted = [each for partial in fold.partials for each in _aggregates(partial)]
    named = [each.alias(f"p{place}") for place, each in enumerate(wanted)]
    return kept.groupBy(start.alias(_SLICE), *by).agg(*named).mapInArrow(_Pack(fold, keys, spool), MESSAGES)


class _Pack:
    """Groups of Spark's into a message for each bucket, for ``mapInArrow``."""

    def __init__(self, fold: Fold, keys: tuple[int, ...], spool: Spool) -> None:
        self._fold = fold
        self._keys = keys
        self._spool = spool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        parts: list[list[pa.RecordBatch]] = [[] for _ in self._keys]
        for batch in joined(batches, _PACK_ROWS):
            for bucket, tables in self._split(batch):
                parts[bucket] += tables
        head = {"rows": 0, "max_event": None, "ahead": 0, "finish": False}
        payloads = [wire.pack(wire.Kind.SLICES, {**head, "folds": [0] * (len(part) // 2)}, part) for part in parts]
        yield messages(self._keys, map(self._spool.put, payloads))

    def _split(self, batch: pa.RecordBatch) -> Iterable[tuple[int, list[pa.RecordBatch]]]:
        width = len(self._fold.keys)
        starts, keys, values = batch.column(0), batch.columns[1 : width + 1], batch.columns[width + 1 :]
        code, distinct = np.zeros(len(batch), np.int64), [pa.array([0], pa.int8())]
        if keys:
            kinds = [named.expression.type for named in self._fold.keys]
            codes, distinct = number_keys([k.cast(t) for k, t in zip(keys, kinds, strict=True)], len(batch))
            code = codes.rows()
        columns: list[pa.Array] = []
        for partial in self._fold.partials:
            kind, offer = partial.monoid, _OFFERS.get(partial.kind)
            own = offer.width if offer else 1
            fields = (offer.fields if offer else _plain)(kind, values[:own])
            columns += [field.to_arrow(cells) for field, cells in zip(kind.fields, fields, strict=True)]
            values = values[own:]
        return split(code, distinct, starts.to_numpy(), columns, len(self._keys))


def _aggregates(partial: Partial) -> list[SparkColumn]:
    """Spark's aggregates that a partial is made of."""
    names = [column(_name(each)) for each in partial.arguments]
    if partial.kind != "count":
        return _OFFERS[partial.kind].columns(names[0])
    if not names:
        return [F.count(F.lit(1))]
    known = names[0].isNotNull()
    for name in names[1:]:
        known = known & name.isNotNull()
    return [F.count(F.when(known, F.lit(1)))]


def _name(expression: Expression) -> str:
    assert isinstance(expression, Column)
    return expression.name


def _same_in_spark(expression: Expression) -> bool:
    """Whether a column has one notion of equality in both: no floats (NaN, zeros), nothing nested."""
    kind = expression.type
    known = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
    return isinstance(expression, Column) and (known or pa.types.is_date(kind))


def _numbers(arguments: tuple[Expression, ...]) -> bool:
    return len(arguments) == 1 and all(
        isinstance(each, Column) and (pa.types.is_integer(each.type) or pa.types.is_floating(each.type))
        for each in arguments
    )


def _pushed(expression: Expression) -> bool:
    """Whether Spark answers a condition as we do."""
    match expression:
        case Column():
            return True
        case Literal():
            return isinstance(expression.value, bool | int | str)
        case Call(function=name, arguments=arguments) if name in _PUSHED:
            asks = name in ("is_null", "is_not_null")
            plain = all(asks or _comparable(each) for each in arguments)
            return plain and all(map(_pushed, arguments))
    return False


def _comparable(expression: Expression) -> bool:
    kind: Any = expression.type
    return pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
