"""Data that is all there: the shared plan in one job, against the oracle, Spark's `window()` and itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.spark.events import SCHEMA, SECOND
from tests.spark.test_runner import LONG
from workbench.errors import QueryError, SourceError
from workbench.feeds import feed
from workbench.logical import Workload
from workbench.runtime.reference import reference
from workbench.session import LiveQuery, Session

pytestmark = pytest.mark.spark

Recorder = Callable[..., str]


def rows(count: int = 1_000, seed: int = 5) -> pa.Table:
    """Rows in no order of time, some before 1970, some without time, key or value; floats with NaN and both zeros."""
    random = np.random.default_rng(seed)
    times = random.integers(-600, 3_000, count) * SECOND + random.integers(0, 3, count) * 333_333
    none = random.random((4, count)) < 0.05
    floats = random.choice(
        [0.0, -0.0, 1.5, -2.25, np.nan, 1e9, np.inf, 3.0], count, p=[0.1] * 4 + [0.02, 0.1, 0.01, 0.47]
    )
    columns = {
        "ts": pa.array(times, mask=none[0]).cast(SCHEMA.field("ts").type),
        "key": pa.array(random.choice(["a", "b", "c", ""], count).astype(object), pa.string(), mask=none[1]),
        "value": pa.array(random.integers(-(2**40), 2**40, count), mask=none[2]),
        "x": pa.array(floats, mask=none[3]),
    }
    return pa.table(columns)


def frame_of(spark: Any, table: pa.Table, partitions: int = 3) -> Any:
    return spark.createDataFrame(table).repartition(partitions)


def run(data: Any, sql: str, **options: Any) -> LiveQuery:
    session = Session()
    session.source("events", data, time="ts", delay="5 seconds", **options)
    (handle,) = session.start(session.parse(sql, name="q"))
    assert handle.wait(LONG)
    assert handle.status().state == "finished"
    return handle


def answers(handle: LiveQuery) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """(level, key, start, end) -> values of the final windows, each once. A window of rows may never be full."""
    table = handle.results(status="final", format="arrow")
    labels = [level.label for level in handle.store.schema.levels]
    names = [name for name, _ in handle.store.schema.values]
    keys = [name for name, _ in handle.store.schema.keys]
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    bounds = [table[f"window_{side}"].cast(pa.int64()).to_pylist() for side in ("start", "end")]
    for place, row in enumerate(table.to_pylist()):
        at = labels.index(row["level"]), tuple(row[key] for key in keys), bounds[0][place], bounds[1][place]
        assert at not in found
        found[at] = tuple(row[name] for name in names)
    return found


def oracle(handle: LiveQuery, table: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The same by recalculation, of all rows at once."""
    found, _ = reference(Workload(handle.query.stream, (handle.query,)), [table])
    return {at[:4]: values for at, values in found["q"].items()}


def assert_same(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    assert len(expected) > 5
    assert found.keys() == expected.keys()
    for at, values in expected.items():
        for got, right in zip(found[at], values, strict=True):
            if isinstance(right, float):
                np.testing.assert_allclose(got, right, rtol=1e-9, err_msg=str(at))
            else:
                assert got == right, at


WORKLOADS = {
    "zoom": "SELECT key, sum(value) AS total, avg(x) AS mean, min(x) AS least, max(x) AS most, count(*) AS n,"
    " count(x) AS known, stddev(x) AS spread FROM events WHERE value > -100000000000 AND key IS NOT NULL"
    " GROUP BY key, zoom(ts, '1 minute / 7 seconds', '10 minutes')",
    "no key": "SELECT count(*) AS n, sum(value) AS total FROM events GROUP BY window(ts, '90 seconds')",
    "first": "SELECT key, first(value) AS a, last(value) AS b FROM events GROUP BY key, window(ts, '5 minutes')",
    "sessions": "SELECT key, count(*) AS n FROM events GROUP BY key, session_window(ts, '4 seconds')",
    "rows": "SELECT key, sum(value) AS total FROM events GROUP BY key, count_window(40, 10)",
    "median": "SELECT key, median(value) AS mid FROM events GROUP BY key, window(ts, '10 minutes')",
}


@pytest.mark.parametrize("sql", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_every_window_equals_the_oracle(spark: Any, sql: str) -> None:
    """Also where order counts: partitions come in no order, and the rows in them."""
    table = rows()
    handle = run(frame_of(spark, table), sql)
    assert_same(answers(handle), oracle(handle, table))
    assert (handle.status().rows, handle.status().late) == (len(table), 0)


@pytest.mark.parametrize("sql", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_a_recording_equals_the_oracle(spark: Any, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by four tasks; rows that a stream would have found late count like all others."""
    monkeypatch.setattr(feed, "TASK_ROWS", 250)
    table = rows(seed=7)
    handle = run(table, sql, replay="backfill")
    assert_same(answers(handle), oracle(handle, table))
    status = handle.status()
    assert (status.rows, status.late, status.batches) == (len(table), 0, 1)


def test_what_has_no_meaning_for_a_backfill(tmp_path: Path) -> None:
    session = Session()
    for option, value in {"max_rows": 5, "lateness": "1 minute", "idle": "1 minute"}.items():
        with pytest.raises(SourceError, match=f"`{option}` has no meaning"):
            session.source("events", rows(10), time="ts", replay="backfill", **{option: value})
    with pytest.raises(SourceError, match="`replay` has no meaning for a folder"):
        session.source("events", tmp_path, time="ts", schema="ts TIMESTAMP", follow=True, replay="backfill")
    with pytest.raises(SourceError, match="`checkpoint` is for streams"):
        session.source("events", rows(10), time="ts", replay="backfill", checkpoint=tmp_path / "c")
    assert not (tmp_path / "c").exists()


TUNGSTEN = ("zoom", "no key")


@pytest.mark.parametrize("name", TUNGSTEN)
def test_tungsten_gives_what_arrow_and_the_oracle_give(spark: Any, name: str) -> None:
    """With sums near both ends of 64 bits, NaN, both zeros, groups without a value, filters and NULL keys."""
    table = rows(seed=11)
    frame = frame_of(spark, table)
    found = {variant: run(frame, WORKLOADS[name], level1=variant) for variant in ("arrow", "tungsten")}
    assert "level 1 tungsten: as asked for" in found["tungsten"].explain()
    expected = oracle(found["arrow"], table)
    for handle in found.values():
        assert_same(answers(handle), expected)
    assert found["tungsten"].status().rows == len(table)
    assert found["tungsten"].status().max_event == found["arrow"].status().max_event


#: What a session of the user's may be set to, all of it at once.
ODD = {
    "spark.sql.session.timeZone": "America/St_Johns",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
}


@pytest.mark.parametrize("level1", ["arrow", "tungsten"])
def test_a_session_with_settings_of_its_own_gives_the_same(spark: Any, level1: str) -> None:
    theirs, table = spark.newSession(), rows(seed=13)
    for name, value in ODD.items():
        theirs.conf.set(name, value)
    handle = run(frame_of(theirs, table), WORKLOADS["zoom"], level1=level1)
    assert_same(answers(handle), oracle(handle, table))
    assert {name: theirs.conf.get(name) for name in ODD} == ODD, "they are the user's"


def test_sums_of_64_bits_do_not_wrap_in_spark(spark: Any) -> None:
    """Three times 2**63 - 1 and their negatives: halves are summed apart, and the sum of all is what is left, 7."""
    most = 2**63 - 1
    values = [most, most, most, -most, -most, -most, 7]
    table = pa.table({"ts": pa.array([0] * 7).cast(SCHEMA.field("ts").type), "value": values})
    sql = "SELECT sum(value) AS total, avg(value) AS mean FROM events GROUP BY window(ts, '1 minute')"
    handle = run(frame_of(spark, table), sql, level1="tungsten")
    assert list(answers(handle).values()) == [(7, 1.0)]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("median", "Spark has nothing equal to"), ("sessions", "slices depend on more"), ("first", "nothing equal to")],
)
def test_what_tungsten_cannot_run(spark: Any, name: str, reason: str) -> None:
    """Forced it is refused before anything starts; by itself level 1 is arrow then, and says why."""
    session = Session()
    session.source("events", frame_of(spark, rows(10)), time="ts", level1="tungsten")
    with pytest.raises(QueryError, match=reason):
        session.start(session.parse(WORKLOADS[name], name="q"))
    session.source("events", frame_of(spark, rows(10)), time="ts")
    assert "level 1 arrow: tungsten cannot" in session.explain(session.parse(WORKLOADS[name], name="q"))


def test_a_backfill_that_is_stopped_at_once_gives_nothing(spark: Any) -> None:
    """Its job is not with Spark yet, so there is nothing to cancel: it must not run afterwards."""
    session = Session()
    session.source("events", rows(), time="ts", replay="backfill")
    (handle,) = session.start(session.parse("SELECT count(*) AS n FROM events GROUP BY window(ts, '1 s')", name="q"))
    runner: Any = session._streams["events"]._runner
    assert runner.stop(LONG)
    handle.stop()
    assert handle.status().state == "stopped"
    assert handle.store.version == 0


def test_no_rows_at_all(spark: Any) -> None:
    for variant in ("arrow", "tungsten"):
        handle = run(spark.createDataFrame(rows(10)).where("false"), WORKLOADS["no key"], level1=variant)
        assert (handle.status().rows, len(handle.results())) == (0, 0)


def test_a_backfill_equals_sparks_window(spark: Any) -> None:
    """Spark's own sliding window over the same DataFrame, every window of every key."""
    table = rows(seed=3)
    frame = frame_of(spark, table).where("ts IS NOT NULL AND key IS NOT NULL")
    select = "SELECT key, sum(value) AS total, count(*) AS n FROM events"
    sql = f"{select} GROUP BY key, window(ts, '5 minutes', '1 minute')"
    handle = run(frame, sql)
    answer = frame.groupBy("key", F.window("ts", "5 minutes", "1 minute").alias("w"))
    answer = answer.agg(F.sum("value").alias("total"), F.count("*").alias("n"))
    bounds = F.unix_micros("w.start").alias("start"), F.unix_micros("w.end").alias("end")
    expected = {
        (0, (row.key,), row.start, row.end): (row.total, row.n)
        for row in answer.select("key", "total", "n", *bounds).collect()
    }
    assert_same(answers(handle), expected)
