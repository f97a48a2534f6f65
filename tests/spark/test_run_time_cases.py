"""Group R of the cases, types and run time, where a stream on Spark has to show it.

Others of the group: R3 in test_java.py, R6 in test_session.py, R8 in tests/codegen/test_kernels.py, R9 in
test_frames.py; R4 and R5 for streams of our own in test_runner.py, test_lifecycle.py and tests/session.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SQL, make_plan, wait_for
from tests.spark.faults import LONG, counted
from tests.spark.test_frame_checkpoint import put, stream_of
from tests.spark.test_lifecycle import finals
from tests.spark.test_runner import Collector
from workbench.errors import EngineError
from workbench.session import LiveQuery, Session
from workbench.spark.frames import FrameOptions
from workbench.spark.streaming import FrameRunner

pytestmark = pytest.mark.spark

#: A moment of 2023, in microseconds.
NOW = 1_700_000_000_000_000


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def put_times(inbox: Path, name: str, times: list[int]) -> None:
    stamps = pa.array(times, pa.int64()).cast(SCHEMA.field("ts").type)
    table = pa.table([stamps, pa.array(["a"] * len(times)), pa.array([1] * len(times), pa.int64())], schema=SCHEMA)
    pq.write_table(table, inbox / f".{name}")
    (inbox / f".{name}").rename(inbox / f"{name}.parquet")


def start(spark: Any, inbox: Path, sql: str = SQL, delay: str = "5 seconds", **options: Any) -> LiveQuery:
    session = Session()
    session.source("events", stream_of(spark, inbox), time="ts", delay=delay, **options)
    (handle,) = session.start(session.parse(sql, name="q"))
    return handle


def test_times_in_state_are_whole_microseconds(spark: Any, inbox: Path, tmp_path: Path) -> None:
    """Case R1: also before 1970, and where a window's rows come before and after a restart, from the stored state."""
    sql = "SELECT min(ts) AS low, max(ts) AS high, count(*) AS n FROM events GROUP BY window(ts, '10 microseconds')"
    checkpoint = tmp_path / "checkpoint"
    put_times(inbox, "1", [-3, 0, 10, NOW + 5, NOW + 10])
    first = start(spark, inbox, sql, "30000 days", checkpoint=checkpoint)
    wait_for(lambda: first.status().rows == 5, LONG, "the first file")
    first.stop()
    put_times(inbox, "2", [9, NOW + 9])
    handle = start(spark, inbox, sql, "30000 days", checkpoint=checkpoint)
    wait_for(lambda: handle.status().rows == 7, LONG, "the second file")
    handle.stop(finish=True)
    table = handle.results(status="final", format="arrow")
    columns = [table[name].cast(pa.int64()).to_pylist() for name in ("window_start", "low", "high", "n")]
    assert sorted(zip(*columns, strict=True)) == [
        (-10, -3, -3, 1),
        (0, 0, 9, 2),
        (10, 10, 10, 1),
        (NOW, NOW + 5, NOW + 9, 2),
        (NOW + 10, NOW + 10, NOW + 10, 1),
    ]


def test_micro_batches_without_rows(spark: Any, inbox: Path) -> None:
    """Case R2: a file without rows, and one of which Spark's filter leaves nothing."""
    put(inbox, 0, 1)
    put_times(inbox, "none", [])
    put_times(inbox, "dropped", [-1, -2])
    put(inbox, 1, 1)
    session = Session()
    frame = stream_of(spark, inbox).where("ts >= timestamp_seconds(0)")
    session.source("events", frame, time="ts", delay="5 seconds", trigger="available_now")
    (handle,) = session.start(session.parse(SQL, name="q"))
    assert handle.wait(LONG)
    assert (handle.status().state, handle.status().rows) == ("finished", 200)
    assert handle.progress().batches == 5, "one for each file, and the end"
    assert finals(handle) == counted(200)


def test_a_stop_while_a_micro_batch_runs(spark: Any, inbox: Path) -> None:
    """Case R4: a clean stop within five seconds, and the third one leaves as many processes as the first."""
    put(inbox, 0, 3)
    left: list[int] = []
    for _ in range(3):
        got, begun = Collector(), threading.Event()
        got.gate.clear()

        def keep(reports: list[Any], got: Collector = got, begun: threading.Event = begun) -> None:
            begun.set()
            got(reports)

        runner = FrameRunner(make_plan(), FrameOptions(stream_of(spark, inbox)), keep)
        runner.start()
        assert begun.wait(LONG)
        runner.stop(0.1)
        got.gate.set()
        assert runner.wait(5)
        assert (runner.progress().state, runner.progress().error) == ("stopped", None)
        assert not runner._session.streams.active
        left.append(len(psutil.Process().children(recursive=True)))
    assert left[2] <= left[0]


def test_the_same_cell_twice(spark: Any, inbox: Path) -> None:
    """Case R5: one query of Spark's, and of ours the new one."""
    put(inbox, 0, 2)
    session = Session()
    session.source("events", stream_of(spark, inbox), time="ts", delay="5 seconds")
    for total in ("total", "sum_of_all"):
        (handle,) = session.start(session.parse(SQL.replace("total", total), name="q"))
    wait_for(lambda: handle.status().rows == 200, LONG, "all rows")
    assert session.queries() == [handle]
    runner: Any = handle._stream._runner
    assert len(runner._session.streams.active) == 1
    assert "sum_of_all" in handle.results().columns
    session.stop_all()
    assert not runner._session.streams.active


def test_a_worker_that_crashes_says_where(spark: Any, inbox: Path) -> None:
    """Case R7: a function of the user's takes the whole process with it; not the end of a file, but its place."""

    def crash(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import faulthandler

        for batch in batches:
            if batch.num_rows:
                faulthandler._sigsegv()  # type: ignore[attr-defined]
            yield batch

    put(inbox, 0, 1)
    frame = stream_of(spark, inbox)
    session = Session()
    session.source("events", frame.mapInArrow(crash, frame.schema), time="ts", delay="5 seconds")
    (handle,) = session.start(session.parse(SQL, name="q"))
    with pytest.raises(EngineError, match="a Python worker crashed: Segmentation fault in `crash`"):
        handle.wait(LONG)
    trace = handle.traceback()
    assert trace is not None
    assert trace.startswith("Fatal Python error: Segmentation fault")
    assert "in crash" in trace
