"""What cannot be a source, and why: group R of the cases, each refused before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.spark.events import SQL
from workbench import signal, signals
from workbench.errors import SourceError
from workbench.session import Session
from workbench.session.frames import is_frame
from workbench.session.sources import source_arguments
from workbench.spark.frames import HANDING, handing_over, joined, schema_of

pytestmark = pytest.mark.spark

Change = Callable[[Any], Any]


def events(spark: Any) -> Any:
    return spark.range(3).select(F.timestamp_seconds("id").alias("ts"), F.lit("a").alias("key"), "id")


@pytest.mark.parametrize(
    ("change", "options", "message", "hint"),
    [
        (lambda df: df, {"time": "tz"}, "no column `tz` for `time`", "known: `id`, `key`, `ts`"),
        (lambda df: df, {}, "needs its event time", "timestamp columns: `ts`"),
        (
            lambda df: df.withColumn("ts", F.col("ts").cast("string")),
            {"time": "ts"},
            "column `ts` of type `string` is not a timestamp",
            "to_timestamp('ts')",
        ),
        (lambda df: df, {"time": "id"}, "column `id` of type `bigint` is not a timestamp", "timestamp_millis"),
        (
            lambda df: df.withColumn("ts", F.col("ts").cast("timestamp_ntz")),
            {"time": "ts"},
            "column `ts` of type `timestamp_ntz` is not a timestamp",
            "takes it in the session's time zone, `UTC`",
        ),
        (lambda df: df.withColumn("ts", F.to_date("ts")), {"time": "ts"}, "of type `date`", "midnight of each day"),
        (lambda df: df.select("*", F.lit(1).alias("KEY")), {"time": "ts"}, "two columns `KEY`", "Spark ignores case"),
        (lambda df: df, {"time": "ts", "trigger": "available_now"}, "this one is batch", "spark.readStream"),
        (lambda df: df, {"time": "ts", "level1": "tungstn"}, "no level 1 `tungstn`", "did you mean `tungsten`"),
        (lambda df: df, {"time": "ts", "replay": "60x"}, "`replay` is for recorded data", "as its own source says"),
        (lambda df: df, {"time": "ts", "delay": "soon"}, "cannot read the watermark delay", ""),
    ],
    ids=["missing", "none", "string", "number", "ntz", "date", "twice", "batch", "level", "replay", "delay"],
)
def test_what_no_source_can_be_made_of(
    spark: Any, change: Change, options: dict[str, Any], message: str, hint: str
) -> None:
    """Case R9: a wrong or missing time column is named before the start; so is every option that means nothing."""
    with pytest.raises(SourceError) as caught:
        Session().source("events", change(events(spark)), **options)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level1": "tungsten"}, "is for batch DataFrames, this one is streaming"),
        ({"trigger": "often"}, "cannot read the trigger"),
        ({"max_rows": 5}, "`max_rows` is for recorded data"),
    ],
)
def test_what_a_stream_cannot_have(spark: Any, options: dict[str, Any], message: str) -> None:
    rate = spark.readStream.format("rate").load()
    with pytest.raises(SourceError, match=message):
        Session().source("events", rate, time="timestamp", **options)


@pytest.mark.parametrize(
    ("streaming", "options"),
    [(True, {"trigger": "5 seconds", "lateness": "1 hour"}), (False, {"level1": "arrow"}), (False, {}), (True, {})],
)
def test_the_python_of_a_source_runs_its_frame_the_same_way(
    spark: Any, streaming: bool, options: dict[str, Any]
) -> None:
    """With ``trigger="available_now"`` left out the stream would not end."""
    data = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts") if streaming else events(spark)
    source = Session().source("s", data, time="ts", **options)
    again = eval(f"Session().source('s', {', '.join(source_arguments(source))})", {"Session": Session, "data": data})
    assert again == source


def test_recorded_data_has_no_trigger() -> None:
    with pytest.raises(SourceError, match="`trigger` is for Spark DataFrames"):
        Session().source("events", pa.table({"ts": pa.array([], pa.timestamp("us"))}), time="ts", trigger="1 second")


def test_a_frame_whose_session_has_ended(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `spark.stop()`, which would end the session of all other tests."""
    frame = events(spark)
    monkeypatch.setattr(frame.sparkSession.sparkContext, "_jsc", None)
    with pytest.raises(SourceError, match="has been stopped"):
        Session().source("events", frame, time="ts")


def test_frames_of_connect_and_of_pandas_on_spark() -> None:
    connect = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    pandas = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})()
    with pytest.raises(SourceError, match="one of Spark Connect"):
        Session().source("events", connect, time="ts")
    with pytest.raises(SourceError, match="pandas on Spark"):
        Session().source("events", pandas, time="ts")
    assert not is_frame(pa.table({}).to_pandas())


def test_a_static_table_of_a_frame(spark: Any) -> None:
    session = Session()
    assert session.table("carriers", events(spark).select("key", "id")).rows == 3
    with pytest.raises(SourceError, match="cannot be a streaming DataFrame"):
        session.table("rates", spark.readStream.format("rate").load())


def test_times_are_whole_microseconds_of_utc(spark: Any) -> None:
    """Case R1: what Spark hands over is microseconds of UTC whatever zone the session is in; other types follow."""
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    schema = schema_of(events(theirs))
    assert schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert (schema.field("key").type, schema.field("id").type) == (pa.string(), pa.int64())


SIGNS = "SELECT `a``b` AS k, first(`x.y`) AS x, count(*) AS n FROM events GROUP BY k, window(`at.time`, '1 minute')"


def with_signs(frame: Any) -> Any:
    return frame.select(F.col("ts").alias("at.time"), F.col("key").alias("a`b"), F.col("id").alias("x.y"))


@pytest.mark.parametrize("level1", ["arrow", "tungsten"])
def test_names_with_signs_are_names(spark: Any, level1: str) -> None:
    """Dots and backticks mean nothing in the name of a column."""
    sql = SIGNS if level1 == "arrow" else SIGNS.replace("first", "max")
    session = Session()
    session.source("events", with_signs(events(spark)), time="at.time", level1=level1)
    (handle,) = session.start(session.parse(sql, name="q"))
    assert handle.wait(180)
    assert handle.results()["n"].tolist() == [3]


def test_names_with_signs_in_streams_and_signals(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(30).selectExpr("timestamp_seconds(id) AS ts", "'a' AS key", "id")
    with_signs(rows).write.parquet(str(tmp_path / "in"))
    stored = spark.read.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(stored.schema).parquet(str(tmp_path / "in"))
    session = Session()
    session.source("events", stream, time="at.time", delay="0 s", trigger="available_now")
    (handle,) = session.start(session.parse(SIGNS, name="q"))
    assert handle.wait(180)
    assert handle.results()[["k", "x", "n"]].values.tolist() == [["a", 0, 30]]

    total = signals(total=signal("x.y").window("3 s").sum())
    batch = total.on_spark(stored, time="at.time", by="a`b").toPandas().sort_values("at.time")["total"].tolist()
    assert batch == [0, 1, *range(3, 85, 3)]
    query = (
        total.on_spark(stream, time="at.time", by="a`b")
        .writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "out"), format="parquet")
    )
    query.awaitTermination()
    found = pd.read_parquet(tmp_path / "out").sort_values("at.time")
    assert found["total"].tolist() == batch[: len(found)]
    assert len(found) > 27


def test_the_same_cell_twice_is_one_query(spark: Any) -> None:
    """Case R5: the new one, over the users' own session (R6), which goes on."""
    session = Session()
    session.source("events", events(spark), time="ts")
    for _ in range(2):
        (handle,) = session.start(session.parse(SQL.replace("sum(value)", "sum(id)"), name="q"))
        assert handle.wait(180)
    assert session.queries() == [handle]
    assert spark.range(1).count() == 1


def test_batches_are_joined_until_they_are_worth_a_call() -> None:
    """Case R2: empty input is accepted."""
    parts = [pa.record_batch({"x": pa.array(range(size), pa.int64())}) for size in (0, 3, 4, 1)]
    assert [len(batch) for batch in joined(parts, 5)] == [7, 1]
    assert list(joined([], 5)) == []


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (lambda df: df.select("ts", "id"), 65_536),
        # 16 MiB of batches, by 400 columns of 8 bytes and a bit.
        (lambda df: df.select([F.col("id").alias(f"c{n}") for n in range(400)]), (8 << 24) // (65 * 400)),
        (lambda df: df, None),  # a text
        (lambda df: df.select(F.udf(lambda x: x, "bigint")("id").alias("id")), None),
        (lambda df: df.select(F.explode(F.array("id")).alias("id")), None),
    ],
)
def test_rows_come_by_number_where_that_bounds_their_bytes(spark: Any, change: Change, rows: int | None) -> None:
    frame = change(events(spark))
    found = handing_over(frame, schema_of(frame))
    assert found == ({} if rows is None else dict(zip(HANDING, (str(rows), str(2**31 - 1)), strict=True)))
