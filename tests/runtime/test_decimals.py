"""Decimals through windows: exact sums beyond 64 bits, means rounded half away from zero, values that are too long.

The oracle's property tests have a column of decimals, too (:mod:`strategies`).
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.algebra.decimals import means, of_words, units, words
from workbench.errors import DataError
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

SECOND = 1_000_000


def run(sql: str, *rows: tuple[float, str | None], precision: int = 18, scale: int = 2) -> list[dict[str, object]]:
    """The results of a statement over rows of a time in seconds and a price, whole seconds in micro-batches."""
    kind = pa.decimal128(precision, scale)
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("price", kind)])
    stream = Stream("s", schema, "ts", 0)
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    times = pa.array([round(time * SECOND) for time, _ in rows], schema[0].type)
    table = pa.table([times, pa.array([text and Decimal(text) for _, text in rows], kind)], schema=schema)
    engine.run([table.slice(0, 2), table.slice(2)])
    return [{k: v for k, v in row.items() if len(k) == 1} for row in engine.results["q"].table().to_pylist()]


def test_sums_and_means_by_hand() -> None:
    sql = (
        "SELECT sum(price) AS s, avg(price) AS a, min(price) AS l, max(price) AS h FROM s GROUP BY window(ts, '10 s')"
    )
    rows = run(
        sql, (1, "0.10"), (2, "0.20"), (3, None), (4, "-9.99"), (11, "0.01"), (12, "0.02"), (13, "0.02"), (25, None)
    )
    assert rows == [
        {"s": Decimal("-9.69"), "a": Decimal("-3.230000"), "l": Decimal("-9.99"), "h": Decimal("0.20")},
        {"s": Decimal("0.05"), "a": Decimal("0.016667"), "l": Decimal("0.01"), "h": Decimal("0.02")},
        {"s": None, "a": None, "l": None, "h": None},
    ]


def test_a_sum_beyond_64_bits() -> None:
    most = "9999999999999999.99"
    rows = run(
        "SELECT sum(price) AS s, avg(price) AS a FROM s GROUP BY window(ts, '1 hour')",
        *[(n, most) for n in range(12)],
    )
    assert rows == [{"s": 12 * Decimal(most), "a": Decimal(most + "0000")}]
    assert int(rows[0]["s"] * 100) > 2**63  # type: ignore[operator]


def test_a_sliding_sum_forgets_what_leaves() -> None:
    """By differences, which are exact here."""
    sql = "SELECT sum(price) AS s FROM s GROUP BY window(ts, '3 s', '1 s')"
    found = run(sql, *[(n, f"{n % 7}.{n:02}") for n in range(40)])
    prices = [Decimal(f"{n % 7}.{n:02}") for n in range(40)]
    assert [row["s"] for row in found] == [sum(prices[max(end - 3, 0) : end], Decimal()) for end in range(1, 43)]


def test_filled_with_zero() -> None:
    sql = "SELECT sum(price) AS s FROM s GROUP BY window(ts, '1 s') FILL ZERO"
    assert [row["s"] for row in run(sql, (0, "1.50"), (2, "2.50"))] == [
        Decimal("1.50"),
        Decimal("0.00"),
        Decimal("2.50"),
    ]


def test_over_the_rows_before() -> None:
    sums = "sum(price) OVER (ORDER BY ts ROWS 1 PRECEDING) AS s"
    sql = f"SELECT price AS p, {sums}, lag(price) OVER (ORDER BY ts) AS l FROM s"
    assert run(sql, (0, "1.50"), (1, None), (2, "2.25")) == [
        {"p": Decimal("1.50"), "s": Decimal("1.50"), "l": None},
        {"p": None, "s": Decimal("1.50"), "l": Decimal("1.50")},
        {"p": Decimal("2.25"), "s": Decimal("2.25"), "l": None},
    ]


def test_decimals_of_38_digits() -> None:
    items = "sum(price) AS s, avg(price) AS a, min(price) AS l, max(price) AS h"
    large, small = "1234567890123456.000000000000000001", "-0.000000000000000001"
    rows = [(1, large), (2, small), (3, None), (4, "-" + large)]
    sql = f"SELECT {items} FROM s GROUP BY window(ts, '10 s')"
    mean = Decimal("-0.0000000000000000003333")
    assert run(sql, *rows, precision=38, scale=18) == [
        {"s": Decimal(small), "a": mean, "l": Decimal("-" + large), "h": Decimal(large)}
    ]


@pytest.mark.parametrize(("call", "digits"), [("sum(price)", 18), ("avg(price)", 22)])
def test_results_that_do_not_fit(call: str, digits: int) -> None:
    """As in Spark, for which 38 digits are the most."""
    rows, sql = [(1, "9" * 20), (2, "9" * 20)], "SELECT {} AS s FROM s GROUP BY window(ts, '1 h')"
    message = f"decimal overflow in `{call}`: a window's does not fit into 38 digits, {digits} of them behind"
    with pytest.raises(DataError, match=re.escape(message)):
        run(sql.format(call), *rows, precision=38, scale=18)
    assert run(sql.format("try_sum(price)"), *rows, precision=38, scale=18) == [{"s": None}]


def test_a_value_with_too_many_digits_is_named() -> None:
    with pytest.raises(DataError) as caught:
        run("SELECT last(price) AS h FROM s GROUP BY window(ts, '1 s')", (0, "92233720368547758.08"), precision=38)
    assert "`price`: `92233720368547758.08` has too many digits for an aggregate" in str(caught.value)
    assert "CAST(... AS decimal(18, 4))" in str(caught.value)


@given(
    st.lists(st.tuples(st.integers(-(2**100), 2**100), st.integers(1, 2**40)), min_size=1), st.sampled_from([0, 4])
)
def test_means_are_the_nearest(pairs: list[tuple[int, int]], more: int) -> None:
    totals, counts = zip(*pairs, strict=True)
    low = np.array([total & (1 << 64) - 1 for total in totals], np.uint64)
    high = np.array([total >> 64 for total in totals], np.int64)
    lows, highs = means(low, high, np.array(counts), more)
    for total, count, least, most in zip(totals, counts, lows.tolist(), highs.tolist(), strict=True):
        exact = Fraction(total * 10**more, count)
        nearest = int(abs(exact) + Fraction(1, 2)) * (-1 if exact < 0 else 1)
        assert (most << 64 | least) == nearest


@given(st.lists(st.one_of(st.none(), st.integers(-(10**30), 10**30))))
def test_words_there_and_back(numbers: list[int | None]) -> None:
    kind = pa.decimal128(32, 2)
    column = pa.array([None if number is None else Decimal(number).scaleb(-2) for number in numbers], kind)
    for part in (column, column[1:]):
        assert of_words(*words(part), part.is_null().to_numpy(zero_copy_only=False), kind).equals(part)


def test_units_of_a_slice() -> None:
    column = pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal128(5, 2))
    assert units(column[1:], "x").to_pylist() == [None, -1]
