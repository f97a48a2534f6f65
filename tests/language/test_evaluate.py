"""The evaluator against values known by hand, and against SQL's truth tables."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import DataError, QueryError
from workbench.language.parse import parse_queries
from workbench.logical import AggregateCall, Call, Cast, Column, Expression, Literal, Stream
from workbench.runtime.expressions import evaluate, evaluate_filter

NAN, INF = float("nan"), float("inf")
ROWS = pa.record_batch(
    {
        "ts": pa.array([0, -1, 1_357_034_400_000_000, None], pa.timestamp("us", tz="UTC")),
        "x": pa.array([7.5, -2.5, NAN, None]),
        "n": pa.array([7, -7, 0, None], pa.int64()),
        "i": pa.array([2**31 - 1, -(2**31), 3, None], pa.int32()),
        "s": pa.array(["héllo", "", " a_b ", None]),
        "b": pa.array([True, False, None, None]),
    }
)
STREAM = Stream("rows", ROWS.schema, "ts", 0)


def bound(sql: str) -> Expression:
    """The expression, bound as a key: the one place where any type is taken."""
    text = f"SELECT count(*) AS n FROM rows GROUP BY {sql}, window(ts, '1 hour')"
    (query,) = parse_queries(text, {"rows": STREAM}, name="q")
    return query.keys[0].expression


def values(sql: str, rows: pa.RecordBatch = ROWS) -> list[Any]:
    expression = bound(sql)
    result = evaluate(expression, rows)
    assert result.type == expression.type
    return result.to_pylist()


def same(left: list[Any], right: list[Any]) -> bool:
    return [repr(value) for value in left] == [repr(value) for value in right]


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("n + 1", [8, -6, 1, None]),
        ("n - x", [-0.5, -4.5, NAN, None]),
        ("-n", [-7, 7, 0, None]),
        ("n / 2", [3.5, -3.5, 0.0, None]),
        ("n % 4", [3, -3, 0, None]),  # the sign of the dividend
        ("x % 2", [1.5, -0.5, NAN, None]),
        ("mod(5, n + 3)", [5, 1, 2, None]),
        ("x > 0", [True, False, True, None]),  # NaN is greater than every number
        ("x = x", [True, True, True, None]),
        ("x <= 'NaN'::double", [True, True, True, None]),
        ("x < 7.5", [False, True, False, None]),
        ("x >= 7.5", [True, False, True, None]),
        ("greatest(x, 1, n)", [7.5, 1.0, NAN, 1.0]),
        ("least(x, 1, n)", [1.0, -7.0, 0.0, 1.0]),
        ("greatest(s, 'b')", ["héllo", "b", "b", "b"]),
        ("n IN (7, 0)", [True, False, True, None]),
        ("n IN (7, NULL)", [True, None, None, None]),
        ("n NOT IN (7, NULL)", [False, None, None, None]),
        ("n BETWEEN -7 AND 0", [False, True, True, None]),
        ("n IS NULL", [False, False, False, True]),
        ("n IS NOT NULL AND n <> 0", [True, True, False, False]),
        ("CASE WHEN n > 0 THEN 'up' WHEN n < 0 THEN 'down' END", ["up", "down", None, None]),
        ("CASE n WHEN 7 THEN 1 ELSE 2 END", [1, 2, 2, 2]),
        ("if(b, n, 0)", [7, 0, 0, 0]),
        ("coalesce(n, 5)", [7, -7, 0, 5]),
        ("nullif(n, 0)", [7, -7, None, None]),
        ("abs(n)", [7, 7, 0, None]),
        ("round(x)", [8.0, -3.0, NAN, None]),  # half away from zero
        ("round(n, -1)", [10, -10, 0, None]),
        ("floor(coalesce(nullif(x, 'NaN'::double), 0.5))", [7, -3, 0, 0]),
        ("ceil(coalesce(nullif(x, 'NaN'::double), 0.5))", [8, -2, 1, 1]),
        ("sqrt(n + 2)", [3.0, NAN, math.sqrt(2), None]),
        ("exp(n * 0)", [1.0, 1.0, 1.0, None]),
        ("ln(n)", [math.log(7), None, None, None]),  # NULL at and below zero, as in Spark
        ("power(n, 2)", [49.0, 49.0, 0.0, None]),
        ("length(s)", [5, 0, 5, None]),
        ("upper(s)", ["HÉLLO", "", " A_B ", None]),
        ("trim(s)", ["héllo", "", "a_b", None]),
        ("substring(s, 2, 3)", ["éll", "", "a_b", None]),
        ("substring(s, 0, 2)", ["hé", "", " a", None]),
        ("substring(s, -3)", ["llo", "", "_b ", None]),
        ("substring(s, -7, 3)", ["h", "", " ", None]),
        ("substring(s, 2, -1)", ["", "", "", None]),
        ("concat(s, '-', s)", ["héllo-héllo", "-", " a_b - a_b ", None]),
        ("s LIKE '%l_o'", [True, False, False, None]),
        ("s LIKE '%a\\\\_b%'", [False, False, True, None]),
        ("year(ts)", [1970, 1969, 2013, None]),
        ("month(ts) * 100 + day(ts)", [101, 1231, 101, None]),
        ("hour(ts) * 100 + minute(ts)", [0, 2359, 1000, None]),
        ("dayofweek(ts)", [5, 4, 3, None]),  # Sunday is 1; 1970-01-01 was a Thursday
        ("ts < '1970-01-01'", [False, True, False, None]),
        ("CAST(n AS string)", ["7", "-7", "0", None]),
        ("CAST(x + 0 AS double)", [7.5, -2.5, NAN, None]),
    ],
)
def test_value(sql: str, wanted: list[Any]) -> None:
    assert same(values(sql), wanted)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("n / n", "division by zero in `CAST(n AS double) / CAST(n AS double)`"),
        ("7 % n", "division by zero in `7 % n`"),
        ("7 DIV n", "division by zero in `7 DIV n`"),
        ("pmod(7, n)", "division by zero in `pmod(7, n)`"),
        ("CAST(s AS boolean)", "`CAST(s AS boolean)`: a value does not fit into `boolean`"),
        ("CAST(x AS timestamp)", "`CAST(x AS timestamp)`: a value does not fit into `timestamp`"),
        ("(n * 0 - 9223372036854775807 - 1) DIV -1", "overflows `bigint`"),
        ("to_date(s, 'yyyy')", "cannot read 'héllo' in this format"),
        ("to_timestamp(concat('2013-02-', n + 23), 'yyyy-MM-d')", "cannot read '2013-02-30' in this format"),
        ("make_date(2013, n, 1)", "there is no day 2013--7-1"),
        ("date_add(DATE '1970-01-02', i)", "overflows `date`"),
        ("timestamp_micros(n * 0 + 9223372036854775807) + INTERVAL '14' YEAR", "overflows `timestamp`"),
        ("from_utc_timestamp(timestamp_micros(n * 0 + 9223372036854775807), 'Europe/Berlin')", "overflows"),
        ("i + 1", "`i + 1` overflows `int`"),
        ("-i", "`-i` overflows `int`"),
        ("abs(i)", "`abs(i)` overflows `int`"),
        ("(n + 1) * 9223372036854775807", "overflows `bigint`"),
        ("CAST(i AS smallint)", "a value does not fit into `smallint`"),
        ("CAST(x AS int)", "a value does not fit into `int`"),
        ("floor(x)", "a value does not fit into `bigint`"),
        ("CAST(s AS int)", "a value does not fit into `int`"),
    ],
)
def test_fault_of_the_data_names_the_expression(sql: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        values(sql)
    assert message in caught.value.message


def test_division_by_zero_hints_at_nullif() -> None:
    with pytest.raises(DataError) as caught:
        values("1 / n")
    assert caught.value.hint == "`nullif(CAST(n AS double), 0)` gives NULL instead of an error"
    assert same(values("1 / nullif(n, 0)"), [1 / 7, -1 / 7, None, None])


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CASE WHEN n <> 0 THEN 7 / n ELSE 0 END", [1.0, -1.0, 0.0, 0.0]),
        ("if(n = 0, 0, 7 % n)", [0, 0, 0, None]),
        ("n <> 0 AND 7 / n > 0", [True, False, False, None]),
        ("n = 0 OR 7 / n > 0", [True, False, True, None]),
        ("coalesce(nullif(n, 0), 0 - 5)", [7, -7, -5, -5]),
        ("CASE WHEN true THEN 1 ELSE 1 / 0 END", [1.0, 1.0, 1.0, 1.0]),
        ("if(i > 5, i, i + 1)", [2**31 - 1, 1 - 2**31, 4, None]),
    ],
)
def test_guarded_row_does_not_raise(sql: str, wanted: list[Any]) -> None:
    assert same(values(sql), wanted)


def test_chosen_row_does_raise() -> None:
    with pytest.raises(DataError, match="division by zero"):
        values("coalesce(n, 1 / 0)")


def test_filter_counts_null_as_false() -> None:
    assert evaluate_filter(bound("n > 0"), ROWS).to_pylist() == [True, False, False, False]


def test_constant_has_one_value_per_row() -> None:
    one = Literal(pa.int64(), 1)
    assert evaluate(one, ROWS).to_pylist() == [1, 1, 1, 1]
    assert evaluate(one, {}, 2).to_pylist() == [1, 1]
    assert evaluate(one, ROWS.slice(0, 0)).to_pylist() == []


def test_every_expression_takes_no_rows() -> None:
    assert evaluate(bound("CASE WHEN n > 0 THEN x / n ELSE 1 END"), ROWS.slice(0, 0)).to_pylist() == []


def test_computed_columns_stand_for_whole_expressions() -> None:
    total = AggregateCall(pa.int64(), "sum", (Column(pa.int64(), "n"),))
    rows = AggregateCall(pa.int64(), "count", ())
    key = Call(pa.string(), "upper", (Column(pa.string(), "s"),))
    double = pa.float64()
    mean = Call(double, "divide", (Cast(double, total), Cast(double, rows)))
    columns = {total: pa.array([6, None]), rows: pa.array([4, 0]), key: pa.array(["A", None])}
    assert evaluate(mean, columns).to_pylist() == [1.5, None]
    assert evaluate(Call(pa.int32(), "length", (key,)), columns).to_pylist() == [1, None]
    with pytest.raises(KeyError, match="no column was given for s"):
        evaluate(Column(pa.string(), "s"), columns)


def test_stored_layouts_enter_as_language_types() -> None:
    batch = pa.record_batch(
        {
            "ts": pa.array([1_000], pa.timestamp("ns")),
            "s": pa.array(["a"]).dictionary_encode(),
            "large": pa.array(["b"], pa.large_string()),
        }
    )
    stream = Stream("rows", batch.schema, "ts", 0)
    text = "SELECT count(*) AS n FROM rows GROUP BY s, large, ts, window(ts, '1 hour')"
    (query,) = parse_queries(text, {"rows": stream}, name="q")
    arrays = [evaluate(key.expression, batch) for key in query.keys]
    assert [array.type for array in arrays] == [pa.string(), pa.string(), pa.timestamp("us")]
    assert [array[0].as_py() for array in arrays] == ["a", "b", datetime(1970, 1, 1, 0, 0, 0, 1)]


@pytest.mark.parametrize(
    ("stored", "enters"),
    [
        (pa.array([255], pa.uint8()), pa.int16()),
        (pa.array([65_535], pa.uint16()), pa.int32()),
        (pa.array([4_294_967_295], pa.uint32()), pa.int64()),
        (pa.array(np.array([1.5], np.float16)), pa.float32()),
    ],
)
def test_stored_numbers_without_a_type_of_the_language_are_wider_ones(stored: pa.Array, enters: pa.DataType) -> None:
    """As Spark reads them from Parquet: twice the largest unsigned byte is 510."""
    batch = pa.record_batch({"ts": pa.array([0], pa.timestamp("us")), "x": stored})
    stream = Stream("rows", batch.schema, "ts", 0)
    (query,) = parse_queries(
        "SELECT x, 2 * x AS y, count(*) AS n FROM rows GROUP BY x, y, window(ts, '1 hour')",
        {"rows": stream},
        name="q",
    )
    own, twice = (evaluate(key.expression, batch) for key in query.keys)
    assert own.type == enters
    assert twice.to_pylist() == [2 * stored[0].as_py()]


def test_unsigned_64_bits_are_cast_and_nothing_wraps() -> None:
    batch = pa.record_batch({"x": pa.array([2**64 - 1, 7], pa.uint64())})
    column = Column(pa.uint64(), "x")
    assert evaluate(Cast(pa.float64(), column), batch).to_pylist() == [2.0**64, 7.0]
    assert evaluate(Cast(pa.int64(), column, safe=True), batch).to_pylist() == [None, 7]
    with pytest.raises(DataError, match="does not fit into `bigint`"):
        evaluate(Cast(pa.int64(), column), batch)
    sql = "SELECT max(CAST(x AS DOUBLE)) AS m FROM rows GROUP BY window(ts, '1 hour')"
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.uint64())])
    assert parse_queries(sql, {"rows": Stream("rows", schema, "ts", 0)}, name="q")


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()), pa.binary(), pa.large_binary(), pa.binary(2)]
)
def test_what_cannot_be_a_key_is_refused_before_anything_runs(kind: pa.DataType) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", kind)])
    text = "SELECT x, count(*) AS n FROM rows GROUP BY x, window(ts, '1 hour')"
    with pytest.raises(QueryError, match="cannot be a key"):
        parse_queries(text, {"rows": Stream("rows", schema, "ts", 0)}, name="q")


def test_nanoseconds_are_not_cut_off() -> None:
    batch = pa.record_batch({"ts": pa.array([1_001], pa.timestamp("ns", tz="UTC"))})
    column = Column(pa.timestamp("us", tz="UTC"), "ts")
    with pytest.raises(DataError, match="`ts`: a value does not fit into `timestamp`"):
        evaluate(column, batch)


def test_time_literal_is_utc() -> None:
    expression = bound("CASE WHEN true THEN TIMESTAMP '2013-01-01 12:00:00+02:00' END")
    assert evaluate(expression, ROWS)[0].as_py() == datetime(2013, 1, 1, 10, tzinfo=UTC)


def kleene(function: str, left: bool | None, right: bool | None) -> bool | None:
    """SQL's tables: the deciding value wins, else NULL spreads."""
    decisive = function == "or"
    if decisive in (left, right):
        return decisive
    return None if None in (left, right) else not decisive


Tree = Any
trees: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from(["p", "q", True, False, None]),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
    ),
    max_leaves=12,
)
truth = st.lists(
    st.tuples(st.sampled_from([True, False, None]), st.sampled_from([True, False, None])), min_size=1, max_size=9
)


def as_expression(tree: Tree) -> Expression:
    if isinstance(tree, tuple):
        return Call(pa.bool_(), tree[0], tuple(map(as_expression, tree[1:])))
    return Column(pa.bool_(), tree) if isinstance(tree, str) else Literal(pa.bool_(), tree)


def by_table(tree: Tree, row: dict[str, bool | None]) -> bool | None:
    if isinstance(tree, str):
        return row[tree]
    if not isinstance(tree, tuple):
        return tree
    sides = [by_table(side, row) for side in tree[1:]]
    if tree[0] == "not":
        return None if sides[0] is None else not sides[0]
    return kleene(tree[0], *sides)


@settings(deadline=None)
@given(trees, truth)
def test_logic_is_three_valued(tree: Tree, rows: list[tuple[bool | None, bool | None]]) -> None:
    batch = pa.record_batch(
        {name: pa.array([row[i] for row in rows], pa.bool_()) for i, name in enumerate(("p", "q"))}
    )
    wanted = [by_table(tree, dict(zip(("p", "q"), row, strict=True))) for row in rows]
    expression = as_expression(tree)
    assert evaluate(expression, batch).to_pylist() == wanted
    assert evaluate_filter(expression, batch).to_pylist() == [value is True for value in wanted]
