"""The whole flights run on Spark: every final window of every level and key, against two independent answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from workbench import datasets
from workbench.logical import Workload
from workbench.runtime.reference import reference
from workbench.session import LiveQuery, Session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

LEVELS = (("15 minutes", "1 minute"), ("2 hours", "10 minutes"), ("1 day", "1 hour"))
SQL = f"""
SELECT carrier, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst, count(*) AS n
FROM flights WHERE dep_delay IS NOT NULL
GROUP BY carrier, zoom(ts, {", ".join(f"'{size} / {slide}'" for size, slide in LEVELS)})
"""


def run_flights(**options: Any) -> LiveQuery:
    session = Session()
    session.source("flights", datasets.flights(), replay="max", **options)
    (handle,) = session.start(session.parse(SQL, name="delays"))
    assert handle.wait(900)
    assert handle.status().state == "finished"
    return handle


def by_window(handle: LiveQuery, level: int) -> pd.DataFrame:
    table = handle.results(level, status="final", format="arrow")
    frame = pd.DataFrame({name: table.column(name).to_numpy() for name in ("carrier", "mean_delay", "worst", "n")})
    frame["start"] = table.column("window_start").cast(pa.int64()).to_numpy()
    return frame.sort_values(["start", "carrier"], ignore_index=True)


def assert_equal(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    expected = expected.sort_values(["start", "carrier"], ignore_index=True)
    assert len(found) == len(expected)
    for column in ("start", "carrier", "worst", "n"):
        assert (found[column].to_numpy() == expected[column].to_numpy()).all(), column
    np.testing.assert_allclose(found["mean_delay"], expected["mean_delay"], rtol=1e-12)


def test_every_window_equals_sparks_batch_answer(spark: SparkSession) -> None:
    """The delay of a day admits all rows, so nothing is late and Spark's `window()` must say the same."""
    handle = run_flights()
    assert handle.status().late == 0
    assert handle.status().rows == 336_776
    rows = spark.read.parquet(str(datasets.flights().paths[0])).where("dep_delay IS NOT NULL")
    for level, (size, slide) in enumerate(LEVELS):
        window = F.window("ts", size, slide)
        grouped = rows.groupBy("carrier", window).agg(
            F.avg("dep_delay").alias("mean_delay"), F.max("dep_delay").alias("worst"), F.count("*").alias("n")
        )
        answer = grouped.select("carrier", "mean_delay", "worst", "n", F.unix_micros("window.start").alias("start"))
        expected = pd.DataFrame(
            {n: c.to_numpy() for n, c in zip(answer.columns, answer.toArrow().columns, strict=True)}
        )
        assert len(expected) > 100_000
        assert_equal(by_window(handle, level), expected)


@pytest.mark.slow
def test_every_window_equals_the_oracle_when_rows_are_late() -> None:
    """A delay of 15 minutes: rows are late, and are counted as the oracle counts them."""
    step = 5_000
    handle = run_flights(delay="15 minutes", max_rows=step)
    table = pq.read_table(datasets.flights().paths[0])
    batches = [table.slice(first, step) for first in range(0, len(table), step)]
    query = handle.query
    answers, late = reference(Workload(query.stream, (query,)), batches)
    assert handle.status().late == late["delays"] > 100
    for level in range(len(LEVELS)):
        expected = pd.DataFrame(
            [(key[0], *values, start) for (at, key, start, *_), values in answers["delays"].items() if at == level],
            columns=["carrier", "mean_delay", "worst", "n", "start"],
        )
        assert_equal(by_window(handle, level), expected)
