"""Whole statements give what Spark's batch engine gives: keys of every type, HAVING, aliases, sub-selects, joins."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from workbench.language import Catalog, parse_queries
from workbench.logical import Stream, Workload
from workbench.logical.joins import StaticTable
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

WINDOW = "window(ts, '40 seconds', '15 seconds')"

#: `start` stands for the start of the window, which is in every result of ours.
STATEMENTS = f"""
SELECT start, k, count(*) AS n FROM rows GROUP BY k, {WINDOW};
SELECT start, n, b, d, count(*) AS c FROM rows GROUP BY n, b, d, {WINDOW};
SELECT start, x, count(*) AS c, sum(n) AS s FROM rows GROUP BY x, {WINDOW};
SELECT start, at, count(*) AS c FROM rows GROUP BY at, {WINDOW};
SELECT start, r.id, count(*) AS c FROM rows GROUP BY r.id, {WINDOW};
SELECT start, upper(k) AS big, x > 0 AS up, count(*) AS c FROM rows GROUP BY upper(k), x > 0, {WINDOW};
SELECT start, CASE WHEN n > 1 THEN 'many' ELSE k END AS what, max(x) AS m FROM rows
    WHERE x < 100 GROUP BY what, {WINDOW};
SELECT start, k, count(*) AS c FROM rows GROUP BY 2, {WINDOW} HAVING c > 3 AND k IS NOT NULL;
SELECT start, k, sum(n) AS s FROM rows GROUP BY k, {WINDOW} HAVING max(n) > 1 OR s IS NULL;
SELECT start, count(*) AS c, c * 2 AS d, avg(n) + count(n) AS e FROM rows GROUP BY {WINDOW} HAVING count(*) > 1;
SELECT start, k, count(*) FILTER (WHERE n > 0) AS c, sum(n) FILTER (WHERE b) AS s, max(x) FILTER (WHERE x < 5) AS m
    FROM rows GROUP BY k, {WINDOW};
SELECT start, sum(n) AS total, total * 2 AS twice, count(DISTINCT k) FILTER (WHERE b) AS ks
    FROM rows GROUP BY {WINDOW};
SELECT start, k || '!' AS kk, count(*) AS c FROM rows GROUP BY k, {WINDOW};
SELECT start, hour(at) AS h, minute(at) % 2 AS m, count(*) AS c FROM rows
    WHERE at >= '1969-12-31' GROUP BY hour(at), m, {WINDOW};
WITH some AS (SELECT ts, k AS name, n * 2 AS twice FROM rows WHERE n IS NOT NULL)
    SELECT start, name, sum(twice) AS t FROM some WHERE twice > -10 GROUP BY name, {WINDOW};
SELECT start, q.name, max(q.half) AS m FROM (SELECT *, k AS name, x / 2 AS half FROM rows) AS q
    WHERE q.half > -1 GROUP BY q.name, {WINDOW};
SELECT start, label, count(*) AS c, sum(weight) AS w FROM rows JOIN names USING (k) GROUP BY label, {WINDOW};
SELECT start, label, k, count(*) AS c FROM rows LEFT JOIN names USING (k) GROUP BY label, k, {WINDOW};
SELECT start, t.label, count(*) AS c FROM rows AS s JOIN names AS t ON s.n = t.weight AND t.label <> s.k
    WHERE s.x > 0 GROUP BY t.label, {WINDOW};
SELECT start, count(*) AS c, count(label) AS l FROM rows LEFT JOIN names ON rows.x = names.y GROUP BY {WINDOW};
WITH a AS (SELECT rows.*, label FROM rows JOIN names ON rows.k = names.k), b AS (SELECT ts, label FROM a WHERE n > 0)
    SELECT start, label, count(*) AS c FROM b GROUP BY label, {WINDOW}
"""
CASES = [text.strip() for text in STATEMENTS.split(";")]
NAMES = pa.table(
    {
        "k": ["a", "a", "b", None, "zz"],
        "label": ["first", "second", None, "nobody", "never"],
        "weight": pa.array([1, 2, -7, 4, None], pa.int32()),
        "y": [0.0, float("nan"), 2.25, None, -1.5],
    }
)


def rows() -> pa.Table:
    chance = random.Random(5)
    start = datetime(1969, 12, 31, 23, 58, tzinfo=UTC)
    return pa.Table.from_pylist(
        [
            {
                "ts": start + timedelta(seconds=chance.randrange(200)),
                "k": chance.choice(["a", "b", "", None]),
                "n": chance.choice([None, 1, 2, -7, 2**40]),
                "x": chance.choice([None, -1.5, 0.0, -0.0, 2.25, float("nan"), float("inf")]),
                "b": chance.choice([None, True, False]),
                "d": chance.choice([None, date(1969, 12, 31), date(2024, 2, 29)]),
                "at": chance.choice([None, start, start + timedelta(seconds=90)]),
                "r": chance.choice([None, {"id": 1}, {"id": None}]),
            }
            for _ in range(300)
        ],
        pa.schema(
            [
                ("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("n", pa.int64()), ("x", pa.float64()),
                ("b", pa.bool_()), ("d", pa.date32()), ("at", pa.timestamp("us", "UTC")),
                ("r", pa.struct([("id", pa.int32())])),
            ]
        ),
    )  # fmt: skip


def described(found: list[dict[str, Any]]) -> list[str]:
    """Rows in one order, floats with twelve digits, both zeros the same."""
    return sorted(
        str([f"{value + 0.0:.12g}" if isinstance(value, float) else value for value in row.values()]) for row in found
    )


def ours(table: pa.Table, statement: str) -> list[dict[str, Any]]:
    stream = Stream("rows", table.schema, "ts", 300_000_000)
    catalog = Catalog({"rows": stream}, {"names": StaticTable.of("names", NAMES)})
    # The start of the window is no item of ours; a number in GROUP BY counts without it.
    sql = statement.replace("SELECT start, ", "SELECT ").replace("GROUP BY 2,", "GROUP BY 1,")
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, catalog, name="q"))), buckets=2)
    engine.run([table.slice(0, 100), table.slice(100)])
    found = engine.results["q"].table().to_pylist()
    dropped = ("level", "window_start", "window_end", "status", "revision")
    return [
        {"start": row["window_start"], **{name: value for name, value in row.items() if name not in dropped}}
        for row in found
    ]


@pytest.mark.spark
def test_same_rows_as_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_KERNELS", "generic")
    table = rows()
    spark.createDataFrame(table).createOrReplaceTempView("rows")
    spark.createDataFrame(NAMES).createOrReplaceTempView("names")
    faults = []
    for statement in CASES:
        theirs = spark.sql(statement.replace("SELECT start,", "SELECT window.start AS start,")).toArrow().to_pylist()
        mine = ours(table, statement)
        assert theirs, statement
        # Ours has every key; where the statement leaves one out of its items, so does the comparison.
        mine = [{name: row[name] for name in theirs[0]} for row in mine]
        if described(mine) != described(theirs):
            faults.append(f"{statement}\n  ours  {described(mine)[:5]}\n  spark {described(theirs)[:5]}")
    assert not faults, "\n".join(faults)
