"""Faults that users of comparable systems met (groups N, T, O): each must be right here, in the shared plan.

Values were worked out by hand; the system where the fault was seen stands in brackets.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from workbench.errors import DataError
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

SECOND = 1_000_000
INF, NAN = float("inf"), float("nan")


def run(
    sql: str,
    rows: list[tuple[float, Any]],
    *,
    kind: pa.DataType | None = None,
    delay: int = 0,
    cut: int | None = None,
) -> dict[int, Any]:
    """Final values of column `r` by window start in seconds; rows are (time in seconds, v)."""
    kind = kind or pa.float64()
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", kind)])
    stream = Stream("s", schema, "ts", delay * SECOND)
    queries = parse_queries(
        f"SELECT {sql} AS r FROM s GROUP BY window(ts, '2 seconds', '1 second')", {"s": stream}, name="q"
    )
    engine = Engine(compile_workload(Workload(stream, queries)))
    table = pa.table(
        [pa.array([int(t * SECOND) for t, _ in rows], schema[0].type), pa.array([v for _, v in rows], kind)], schema
    )
    engine.run([table] if cut is None else [table.slice(0, cut), table.slice(cut)])
    found = engine.results["q"].table()
    starts = (time.timestamp() for time in found.column("window_start").to_pylist())
    return dict(zip(starts, found.column("r").to_pylist(), strict=True))


def each_second(values: list[Any]) -> list[tuple[float, Any]]:
    return [(second, value) for second, value in enumerate(values)]


def test_n1_windows_of_zeros_are_exactly_zero() -> None:
    """[pandas, polars] no 1e-16 left over from rows that have left the window."""
    found = run("sum(v)", each_second([2.06, 0.888889, 0.0, 0.0, 0.0]))
    assert [found[start] for start in (2, 3)] == [0.0, 0.0]


def test_n3_a_mean_does_not_see_other_windows() -> None:
    """[pandas] 3002399751580331, 0, 0."""
    assert run("avg(v)", each_second([3002399751580331.0, 0.0, 0.0]))[1] == 0.0


def test_n4_infinity_lives_only_in_its_own_windows() -> None:
    """[polars] 1, inf, 2, 3."""
    found = run("sum(v)", each_second([1.0, INF, 2.0, 3.0]))
    assert [found[start] for start in range(-1, 3)] == [1.0, INF, INF, 5.0]


def test_n5_nan_is_a_value_and_counts_null_is_not() -> None:
    """[pandas] the mean of a window of NaN is NaN, wherever the series starts."""
    assert run("avg(v)", each_second([NAN, NAN, 1.0, 3.0]))[2] == 2.0
    assert math.isnan(run("avg(v)", each_second([NAN, NAN]))[0])
    assert run("count(v)", each_second([NAN, NAN, NAN, NAN]))[0] == 2
    assert run("count(v)", each_second([None, None, NAN]))[1] == 1


def test_n6_min_follows_the_same_rule_as_sum() -> None:
    """[pandas, Deephaven] NULL is ignored, NaN propagates."""
    found = run("min(v)", each_second([NAN, 2.0, 3.0]))
    assert math.isnan(found[0])
    assert found[1] == 2.0
    assert run("min(v)", each_second([None, 2.0]))[0] == 2.0


def test_n7_integer_overflow_is_an_error_or_null_never_a_wrapped_number() -> None:
    """[datafusion, trino, materialize] 2^63-1, 1, -1 in windows of two rows."""
    rows = each_second([2**63 - 1, 1, -1])
    with pytest.raises(DataError, match=r"overflow in `sum\(v\)`"):
        run("sum(v)", rows, kind=pa.int64())
    found = run("try_sum(v)", rows, kind=pa.int64())
    assert [found[start] for start in (-1, 0, 1, 2)] == [2**63 - 1, None, 0, -1]


@pytest.mark.parametrize("sql", ["sum(v)", "avg(v)", "min(v)", "max(v)", "stddev(v)"])
def test_n8_n9_no_value_is_null(sql: str) -> None:
    """[materialize, cudf] never 0 or the identity 1.79e308; count is 0."""
    assert run(sql, each_second([None, None]))[0] is None
    assert run("count(v)", each_second([None, None]))[0] == 0


def test_n11_extremes_of_one_sign() -> None:
    """[research code] max over only negative, min over only positive numbers."""
    assert run("max(v)", each_second([-3.0, -2.0]))[0] == -2.0
    assert run("min(v)", each_second([3.0, 2.0]))[0] == 2.0
    assert run("max(v)", each_second([-3, -2]), kind=pa.int32())[0] == -2


def test_t1_rows_of_one_time_are_seen_together() -> None:
    """[pandas] two rows with the same time."""
    assert run("count(*)", [(1.0, 1.0), (1.0, 2.0)]) == {0: 2, 1: 2}


def test_t2_t3_the_unit_and_the_bounds() -> None:
    """[pandas, bytewax] end - 1 us is in, end is not."""
    assert run("count(*)", [(0, 1.0), (1.999999, 1.0), (2.0, 1.0)]) == {-1: 1, 0: 2, 1: 2, 2: 1}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("form", ["window(ts, '1 second')", "gap_window(ts, '1 second')"])
def test_t2_whatever_unit_times_come_in(unit: str, form: str) -> None:
    """[pandas] rows at 0, 2, 3, 6 s and a window of 1 s: each is alone in its window, never with all before it."""
    stamps = pa.array([0, 2, 3, 6]).cast(pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
    table = pa.table({"ts": stamps, "v": [1, 2, 4, 8]})
    stream = Stream("s", table.schema, "ts", 0)
    queries = parse_queries(f"SELECT sum(v) AS r FROM s GROUP BY {form}", {"s": stream}, name="q")
    found = Engine(compile_workload(Workload(stream, queries))).run([table])["q"].table()
    starts = [start.timestamp() for start in found.column("window_start").to_pylist()]
    assert dict(zip(starts, found.column("r").to_pylist(), strict=True)) == {0: 1, 2: 2, 3: 4, 6: 8}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_t2_frames_whatever_unit_times_come_in(unit: str) -> None:
    """[pandas] the same with frames: the last second before 3 s holds 2 s as well, both ends included."""
    stamps = pa.array([0, 2, 3, 6]).cast(pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
    table = pa.table({"ts": stamps, "v": [1, 2, 4, 8]})
    stream = Stream("s", table.schema, "ts", 0)
    over = "ORDER BY ts RANGE INTERVAL '1' SECOND PRECEDING"
    queries = parse_queries(f"SELECT sum(v) OVER ({over}) AS r FROM s", {"s": stream}, name="q")
    plan = compile_workload(Workload(stream, queries))
    for results in (Engine(plan).run([table]), Engine(plan).run_table(table)):
        assert results["q"].table().column("r").to_pylist() == [1, 2, 6, 8]


def test_t8_t9_times_that_lose_digits_or_do_not_fit_are_errors_with_column_and_value() -> None:
    """[Spark, delta-rs] nothing is cut off and nothing wraps around."""
    for stamps, value in [
        (pa.array([1_000, 1_001]).cast(pa.timestamp("ns", "UTC")), "1001"),
        (pa.array([0, 10**15]).cast(pa.timestamp("s", "UTC")), "1000000000000000"),
        (pa.array([0, 2**62 + 1]).cast(pa.timestamp("us", "UTC")), "4,611,686,018,427,387,905"),
    ]:
        table = pa.table({"ts": stamps, "v": [1, 2]})
        stream = Stream("s", table.schema, "ts", 0)
        for sql in (
            "SELECT sum(v) AS r FROM s GROUP BY window(ts, '1 second')",
            "SELECT sum(v) OVER (ORDER BY ts RANGE INTERVAL '1' SECOND PRECEDING) AS r FROM s",
        ):
            plan = compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q")))
            for run_it in (lambda engine, rows: engine.run([rows]), lambda engine, rows: engine.run_table(rows)):
                with pytest.raises(DataError, match=r"a time in column `ts` .*" + value):
                    run_it(Engine(plan), table)


def test_t9_a_year_behind_9999_is_a_time_like_any_other() -> None:
    """[delta-rs] year 20000 in microseconds fits; what Python's datetime cannot show is there as a number."""
    micros = 568_971_820_800 * SECOND
    table = pa.table({"ts": pa.array([micros]).cast(pa.timestamp("us", "UTC")), "v": [1]})
    stream = Stream("s", table.schema, "ts", 0)
    queries = parse_queries("SELECT sum(v) AS r FROM s GROUP BY window(ts, '1 day')", {"s": stream}, name="q")
    found = Engine(compile_workload(Workload(stream, queries))).run([table])["q"].table()
    assert found.column("window_start").cast(pa.int64()).to_pylist() == [micros]


def test_t4_before_1970() -> None:
    """[Spark, flink, flux] floor division, not truncation."""
    assert run("count(*)", [(-0.5, 1.0)]) == {-2: 1, -1: 1}


def test_o5_a_row_at_the_previous_maximum_is_kept() -> None:
    """[Spark] delay 0, and the second micro-batch begins with the time of the first one's latest row."""
    assert run("count(*)", [(5.0, 1.0), (5.0, 1.0)], cut=1) == {4: 2, 5: 2}


def test_o2_rows_that_a_filter_drops_still_move_time() -> None:
    """[proton] the window closes although the later row does not pass."""
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.float64())])
    stream = Stream("s", schema, "ts", 0)
    queries = parse_queries(
        "SELECT count(*) AS n FROM s WHERE v > 0 GROUP BY window(ts, '2 seconds')", {"s": stream}, name="q"
    )
    engine = Engine(compile_workload(Workload(stream, queries)))
    engine.step([pa.table([pa.array([0], schema[0].type), pa.array([1.0])], schema)])
    assert engine.results["q"].table().column("status").to_pylist() == ["provisional"]
    engine.step([pa.table([pa.array([9 * SECOND], schema[0].type), pa.array([-1.0])], schema)])
    assert engine.results["q"].table().column("status").to_pylist() == ["final"]


def test_o9_order_of_arrival_never_changes_a_final_result() -> None:
    """[pandas] descending input."""
    rows = [(second / 3, float(second)) for second in range(20)]
    assert run("sum(v)", rows, delay=60) == run("sum(v)", rows[::-1], delay=60)


def test_a_row_without_a_time_belongs_to_no_window() -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.float64())])
    stream = Stream("s", schema, "ts", 0)
    queries = parse_queries("SELECT count(*) AS n FROM s GROUP BY window(ts, '2 seconds')", {"s": stream}, name="q")
    engine = Engine(compile_workload(Workload(stream, queries)))
    reports = engine.step(
        [pa.table([pa.array([None, 0], schema[0].type), pa.array([1.0, 1.0])], schema)], finish=True
    )
    assert reports[0].rows == 2
    assert engine.results["q"].table().column("n").to_pylist() == [1]


def test_an_empty_stream_ends_without_results() -> None:
    assert run("count(*)", []) == {}
