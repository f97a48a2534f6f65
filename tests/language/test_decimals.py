"""Decimals are exact, and mean what Spark means: types and values on the same rows, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from workbench.errors import DataError, QueryError
from workbench.language import Catalog, parse_queries, sql_of
from workbench.logical import Expression, Stream
from workbench.logical.types import type_name
from workbench.runtime.expressions import evaluate


def column(precision: int, scale: int, *values: str | None) -> pa.Array:
    return pa.array([value and Decimal(value) for value in values], pa.decimal128(precision, scale))


ROWS = pa.table(
    {
        "ts": pa.array(range(6), pa.timestamp("us", "UTC")),
        "p": column(10, 2, "1.10", "-2.25", None, "99999999.99", "0.00", "-99999999.99"),
        "q": column(5, 3, "0.125", "3.000", "1.005", None, "-99.999", "0.001"),
        "v": column(1, 1, "0.1", "0.9", "-0.5", None, "0.0", "0.3"),
        "w": column(
            38, 18, "12.500000000000000001", "-1e-18", "99999999999999999999.999999999999999999", None, "0", "7.25"
        ),
        "z": column(18, 0, "123456789012345678", "-5", None, "0", "17", "3"),
        "n": pa.array([7, -7, 0, None, 2**40, 5], pa.int64()),
        "i": pa.array([1, -1, 0, None, 100, 25], pa.int32()),
        "t": pa.array([1, -1, 0, None, 100, 25], pa.int8()),
        "x": pa.array([7.5, -2.5, 0.1, 0.0, None, 1e9]),
        "f": pa.array([0.1, -1.5, 2.0, None, 1e10, 3.25], pa.float32()),
        "s": pa.array(["1.5", "-2.255", " 7 ", "1e3", None, ".5"]),
        "b": pa.array([True, False, None, True, False, None]),
    }
)
STREAM = Stream("rows", ROWS.schema, "ts", 0)

EXPRESSIONS = """
p + q; p - q; p * q; p / nullif(q, 0); p % nullif(q, 0); p + n; n * p; p / 3; p * 2; p * 1.5; p + 0.1; 1.5 - p; p / 7
i * q; t + v; p + x; p * x; x - p; f * p; x / nullif(p, 0); w * p; w / 3; w + w; w - q; w % 7; w / nullif(w, 0)
z * z; z / 7; p + NULL; NULL * p; z / nullif(w, 0); 1 / nullif(p, 0); n / nullif(p, 0); p / nullif(n, 0)
p + 99999999999; p * 123456789.123; q DIV 2; p DIV nullif(q, 0); n DIV nullif(v, 0); pmod(q, 2); pmod(p, 0.7)
pmod(q, -2); try_divide(p, q); try_divide(w, CAST('1e-18' AS decimal(38, 18))); mod(p, 7); (p + q) * (p - v)
(p * 1.1 - q) / 2; -p * 2; -p; abs(q); sign(p); positive(p); p = q; p < q; p > 1.1; p >= 1.10; p = 1.1; p <> 0; p > n
p < x; q = 0.125; v IN (0.1, 0.9); p NOT IN (1.1, NULL); p BETWEEN -2.25 AND 1.1; p <=> q; w > p; z > w; p = 1
w = 7.25; x > p; if(p < 0, q, v); z = 123456789012345678; round(q); round(q, 1); round(q, 2); bround(q, 2)
bround(q, 0); round(p, -1); round(p); round(w, 3); round(z, -3); round(v); round(p, 5); bround(p, -2)
round(p * 1.1, 1); floor(q); ceil(q); floor(p); ceil(p); ceil(w); floor(w); floor(z); rint(q); coalesce(p, q)
coalesce(p, 0); coalesce(p, 0.5); coalesce(p, n); coalesce(p, x); nullif(p, 1.1); nullif(p, q); nullif(p, 0)
least(p, q, v); greatest(p, q); greatest(p, x); if(b, p, q); if(b, p, n); CASE WHEN p > 0 THEN p ELSE 0 END
nullifzero(p); zeroifnull(p); nvl2(p, q, v); ifnull(p, q); p IS NULL; isnan(p); sqrt(abs(q)); power(q, 2); exp(v)
degrees(v); hypot(q, 1); CAST(p AS double); CAST(q AS float); CAST(p AS string); CAST(v AS string); CAST(z AS double)
CAST(w AS double); CAST(CAST(0.0000001D AS decimal(10, 7)) AS string); CAST(p AS int); CAST(q AS int)
CAST(p AS bigint); CAST(p AS boolean); CAST(q AS decimal(4, 1)); CAST(q AS decimal(10, 6))
TRY_CAST(p AS decimal(5, 2)); TRY_CAST(p AS tinyint); CAST(p AS decimal); CAST(p AS decimal(9))
CAST(p AS numeric(12, 3)); TRY_CAST(s AS decimal(5, 2)); TRY_CAST(x AS decimal(5, 1)); CAST(f AS decimal(20, 5))
CAST(n AS decimal(20, 2)); CAST(i AS decimal(5, 1)); CAST(b AS decimal(3, 1)); TRY_CAST(' 1.005 ' AS decimal(3, 2))
TRY_CAST('x' AS decimal(3, 2)); CAST(1.005D AS decimal(10, 2)); CAST('1e-3' AS decimal(4, 3)); p || 'x'
concat(p, '-', q); length(CAST(p AS string)); TRY_CAST('NaN'::double AS decimal)
"""
CASES = [text.strip() for text in EXPRESSIONS.replace("\n", ";").split(";") if text.strip()]


def bind(text: str) -> Expression:
    """The expression, bound as a key: the one place where any type is taken."""
    statement = f"SELECT count(*) AS n FROM rows GROUP BY {text}, window(ts, '1 hour')"
    (query,) = parse_queries(statement, {"rows": STREAM}, name="q")
    assert parse_queries(sql_of(query), {"rows": STREAM}, name="q") == (query,)
    return query.keys[0].expression


def value(text: str) -> pa.Array:
    return evaluate(bind(text), ROWS.combine_chunks().to_batches()[0])


@pytest.mark.spark
def test_same_values_and_types_as_spark(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS).alias("rows")
    theirs = frame.selectExpr(*(f"{text} AS c{place}" for place, text in enumerate(CASES))).toArrow()
    faults = []
    for text, wanted in zip(CASES, theirs.columns, strict=True):
        ours = value(text)
        told, asked = (f"{type_name(each.type)} {each.to_pylist()}" for each in (ours, wanted))
        if told != asked:
            faults.append(f"{text}\n  ours  {told}\n  spark {asked}")
    assert not faults, "\n".join(faults)


def test_no_rows_and_rows_of_nulls_have_the_type_as_well() -> None:
    nulls = pa.record_batch([pa.nulls(2, field.type) for field in ROWS.schema], ROWS.schema)
    for text in CASES:
        expression = bind(text)
        for rows in (nulls, nulls.slice(0, 0), ROWS.combine_chunks().to_batches()[0].slice(1, 3)):
            found = evaluate(expression, rows)
            assert (len(found), found.type) == (len(rows), expression.type), text


def test_the_nearest_double() -> None:
    """Arrow multiplies by 0.1 ** scale, which makes 0.30000000000000004 of 0.3."""
    texts = ["0.3", "0.1", "1234567.89", "9007199254740993", "0.7", "12345678901234567890.12"]
    rows = pa.record_batch({"p": column(38, 9, *texts)})
    stream = Stream("s", pa.schema([("ts", pa.timestamp("us")), ("p", pa.decimal128(38, 9))]), "ts", 0)
    statement = "SELECT count(*) AS n FROM s GROUP BY CAST(p AS double), window(ts, '1 hour')"
    (query,) = parse_queries(statement, {"s": stream}, name="q")
    assert evaluate(query.keys[0].expression, rows).to_pylist() == list(map(float, texts))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w * 1e15", "overflows `decimal(38, 6)`"),
        ("p / v", "division by zero in `p / v`"),
        ("CAST(p AS decimal(5, 2))", "does not fit into `decimal(5, 2)`"),
        ("CAST(s AS decimal(3, 2))", "does not fit into `decimal(3, 2)`"),
        ("CAST('abc' AS decimal(3, 2))", "'abc' is no decimal number"),
        ("w * w", "overflows `decimal(38, 6)`"),
    ],
)
def test_what_does_not_fit(text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        value(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CAST(p AS decimal(39, 2))", "no decimals are `decimal(39, 2)`"),
        ("CAST(p AS decimal(2, 3))", "no decimals are `decimal(2, 3)`"),
        ("CAST(p AS decimal(2, 1, 1))", "no decimals are `decimal(2, 1, 1)`"),
        ("CAST(ts AS decimal(20, 0))", "cannot convert `timestamp` to `decimal(20, 0)`"),
        ("p > 'x'", "does not take `decimal(10, 2)` with `string`"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(("value", "written"), [("1e30", "1" + "0" * 30), ("-1e-30", "-0." + "0" * 29 + "1")])
def test_a_parameter_of_more_digits_than_python_computes_with(value: str, written: str) -> None:
    statement = "SELECT count_if(w = {{large}}) AS n FROM rows GROUP BY window(ts, '1 hour')"
    catalog = Catalog({"rows": STREAM}, parameters={"large": Decimal(value)})
    (query,) = parse_queries(statement, catalog, name="q")
    assert f"CAST('{written}' AS decimal(" in str(query.values[0].expression)


def test_a_parameter_is_a_decimal_of_its_digits() -> None:
    statement = "SELECT count_if(p = {{price}}) AS n FROM rows GROUP BY window(ts, '1 hour')"
    catalog = Catalog({"rows": STREAM}, parameters={"price": Decimal("1.10")})
    (query,) = parse_queries(statement, catalog, name="q")
    assert str(query.values[0].expression) == ("count_if(p = CAST(CAST('1.10' AS decimal(3, 2)) AS decimal(10, 2)))")
