"""The oracle: every window recomputed from its own rows, in plain Python, nothing shared.

For any workload, split into micro-batches and order of arrival, the final results of every fast path must equal
what stands here. It is written to be read, not to be quick: rows are Python values, a window is a list of rows,
an aggregate is a few lines of the textbook.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from workbench.logical import AggregateCall, Expression, Literal, Query, Window, Workload, aggregate_calls
from workbench.logical.joins import Join, TableColumn, joins_of
from workbench.runtime.expressions import evaluate, evaluate_filter
from workbench.runtime.textbook import recompute

#: Event time in microseconds and the values of all aggregate arguments.
Row = tuple[int, dict[Expression, Any]]
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
                        members[level, key, start].append((time, row))
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


def _rows(query: Query, batch: pa.Table) -> Iterable[tuple[int, tuple[Any, ...], dict[Expression, Any]]]:
    """Time, key and the values of all aggregate arguments of every row that passes the filter."""
    arguments = {argument for call in _calls(query) for argument in call.arguments}
    for part in batch.combine_chunks().to_batches():
        for join in joins_of(query.where):
            part = _nested_loops(part, join)
        kept = [True] * len(part)
        if query.where is not None:
            kept = evaluate_filter(query.where, part).to_pylist()
        keys = [evaluate(named.expression, part).to_pylist() for named in query.keys]
        columns = {argument: _values_of(argument, part) for argument in arguments}
        for index, time in enumerate(_times(query, pa.table(part))):
            if kept[index] and time is not None:
                yield time, tuple(key[index] for key in keys), {a: column[index] for a, column in columns.items()}


def _nested_loops(part: pa.RecordBatch, join: Join) -> pa.RecordBatch:
    """Every row beside every row of the table that it matches."""
    table = join.table.open().to_pylist()
    keys = [evaluate(key, part).to_pylist() for key in join.keys]
    rows: list[int] = []
    partners: list[dict[str, Any]] = []
    for row, values in enumerate(zip(*keys, strict=True)):
        found = [line for line in table if all(map(_matches, values, (line[column] for column in join.columns)))]
        if not found and join.kind == "left":
            found = [dict.fromkeys(join.table.schema.names)]
        rows += [row] * len(found)
        partners += found
    joined = part.take(pa.array(rows, pa.int64()))
    for field in join.table.schema:
        stored = TableColumn(field.type, join, field.name).stored
        joined = joined.append_column(stored, pa.array([line[field.name] for line in partners], field.type))
    return joined


def _matches(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    return bool(left == right or (left != left and right != right))


def _values_of(argument: Expression, part: pa.RecordBatch) -> list[Any]:
    if isinstance(argument, Literal):
        return [argument.value] * len(part)
    return list(evaluate(argument, part).to_pylist())


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
    values = [(time, tuple(row[argument] for argument in call.arguments)) for time, row in rows]
    return recompute(call.function, call.operands, values)
