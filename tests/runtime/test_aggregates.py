"""Aggregates end to end: values from Spark's documentation or worked out by hand, and the faults of groups N and Q.

The shared plan runs in process, once whole and once cut into micro-batches, tasks and buckets.
"""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from workbench.algebra import holistic
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

SECOND = 1_000_000
INF, NAN = float("inf"), float("nan")
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("v", pa.float64()),
        ("w", pa.float64()),
        ("n", pa.int64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
    ]
)


def engine_of(sql: str, window: str, buckets: int = 1) -> Engine:
    stream = Stream("s", SCHEMA, "ts", 60 * SECOND)
    queries = parse_queries(f"SELECT {sql} AS r FROM s GROUP BY window(ts, {window})", {"s": stream}, name="q")
    return Engine(compile_workload(Workload(stream, queries)), buckets=buckets)


def windows(sql: str, rows: list[dict[str, Any]], window: str = "'2 seconds', '1 second'") -> dict[int, Any]:
    """Final values by window start in seconds. ``t`` is the row's time in seconds, by default its number.

    Every way of cutting the rows must give the same.
    """
    rows = [{"ts": int(row.get("t", number) * SECOND), **row} for number, row in enumerate(rows)]
    table = pa.Table.from_pylist(rows, SCHEMA)
    found = []
    for cut in range(0, len(rows) + 1, max(1, len(rows) // 5)):
        engine = engine_of(sql, window)
        engine.step([table.slice(cut), table.slice(0, cut // 2)])
        engine.step([table.slice(cut // 2, cut - cut // 2)], finish=True)
        result = engine.results["q"].table()
        starts = [round(time.timestamp()) for time in result.column("window_start").to_pylist()]
        found.append(dict(zip(starts, result.column("r").to_pylist(), strict=True)))
    assert all(repr(each) == repr(found[0]) or close(each, found[0]) for each in found), found
    return found[0]


def close(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(close(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(close, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return left == pytest.approx(right, rel=1e-12, nan_ok=True)
    return bool(left == right)


def one(sql: str, **columns: list[Any]) -> Any:
    """The aggregate of all rows, in one window."""
    width = max(map(len, columns.values()))
    rows = [{name: values[index] for name, values in columns.items()} for index in range(width)]
    found = windows(sql, [{"t": index / 100, **row} for index, row in enumerate(rows)], "'1 day'")
    (value,) = found.values()
    return value


@pytest.mark.parametrize(
    ("sql", "columns", "expected"),
    [
        # The examples of Spark's documentation of the functions.
        ("skewness(v)", {"v": [-10.0, -20.0, 100.0, 1000.0]}, 1.1135657469022011),
        ("skewness(v)", {"v": [-1000.0, -100.0, 10.0, 20.0]}, -1.1135657469022011),
        ("kurtosis(v)", {"v": [-10.0, -20.0, 100.0, 1000.0]}, -0.7014368047529627),
        ("kurtosis(n)", {"n": [1, 10, 100, 10, 1]}, 0.19432323191699075),
        ("corr(v, w)", {"v": [3.0, 3.0, 6.0], "w": [2.0, 3.0, 4.0]}, 0.8660254037844387),
        ("covar_pop(v, w)", {"v": [1.0, 2.0, 3.0], "w": [1.0, 2.0, 3.0]}, 2 / 3),
        ("covar_samp(v, w)", {"v": [1.0, 2.0, 3.0], "w": [1.0, 2.0, 3.0]}, 1.0),
        ("max_by(s, n)", {"s": ["a", "b", "c"], "n": [10, 50, 20]}, "b"),
        ("min_by(s, n)", {"s": ["a", "b", "c"], "n": [10, 50, 20]}, "a"),
        # By hand.
        ("product(n)", {"n": [2, -3, None, 4]}, -24.0),
        ("geometric_mean(v)", {"v": [1.0, 2.0, 4.0]}, 2.0),
        ("geometric_mean(v)", {"v": [-1.0, -1.0]}, NAN),
        ("geometric_mean(v)", {"v": [0.0, 7.0]}, 0.0),
        ("product(v)", {"v": [1e200, 1e200, 1e-200, 1e-200]}, 1.0),
        ("product(v)", {"v": [-1e200, 1e200]}, -INF),
        ("geometric_mean(v)", {"v": [1e200, 1e300, 1e-100]}, 10.0**133.33333333333334),
        ("bool_and(b)", {"b": [True, None, True]}, True),
        ("bool_and(b)", {"b": [True, False]}, False),
        ("bool_or(b)", {"b": [False, None]}, False),
        ("bool_or(n > 1)", {"n": [1, None, 2]}, True),
        ("histogram(v, 0, 10, 2)", {"v": [-1.0, 0.0, 4.9, 5.0, 9.9, 10.0, NAN, None]}, [1, 2, 2, 2]),
        ("histogram(n, array(0, 10))", {"n": [-1, 0, 9, 10]}, [1, 2, 1]),
        ("m4(n)", {"n": [3, 9, 1, None, 4]}, {"first": 3, "last": 4, "min": 1, "max": 9}),
        ("min(s)", {"s": ["b", "é", None, "a", "Z"]}, "Z"),
        ("max(s)", {"s": ["b", "é", None, "a", "Z"]}, "é"),
        ("first(s)", {"s": [None, "", "a"]}, ""),
        ("last(b)", {"b": [True, False, None]}, False),
        ("max(b)", {"b": [True, False, None]}, True),
        # Spark's documentation of percentile: 0, 10 at 0.3.
        ("percentile(n, 0.3)", {"n": [0, 10]}, 3.0),
        ("percentile(n, array(0.25, 0.75))", {"n": [0, 10]}, [2.5, 7.5]),
        ("median(n)", {"n": [1, 2]}, 1.5),
        ("quantile(n, 0.5)", {"n": [1, 2]}, 1.5),
        ("quantile(n, 0.5, 'lower')", {"n": [1, 2]}, 1.0),
        ("quantile(n, 0.5, 'higher')", {"n": [1, 2]}, 2.0),
        ("quantile(n, 0.4, 'nearest')", {"n": [1, 2]}, 1.0),
        ("quantile(n, 0.6, 'nearest')", {"n": [1, 2]}, 2.0),
        ("quantile(n, 0.1, 'midpoint')", {"n": [1, 2, 9]}, 1.5),
        ("quantile(n, 0.1)", {"n": list(range(11))}, 1.0),
        ("quantile(v, 0)", {"v": [5.0, None, -7.0]}, -7.0),
        ("quantile(v, 1)", {"v": [5.0, None, -7.0]}, 5.0),
        ("median(v)", {"v": [1.0, INF, 2.0]}, 2.0),
        ("median(v)", {"v": [INF, INF]}, INF),
        ("median(v)", {"v": [1.0, NAN, 2.0]}, NAN),
        ("quantile(v, 0)", {"v": [1.0, NAN, 2.0]}, NAN),
        ("mode(n)", {"n": [3, 1, 3, 1, 2, None, None, None]}, 1),
        ("mode(s)", {"s": ["b", "a", "b", ""]}, "b"),
        ("mode(b)", {"b": [True, False, True]}, True),
        ("mode(d)", {"d": [date(2020, 1, 2), date(2020, 1, 1), date(2020, 1, 2)]}, date(2020, 1, 2)),
        ("mode(v)", {"v": [NAN, NAN, 1.0]}, NAN),
        ("count(DISTINCT v)", {"v": [NAN, NAN, 0.0, -0.0, 1.0, None]}, 3),
        ("count_distinct(s)", {"s": ["", None, "a", ""]}, 2),
        ("count(DISTINCT n)", {"n": [None, None]}, 0),
        ("approx_quantile(n, array(0, 0.5, 1))", {"n": list(range(1, 101))}, [1.0, 50.0, 100.0]),
        ("approx_percentile(v, 0.5)", {"v": [1.0, NAN]}, NAN),
        ("approx_count_distinct(v)", {"v": [NAN, NAN, 0.0, -0.0, 1.0, None]}, 3),
        ("approx_count_distinct(s)", {"s": ["", None, "a", ""]}, 2),
        ("approx_count_distinct(s)", {"s": [None]}, 0),
    ],
)
def test_value(sql: str, columns: dict[str, list[Any]], expected: Any) -> None:
    assert close(one(sql, **columns), expected)


ALL = [
    "sum(v)", "avg(v)", "min(v)", "max(v)", "range(v)", "stddev(v)", "var_pop(v)", "skewness(v)", "kurtosis(v)",
    "covar_pop(v, n)", "covar_samp(n, v)", "corr(v, n)", "product(v)", "geometric_mean(v)", "first(v)", "last(v)",
    "min_by(v, n)", "max_by(v, n)", "min_by(n, v)", "bool_and(v > 0)", "bool_or(v > 0)", "m4(v)", "min(s)",
    "first(s)", "median(v)", "quantile(v, 0.9)", "quantile(v, array(0, 1), 'lower')", "mode(v)", "mode(s)",
    "approx_quantile(v, 0.9)",
]  # fmt: skip


@pytest.mark.parametrize("sql", ALL)
def test_n8_n9_no_value_is_null(sql: str) -> None:
    """[materialize, cudf] never 0, the identity, or an exception; and only in its own windows."""
    found = windows(sql, [{"v": None, "n": 1}, {"v": None, "n": 2}, {"v": 2.5, "n": 3, "s": "x"}])
    assert found[-1] is None
    assert found[0] is None


@pytest.mark.parametrize(
    ("sql", "zeros"),
    [
        ("skewness(v)", None),
        ("kurtosis(v)", None),
        ("covar_pop(v, n)", 0.0),
        ("corr(v, n)", None),
        ("product(v)", 0.0),
        ("geometric_mean(v)", 0.0),
        ("last(v)", 0.0),
        ("max_by(v, n)", 0.0),
        ("median(v)", 0.0),
        ("mode(v)", 0.0),
        ("count(DISTINCT v)", 1),
    ],
)
def test_n1_n3_windows_of_zeros(sql: str, zeros: Any) -> None:
    """[pandas, polars] nothing is left over from rows that have left the window."""
    values = [3002399751580331.0, 0.888889, 0.0, 0.0, 0.0]
    found = windows(sql, [{"v": value, "n": number} for number, value in enumerate(values)])
    assert [found[start] for start in (2, 3)] == [zeros, zeros]


@pytest.mark.parametrize("value", [INF, NAN])
@pytest.mark.parametrize(
    "sql", ["skewness(v)", "kurtosis(v)", "covar_pop(v, n)", "corr(v, n)", "var_samp(v)", "quantile(v, 1)"]
)
def test_n4_n5_n10_what_is_not_finite_lives_in_its_own_windows(sql: str, value: float) -> None:
    """[polars, cudf] 1, inf, 2, 4, 3 with a window of 2."""
    found = windows(sql, [{"v": v, "n": n} for n, v in enumerate([1.0, value, 2.0, 4.0, 3.0])])
    for start in (0, 1):
        assert math.isnan(found[start]) or (sql.startswith("quantile") and found[start] == value)
    assert found[2] is None or math.isfinite(found[2])


def test_n6_products_and_means_of_nan() -> None:
    assert math.isnan(one("product(v)", v=[NAN, 0.0]))
    assert math.isnan(one("product(v)", v=[INF, 0.0]))
    assert math.isnan(one("geometric_mean(v)", v=[NAN, 1.0]))


def test_n11_extremes_of_one_sign() -> None:
    """[research code] picks over only negative or only positive numbers, and over the least and greatest int64."""
    assert one("max_by(n, v)", n=[-5, -6], v=[-3.0, -2.0]) == -6
    assert one("min_by(n, v)", n=[5, 6], v=[3.0, 2.0]) == 6
    assert one("max_by(v, n)", v=[1.0, 2.0], n=[-(2**63), -(2**63)]) == 2.0
    assert one("min_by(v, n)", v=[1.0, 2.0], n=[2**63 - 1, 2**63 - 1]) == 1.0
    assert one("first(n)", n=[2**63 - 1]) == 2**63 - 1


def test_q3_first_and_last_of_equal_times() -> None:
    """[timescaledb, ksql, datafusion] smallest and greatest value, however the rows come in; NaN is greatest."""
    rows: list[dict[str, Any]] = [
        {"t": 1, "v": v, "s": s} for v, s in [(2.0, "x"), (NAN, "é"), (1.0, "a"), (5.0, None)]
    ]
    for turned in (rows, rows[::-1], [rows[2], rows[0], rows[3], rows[1]]):
        assert windows("first(v)", turned, "'10 seconds'") == {0: 1.0}
        assert math.isnan(windows("last(v)", turned, "'10 seconds'")[0])
        assert windows("first(s)", turned, "'10 seconds'") == {0: "a"}
        assert windows("last(s)", turned, "'10 seconds'") == {0: "é"}


def test_min_by_ignores_null_orders_and_may_answer_null() -> None:
    assert one("min_by(s, n)", s=["a", "b", "c"], n=[None, 7, 8]) == "b"
    assert one("min_by(s, n)", s=[None, "b"], n=[1, 2]) is None
    assert one("min_by(s, n)", s=[None, "b", "a"], n=[1, 1, 1]) == "a"
    assert one("max_by(s, n)", s=[None, "b", "a"], n=[1, 1, 1]) == "b"
    assert one("max_by(n, v)", n=[1, 2], v=[NAN, INF]) == 1
    assert one("min_by(n, v)", n=[1, 2], v=[NAN, INF]) == 2


def test_q1_median_is_the_middle_quantile() -> None:
    """[pandas, polars] of {1, 2} and of any other rows, whatever the size of the window."""
    rows = [{"v": float(value)} for value in (1, 2, 8, 5, 5, 0)]
    medians, halves = windows("median(v)", rows), windows("quantile(v, 0.5, 'linear')", rows)
    assert medians == halves == {-1: 1.0, 0: 1.5, 1: 5.0, 2: 6.5, 3: 5.0, 4: 2.5, 5: 0.0}


@pytest.mark.parametrize("at_once", [1, 2, 3, 1_000])
def test_quantiles_of_many_windows_are_taken_piece_by_piece(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holistic, "_AT_ONCE", at_once)
    rows = [{"v": value} for value in (4.0, None, None, NAN, 1.0, 4.0, 4.0, 2.0)]
    found = windows("quantile(v, array(0.5, 1))", rows)
    nans = [NAN, NAN]
    expected = [[4.0, 4.0], [4.0, 4.0], None, nans, nans, [2.5, 4.0], [4.0, 4.0], [3.0, 4.0], [2.0, 2.0]]
    assert close(found, dict(zip(range(-1, 8), expected, strict=True)))


def test_q2_a_quantile_of_no_value_is_null() -> None:
    """[pandas] not an exception; an array of quantiles is NULL as a whole."""
    assert one("median(v)", v=[None, None]) is None
    assert one("quantile(v, array(0.1, 0.9))", v=[None]) is None
    assert one("mode(s)", s=[None]) is None


def test_approximate_quantiles_keep_their_bound() -> None:
    """KLL with k = 200: ranks differ by less than 1.33 % of the rows, in 99 of 100 answers; never by twice that."""
    generator = np.random.default_rng(3)
    values, fractions = generator.lognormal(size=20_000), np.linspace(0.05, 0.95, 19)
    engine = engine_of(f"approx_quantile(v, array({', '.join(map(str, fractions))}))", "'1 day', '1 hour'", buckets=2)
    times = np.sort(generator.integers(0, 86_400 * SECOND, len(values)))
    table = pa.table({"ts": times, "v": values}).cast(pa.schema([SCHEMA.field("ts"), SCHEMA.field("v")]))
    columns = [pa.nulls(len(values), SCHEMA.field(name).type) for name in ("w", "n", "s", "b", "d")]
    table = pa.table([*table.columns, *columns], schema=SCHEMA)
    engine.run([table.slice(first, 5_000) for first in range(0, len(values), 5_000)])
    errors = []
    for row in engine.results["q"].table().to_pylist():
        start = round(row["window_start"].timestamp()) * SECOND
        mine = np.sort(values[(times >= start) & (times < start + 86_400 * SECOND)])
        errors += (np.searchsorted(mine, row["r"], side="right") / len(mine) - fractions).tolist()
    worst = np.abs(errors)
    assert worst.max() < 2 * 0.0133
    assert (worst < 0.0133).mean() > 0.95


@pytest.mark.parametrize("column", ["n", "v", "s"])
def test_approximate_distinct_counts_keep_their_bound(column: str) -> None:
    """HyperLogLog with 4,096 registers: 1.62 % is one standard deviation. The hashes are fixed: this is no chance."""
    numbers = np.arange(60_000) % 20_000
    values = {"n": numbers, "v": numbers / 8, "s": np.char.add("k", numbers.astype(str))}[column]
    table = pa.table({"ts": pa.array(np.arange(60_000) * 1_000), column: pa.array(values)})
    for name in SCHEMA.names[1:]:
        if name != column:
            table = table.append_column(name, pa.nulls(len(table), SCHEMA.field(name).type))
    engine = engine_of(f"approx_count_distinct({column})", "'30 seconds', '10 seconds'")
    engine.run([table.select(SCHEMA.names).cast(SCHEMA)])
    found = dict.fromkeys(engine.results["q"].table().column("r").to_pylist()).keys()
    exact = {10_000, 20_000}
    assert all(min(abs(count / wanted - 1) for wanted in exact) < 3 * 0.0162 for count in found)


def test_results_are_proper_structs_and_lists() -> None:
    engine = engine_of("m4(n)", "'1 day'")
    engine.run([pa.Table.from_pylist([{"ts": 0, "n": 1}], SCHEMA)])
    number = pa.int64()
    wanted = pa.struct([("first", number), ("last", number), ("min", number), ("max", number)])
    assert engine.results["q"].table().schema.field("r").type == wanted
    engine = engine_of("histogram(v, 0, 1, 1)", "'1 day'")
    engine.run([pa.Table.from_pylist([{"ts": 0, "v": 0.5}], SCHEMA)])
    assert engine.results["q"].table().schema.field("r").type == pa.list_(pa.int64())
    assert engine.results["q"].schema.numeric == ()
    assert engine.results["q"].table().to_pandas()["r"][0].tolist() == [0, 1, 0]
