"""OVER statements: run over a table in micro-batches, and beside Spark's batch answer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from answers import same
from strategies import SECOND

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine
from workbench.runtime.over_table import OverTable


def run(sql: str, table: pa.Table, cuts: tuple[int, ...] = (), delay: int = 0) -> tuple[Engine, list[dict[str, Any]]]:
    stream = Stream("s", table.schema, "ts", delay)
    engine = Engine(compile_workload(Workload(stream, tuple(parse_queries(sql, {"s": stream}, name="q")))))
    bounds = [0, *cuts, len(table)]
    engine.run([table.slice(a, b - a) for a, b in pairwise(bounds)])
    return engine, engine.results["q"].table().to_pylist()


def rows_at(seconds: list[int], **columns: list[Any]) -> pa.Table:
    times = pa.array([second * SECOND for second in seconds]).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, **columns})


def kept_for(frame: str) -> int:
    """How many rows are kept of two keys with 100 rows each, one a second, of which the last waits to pass."""
    table = rows_at(sorted(list(range(100)) * 2), k=["a", "b"] * 100, x=list(range(200)))
    stream = Stream("s", table.schema, "ts", 0)
    sql = f"SELECT sum(x) OVER (PARTITION BY k ORDER BY ts {frame}) AS t FROM s"
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    engine.step([table])
    (branch,) = engine.operators[0].state.branches
    return int(branch.tuples)


def with_peers(seed: int) -> pa.Table:
    """Random rows of three keys, some of one time, some without a value."""
    random, rows = np.random.default_rng(seed), 400
    return pa.table(
        {
            "ts": pa.array(random.integers(-60, 60, rows) * SECOND).cast(pa.timestamp("us", "UTC")),
            "k": random.choice(["a", "b", "c"], rows),
            "x": pa.array(random.integers(-99, 99, rows) / 8, mask=random.random(rows) < 0.2),
            "n": random.integers(-9, 9, rows),
        }
    )


def without_peers(table: pa.Table) -> pa.Table:
    """The first row of each key and time: Spark has no order of equal ones for frames by rows."""
    first = table.group_by(["ts", "k"], use_threads=False).aggregate([("x", "first"), ("n", "first")])
    return first.rename_columns(["ts", "k", "x", "n"])


def ones(rows: int) -> pa.Table:
    """Three keys in turn, a row a millisecond, ``x`` 1 in each: counts and sums are known by hand."""
    times = pa.array(np.arange(rows) // 3).cast(pa.timestamp("ms"))
    return pa.table({"ts": times, "k": np.arange(rows) % 3, "x": np.ones(rows, np.int64)})


def compare(spark: Any, table: pa.Table, frames: list[str], calls: list[str]) -> None:
    items = [
        f"{call} OVER (PARTITION BY k {frame}) AS v{i}_{j}"
        for i, frame in enumerate(frames)
        for j, call in enumerate(calls)
    ]
    sql = f"SELECT ts, k, x, n, {', '.join(items)} FROM rows"
    spark.createDataFrame(table).createOrReplaceTempView("rows")
    names = ["ts", "k", "x", "n", *(item.rpartition(" ")[2] for item in items)]
    theirs = spark.sql(sql).toArrow().to_pylist()
    engine, streamed = run(sql.replace("FROM rows", "FROM s"), table, (100, 250), delay=200 * SECOND)
    whole = OverTable(engine.plan).run(table)["q"].append_column("k", table["k"]).to_pylist()

    own = ("ts", "k", "x", "n")
    for ours in (streamed, whole):
        assert len(ours) == len(theirs) == len(table)
        mine, others = (sorted(rows, key=lambda row: str([row[name] for name in own])) for rows in (ours, theirs))
        for left, right in zip(mine, others, strict=True):
            assert all(same(left[name], right[name]) for name in names), (left, right)
