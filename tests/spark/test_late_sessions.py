"""Late rows around a session that is settled, in both ways that rows get to Spark: it stays what was told of it.

::

    micro-batches   0   2              watermark
                                6      6         [0, 5) is final
                    0 . 2 . 4                    0 and 2 are late, 4 is not: its own [4, 7) is still open
    sessions        |---------|
                            |---------------|
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SECOND, make_plan
from tests.spark.test_runner import LONG, Collector
from workbench.feeds import ReplayOptions
from workbench.spark.frames import FrameOptions
from workbench.spark.runner import StreamRunner
from workbench.spark.streaming import FrameRunner

pytestmark = pytest.mark.spark

SQL = "SELECT key, sum(value) AS total, count(*) AS n FROM events GROUP BY key, gap_window(ts, '3 seconds')"
BATCHES = [0, 2, 2], [6, 6, 6], [0, 2, 4]


def table(times: list[int]) -> pa.Table:
    stamps = pa.array([time * SECOND for time in times]).cast(SCHEMA.field("ts").type)
    return pa.table([stamps, ["a"] * len(times), range(len(times))], schema=SCHEMA)


def of_ours(spark: Any, folder: Path, got: Collector) -> StreamRunner:
    path = folder / "all.parquet"
    pq.write_table(pa.concat_tables(map(table, BATCHES)), path)
    return StreamRunner(spark, make_plan(SQL, delay=0), ReplayOptions((str(path),), max_rows=3), got)


def of_a_frame(spark: Any, folder: Path, got: Collector) -> FrameRunner:
    for number, times in enumerate(BATCHES):
        path = folder / f"{number}.parquet"
        pq.write_table(table(times), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads the oldest first
    schema = spark.read.parquet(str(folder)).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return FrameRunner(make_plan(SQL, delay=0), FrameOptions(frame, "available_now"), got)


@pytest.mark.parametrize("runner_of", [of_ours, of_a_frame])
def test_a_settled_session_stays_as_it_was_told(
    spark: Any, tmp_path: Path, runner_of: Callable[..., StreamRunner | FrameRunner]
) -> None:
    got = Collector()
    runner = runner_of(spark, tmp_path, got)
    runner.start()
    assert runner.wait(LONG)
    progress = runner.progress()
    assert (progress.state, progress.rows, progress.late) == ("finished", 9, {"q": 2}), progress.details
    assert got.finals() == {("a", 0): (0 + 1 + 2, 3), ("a", 4): (0 + 1 + 2 + 2, 4)}
