"""Windows along a measure, worked out by hand. Times are seconds; the oracle's tests mix them with all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from workbench.errors import DataError, QueryError
from workbench.language import parse_queries, query
from workbench.language.builder import count
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload, explain
from workbench.runtime.engine import Engine

SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("car", pa.string()),
        ("km", pa.float64()),
        ("invoice", pa.int32()),
        ("fare", pa.decimal128(10, 2)),
    ]
)
Row = tuple[float, Any]


def table(rows: Sequence[Row], column: str = "km", car: str = "a") -> pa.Table:
    """Rows of (time, measure)."""
    empty = [None] * len(rows)
    times = pa.array([round(time * SECOND) for time, _ in rows], pa.int64()).cast(SCHEMA[0].type)
    columns = [[value for _, value in rows] if name == column else empty for name in SCHEMA.names[2:]]
    arrays = [pa.array(own, kind) for own, kind in zip(columns, SCHEMA.types[2:], strict=True)]
    return pa.table([times, [car] * len(rows), *arrays], schema=SCHEMA)


def start(form: str, *, delay: float = 0, lateness: float = 0, buckets: int = 1) -> Engine:
    stream = Stream("s", SCHEMA, "ts", round(delay * SECOND), round(lateness * SECOND))
    sql = f"SELECT car, count(*) AS n FROM s GROUP BY car, {form}"
    workload = Workload(stream, parse_queries(sql, {"s": stream}, name="q"))
    return Engine(compile_workload(workload), buckets=buckets)


def told(engine: Engine) -> list[tuple[Any, Any, int, str, int]]:
    """What the store holds: start, end, n, status, revision."""
    rows = engine.results["q"].table().to_pylist()
    return [(r["window_start"], r["window_end"], r["n"], r["status"], r["revision"]) for r in rows]


def finals(form: str, *batches: Sequence[Row], column: str = "km") -> list[tuple[Any, Any, int]]:
    engine = start(form, delay=1_000)
    engine.run([table(batch, column) for batch in batches])
    return [row[:3] for row in told(engine)]


def test_windows_of_kilometres() -> None:
    """::

    time      1    2    3    4
    km        3    7   12   31
    windows   [0 .. 10)[10 .. 20)  [30 .. 40)
    """
    rows = [(1, 3.0), (2, 7.0), (3, 12.0), (4, 31.0)]
    expected = [(0.0, 10.0, 2), (10.0, 20.0, 1), (30.0, 40.0, 1)]
    assert finals("measure_window(km, 10)", rows) == expected
    assert finals("measure_window(km, 10)", *[[row] for row in rows[::-1]]) == expected, "whatever their arrival"
    assert finals("measure_window(km, 10, 5)", rows[:3]) == [
        (-5.0, 5.0, 1), (0.0, 10.0, 2), (5.0, 15.0, 2), (10.0, 20.0, 1),
    ]  # fmt: skip


def test_edges_are_decimal_numbers() -> None:
    """0.1 + 0.2 is a little more than 0.3, three times 0.1 in one step is 0.3; both are at 0.3 or behind it."""
    rows = [(1, 0.1), (2, math.nextafter(0.3, 0)), (3, 0.3), (4, 0.1 + 0.2), (5, 0.7), (6, 0.8)]
    assert finals("measure_window(km, 0.1)", rows) == [
        (0.1, 0.2, 1), (0.2, 0.3, 1), (0.3, 0.4, 2), (0.7, 0.8, 1), (0.8, 0.9, 1),
    ]  # fmt: skip


def test_invoice_numbers_and_amounts_have_bounds_of_their_own_type() -> None:
    assert finals("measure_window(invoice, 100, 100, 50)", [(1, 149), (2, 150), (3, 151)], column="invoice") == [
        (50, 150, 1), (150, 250, 2),
    ]  # fmt: skip
    amounts = [(1, Decimal("-0.01")), (2, Decimal("0.00")), (3, Decimal("2.49")), (4, Decimal("2.50"))]
    assert finals("measure_window(fare, 2.5)", amounts, column="fare") == [
        (Decimal("-2.50"), Decimal("0.00"), 1), (Decimal("0.00"), Decimal("2.50"), 2),
        (Decimal("2.50"), Decimal("5.00"), 1),
    ]  # fmt: skip


def test_a_row_without_a_measure_is_in_no_window() -> None:
    engine = start("measure_window(km, 10)")
    engine.run([table([(1, 1.0), (2, None), (3, math.nan), (4, math.inf), (5, 2.0)])])
    assert told(engine) == [(0.0, 10.0, 2, "final", 0)]
    assert (engine.late, engine.backward) == ({"q": 0}, {})


def test_final_once_the_watermark_has_passed_a_row_that_has_reached_the_end() -> None:
    """The row with kilometre 12 is at 3 s; one at 3 s too, with 9, would still be in time for [0, 10)."""
    engine = start("measure_window(km, 10)", delay=2)
    engine.step([table([(1, 3.0), (3, 12.0)])])
    engine.step([table([(5, 13.0)])])
    assert told(engine) == [(0.0, 10.0, 1, "provisional", 0), (10.0, 20.0, 2, "provisional", 0)]
    engine.step([table([(3, 9.0), (5.000001, 14.0)])])
    assert told(engine) == [(0.0, 10.0, 2, "final", 0), (10.0, 20.0, 3, "provisional", 0)]
    engine.step([], finish=True)
    assert [row[3] for row in told(engine)] == ["final", "final"]


def test_every_key_has_a_measure_of_its_own() -> None:
    engine = start("measure_window(km, 10)", buckets=2)
    engine.step([pa.concat_tables([table([(1, 55.0), (2, 62.0)]), table([(1, 3.0), (2, 4.0)], car="b")])])
    engine.step([table([(3, 70.0)])])
    rows = engine.results["q"].table().to_pylist()
    assert {(r["car"], r["window_start"], r["status"]) for r in rows} == {
        ("a", 50.0, "final"), ("a", 60.0, "provisional"), ("a", 70.0, "provisional"), ("b", 0.0, "provisional"),
    }  # fmt: skip


def test_a_measure_that_goes_back_is_an_error_that_names_the_row() -> None:
    engine = start("measure_window(km, 10)", delay=10)
    engine.step([table([(1, 3.0)], car="b")])
    with pytest.raises(DataError) as caught:
        engine.step([table([(4, 2.9)], car="b")])
    assert str(caught.value) == (
        "a measure goes back: `km` of `b` is `2.9` at 1970-01-01 00:00:04, where an earlier row has `3.0`\n"
        "hint: `measure_window(..., 'drop')` leaves rows that go back out and counts them"
    )


def test_rows_that_go_back_are_left_out_and_counted_once() -> None:
    """Three rows below the 50 at 2 s; the one of 2 s itself is as early, and in its place."""
    rows = [(1, 1.0), (2, 50.0), (2, 45.0), (3, 49.9), (4, 3.0), (5, 50.0), (6, 50.0 - 1e-9), (9, 60.0)]
    for batches in ([rows], [[row] for row in rows], [rows[4:], rows[:4]]):
        engine = start("measure_window(km, 10, 'drop')", delay=100)
        engine.run([table(batch) for batch in batches])
        assert told(engine) == [
            (0.0, 10.0, 1, "final", 0), (40.0, 50.0, 1, "final", 0),
            (50.0, 60.0, 2, "final", 0), (60.0, 70.0, 1, "final", 0),
        ]  # fmt: skip
        assert engine.backward == {
            "q": (3, "`km` of `a` is `49.9` at 1970-01-01 00:00:03, where an earlier row has `50.0`")
        }
        assert engine.late == {"q": 0}


def test_a_late_row_takes_out_what_it_shows_to_go_back() -> None:
    """The 18 at 5 s was told; then a 20 comes from 2 s."""
    engine = start("measure_window(km, 10, 'drop')", lateness=60)
    engine.step([table([(1, 1.0), (1.5, 12.0), (5, 18.0), (9, 40.0), (10, 40.0)])])
    assert told(engine)[1] == (10.0, 20.0, 2, "final", 0)
    engine.step([table([(2, 20.0)])])
    assert told(engine) == [
        (0.0, 10.0, 1, "final", 0), (10.0, 20.0, 1, "revised", 1),
        (20.0, 30.0, 1, "revised", 1), (40.0, 50.0, 2, "provisional", 0),
    ]  # fmt: skip
    engine.step([table([(1.2, 13.0)])])
    assert told(engine)[1] == (10.0, 20.0, 1, "revised", 2), "the 12 at 1.5 s goes back now, the 13 is there instead"
    assert engine.backward == {}, "nothing is settled yet"
    engine.step([], finish=True)
    assert engine.backward["q"][0] == 2


def test_what_settled_rows_have_reached_is_remembered() -> None:
    engine = start("measure_window(km, 10, 'drop')")
    engine.step([table([(1, 99.0)])])
    engine.step([table([(50, 100.0)])])
    engine.step([table([(60, 98.0), (61, 100.5)])])
    engine.step([], finish=True)
    assert told(engine) == [(90.0, 100.0, 1, "final", 0), (100.0, 110.0, 2, "final", 0)]
    assert engine.backward["q"][0] == 1


def test_a_query_along_a_measure_cannot_begin_in_the_middle() -> None:
    stream = Stream("s", SCHEMA, "ts", 0)
    first, second = (
        parse_queries(f"SELECT count(*) AS n FROM s GROUP BY {form}", {"s": stream}, name=name)[0]
        for name, form in (("a", "measure_window(km, 10)"), ("b", "measure_window(km, 5)"))
    )
    engine = Engine(compile_workload(Workload(stream, (first,))))
    engine.step([table([(1, 3.0)])])
    with pytest.raises(QueryError, match="along `km` cannot begin while the stream runs: how far its keys have come"):
        engine.change(compile_workload(Workload(stream, (first, second)), running=engine.plan))
    engine.change(compile_workload(Workload(stream, (first,)), running=engine.plan))
    engine.step([table([(2, 4.0)])])
    assert [row[:3] for row in told_of(engine, "a")] == [(0.0, 10.0, 2)]


def told_of(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    rows = engine.results[name].table().to_pylist()
    return [(r["window_start"], r["window_end"], r["n"], r["status"], r["revision"]) for r in rows]


def test_explain_tells_the_measure_and_why_rows_are_kept() -> None:
    text = explain(start("measure_window(km, 10, 2.5, 'drop')").plan)
    assert "slices  cut at the edges of 10 of km / 2.5" in text
    assert (
        "q: context free windows, measure `km`, commutative functions, rows in order: rows are kept, because an "
        "earlier row can show that a later one goes back; a late row takes out those that it shows to go back"
    ) in text


def test_the_builder_has_them_too() -> None:
    stream = Stream("s", SCHEMA, "ts", 0)
    built = query(stream).group_by("car").form("measure_window", "km", 10, 2.5, "'drop'").select(n=count()).build("q")
    sql = "SELECT count(*) AS n FROM s GROUP BY car, measure_window(km, 10, 2.5, 'drop')"
    assert (built,) == parse_queries(sql, {"s": stream}, name="q")
