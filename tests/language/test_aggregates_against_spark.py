"""Every aggregate that Spark has gives what Spark's batch engine gives, by key and sliding window.

Left out is what differs on purpose (docs/aggregates.md): NaN in ``min``, ``max`` and quantiles propagates here,
and ties of ``mode``, ``min_by`` and ``max_by``, which Spark leaves open.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

#: `x`, `y` and `n` without NaN, `z` with NaN and inf, `u` without equal values, `m` with a clear mode, `c` constant.
AGGREGATES = """
skewness(x); skewness(n); skewness(z); skewness(c); kurtosis(x); kurtosis(n); kurtosis(z); kurtosis(c)
covar_samp(x, y); covar_samp(n, x); covar_samp(x, z); covar_pop(x, y); covar_pop(y, z)
corr(x, y); corr(n, y); corr(x, z); corr(x, c); var_samp(x); var_pop(x); stddev_samp(n); stddev_pop(n)
percentile(x, 0.3); percentile(n, array(0, 0.25, 1)); median(y); median(n); mode(m); mode(t)
min_by(s, u); max_by(s, u); min_by(x, u); max_by(d, u); min_by(b, s || CAST(i AS string))
bool_and(b); every(b); bool_or(b); some(b); any(b); bool_and(x > -100)
count(DISTINCT x); count(DISTINCT z); count(DISTINCT s); count(DISTINCT d); count(DISTINCT b); count(DISTINCT ts)
min(s); max(s); min(d); max(d); min(ts); max(b); min(x); max(n); sum(n); avg(x); count(x); count_if(b)
"""
CASES = [text.strip() for text in AGGREGATES.replace("\n", ";").split(";") if text.strip()]
WINDOW = "window(ts, '40 seconds', '15 seconds')"


def rows() -> pa.Table:
    chance = random.Random(11)
    start = datetime(1969, 12, 31, 23, 58, tzinfo=UTC)
    return pa.Table.from_pylist(
        [
            {
                "ts": start + timedelta(seconds=chance.randrange(240)),
                "k": chance.choice(["a", "b", None]),
                "i": number,
                "x": chance.choice([None, -1.5, 0.0, -0.0, 2.25, 1e9]),
                "y": chance.choice([None, 0.125, 7.0, -3e5]),
                "z": chance.choice([None, 1.0, 2.0, 3.0, 4.0, 5.0, math.nan, math.inf, -0.0, 0.0]),
                "u": chance.random() if chance.random() < 0.8 else None,
                "n": chance.choice([None, 1, -7, 2**40]),
                "m": 5 if number % 4 else number,
                "t": "often" if number % 4 else f"{number}",
                "c": 0.1,
                "s": chance.choice([None, "", "é", "Z", "a"]),
                "b": chance.choice([None, True, True, False]),
                "d": chance.choice([None, date(1969, 12, 31), date(2024, 2, 29)]),
            }
            for number in range(400)
        ],
        pa.schema(
            [
                ("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("i", pa.int64()), ("x", pa.float64()),
                ("y", pa.float64()), ("z", pa.float64()), ("u", pa.float64()), ("n", pa.int64()), ("m", pa.int64()),
                ("t", pa.string()), ("c", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("d", pa.date32()),
            ]
        ),
    )  # fmt: skip


def ours(table: pa.Table) -> dict[tuple[Any, ...], list[Any]]:
    stream = Stream("rows", table.schema, "ts", 300_000_000)
    items = ", ".join(f"{text} AS c{number}" for number, text in enumerate(CASES))
    queries = parse_queries(f"SELECT k, {items} FROM rows GROUP BY k, {WINDOW}", {"rows": stream}, name="q")
    engine = Engine(compile_workload(Workload(stream, queries)), buckets=2)
    engine.run([table.slice(0, 150), table.slice(150)])
    found = engine.results["q"].table().to_pylist()
    return {(row["k"], row["window_start"]): [row[f"c{number}"] for number in range(len(CASES))] for row in found}


def same(left: Any, right: Any) -> bool:
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return (left != left and right != right) or left == pytest.approx(right, rel=1e-9, abs=1e-12)
    return bool(left == right)


@pytest.mark.spark
def test_same_results_as_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_KERNELS", "generic")
    table = rows()
    spark.createDataFrame(table).createOrReplaceTempView("rows")
    items = ", ".join(f"{text} AS c{number}" for number, text in enumerate(CASES))
    theirs = spark.sql(f"SELECT k, window.start AS s, {items} FROM rows GROUP BY k, {WINDOW}").toArrow().to_pylist()
    found = ours(table)
    assert len(found) == len(theirs) > 50
    faults = []
    for row in theirs:
        mine = found[row["k"], row["s"]]
        for number, text in enumerate(CASES):
            if not same(mine[number], row[f"c{number}"]):
                faults.append(f"{text} of {row['k']}, {row['s']}: ours {mine[number]}, spark {row[f'c{number}']}")
    assert not faults, "\n".join(faults[:20])
