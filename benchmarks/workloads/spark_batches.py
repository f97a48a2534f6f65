"""What a micro-batch costs however little it carries, and how long an event takes to the result store.

``spark-empty-batch``: micro-batches of ten rows through the ten levels of a dashboard by 1,000 keys, with all of its
state; seconds by Spark's own measure, and its largest parts. ``spark-latency``: a replay of 200,000 rows a second;
for a row the time from when it was due to when the results of its micro-batch were with the driver. When the replay's
clock began is known to the source alone; the micro-batches bound it from above, so what is told is short of the truth
by at most the time between two rows and the quickest answer of the source.
"""

from __future__ import annotations

import json
import statistics
import time
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks import spark_lab
from benchmarks.spark_lab import DASHBOARD, QUICK_ROWS
from benchmarks.workload import Bar, Figures, Workload

ROWS = 20_000_000
RATE, TINY = 200_000, 10
PARTS = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets")
LIMIT_S = 600


def empty(rows: int, batches: int) -> dict[str, float]:
    """Medians over ``batches`` micro-batches of ten rows, when the JVM has seen as many."""
    from workbench.feeds import ReplayOptions
    from workbench.spark.runner import StreamRunner

    session, paths = spark_lab.our_session(), spark_lab.recording(rows)
    keep = _keep_progress(session)
    options = ReplayOptions(tuple(paths), max_rows=TINY)
    runner = StreamRunner(session, spark_lab.plan(DASHBOARD), options, lambda reports: None)
    runner.start()
    _until(runner, lambda: runner.progress().batches >= 2 * batches)
    runner.stop()
    timed = [progress["durationMs"] for progress in keep(runner)][-batches:]
    figures = {"batch_s": statistics.median(each["triggerExecution"] for each in timed) / 1_000}
    for part in PARTS:
        figures[f"{part}_s"] = statistics.median(each.get(part, 0) for each in timed) / 1_000
    return figures


def latency(rows: int, seconds: int) -> dict[str, float]:
    """Percentiles over the rows of ``seconds`` seconds, behind as many that warm up."""
    from workbench.feeds import ReplayOptions
    from workbench.spark.runner import StreamRunner

    session, paths = spark_lab.our_session(), spark_lab.recording(rows)
    keep = _keep_progress(session)
    speed = spark_lab.SPAN * spark_lab.FILES / rows * RATE
    told: list[tuple[float, int]] = []

    def note(reports: list[Any]) -> None:
        told.append((time.time(), max((r.max_event or 0 for r in reports), default=0)))

    options = ReplayOptions(tuple(paths), speed=speed, max_rows=20 * RATE)
    runner = StreamRunner(session, spark_lab.plan(("1 minute / 1 second", "10 minutes / 10 seconds")), options, note)
    runner.start()
    _until(runner, lambda: bool(told))
    _until(runner, lambda: time.time() > told[0][0] + 2 * seconds)
    runner.stop()
    began = min(_asked(each) - _clock(each) / speed for each in keep(runner) if each["numInputRows"])
    ages: list[float] = []
    for (_, before), (moment, newest) in pairwise(told):
        if moment > told[0][0] + seconds:
            due = np.linspace(before, newest, 100)
            ages += list(moment - (began + due / speed))
    return {
        "p50_s": float(np.quantile(ages, 0.5)),
        "p99_s": float(np.quantile(ages, 0.99)),
        "rows_per_s": (told[-1][1] - told[0][1]) / (told[-1][0] - told[0][0]) / speed * RATE,
    }


def _until(runner: Any, condition: Any) -> None:
    """Raises where the stream ends first, or nothing comes of it."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if runner.wait(0.05) or time.monotonic() > deadline:
            raise RuntimeError(str(runner.progress()))


def _keep_progress(session: Any) -> Any:
    """Let Spark remember all micro-batches; the function that gives them, as dictionaries, after the end too."""
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")

    def kept(runner: Any) -> list[dict[str, Any]]:
        return [dict(progress) for progress in runner._query.recentProgress if progress["numInputRows"]]

    return kept


def _asked(progress: dict[str, Any]) -> float:
    """When the source had said how far it is, in seconds."""
    begun = datetime.fromisoformat(progress["timestamp"]).timestamp()
    return begun + progress["durationMs"]["latestOffset"] / 1_000


def _clock(progress: dict[str, Any]) -> int:
    offset: dict[str, int] = json.loads(progress["sources"][0]["endOffset"])
    return offset["clock"]


def run_empty(quick: bool) -> Figures:
    rows = QUICK_ROWS if quick else ROWS
    return spark_lab.child("spark_batches", f"empty({rows}, {10 if quick else 50})")


def run_latency(quick: bool) -> Figures:
    return spark_lab.child("spark_batches", f"latency({ROWS}, {5 if quick else 30})")


WORKLOADS = (
    Workload(
        name="spark-empty-batch",
        summary="seconds of a micro-batch of ten rows with the whole plan of a dashboard, and its parts",
        group="spark",
        run=run_empty,
        bars=(Bar("batch_s", "<=", 0.45),),
    ),
    Workload(
        name="spark-latency",
        summary="seconds from an event to its results on the driver at 200,000 rows/s",
        group="spark",
        run=run_latency,
        bars=(Bar("p50_s", "<=", 0.8), Bar("p99_s", "<=", 1.6)),
    ),
)
