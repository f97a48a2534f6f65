"""The same three-level dashboard in other stream processors of the Python index: Bytewax and Pathway, in process.

Each contestant reads the Parquet files of the recording, in a process of its own with two cores at its disposal, and
says how many windows there are and how many rows are in them, which must be as many as ours. The others are measured
on a part of the rows that lasts for seconds (they handle each row in each window it is in), ours on all of them;
speeds are rows a second. Both must be there: ``pip install 'winquery[peers]'``.

Apache Flink's Python API is not among them: its versions of Arrow and pandas need an environment of their own.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import spark_lab
from benchmarks.spark_lab import QUICK_ROWS
from benchmarks.workload import Bar, Figures, Workload

ROWS = 20_000_000
LEVELS = ("10 seconds / 1 second", "1 minute / 1 second", "10 minutes / 10 seconds")
PART = {"bytewax": 20_000, "pathway": 100_000}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ours(rows: int) -> dict[str, Any]:
    """Seconds for all rows, after a run over a twentieth of them."""
    session, paths = spark_lab.our_session(), spark_lab.recording(rows)
    compiled = spark_lab.plan(LEVELS)
    spark_lab.run_plan(session, compiled, paths[:1], spark_lab.Totals())
    begin = time.perf_counter()
    spark_lab.run_plan(session, compiled, paths, spark_lab.Totals())
    return {"seconds": time.perf_counter() - begin}


def part_of(rows: int, count: int) -> pa.Table:
    """The first ``count`` rows of the recording."""
    return pq.read_table(spark_lab.recording(rows)[0]).slice(0, count)


def spans() -> list[tuple[timedelta, timedelta]]:
    """Size and slide of each level."""
    found = []
    for level in LEVELS:
        size, slide = (timedelta(**{f"{unit}s": int(n)}) for n, unit in re.findall(r"(\d+) (second|minute)", level))
        found.append((size, slide))
    return found


def bytewax(rows: int, count: int) -> dict[str, Any]:
    """Bytewax: one dataflow with a sliding window operator for each level."""
    import bytewax.operators as op
    import bytewax.operators.windowing as win
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    table = part_of(rows, count)
    # It wants Python's own UTC.
    times = [stamp.replace(tzinfo=UTC) for stamp in table["ts"].to_pylist()]
    events = list(zip(times, table["key"].to_pylist(), table["x"].to_pylist(), strict=True))

    def fold(total: list[float], event: tuple[datetime, int, float]) -> list[float]:
        return [total[0] + event[2], max(total[1], event[2]), total[2] + 1]

    def merge(left: list[float], right: list[float]) -> list[float]:
        return [left[0] + right[0], max(left[1], right[1]), left[2] + right[2]]

    flow = Dataflow("dashboard")
    keyed = op.key_on("by_key", op.input("rows", flow, TestingSource(events, 1_000)), lambda event: str(event[1]))
    levels: list[list[Any]] = []
    for number, (size, slide) in enumerate(spans()):
        clock = win.EventClock(lambda event: event[0], timedelta(seconds=1))
        windower = win.SlidingWindower(length=size, offset=slide, align_to=EPOCH)
        found = win.fold_window(
            f"level{number}", keyed, clock, windower, lambda: [0.0, float("-inf"), 0.0], fold, merge
        )
        levels.append([])
        op.output(f"out{number}", found.down, TestingSink(levels[-1]))
    begin = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - begin
    totals = [[len(each), sum(int(value[1][2]) for _, value in each)] for each in levels]
    return {"seconds": seconds, "totals": totals}


def pathway(rows: int, count: int) -> dict[str, Any]:
    """Pathway: a table that is there at once, windowed by each level, and reduced."""
    import pathway as pw

    frame = part_of(rows, count).to_pandas()
    table = pw.debug.table_from_pandas(frame)
    totals = []
    for size, slide in spans():
        windows = table.windowby(table.ts, window=pw.temporal.sliding(hop=slide, duration=size), instance=table.key)
        reduced = windows.reduce(
            mean=pw.reducers.avg(pw.this.x), top=pw.reducers.max(pw.this.x), n=pw.reducers.count()
        )
        totals.append(reduced.reduce(windows=pw.reducers.count(), rows=pw.reducers.sum(pw.this.n)))
    found: dict[int, list[int]] = {}
    for level, each in enumerate(totals):

        def told(key: Any, row: dict[str, Any], time: int, is_addition: bool, level: int = level) -> None:
            if is_addition:
                found[level] = [row["windows"], row["rows"]]

        pw.io.subscribe(each, on_change=told)
    begin = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": time.perf_counter() - begin, "totals": [found[level] for level in sorted(found)]}


def expected(rows: int, count: int) -> list[list[int]]:
    """Windows and rows in them at each level, counted by pairs of row and window."""
    table = part_of(rows, count)
    times, keys = table["ts"].cast(pa.int64()).to_numpy(), table["key"].to_numpy()
    totals = []
    for size, slide in spans():
        size_us, slide_us = size // timedelta(microseconds=1), slide // timedelta(microseconds=1)
        pairs = {
            (int(key), at // slide_us - back)
            for at, key in zip(times.tolist(), keys, strict=True)
            for back in range(size_us // slide_us)
        }
        totals.append([len(pairs), len(times) * (size_us // slide_us)])
    return totals


CONTESTANTS: dict[str, Callable[[int, int], dict[str, Any]]] = {"bytewax": bytewax, "pathway": pathway}


def run(quick: bool) -> Figures:
    rows = QUICK_ROWS if quick else ROWS
    figures = {"rows_per_s": rows / spark_lab.child("spark_others", f"ours({rows})")["seconds"]}
    for name in CONTESTANTS:
        if importlib.util.find_spec(name) is None:
            raise RuntimeError(f"{name} is not installed: pip install 'winquery[peers]'")
        count = PART[name] // (20 if quick else 1)
        found = spark_lab.child("spark_others", f"{name}({rows}, {count})")
        if found["totals"] != (right := expected(rows, count)):
            raise AssertionError(f"{name} has {found['totals']}, not {right}")
        figures[f"{name}_rows_per_s"] = count / found["seconds"]
        figures[f"{name}_ratio"] = figures["rows_per_s"] / figures[f"{name}_rows_per_s"]
    return figures


WORKLOAD = Workload(
    name="spark-others",
    summary="three zoom levels by 1,000 keys, against Bytewax and Pathway (a part of the rows for those)",
    group="spark",
    run=run,
    repeats=1,
    bars=(Bar("bytewax_ratio", ">=", 1), Bar("pathway_ratio", ">=", 1)),
)
