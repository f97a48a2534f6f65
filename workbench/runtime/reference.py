"""The oracle: every window recomputed from its own rows, in plain Python, nothing shared.

For any workload, split into micro-batches and order of arrival, the final results of every fast path must equal
what stands here. It is written to be read, not to be quick: rows are Python values, a window is a list of rows,
an aggregate is a few lines of the textbook.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from workbench.logical import (
    AggregateCall,
    AnyWindow,
    Column,
    EachRow,
    Expression,
    Fill,
    Literal,
    MeasureWindow,
    Query,
    Workload,
    aggregate_calls,
    beside_frames,
    window_reads,
)
from workbench.logical.joins import Join, TableColumn, joins_of
from workbench.runtime.expressions import evaluate, evaluate_filter
from workbench.runtime.reference_over import each_row
from workbench.runtime.reference_windows import Arrival, Row, backward, following, windows_of
from workbench.runtime.textbook import depends_on_order, recompute

#: Final values by (level, key, window start, window end, which of the windows with these).
Answer = dict[tuple[int, tuple[Any, ...], int, int, int], tuple[Any, ...]]
#: A window: key, start, end, rows, whether HAVING keeps it, values.
Told = tuple[tuple[Any, ...], int, int, list[Row], bool, tuple[Any, ...]]


def reference(workload: Workload, batches: Sequence[pa.Table]) -> tuple[dict[str, Answer], dict[str, int]]:
    """Final results of every query after the end of the stream, and its late rows."""
    answers, late = {}, {}
    for query in workload.queries:
        answers[query.name], late[query.name] = _query(query, batches)
    return answers, late


def gone_back(workload: Workload, batches: Sequence[pa.Table]) -> dict[str, int]:
    """How many rows of the queries along a measure go back from an earlier one, where there are any."""
    found = {}
    for query in workload.queries:
        for window in query.windows:
            if isinstance(window, MeasureWindow):
                found[query.name] = backward(window, list(_arrivals(query, batches)), query.stream.lateness)
    return {name: count for name, count in found.items() if count}


def _query(query: Query, batches: Sequence[pa.Table]) -> tuple[Answer, int]:
    arrivals, missed = list(_arrivals(query, batches)), set()
    if EachRow() in query.windows:
        return each_row(query, arrivals, _scalar)
    answer: Answer = {}
    ordered = any(depends_on_order(call.function) for call in _calls(query))
    seen: Counter[Any] = Counter()
    for level, window in enumerate(query.windows):
        windows, late = windows_of(window, arrivals, query.stream.lateness, ordered)
        missed |= late
        told = [(*found, *_values(query, found[0], found[-1])) for found in windows]
        if query.fill is not None:
            times = [time for batch in batches for time in _times(query, batch) if time is not None]
            told += list(_filled(query, query.fill, window, told, max(times, default=0)))
        for key, start, end, _, kept, values in told:
            if kept:
                place = level, key, start, end
                answer[*place, seen[place]] = values
                seen[place] += 1
    return answer, len(missed)


def _filled(query: Query, fill: Fill, window: AnyWindow, told: list[Told], latest: int) -> Iterable[Told]:
    """The windows without rows of every key, from its first one with rows to the last that begins by ``latest``."""
    by_key: dict[tuple[Any, ...], dict[tuple[int, int], tuple[Any, ...]]] = {}
    for key, start, end, _, _, values in told:
        by_key.setdefault(key, {})[start, end] = values
    for key, own in by_key.items():
        place: tuple[int, int] | None = min(own)
        previous = own[min(own)]
        while place is not None and place[0] <= latest:
            if place in own:
                previous = own[place]
            else:
                kept, values = _values(query, key, [])
                instead = {Fill.NULL: values, Fill.ZERO: [0] * len(values), Fill.PREVIOUS: previous}[fill]
                values = tuple(
                    other if value is None else value for value, other in zip(values, instead, strict=True)
                )
                yield key, *place, [], kept, values
            place = following(window, *place)


def _arrivals(query: Query, batches: Sequence[pa.Table]) -> Iterable[Arrival]:
    """The rows of each micro-batch that pass the filter, with the watermark that held before it."""
    latest: int | None = None
    number = 0
    for batch in batches:
        watermark = -math.inf if latest is None else latest - query.stream.delay
        rows = [replace(row, number=number + place) for place, row in enumerate(_rows(query, batch))]
        number += len(rows)
        yield Arrival(watermark, rows)
        times = [time for time in _times(query, batch) if time is not None]
        latest = max(times if latest is None else [*times, latest], default=latest)


def _times(query: Query, batch: pa.Table) -> list[int | None]:
    column = batch.column(query.stream.time)
    return list(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist())


def _rows(query: Query, batch: pa.Table) -> Iterable[Row]:
    """Every row that passes the filter, with all that the query reads of it."""
    read = {argument for call in _calls(query) for argument in call.arguments}
    for window in query.windows:
        read |= set(window_reads(window))
    if EachRow() in query.windows:
        leaves = {leaf for named in query.values for leaf in beside_frames(named.expression)}
        read |= {leaf for leaf in leaves if isinstance(leaf, Column)}
    for part in batch.combine_chunks().to_batches():
        for join in joins_of(query.where):
            part = _nested_loops(part, join)
        kept = [True] * len(part)
        if query.where is not None:
            kept = evaluate_filter(query.where, part).to_pylist()
        keys = [evaluate(named.expression, part).to_pylist() for named in query.keys]
        columns = {argument: _values_of(argument, part) for argument in read}
        for index, time in enumerate(_times(query, pa.table(part))):
            if kept[index] and time is not None:
                values = {argument: column[index] for argument, column in columns.items()}
                yield Row(time, tuple(key[index] for key in keys), values)


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


def _values(query: Query, key: tuple[Any, ...], rows: list[Row]) -> tuple[bool, tuple[Any, ...]]:
    """Whether HAVING keeps a window, and its values."""
    computed = {named.expression: value for named, value in zip(query.keys, key, strict=True)}
    computed |= {call: _aggregate(call, rows) for call in _calls(query)}
    kept = query.having is None or bool(_scalar(query.having, computed))
    return kept, tuple(_scalar(named.expression, computed) for named in query.values)


def _scalar(expression: Expression, computed: dict[Expression, Any]) -> Any:
    """The value of an expression over computed keys and aggregates."""
    if expression in computed:
        return computed[expression]
    columns = {node: pa.array([value], node.type) for node, value in computed.items()}
    return evaluate(expression, columns, 1)[0].as_py()


def _aggregate(call: AggregateCall, rows: list[Row]) -> Any:
    values = [(row.time, tuple(row.values[argument] for argument in call.arguments)) for row in rows]
    return recompute(call.function, call.operands, values)
