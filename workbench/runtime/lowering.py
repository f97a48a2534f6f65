"""Lowering: the partials of windows into the result columns of a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra import AGGREGATES
from workbench.logical import AnyWindow, Band, Calendar, Cumulating, Expression, LastRows, MeasureWindow, Window
from workbench.plan import QueryPlan, grid_of
from workbench.results import Level, Schema, Status
from workbench.runtime.expressions import evaluate, evaluate_filter

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


def result_schema(entry: QueryPlan) -> Schema:
    """The shape of a query's results."""
    query = entry.query
    return Schema(
        query.name,
        tuple(map(_level, query.windows)),
        tuple((named.name, named.expression.type) for named in query.keys),
        tuple((named.name, named.expression.type) for named in query.values),
    )


def _level(window: AnyWindow) -> Level:
    match window:
        case Window():
            return Level(window.label, window.size, window.slide, window.offset)
        case Cumulating():
            return Level(window.label, window.size, 0)
        case Band():
            return Level(window.label, window.end - window.start, 0)
        case Calendar():
            start, end = (int(side[0]) for side in vars(grid_of(window).bounds(np.zeros(1, np.int64))).values())
            return Level(window.label, end - start, 0)
        case LastRows():
            return Level(window.label, window.every, 0)
        case MeasureWindow():
            return Level(window.label, window.size, 0, unit=window.unit)
    return Level(window.label, 0, 0)


def lower(
    entry: QueryPlan, keys: list[pa.Array], partials: Mapping[int, Fields], status: Array
) -> tuple[tuple[pa.Array, ...], Array]:
    """Value columns and statuses of result rows from the partials of their windows; all arrays are one entry a row.

    A window that HAVING turns down is reported as ABSENT, so that an earlier provisional result is withdrawn.
    """
    query, rows = entry.query, len(status)
    columns: dict[Expression, pa.Array] = {
        named.expression: array for named, array in zip(query.keys, keys, strict=True)
    }
    for ingredient in entry.ingredients:
        call = ingredient.call
        fields = [partials[position] for position in ingredient.partials]
        columns[call] = AGGREGATES[call.function].lower(fields, call.operands, call.type, str(call))
    values = tuple(evaluate(named.expression, columns, rows).cast(named.expression.type) for named in query.values)
    if query.having is not None:
        kept = evaluate_filter(query.having, columns, rows).to_numpy(zero_copy_only=False)
        status = np.where(kept, status, Status.ABSENT).astype(np.int8)
    return values, status
