"""Lowering: the partials of windows into the result columns of a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra import AGGREGATES
from workbench.logical import Expression
from workbench.plan import QueryPlan
from workbench.results import Level, ResultBatch, Schema, Status
from workbench.runtime.expressions import evaluate, evaluate_filter

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


def result_schema(entry: QueryPlan) -> Schema:
    """The shape of a query's results."""
    query = entry.query
    return Schema(
        query.name,
        tuple(Level(w.label, w.size, w.slide, w.offset) for w in query.windows),
        tuple((named.name, named.expression.type) for named in query.keys),
        tuple((named.name, named.expression.type) for named in query.values),
    )


def lower(
    entry: QueryPlan, level: int, starts: Array, keys: list[pa.Array], partials: Mapping[int, Fields], status: Array
) -> ResultBatch:
    """Result rows of one level from the partials of their windows; all arrays are one entry a row.

    A window that HAVING turns down is reported as ABSENT, so that an earlier provisional result is withdrawn.
    """
    query = entry.query
    columns: dict[Expression, pa.Array] = {
        named.expression: array for named, array in zip(query.keys, keys, strict=True)
    }
    for ingredient in entry.ingredients:
        call = ingredient.call
        fields = [partials[position] for position in ingredient.partials]
        columns[call] = AGGREGATES[call.function].lower(fields, call.operands, call.type, str(call))
    values = tuple(
        evaluate(named.expression, columns, len(starts)).cast(named.expression.type) for named in query.values
    )
    if query.having is not None:
        kept = evaluate_filter(query.having, columns, len(starts)).to_numpy(zero_copy_only=False)
        status = np.where(kept, status, Status.ABSENT).astype(np.int8)
    return ResultBatch(level, starts, tuple(keys), values, status, np.zeros(len(starts), np.int16))
