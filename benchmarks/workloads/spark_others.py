"""The same three-level dashboard in other stream processors of the Python index: Bytewax, Pathway and Flink.

Each contestant reads the Parquet files of the recording, in a process of its own with two cores at its disposal, and
says how many windows there are and how many rows are in them, which must be as many as ours. The others are measured
on a part of the rows that lasts for seconds (they handle each row in each window it is in), ours on all of them;
speeds are rows a second. Both must be there: ``pip install 'winquery[peers]'``.

Apache Flink's Python API wants an environment of its own. It takes part where ``WINQUERY_FLINK_PYTHON`` names the
interpreter of one with ``apache-flink``, with its SQL windows, which run in its JVM alone; so it gets more rows, from
a CSV file, which it reads without further jars.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from benchmarks import spark_lab
from benchmarks.spark_lab import QUICK_ROWS
from benchmarks.workload import Bar, Figures, Workload

ROWS = 20_000_000
LEVELS = ("10 seconds / 1 second", "1 minute / 1 second", "10 minutes / 10 seconds")
PART = {"bytewax": 20_000, "pathway": 100_000, "flink": 1_000_000}
FLINK = "WINQUERY_FLINK_PYTHON"
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
        # Its watermark goes on with the wall clock between two rows: a short wait drops rows on a slow machine.
        clock = win.EventClock(lambda event: event[0], timedelta(hours=1))
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


def flink(rows: int, count: int) -> dict[str, Any]:
    """Flink: a statement set with a HOP window for each level, in streaming mode."""
    table = part_of(rows, count)
    # Its CSV has milliseconds; windows have edges at whole seconds, so those decide.
    texts = pc.strftime(table["ts"].cast(pa.timestamp("ms"), safe=False), "%Y-%m-%d %H:%M:%S")
    levels = [[int(each.total_seconds()) for each in level] for level in spans()]
    with tempfile.TemporaryDirectory() as folder:
        events, out = Path(folder, "events.csv"), Path(folder, "out")
        columns = pa.table({"ts": texts, "k": table["key"], "x": table["x"]})
        pacsv.write_csv(columns, events, pacsv.WriteOptions(include_header=False, quoting_style="none"))
        script = Path(__file__).parents[1] / "flink_hop.py"
        command = [os.environ[FLINK], str(script), str(events), str(out), json.dumps(levels)]
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, capture_output=True, text=True, env=plain, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-4_000:])
        totals = []
        for level in range(len(levels)):
            lines = [line for path in (out / str(level)).iterdir() for line in path.read_text().splitlines()]
            totals.append([len(lines), sum(int(line.rsplit(",", 1)[1]) for line in lines)])
    return {"seconds": json.loads(done.stdout.splitlines()[-1]), "totals": totals}


def expected(rows: int, count: int) -> list[list[int]]:
    """Windows and rows in them at each level, counted by the gaps between the rows of a key."""
    table = part_of(rows, count)
    times, keys = table["ts"].cast(pa.int64()).to_numpy(), table["key"].to_numpy().astype(np.int64)
    totals = []
    for size, slide in spans():
        size_us, slide_us = size // timedelta(microseconds=1), slide // timedelta(microseconds=1)
        each = size_us // slide_us
        slides = np.unique((keys << 40) + times // slide_us)
        # A row opens as many windows as slides have passed since the row of its key before it, `each` at most.
        totals.append([int(each + np.minimum(each, np.diff(slides)).sum()), len(times) * each])
    return totals


Contestant: TypeAlias = Callable[[int, int], dict[str, Any]]
CONTESTANTS: dict[str, Contestant] = {"bytewax": bytewax, "pathway": pathway, "flink": flink}


def run(quick: bool) -> Figures:
    rows = QUICK_ROWS if quick else ROWS
    figures = {"rows_per_s": rows / spark_lab.child("spark_others", f"ours({rows})")["seconds"]}
    for name in CONTESTANTS:
        if name == "flink" and FLINK not in os.environ:
            print(f"without Flink: {FLINK} names no interpreter that has it")
            continue
        if name != "flink" and importlib.util.find_spec(name) is None:
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
    summary="three zoom levels by 1,000 keys, against Bytewax, Pathway and Flink (a part of the rows for those)",
    group="spark",
    run=run,
    repeats=1,
    bars=(Bar("bytewax_ratio", ">=", 1), Bar("pathway_ratio", ">=", 1)),
)
