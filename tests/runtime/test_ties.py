"""Rows of equal time: their order is that of the values that the query reads, however they come.

::

    time    0     0     0     1     1
    x       1     4   NULL    2     3       ascending, NULL last
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
from answers import check
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CLOSE, SECOND, over_workloads, streams, workloads

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

#: Aggregates that tell rows of equal time apart.
ORDERED = ("first", "last", "m4", "min_by", "max_by", "mode")
#: Windows that do.
COUNTED = ("sliding", "session", "count", "last", "punctuation")

ROWS: list[tuple[int, int | None]] = [(0, 1), (0, 4), (0, None), (1, 2), (1, 3)]


@settings(max_examples=80, deadline=None)
@given(st.permutations(ROWS), st.lists(st.integers(0, 5), max_size=3))
def test_by_hand_in_any_order_and_split(rows: list[tuple[int, int | None]], cuts: list[int]) -> None:
    """The row before and the row itself, and windows of two rows; `first` and `last` go by time and value too."""
    times = pa.array([second * SECOND for second, _ in rows]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "x": pa.array([x for _, x in rows], pa.int64())})
    stream = Stream("s", table.schema, "ts", 5 * SECOND)
    over = "OVER (ORDER BY ts ROWS 1 PRECEDING)"
    sql = (
        f"SELECT x, first(x) {over} AS f, last(x) {over} AS l, sum(x) {over} AS t FROM s;"
        "SELECT first(x) AS f, last(x) AS l, sum(x) AS t FROM s GROUP BY count_window(2)"
    )
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    bounds = [0, *sorted(cuts), len(rows)]
    engine.run([table.slice(low, high - low) for low, high in pairwise(bounds)])
    each, twos = (picked(engine, name) for name in engine.results)
    assert each == [(1, 1, 1, 1), (4, 1, 4, 5), (None, 4, 4, 4), (2, 2, 2, 2), (3, 2, 3, 5)]
    assert twos == [(1, 4, 5), (2, 2, 2)]


def picked(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    """The values of the final results, in their order."""
    schema = engine.results[name].schema
    return [
        tuple(row[value] for value, _ in schema.values)
        for row in engine.results[name].table().to_pylist()
        if row["status"] == "final"
    ]


@settings(max_examples=100, deadline=None)
@given(over_workloads(names=ORDERED), streams(times=CLOSE), st.integers(1, 2))
def test_frames_equal_the_oracle(workload: Workload, batches: list[pa.Table], buckets: int) -> None:
    engine = Engine(compile_workload(workload), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)


@settings(max_examples=100, deadline=None)
@given(workloads(names=ORDERED, types=COUNTED), streams(times=CLOSE), st.integers(1, 2))
def test_windows_equal_the_oracle(workload: Workload, batches: list[pa.Table], buckets: int) -> None:
    engine = Engine(compile_workload(workload), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)
