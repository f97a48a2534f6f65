"""A streaming DataFrame of the user's through the whole plan, against a bare mapInArrow that only counts its rows.

Both in one Spark with its own settings, as users have it: Parquet files, two a micro-batch, everything that is there
(``availableNow``). The counting gives one number for each batch of rows to Spark's ``noop`` sink: it is what handing
the rows to Python costs, which nothing on this way can be quicker than. Ours goes to the last final window of a
minute every second by 1,000 keys. In turns, the median of a few rounds after one that does not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import spark_lab
from benchmarks.spark_lab import ONE, QUICK_ROWS
from benchmarks.workload import Bar, Figures, Workload

ROWS = 20_000_000
ROUNDS = 3
FILES_A_BATCH = 2


def both(rows: int, rounds: int) -> dict[str, float]:
    """Seconds of ours and of the counting."""
    session = spark_lab.default_session()
    folder = Path(spark_lab.recording(rows)[0]).parent
    contestants = {"ours": _ours, "count": _count}
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for round_ in range(rounds + 1):
        for name, contestant in contestants.items():
            begin = time.perf_counter()
            contestant(_stream(session, folder), rows)
            if round_:
                seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(each) for name, each in seconds.items()}


def _stream(session: Any, folder: Path) -> Any:
    reader = session.readStream.schema(session.read.parquet(str(folder)).schema)
    # Not what else is there: each file counts, also one without rows.
    return reader.option("maxFilesPerTrigger", FILES_A_BATCH).parquet(f"{folder}/*.parquet")


def _ours(frame: Any, rows: int) -> None:
    from workbench.spark.frames import FrameOptions
    from workbench.spark.streaming import FrameRunner

    totals = spark_lab.Totals()
    runner = FrameRunner(spark_lab.plan(ONE), FrameOptions(frame, "available_now"), totals)
    runner.start()
    runner.wait()
    progress = runner.progress()
    if progress.state != "finished" or progress.rows != rows:
        raise RuntimeError(f"{progress}")
    if totals.rows[0] != 60 * rows:
        raise AssertionError(f"{totals.rows[0]} rows in windows, not {60 * rows}")


def _count(frame: Any, rows: int) -> None:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows])], ["n"])

    query = frame.mapInArrow(count, "n long").writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    counted = sum(progress["numInputRows"] for progress in query.recentProgress)
    if counted != rows:
        raise AssertionError(f"{counted} rows, not {rows}")


def run(quick: bool) -> Figures:
    rows = QUICK_ROWS if quick else ROWS
    seconds = spark_lab.child("spark_foreign", f"both({rows}, {1 if quick else ROUNDS})")
    return {
        "rows_per_s": rows / seconds["ours"],
        "count_rows_per_s": rows / seconds["count"],
        "ratio": seconds["count"] / seconds["ours"],
    }


WORKLOAD = Workload(
    name="spark-foreign",
    summary="a streaming DataFrame through one level by 1,000 keys, against a mapInArrow that counts rows, 20 M rows",
    group="spark",
    run=run,
    repeats=1,
    bars=(Bar("ratio", ">=", 0.8),),
)
