"""A result for each row on Spark: tables in one job, recordings and DataFrames as streams, equal to the oracle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SECOND
from tests.spark.test_runner import LONG
from workbench.feeds import feed
from workbench.logical import Workload
from workbench.runtime.reference import reference
from workbench.session import LiveQuery, Session

pytestmark = pytest.mark.spark

#: Each row from rows before it; and from rows behind it as well, for which it waits.
SQL = """SELECT ts, key, value - lag(value) OVER w AS step, lag(key, 2, '-') OVER w AS two, row_number() OVER w AS n,
rank() OVER w AS r, sum(value) OVER (w ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING) AS before,
max(value) OVER (w ROWS 3 PRECEDING) AS most, count(*) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 4 PRECEDING) AS c,
sum(value) OVER (w RANGE BETWEEN INTERVAL '40' SECOND PRECEDING AND INTERVAL '10' SECOND PRECEDING) AS then,
last_value(value) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '30' SECOND PRECEDING) AS old
FROM events WINDOW w AS (PARTITION BY key ORDER BY ts)"""

LATER = """SELECT ts, lead(value, 2, -1) OVER w AS two, lag(key) OVER w AS before,
sum(value) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING) AS total,
min(value) OVER (w RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND INTERVAL '15' SECOND FOLLOWING) AS least,
sum(value) OVER w AS known FROM events WINDOW w AS (PARTITION BY key ORDER BY ts)"""


def rows(count: int = 600) -> pa.Table:
    """Rows that come up to 20 s behind later ones, some of one time and key, some without a value or a key."""
    random = np.random.default_rng(12)
    seconds = np.arange(count) // 2 + random.integers(-20, 1, count)
    none = random.random((2, count)) < 0.1
    columns = [
        pa.array(seconds * SECOND).cast(SCHEMA.field("ts").type),
        pa.array(random.choice(["a", "b", "c"], count).astype(object), pa.string(), mask=none[0]),
        pa.array(random.integers(-(2**40), 2**40, count), mask=none[1]),
    ]
    return pa.table(columns, schema=SCHEMA)


def check(data: Any, table: pa.Table, sql: str = SQL, **options: Any) -> LiveQuery:
    """Every row with its values, as a set, as rows of one time and key have no order in a store."""
    session = Session()
    session.source("events", data, time="ts", delay="30 seconds", **options)
    (handle,) = session.start(session.parse(sql, name="q"))
    assert handle.wait(LONG)
    status = handle.status()
    assert (status.state, status.rows, status.late) == ("finished", len(table), 0), status
    expected, _ = reference(Workload(handle.query.stream, (handle.query,)), [table])
    names = [name for name, _ in handle.store.schema.values]
    found = handle.results(status="final", format="arrow").select(["key", *names]).to_pylist()
    wanted = [(*at[1], *values) for at, values in expected["q"].items()]
    assert sorted(map(str, (tuple(row.values()) for row in found))) == sorted(map(str, wanted))
    return handle


def files(table: pa.Table, folder: Path, number: int = 4) -> str:
    """The table as some Parquet files, the later rows in files that are a minute newer."""
    folder.mkdir()
    size = len(table) // number
    for place in range(number):
        file = folder / f"{place}.parquet"
        pq.write_table(table.slice(place * size, size), file)
        os.utime(file, (60 * place, 60 * place))
    return str(folder)


@pytest.mark.parametrize("sql", [SQL, LATER], ids=["before", "behind"])
def test_a_recording_in_several_micro_batches(spark: Any, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """State goes from one to the next, in several buckets."""
    monkeypatch.setattr(feed, "TASK_ROWS", 50)
    table = rows()
    assert check(table, table, sql, max_rows=100).status().batches > 4


@pytest.mark.parametrize("sql", [SQL, LATER], ids=["before", "behind"])
def test_a_recording_in_one_job(spark: Any, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "TASK_ROWS", 150)
    table = rows()
    check(table, table, sql, replay="backfill")


def test_a_dataframe(spark: Any) -> None:
    table = rows()
    check(spark.createDataFrame(table).repartition(3), table)


def test_a_stream_of_the_users(spark: Any, tmp_path: Path) -> None:
    table = rows()
    reader = spark.readStream.schema(spark.createDataFrame(table).schema).option("maxFilesPerTrigger", 1)
    stream = reader.parquet(files(table, tmp_path / "events"))
    check(stream, table, trigger="available_now")
