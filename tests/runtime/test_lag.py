"""`lag`, `row_number`, `rank`, `first_value`, `last_value`: by hand, of all types, and equal to Spark's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from each_row import compare, rows_at, run
from strategies import SECOND

from workbench.runtime.over_table import OverTable


def both(sql: str, table: pa.Table, cuts: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """The rows of a stream, which are those of the whole table."""
    engine, rows = run(sql, table, cuts, delay=99 * SECOND)
    whole = OverTable(engine.plan).run(table)["q"]
    assert whole.to_pylist() == [{name: row[name] for name in whole.column_names} for row in rows]
    return rows


@pytest.mark.parametrize("cuts", [(), (1,), (2, 3, 5)])
def test_by_hand(cuts: tuple[int, ...]) -> None:
    """Case: a NULL is a value of the row before; the default is for rows that have none.

    ::

        time   0  1  2  3  4  5
        k      a  b  a  a  b  a
        x      1  8  -  5  2  7
    """
    table = rows_at([0, 1, 2, 3, 4, 5], k=["a", "b", "a", "a", "b", "a"], x=[1, 8, None, 5, 2, 7])
    rows = both(
        "SELECT k, x, lag(x) OVER w AS p, x - lag(x) OVER w AS step, lag(x, 2, -1) OVER w AS q, "
        "lag(x, 1, 10 * x) OVER w AS d, lag(x, 0) OVER w AS same, row_number() OVER w AS n, "
        "CASE WHEN lag(x) OVER w IS NULL THEN 'unknown' ELSE 'known' END AS c, "
        "sum(x) OVER (w ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s "
        "FROM s WINDOW w AS (PARTITION BY k ORDER BY ts)",
        table,
        cuts,
    )
    assert [row["p"] for row in rows] == [None, None, 1, None, 8, 5]
    assert [row["step"] for row in rows] == [None, None, None, None, -6, 2]
    assert [row["q"] for row in rows] == [-1, -1, -1, 1, -1, None]
    assert [row["d"] for row in rows] == [10, 80, 1, None, 8, 5]
    assert [row["same"] for row in rows] == [1, 8, None, 5, 2, 7]
    assert [row["n"] for row in rows] == [1, 1, 2, 3, 2, 4]
    assert [row["c"] for row in rows] == ["unknown", "unknown", "known", "unknown", "known", "known"]
    assert [row["s"] for row in rows] == [None, None, 1, 1, 8, 5]


def test_rank_counts_the_rows_of_earlier_times() -> None:
    """Case: peers have one rank, and leave a gap behind."""
    rows = both(
        "SELECT rank() OVER (ORDER BY ts) AS r, count(*) OVER (ORDER BY ts) AS n FROM s", rows_at([0, 1, 1, 1, 4])
    )
    assert [row["r"] for row in rows] == [1, 2, 2, 2, 5]


def test_first_and_last_value_are_those_of_rows() -> None:
    """Case: NULL is one of them, unless it is to be ignored; `first` and `last` always ignore it."""
    rows = both(
        "SELECT first_value(x) OVER w AS f, last_value(x) OVER w AS l, first_value(x) IGNORE NULLS OVER w AS g, "
        "last_value(x IGNORE NULLS) OVER w AS h, last(x) RESPECT NULLS OVER w AS m, last(x) OVER w AS o "
        "FROM s WINDOW w AS (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
        rows_at([0, 1, 2, 3, 4], x=[None, 4.0, 5.0, None, 1.0]),
        (2,),
    )
    assert [row["f"] for row in rows] == [None, None, None, 4.0, 5.0]
    assert [row["l"] for row in rows] == [None, None, 4.0, 5.0, None] == [row["m"] for row in rows]
    assert [row["g"] for row in rows] == [None, None, 4.0, 4.0, 5.0]
    assert [row["h"] for row in rows] == [None, None, 4.0, 5.0, 5.0] == [row["o"] for row in rows]


def test_every_type_comes_back_as_it_is() -> None:
    """Case: integers to the last digit, both infinities, NaN, text, times, days and conditions."""
    columns = {
        "i": pa.array([2**63 - 1, -(2**63), 0], pa.int64()),
        "small": pa.array([-128, 127, None], pa.int8()),
        "f": pa.array([float("inf"), float("-inf"), 0.1], pa.float64()),
        "half": pa.array([0.5, None, 1.0], pa.float32()),
        "t": pa.array(["", "é", None], pa.string()),
        "b": pa.array([False, None, True], pa.bool_()),
        "d": pa.array([date(1969, 12, 31), None, date(2024, 2, 29)], pa.date32()),
        "at": pa.array([datetime(1969, 1, 1, tzinfo=UTC), None, datetime(2024, 2, 29, tzinfo=UTC)]),
    }
    table = rows_at([0, 1, 2], **columns)
    items = ", ".join(f"lag({name}) OVER (ORDER BY ts) AS l{name}" for name in columns)
    engine, rows = run(f"SELECT {items} FROM s", table, (1,))
    whole = OverTable(engine.plan).run(table)["q"]
    stream = engine.results["q"].table()
    for name, column in columns.items():
        wanted = [None, *column.to_pylist()[:2]]
        assert [row[f"l{name}"] for row in rows] == wanted == whole[f"l{name}"].to_pylist()
        assert whole[f"l{name}"].type == stream[f"l{name}"].type == table.schema.field(name).type
    nan = both(
        "SELECT lag(x, 1, 0.0) OVER (ORDER BY ts) = CAST('NaN' AS DOUBLE) AS n, row_number() OVER (ORDER BY ts) "
        "AS r FROM s",
        rows_at([0, 1], x=[float("nan"), 1.0]),
    )
    assert [row["n"] for row in nan] == [False, True]


@pytest.mark.parametrize("threads", [1, 2])
def test_lags_of_a_large_table(threads: int, monkeypatch: Any) -> None:
    """Case: over pieces and chunks, by key, in order and not, beside frames that end with the row."""
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    chance = np.random.default_rng(3)
    rows = 100_000
    times, keys, x = chance.permutation(rows), chance.integers(0, 7, rows), chance.integers(-(2**60), 2**60, rows)
    for order in (np.arange(rows), np.argsort(times)):
        table = pa.table({"ts": pa.array(times[order]).cast(pa.timestamp("ms")), "k": keys[order], "x": x[order]})
        sql = (
            "SELECT ts, x, lag(x) OVER w AS a, lag(x, 5000, 0) OVER w AS b, row_number() OVER w AS n, "
            "max(x) OVER (w ROWS 3 PRECEDING) AS m FROM s WINDOW w AS (PARTITION BY k ORDER BY ts)"
        )
        engine, _ = run(sql, table.slice(0, 0))
        found = OverTable(engine.plan, threads).run(table)["q"].to_pandas()
        found["k"] = keys[order]
        found = found.sort_values("ts")
        groups = found.groupby("k")
        assert (found.a.fillna(0).to_numpy() == groups.x.shift(1, fill_value=0).to_numpy())[found.a.notna()].all()
        assert found.a.isna().sum() == 7
        assert (found.b == groups.x.shift(5000, fill_value=0)).all()
        assert (found.n == groups.cumcount() + 1).all()


@pytest.mark.spark
def test_equal_to_the_batch_answer_of_spark(spark: Any) -> None:
    """Times are distinct within a key, where Spark has no order of equal ones; `rank` has peers."""
    random = np.random.default_rng(10)
    rows = 400
    table = pa.table(
        {
            "ts": pa.array(random.permutation(rows) * SECOND // 4).cast(pa.timestamp("us", "UTC")),
            "k": random.choice(["a", "b", "c"], rows),
            "x": pa.array(random.integers(-99, 99, rows) / 8, mask=random.random(rows) < 0.2),
            "n": random.integers(-9, 9, rows),
        }
    )
    calls = [
        "lag(x)", "lag(n, 3)", "lag(x, 2, 0.5)", "lag(n, 1, 7)", "lag(x, 1, CAST(n AS DOUBLE))", "lag(k)",
        "lag(ts, 2)", "lag(x, 0)", "lag(x > 0, 1, TRUE)", "lag(x + n)", "lag(CAST(ts AS DATE))", "lag(x, 1000)",
        "row_number()", "rank()", "lag(x) RESPECT NULLS",
    ]  # fmt: skip
    compare(spark, table, ["ORDER BY ts"], calls)
    values = [
        "first_value(x)",
        "last_value(x)",
        "first_value(k)",
        "last_value(x) IGNORE NULLS",
        "first_value(x, true)",
    ]
    values = [*values[:4], "first_value(x) IGNORE NULLS", "last_value(n)"]
    frames = ["ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING", "ROWS 3 PRECEDING", "ROWS UNBOUNDED PRECEDING"]
    compare(spark, table, [f"ORDER BY ts {frame}" for frame in frames], values)
    tied = table.set_column(0, "ts", pa.array(random.integers(0, 60, rows) * SECOND).cast(pa.timestamp("us", "UTC")))
    compare(spark, tied, ["ORDER BY ts"], ["rank()", "count(*)"])
