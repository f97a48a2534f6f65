"""Decimals from a Parquet file through a Spark stream into results and a folder, against Spark's batch answer."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.session import Session

pytestmark = pytest.mark.spark

SECOND = 1_000_000
VALUES = {
    "revenue": "sum(price * units)",
    "mean": "avg(price)",
    "top": "max(price)",
    "low": "min(price)",
    "kinds": "count(DISTINCT price)",
    "middle": "median(price)",
    "each": "sum(price) / nullif(count(price), 0)",
    "wide": "sum(CAST(price AS decimal(30, 6)))",
}


def sales() -> pa.Table:
    chance = random.Random(23)
    size = 3_000
    prices = [chance.choice([None, Decimal(chance.randrange(-(10**9), 10**9)).scaleb(-2)]) for _ in range(size)]
    return pa.table(
        {
            "ts": pa.array(sorted(chance.randrange(3_600) * SECOND for _ in range(size)), pa.timestamp("us", "UTC")),
            "shop": [chance.choice(["a", "b", None]) for _ in range(size)],
            "price": pa.array(prices, pa.decimal128(12, 2)),
            "units": pa.array([chance.randrange(100) for _ in range(size)], pa.int32()),
        }
    )


def answers(table: pa.Table) -> list[tuple[Any, ...]]:
    names = ["shop", "window_start", *VALUES]
    rows = [tuple(row[name] for name in names) for row in table.select(names).to_pylist()]
    return sorted(rows, key=lambda row: (str(row[0]), row[1]))


@pytest.mark.parametrize("kind", ["file", "frame", "stream"])
def test_equal_to_the_batch_answer(spark: Any, tmp_path: Path, kind: str) -> None:
    pq.write_table(sales(), tmp_path / "sales.parquet")
    items = ", ".join(f"{text} AS {name}" for name, text in VALUES.items())
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("sales_rows")
    batch = spark.sql(
        f"SELECT shop, window.start AS window_start, {items} FROM sales_rows "
        "GROUP BY shop, window(ts, '10 minutes', '4 minutes')"
    ).toArrow()
    session = Session()
    frame = spark.read.parquet(str(tmp_path))
    data = {
        "file": str(tmp_path / "sales.parquet"),
        "frame": frame,
        "stream": spark.readStream.schema(frame.schema).parquet(str(tmp_path)),
    }
    session.source("sales", data[kind], time="ts", **({"trigger": "available_now"} if kind == "stream" else {}))
    statement = f"SELECT shop, {items} FROM sales GROUP BY shop, window(ts, '10 minutes', '4 minutes')"
    (handle,) = session.start(session.parse(statement, name="money"))
    handle.wait()
    ours = handle.results(format="arrow")
    assert [ours.schema.field(name).type for name in VALUES] == [batch.schema.field(name).type for name in VALUES]
    assert answers(ours) == answers(batch)
    assert answers(handle.results(format="spark").toArrow()) == answers(batch)
    session.stop_all()
