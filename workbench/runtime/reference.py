"""The oracle: every window recomputed from its own rows, in plain Python, nothing shared.

For any workload, split into micro-batches and order of arrival, the final results of every fast path must equal
what stands here. It is written to be read, not to be quick: rows are Python values, a window is a list of rows,
an aggregate is a few lines of the textbook.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from workbench.errors import DataError
from workbench.logical import AggregateCall, Expression, Query, Window, Workload, aggregate_calls
from workbench.runtime.expressions import evaluate, evaluate_filter

Row = dict[Expression, Any]
#: Final values by (level, key, window start in microseconds).
Answer = dict[tuple[int, tuple[Any, ...], int], tuple[Any, ...]]


def reference(workload: Workload, batches: Sequence[pa.Table]) -> tuple[dict[str, Answer], dict[str, int]]:
    """Final results of every query after the end of the stream, and its late rows.

    A row counts in a window unless the watermark that held before its micro-batch had passed the window's end.
    """
    answers, late = {}, {}
    for query in workload.queries:
        answers[query.name], late[query.name] = _query(query, batches)
    return answers, late


def _query(query: Query, batches: Sequence[pa.Table]) -> tuple[Answer, int]:
    members: dict[tuple[int, tuple[Any, ...], int], list[Row]] = defaultdict(list)
    late, latest = 0, None
    for batch in batches:
        watermark = -math.inf if latest is None else latest - query.stream.delay
        for time, key, row in _rows(query, batch):
            missed = False
            for level, window in enumerate(query.windows):
                for start in starts_containing(window, time):
                    if start + window.size <= watermark:
                        missed = True
                    else:
                        members[level, key, start].append(row)
            late += missed
        times = [time for time in _times(query, batch) if time is not None]
        latest = max(times if latest is None else [*times, latest], default=latest)
    answer = {}
    for place, rows in members.items():
        values = _values(query, place[1], rows)
        if values is not None:
            answer[place] = values
    return answer, late


def starts_containing(window: Window, time: int) -> Iterable[int]:
    """Starts of the windows ``[start, start + size)`` that contain a time, latest first."""
    start = (time - window.offset) // window.slide * window.slide + window.offset
    while start + window.size > time:
        yield start
        start -= window.slide


def _times(query: Query, batch: pa.Table) -> list[int | None]:
    column = batch.column(query.stream.time)
    return list(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist())


def _rows(query: Query, batch: pa.Table) -> Iterable[tuple[int, tuple[Any, ...], Row]]:
    """Time, key and the values of all aggregate arguments of every row that passes the filter."""
    arguments = {argument for call in _calls(query) for argument in call.arguments}
    for part in batch.combine_chunks().to_batches():
        kept = [True] * len(part)
        if query.where is not None:
            kept = evaluate_filter(query.where, part).to_pylist()
        keys = [evaluate(named.expression, part).to_pylist() for named in query.keys]
        columns = {argument: evaluate(argument, part).to_pylist() for argument in arguments}
        for index, time in enumerate(_times(query, pa.table(part))):
            if kept[index] and time is not None:
                yield time, tuple(key[index] for key in keys), {a: column[index] for a, column in columns.items()}


def _calls(query: Query) -> list[AggregateCall]:
    expressions = [named.expression for named in query.values]
    expressions += [query.having] if query.having is not None else []
    return [call for expression in expressions for call in aggregate_calls(expression)]


def _values(query: Query, key: tuple[Any, ...], rows: list[Row]) -> tuple[Any, ...] | None:
    computed = {named.expression: value for named, value in zip(query.keys, key, strict=True)}
    computed |= {call: _aggregate(call, rows) for call in _calls(query)}
    if query.having is not None and not _scalar(query.having, computed):
        return None
    return tuple(_scalar(named.expression, computed) for named in query.values)


def _scalar(expression: Expression, computed: dict[Expression, Any]) -> Any:
    """The value of an expression over computed keys and aggregates."""
    if expression in computed:
        return computed[expression]
    columns = {node: pa.array([value], node.type) for node, value in computed.items()}
    return evaluate(expression, columns, 1)[0].as_py()


def _aggregate(call: AggregateCall, rows: list[Row]) -> Any:
    if not call.arguments:
        return len(rows)
    values = [row[call.arguments[0]] for row in rows]
    return _TEXTBOOK[call.function]([value for value in values if value is not None])


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
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
    return (sum(values) if isinstance(values[0], int) else float_sum(values)) / len(values)


def _extreme(pick: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def extreme(values: list[Any]) -> Any:
        if any(value != value for value in values):
            return math.nan
        return pick(values) if values else None

    return extreme


def _range(values: list[Any]) -> Any:
    if not values:
        return None
    return _extreme(max)(values) - _extreme(min)(values)


def _variance(values: list[Any], sample: bool) -> Any:
    divisor = len(values) - sample
    if divisor < 1:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / divisor


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


_TEXTBOOK: dict[str, Callable[[list[Any]], Any]] = {
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
}
