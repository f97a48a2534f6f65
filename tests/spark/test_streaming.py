"""Streaming DataFrames of the user's: the same answers as our own replay and as counting rows one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tests.spark.events import SCHEMA, SECOND, SQL, STREAM, make_plan, wait_for
from tests.spark.test_runner import LONG, Collector, expected
from workbench.language import parse_queries
from workbench.logical import Workload
from workbench.plan import compile_workload
from workbench.results import ResultBundle, Status
from workbench.session import LiveQuery, Session
from workbench.spark.frames import HANDING, FrameOptions
from workbench.spark.streaming import FrameRunner

pytestmark = pytest.mark.spark

Recorder = Callable[..., str]


def stream_of(spark: Any, path: str, **options: object) -> Any:
    """The Parquet files of a folder, as a user reads them as a stream."""
    reader = spark.readStream.schema(spark.read.parquet(path).schema).options(**options)
    return reader.parquet(str(Path(path).parent))


def run(session: Session, data: Any, sql: str = SQL, **options: Any) -> LiveQuery:
    session.source("events", data, time="ts", delay="5 seconds", **options)
    (handle,) = session.start(session.parse(sql, name="q"))
    return handle


def more_rows(path: str, name: str, first: int, last: int) -> None:
    """A further file with the seconds ``[first, last)`` of key a, value 1."""
    stamps = pa.array([second * SECOND for second in range(first, last)]).cast(SCHEMA.field("ts").type)
    count = last - first
    table = pa.table([stamps, pa.array(["a"] * count), pa.array([1] * count)], schema=SCHEMA)
    aside = Path(path).parent / f".{name}"
    pq.write_table(table, aside)
    aside.rename(Path(path).parent / name)


def starts(handle: LiveQuery, status: str) -> list[int]:
    """Seconds at which windows of one status start."""
    table = handle.results(status=status, format="arrow")
    return sorted({int(start) // SECOND for start in table.column("window_start").cast(pa.int64()).to_pylist()})


def test_what_is_available_now(spark: Any, recording: Recorder) -> None:
    got = Collector()
    frame = stream_of(spark, recording(1_000))
    runner = FrameRunner(make_plan(), FrameOptions(frame, "available_now"), got)
    runner.start()
    assert runner.wait(LONG)
    progress = runner.progress()
    assert (progress.state, progress.rows) == ("finished", 1_000), progress.details
    assert got.finals() == expected(1_000)


def test_a_plan_that_changes_on_a_silent_source(spark: Any, recording: Recorder) -> None:
    """Nothing of the running query is lost or doubled, and the change needs no new row to come into force."""
    path = recording(600)
    got = Collector()
    runner = FrameRunner(make_plan(), FrameOptions(stream_of(spark, path)), got)
    runner.start()
    wait_for(lambda: bool(got.batches), LONG, "the first batch")
    more = "SELECT max(value) AS most FROM events GROUP BY window(ts, '2 minutes')"
    both = [*parse_queries(SQL, {"events": STREAM}, name="q"), *parse_queries(more, {"events": STREAM}, name="more")]
    version = runner.change(compile_workload(Workload(STREAM, tuple(both)), running=make_plan()))
    assert runner.wait_for(version, LONG)
    more_rows(path, "later.parquet", 600, 1_000)
    wait_for(lambda: runner.progress().rows == 1_000, LONG, "the second file")
    assert runner.stop(LONG, finish=True)
    assert (runner.progress().state, runner.progress().rows) == ("finished", 1_000)
    named = {name for reports in got.batches for report in reports for name, _ in report.results}
    assert named == {"q", "more"}
    for reports in got.batches:
        for report in reports:
            report.bundles[:] = [ResultBundle.of(*entry) for entry in report.results if entry[0] == "q"]
    counts = got.finals(again=True)
    assert sum(n for _, n in counts.values()) == 1_000
    assert {place: n for place, (_, n) in counts.items() if place[0] != "a"} == {
        place: n for place, (_, n) in expected(600).items() if place[0] != "a"
    }


def test_many_rows_without_a_text_and_then_with_one(spark: Any, tmp_path: Path) -> None:
    """Numbers alone come in large batches, as Spark's own settings have it once a plan reads a text."""

    def file(name: str, first: int, last: int) -> None:
        row = np.arange(first, last)
        stamps = pa.array(row * SECOND // 100).cast(SCHEMA.field("ts").type)
        keys = pa.array(["a", "b"]).take(pa.array(row % 2))
        pq.write_table(pa.table([stamps, keys, pa.array(row % 7)], schema=SCHEMA), tmp_path / f".{name}")
        (tmp_path / f".{name}").rename(tmp_path / name)

    file("0.parquet", 0, 150_000)
    all_keys = "SELECT sum(value) AS total, count(*) AS n FROM events GROUP BY window(ts, '1 minute')"
    got, plan = Collector(), make_plan(all_keys)
    frame = stream_of(spark, str(tmp_path / "0.parquet"))
    runner = FrameRunner(plan, FrameOptions(frame), got)
    runner.start()
    wait_for(lambda: runner.progress().rows == 150_000, LONG, "the first file")
    assert [runner._session.conf.get(name) for name in HANDING] == ["65536", str(2**31 - 1)]
    queries = [parse_queries(sql, {"events": STREAM}, name=n) for n, sql in (("q", all_keys), ("keyed", SQL))]
    later = compile_workload(Workload(STREAM, tuple(query for each in queries for query in each)), running=plan)
    assert runner.wait_for(runner.change(later), LONG)
    assert [runner._session.conf.get(name) for name in HANDING] == [spark.conf.get(name) for name in HANDING]
    file("1.parquet", 150_000, 240_000)
    wait_for(lambda: runner.progress().rows == 240_000, LONG, "the second file")
    assert runner.stop(LONG, finish=True)
    assert runner.progress().state == "finished", runner.progress().details
    found: dict[str, dict[tuple[Any, int], tuple[int, int]]] = {"q": {}, "keyed": {}}
    for name, batch in (each for reports in got.batches for report in reports for each in report.results):
        own = batch.own()
        keys = own.keys[0].to_pylist() if own.keys else [None] * len(own.starts)
        values = zip(*(column.to_pylist() for column in own.values), strict=True)
        for key, start, status, value in zip(keys, own.starts, own.status, values, strict=True):
            if status == Status.FINAL:
                assert found[name].setdefault((key, int(start) // SECOND), value) == value
    minutes = [np.arange(6_000) + 6_000 * minute for minute in range(40)]
    assert found["q"] == {(None, 60 * m): (int((rows % 7).sum()), 6_000) for m, rows in enumerate(minutes)}
    # The keyed query begins in the minute after the last row that came before it.
    assert found["keyed"] == {
        (key, 60 * m): (int((rows[place::2] % 7).sum()), 3_000)
        for m, rows in enumerate(minutes)
        for place, key in enumerate("ab")
        if m >= 25
    }


def test_silence_keeps_the_last_windows_open_until_the_stream_is_finished(spark: Any, recording: Recorder) -> None:
    """Case O1: rows of two minutes, then silence. What the watermark has not passed is provisional."""
    session = Session()
    handle = run(session, stream_of(spark, recording(120)))
    assert handle.wait_for_results(LONG)
    wait_for(lambda: handle.status().rows == 120, LONG, "all rows")
    assert (starts(handle, "final"), starts(handle, "provisional")) == ([0], [60])
    handle.stop(finish=True)
    assert (starts(handle, "final"), starts(handle, "provisional")) == ([0, 60], [])
    assert handle.status().state == "finished"


def test_a_filter_that_drops_every_row_still_moves_the_time(spark: Any, recording: Recorder) -> None:
    """Case O2: the second file has no row that passes, and yet it closes the windows of the first."""
    path = recording(90)
    session = Session()
    handle = run(session, stream_of(spark, path), SQL.replace("GROUP BY", "WHERE key <> 'a' GROUP BY"))
    wait_for(lambda: handle.status().rows == 90, LONG, "the first file")
    more_rows(path, "later.parquet", 200, 260)
    wait_for(lambda: handle.status().rows == 150, LONG, "the second file")
    assert (starts(handle, "final"), starts(handle, "provisional")) == ([0, 60], [])
    handle.stop()


def test_the_users_filters_and_time_zone_keep_their_meaning(spark: Any, recording: Recorder) -> None:
    """The DataFrame's own session is in New York, ours counts in UTC: `hour` means the user's, times are instants."""
    from pyspark.sql import functions as F

    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "America/New_York")
    frame = stream_of(theirs, recording(7_200)).where(F.hour("ts") == 20)  # 01:00 in UTC is 20:00 there
    handle = run(Session(), frame, trigger="available_now")
    assert handle.wait(LONG)
    found = starts(handle, "final")
    assert found == list(range(3_600, 7_200, 60))
    assert theirs.conf.get("spark.sql.session.timeZone") == "America/New_York"
    assert not theirs.catalog.listTables("global_temp"), "nothing is left of the way between the sessions"


def test_rows_that_spark_has_dropped_duplicates_of(spark: Any, recording: Recorder) -> None:
    """A stateful operator of the user's own before ours: 300 rows twice are 300 rows."""
    path = recording(300)
    recording(300, name="again.parquet")
    frame = stream_of(spark, path).dropDuplicates(["ts", "key"])
    handle = run(Session(), frame, trigger="available_now")
    assert handle.wait(LONG)
    assert sum(handle.results(status="final")["n"]) == 300


@pytest.mark.parametrize("name", ["windows", "outer join"])
def test_what_spark_computes_before_comes_once_it_is_final(spark: Any, recording: Recorder, name: str) -> None:
    """Windows and joins of the user's own, as Spark appends them to a sink: not as they are while they change."""
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")  # as it is where nobody says
    theirs.conf.set("spark.sql.shuffle.partitions", "2")
    rows = stream_of(theirs, recording(1_000)).withWatermark("ts", "20 seconds")
    if name == "windows":
        own = rows.groupBy(F.window("ts", "10 seconds"), "key").agg(F.sum("value").alias("value"))
        frame = own.select(F.col("window.start").alias("ts"), "key", "value")
    else:
        other = rows.where("value % 3 = 0").select(F.col("ts").alias("then"), F.col("key").alias("whose"))
        frame = rows.join(other, F.expr("ts = then AND key = whose"), "leftOuter").drop("then", "whose")
    writer = frame.writeStream.format("memory").queryName("appended").trigger(availableNow=True)
    writer.start().awaitTermination()
    count, total = theirs.table("appended").agg(F.count("*"), F.sum("value")).first()
    sql = "SELECT key, count(*) AS n, sum(value) AS total FROM events GROUP BY key, window(ts, '1 minute')"
    handle = run(Session(), frame, sql, trigger="available_now")
    assert handle.wait(LONG)
    found = handle.results()
    assert (found["n"].sum(), found["total"].sum()) == (count, total)
    assert count > 50


def test_a_level_is_added_to_a_stream_that_cannot_be_read_again(spark: Any, recording: Recorder) -> None:
    """The running plan changes: the old level keeps its results, the new one tells the windows that begin after."""
    path = recording(90)
    session = Session()
    handle = run(session, stream_of(spark, path))
    wait_for(lambda: handle.status().batch_seconds > 0, LONG, "the end of the first micro-batch")
    handle.add_level("2 minutes / 1 minute")
    more_rows(path, "later.parquet", 90, 400)
    wait_for(lambda: handle.status().rows == 400, LONG, "the second file")
    assert starts(handle, "final")[:2] == [0, 60]
    new = handle.results("2 minutes / 1 minute", status="final", format="arrow")
    assert min(new.column("window_start").cast(pa.int64()).to_pylist()) == 120 * SECOND
    assert set(new.filter(pa.compute.equal(new["key"], "a")).column("n").to_pylist()) == {120}
    handle.stop()
