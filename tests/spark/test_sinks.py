"""Results into Spark's sinks: typed, each exactly once in a folder, in the same pass as into the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SECOND, SQL, wait_for
from tests.spark.test_runner import LONG, expected
from tests.spark.test_streaming import more_rows, run, stream_of
from workbench.errors import EngineError, QueryError
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.results import Level, QueryResults, ResultBatch, Schema
from workbench.results.rows import rows_of
from workbench.runtime.engine import Engine
from workbench.runtime.wire import Report
from workbench.session import Session
from workbench.session.outlets import Delivery, Outlet, Turn
from workbench.spark.sinks import BEFORE, SparkSink

pytestmark = pytest.mark.spark

Recorder = Callable[..., str]
EMPTY = Report(0, 0, None, None, {}, 0, 0, 0, finished=False)
TYPES = {
    "level": "string",
    "key": "string",
    "window_start": "timestamp",
    "window_end": "timestamp",
    "total": "bigint",
    "n": "bigint",
    "status": "string",
    "revision": "smallint",
}


def counted(frame: Any) -> dict[tuple[str, int], tuple[int, int]]:
    """(key, start in seconds) -> (total, n); each window once."""
    found = {}
    for row in frame.selectExpr("key", "unix_micros(window_start) AS at", "total", "n").toArrow().to_pylist():
        place = row["key"], row["at"] // SECOND
        assert place not in found
        found[place] = row["total"], row["n"]
    return found


def test_a_folder_holds_each_final_result_once(spark: Any, recording: Recorder, tmp_path: Path) -> None:
    """Through a change of the plan too, which may run a micro-batch twice."""
    path = recording(300, name="in/events.parquet")
    session = Session()
    handle = run(session, stream_of(spark, path))
    handle.to_spark(tmp_path / "out")
    wait_for(lambda: handle.status().rows == 300, LONG, "the first file")
    session.start(session.parse("SELECT count(*) AS n FROM events GROUP BY window(ts, '1 minute')", name="other"))
    more_rows(path, "later.parquet", 300, 600)
    wait_for(lambda: handle.status().rows == 600, LONG, "the second file")
    session.queries()[-1].stop()
    handle.stop(finish=True)
    written = spark.read.parquet(str(tmp_path / "out"))
    assert {name: kind for name, kind in written.dtypes if name != "batch"} == TYPES
    assert {row.status for row in written.select("status").distinct().collect()} == {"final"}
    kept = handle.results(status="final", format="spark")
    assert kept.dtypes == list(TYPES.items())
    assert counted(written) == counted(kept)
    assert sum(n for _, n in counted(written).values()) == 600
    with pytest.raises(QueryError, match="is not empty"):
        handle.to_spark(tmp_path / "out")


def test_a_backfill_hands_a_function_all_results(spark: Any, recording: Recorder) -> None:
    got = []
    handle = run(Session(), spark.read.parquet(recording(1_000)))
    handle.to_spark(lambda frame, batch: got.append((batch, counted(frame))))
    assert handle.wait(LONG)
    assert [found for _, found in got] == [expected(1_000)]


def test_provisional_results_where_they_are_wanted(spark: Any, recording: Recorder) -> None:
    """The last minute is open: told as provisional, and as final once the stream is finished."""
    got: list[tuple[int, str]] = []

    def note(frame: Any, batch: int) -> None:
        rows = frame.where("key = 'a'").selectExpr("unix_seconds(window_start) AS at", "status").collect()
        got.extend((row["at"], row.status) for row in rows)

    handle = run(Session(), stream_of(spark, recording(90)))
    handle.to_spark(note, status="all")
    wait_for(lambda: handle.status().rows == 90, LONG, "the file")
    handle.stop(finish=True)
    assert got == [(0, "final"), (60, "provisional"), (60, "final")]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        # seconds 10, 20, 30, 40, then 15 and 50: the row that is late moves the windows behind it
        ("count_window(2)", {0: 25, 1: 50, 2: 90}),
        ("last(2, '1 minute')", {60: 90}),
        # each window of one start has an end of its own
        ("cumulate_window(ts, '40 seconds', '20 seconds')", {20: 25, 40: 75, 60: 90, 80: 90}),
    ],
)
def test_windows_that_move_are_told_by_their_numbers(
    spark: Any, tmp_path: Path, form: str, expected: dict[int, int]
) -> None:
    """What a folder has of them is the table of results: of each number the row of the newest micro-batch."""
    seconds = [10, 20, 30, 40, 15, 50]
    stamps = pa.array([second * SECOND for second in seconds]).cast(SCHEMA.field("ts").type)
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table([stamps, pa.array(["a"] * 6), pa.array(seconds)], schema=SCHEMA), path)
    session = Session()
    session.source("events", str(path), time="ts", delay="0 seconds", lateness="1 hour", max_rows=2)
    (handle,) = session.start(session.parse(f"SELECT sum(value) AS total FROM events GROUP BY {form}", name="q"))
    handle.to_spark(tmp_path / "out")
    assert handle.wait(LONG)
    kept = {row["total"] for row in handle.results(format="arrow").to_pylist()}
    told = spark.read.parquet(str(tmp_path / "out")).orderBy("batch").collect()
    unit = 1 if form.startswith("count") else SECOND
    found = {row.window_number // unit: row.total for row in told if row.status != "absent"}
    assert found == expected
    assert kept == set(expected.values())


def test_a_table_of_the_users_catalog(spark: Any, recording: Recorder) -> None:
    handle = run(Session(), spark.read.parquet(recording(300)))
    handle.to_spark("winquery_results", format="table")
    try:
        assert handle.wait(LONG)
        assert counted(spark.table("winquery_results")) == expected(300)
    finally:
        spark.sql("DROP TABLE IF EXISTS winquery_results")


def test_a_sink_that_fails_ends_the_stream(spark: Any, recording: Recorder) -> None:
    def broken(frame: Any, batch: int) -> None:
        raise RuntimeError("no such topic")

    session = Session()
    session.source("events", stream_of(spark, recording(90)), time="ts", delay="1 hour")  # nothing is final yet
    (handle,) = session.start(session.parse(SQL, name="q"))
    handle.to_spark(broken)
    with pytest.raises(EngineError, match="no such topic"):
        handle.stop(finish=True)


def test_a_plan_that_starts_anew_writes_its_folder_anew(spark: Any, recording: Recorder, tmp_path: Path) -> None:
    """A recorded source is read again for a second query: no result of the first is there twice, none is missing."""
    session = Session()
    handle = run(session, recording(1_000, name="in/events.parquet"), max_rows=300)
    handle.to_spark(tmp_path / "out")
    assert handle.wait(LONG)
    session.start(session.parse("SELECT count(*) AS n FROM events GROUP BY window(ts, '1 hour')", name="other"))
    assert session.queries()[0].wait(LONG)
    assert counted(spark.read.parquet(str(tmp_path / "out"))) == expected(1_000)


def test_what_was_out_is_not_written_again_when_it_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A micro-batch that was broken off runs again after a sink was attached: its results are there."""
    schema = Schema("q", (Level("1 minute", 60, 60),), (("key", pa.string()),), (("n", pa.int64()),))
    sink = SparkSink(None, QueryResults(schema), lambda frame, batch: None)  # type: ignore[arg-type]
    written: list[int] = []
    monkeypatch.setattr(sink, "_put", lambda rows, batch: written.append(batch))
    delivery = Delivery({"q": Outlet(QueryResults(schema), {0: ["1 minute"]}, [sink])}, 1, Turn())
    for batch in (3, 4):
        delivery([replace(EMPTY, batch=batch)])
    assert delivery.latest == 4
    sink.fill(1, pa.table({}), delivery.latest)
    for number, batch in ((1, 4), (1, 5), (1, 5), (2, 0)):
        sink.write(number, batch, [], [])
    assert written == [BEFORE, 5, 5, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"format": "parkett"}, "no sink of format `parkett`"),
        ({"format": "table"}, "needs a target"),
        ({"target": "x", "status": "provisional"}, "no status `provisional`"),
    ],
)
def test_what_no_sink_is(spark: Any, recording: Recorder, call: dict[str, Any], message: str) -> None:
    handle = run(Session(), spark.read.parquet(recording(30)))
    with pytest.raises(QueryError, match=message):
        handle.to_spark(**call)
    handle.stop()


@pytest.mark.parametrize("format", ["parquet", "table"])
def test_no_column_of_results_is_lost_under_the_number_of_the_batch(
    spark: Any, recording: Recorder, tmp_path: Path, format: str
) -> None:
    sql = "SELECT key AS Batch, count(*) AS n FROM events GROUP BY key, window(ts, '1 minute')"
    handle = run(Session(), spark.read.parquet(recording(30)), sql)
    with pytest.raises(QueryError, match="the number of the micro-batch as `batch`"):
        handle.to_spark(str(tmp_path / "out"), format=format)
    handle.to_spark(lambda frame, batch: None)
    assert handle.wait(LONG)


@pytest.mark.parametrize(
    ("status", "lateness", "expected"),
    [
        ("all", 0, [(0, "provisional"), (0, "absent"), (10, "provisional"), (10, "final")]),
        ("final", 60, [(10, "final"), (10, "absent")]),
    ],
)
def test_what_having_never_let_through_is_not_taken_back(
    status: Any, lateness: int, expected: list[tuple[int, str]]
) -> None:
    """One to four rows at 0, of which two and three are wanted; then two at 10; if they may come late, two more."""
    stream = Stream("events", SCHEMA, "ts", 0, lateness * SECOND)
    sql = "SELECT count(*) AS n FROM events GROUP BY window(ts, '10 seconds') HAVING n BETWEEN 2 AND 3"
    plan = compile_workload(Workload(stream, parse_queries(sql, {"events": stream}, name="q")))
    engine, got = Engine(plan), []
    session: Any = SimpleNamespace(createDataFrame=lambda rows: rows)

    def note(frame: Any, batch: int) -> None:
        got.extend((row["window_start"].second, row["status"]) for row in frame.to_pylist())

    sink = SparkSink(session, engine.results["q"], note, status=status, lateness=lateness * SECOND)
    for number, times in enumerate([[0], [0], [0, 0], [10, 10], [20], [10, 10] if lateness else []]):
        stamps = pa.array([time * SECOND for time in times], pa.int64()).cast(SCHEMA.field("ts").type)
        size = len(times)
        rows = pa.table([stamps, ["a"] * size, pa.nulls(size, pa.int64())], schema=SCHEMA)
        results = [batch for report in engine.step([rows]) for _, batch in report.results]
        sink.write(0, number, results, ["10 seconds"])
    assert got == expected


def test_rows_of_nothing() -> None:
    levels = (Level("1 minute", 60, 60),)
    empty = rows_of(Schema("q", levels, (("key", pa.string()),), (("n", pa.int64()),)), [], [])
    assert empty.schema.names == ["level", "key", "window_start", "window_end", "n", "status", "revision"]


def test_results_that_were_out_have_the_numbers_of_those_that_come() -> None:
    schema = Schema("q", (Level("2 rows", 0, 0),), (("key", pa.string()),), (("n", pa.int64()),))
    one = np.ones(1, np.int64)
    columns = (one * 7 * SECOND, (pa.array(["a"]),), (pa.array([2]),), one.astype(np.int8), one.astype(np.int16))
    batch = ResultBatch.of(0, *columns, one * 9 * SECOND, one * 5)
    results = QueryResults(schema)
    results.apply([batch])
    told = rows_of(schema, [batch], ["2 rows"])
    assert told.column("window_number").to_pylist() == [5]
    assert results.table(numbered=True).equals(told)
    assert "window_number" not in results.table().column_names
