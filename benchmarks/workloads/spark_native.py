"""The shared plan against Spark's own sliding windows: avg, max and count by 1,000 keys, on two cores.

Each contestant has a process of its own: ours with the light JVM that our sessions have, Spark with its own settings,
since a light JVM makes it slower (docs/decisions/0002-a-light-jvm.md). Spark runs its windows as a batch query, with
no state and no micro-batches, which is the fastest way it has; ours runs as a stream. Both have run a part of the
data before the clock starts. What comes out is summed up and compared.

Spark's windows are measured on the first twentieth of the rows for each level of the dashboard, and on all for the
one level; ``rows_per_s`` of the former are extrapolated to all rows, linearly.
"""

from __future__ import annotations

import re
import time

from benchmarks import spark_lab
from benchmarks.spark_lab import DASHBOARD, ONE, QUICK_ROWS
from benchmarks.workload import Bar, Figures, Workload

ROWS = 20_000_000


def ours(rows: int, levels: list[str], files: int) -> dict[str, object]:
    """Seconds for the first files, and the totals by level."""
    session, paths = spark_lab.our_session(), spark_lab.recording(rows)[:files]
    compiled = spark_lab.plan(levels)
    spark_lab.run_plan(session, compiled, paths[:1], spark_lab.Totals())
    totals = spark_lab.Totals()
    begin = time.perf_counter()
    spark_lab.run_plan(session, compiled, paths, totals)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "totals": [totals.of(level) for level in range(len(levels))]}


def native(rows: int, levels: list[str], files: int) -> dict[str, object]:
    """Seconds for the first files, all levels one after the other, and the totals by level."""
    from pyspark.sql import functions as F

    session, paths = spark_lab.default_session(), spark_lab.recording(rows)[:files]
    seconds, totals = 0.0, []
    for number, level in enumerate(levels):
        size, slide = re.split(r"\s*/\s*", level)

        def windows(paths: list[str], size: str = size, slide: str = slide) -> list[float]:
            frame = session.read.parquet(*paths)
            found = frame.groupBy("key", F.window("ts", size, slide)).agg(
                F.avg("x").alias("mean"), F.max("x").alias("top"), F.count("*").alias("n")
            )
            row = found.agg(F.count("*"), F.sum("n"), F.sum("top"), F.sum("mean")).first()
            return [float(value) for value in row[:3]]

        if not number:
            windows(paths[:1])
        begin = time.perf_counter()
        totals.append(windows(paths))
        seconds += time.perf_counter() - begin
    return {"seconds": seconds, "totals": totals}


def _compare(levels: tuple[str, ...], quick: bool, part: int) -> Figures:
    """Spark on ``part`` files of the recording, ours on all of them; totals are compared on Spark's part."""
    rows = QUICK_ROWS if quick else ROWS
    theirs = spark_lab.child("spark_native", f"native({rows}, {list(levels)!r}, {part})")
    mine = spark_lab.child("spark_native", f"ours({rows}, {list(levels)!r}, {spark_lab.FILES})")
    same = (
        mine
        if part == spark_lab.FILES
        else spark_lab.child("spark_native", f"ours({rows}, {list(levels)!r}, {part})")
    )
    if same["totals"] != theirs["totals"]:
        raise AssertionError(f"results differ: {same['totals']} of ours, {theirs['totals']} of Spark")
    ours_per_s = rows / mine["seconds"]
    theirs_per_s = rows * part / spark_lab.FILES / theirs["seconds"]
    return {"rows_per_s": ours_per_s, "spark_rows_per_s": theirs_per_s, "ratio": ours_per_s / theirs_per_s}


def run_one(quick: bool) -> Figures:
    return _compare(ONE, quick, 2 if quick else spark_lab.FILES)


def run_dashboard(quick: bool) -> Figures:
    return _compare(DASHBOARD, quick, 1)


WORKLOADS = (
    Workload(
        name="spark-native-one",
        summary="one level of a minute every second by 1,000 keys, against Spark's own window(), 20 M rows",
        group="spark",
        run=run_one,
        repeats=1,
        bars=(Bar("ratio", ">=", 40),),
    ),
    Workload(
        name="spark-native-dashboard",
        summary="ten levels from seconds to an hour, against ten queries of Spark (extrapolated from 1 M rows)",
        group="spark",
        run=run_dashboard,
        repeats=1,
        bars=(Bar("ratio", ">=", 200),),
    ),
)
