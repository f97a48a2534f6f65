"""Windows without a key against the least that Spark can do with the same files: read a column and add it up.

``ratio`` is the speed of a backfill with one level, from Parquet to its last final window, by that of
``spark.read.parquet(...).agg(sum)`` in a Spark with its own settings: one job of either side, our own tasks reading
the files. ``stream_ratio`` is the same of a stream at full speed, its start and all its micro-batches included.
``spark-levels`` is the time of 50 levels by that of one, as streams.
"""

from __future__ import annotations

import time

from benchmarks import spark_lab
from benchmarks.spark_lab import QUICK_ROWS
from benchmarks.workload import Bar, Figures, Workload

ROWS = 20_000_000
VALUES = "max(x) AS top, count(*) AS n"
ROUNDS = 3
#: A level for every second of size from 10 s on, sliding by a tenth of it or a second.
LEVELS = [f"{size} seconds / {max(size // 10, 1)} seconds" for size in range(10, 510, 10)]


def ours(rows: int, levels: int, run: str = "run_plan") -> dict[str, float]:
    """Seconds of the quickest of a few rounds, after one that does not count."""
    session, paths = spark_lab.our_session(), spark_lab.recording(rows)
    compiled = spark_lab.plan(LEVELS[:levels], keyed=False, values=VALUES)
    seconds = []
    for _ in range(ROUNDS + 1):
        totals = spark_lab.Totals()
        begin = time.perf_counter()
        getattr(spark_lab, run)(session, compiled, paths, totals)
        seconds.append(time.perf_counter() - begin)
        for level in range(levels):
            # Sizes are whole multiples of slides, so every row is in as many windows.
            size, _, _, slide, _ = LEVELS[level].split()
            assert totals.rows[level] == rows * (int(size) // int(slide)), LEVELS[level]
    return {"seconds": min(seconds[1:])}


def scan(rows: int) -> dict[str, float]:
    """The same of Spark."""
    session, paths = spark_lab.default_session(), spark_lab.recording(rows)
    seconds = []
    for _ in range(ROUNDS + 1):
        begin = time.perf_counter()
        session.read.parquet(*paths).agg({"x": "sum"}).collect()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": min(seconds[1:])}


def run_scan(quick: bool) -> Figures:
    rows = QUICK_ROWS if quick else ROWS
    mine = spark_lab.child("spark_scan", f"ours({rows}, 1, 'run_backfill')")["seconds"]
    stream = spark_lab.child("spark_scan", f"ours({rows}, 1)")["seconds"]
    theirs = spark_lab.child("spark_scan", f"scan({rows})")["seconds"]
    return {
        "rows_per_s": rows / mine,
        "stream_rows_per_s": rows / stream,
        "spark_rows_per_s": rows / theirs,
        "ratio": theirs / mine,
        "stream_ratio": theirs / stream,
    }


def run_levels(quick: bool) -> Figures:
    rows, many = QUICK_ROWS if quick else ROWS, len(LEVELS)
    one = spark_lab.child("spark_scan", f"ours({rows}, 1)")["seconds"]
    all_of_them = spark_lab.child("spark_scan", f"ours({rows}, {many})")["seconds"]
    return {"one_s": one, "many_s": all_of_them, "ratio": all_of_them / one}


WORKLOADS = (
    Workload(
        name="spark-scan",
        summary="windows without a key from Parquet files, against Spark's scan and sum of them, 20 M rows",
        group="spark",
        run=run_scan,
        repeats=1,
        bars=(Bar("ratio", ">=", 0.6),),
    ),
    Workload(
        name="spark-levels",
        summary="50 zoom levels against one, 20 M rows",
        group="spark",
        run=run_levels,
        repeats=1,
        bars=(Bar("ratio", "<=", 1.5),),
    ),
)
