"""Every scalar function gives what Spark gives, on rows with NULL, NaN, negative numbers and empty texts."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from workbench.language import parse_queries
from workbench.logical import Call, Expression, Stream, walk
from workbench.logical.functions import FUNCTIONS
from workbench.logical.types import type_name
from workbench.runtime.expressions import evaluate

NAN = float("nan")
ROWS = pa.table(
    {
        "ts": pa.array(
            [0, -1, 1_357_034_400_000_000, -86_400_000_000, 951_827_696_123_456, None], pa.timestamp("us", tz="UTC")
        ),
        "d": pa.array([date(1970, 1, 1), date(1969, 12, 31), date(2012, 2, 29), None, date(2000, 1, 2), None]),
        "x": pa.array([7.5, -2.5, NAN, 0.0, None, float("inf")]),
        "y": pa.array([2.0, -0.5, 1.0, NAN, 3.0, None]),
        "f": pa.array([0.1, -1.5, 2.0, None, 1e10, 3.25], pa.float32()),
        "n": pa.array([7, -7, 0, None, 2**40, 5], pa.int64()),
        "m": pa.array([2, 3, -3, 4, None, -5], pa.int64()),
        "i": pa.array([1, -1, 0, None, 100, 25], pa.int32()),
        "t": pa.array([1, -1, 0, None, 100, 25], pa.int8()),
        "s": pa.array(["héllo", "", "a_b", None, "  trim me ", "Zebra"]),
        "u": pa.array(["h%", "", "A_B", "x", None, "zebra"]),
        "b": pa.array([True, False, None, True, False, None]),
        "c": pa.array([True, True, False, None, None, False]),
    }
)
STREAM = Stream("rows", ROWS.schema, "ts", 0)

EXPRESSIONS = """
b AND c; b OR c; NOT b; b = c; b < c
n = m; n <> m; n < m; n <= m; n > m; n >= m; n = i; x = n; n > 1.5; f > i
x = y; x <> y; x < y; x <= y; x > y; x >= y; x > 5; y < 1e300
s = u; s <> u; s < u; s >= u; ts < '2013-01-01'; d >= '1970-01-01'; ts > d
n IN (7, 0, -7); n NOT IN (7, NULL); s IN ('', 'Zebra')
x IN (7.5, 'NaN'::double); n BETWEEN -7 AND 7; d BETWEEN d AND d
s LIKE '%e%'; s LIKE 'a\\\\_b'; s LIKE 'h_l%'; s NOT LIKE ''; s LIKE '%'
n IS NULL; x IS NOT NULL; isnull(s); isnotnull(b)
CASE WHEN n > 0 THEN 'up' WHEN n < 0 THEN 'down' END; CASE i WHEN 1 THEN 2 ELSE 3.5D END; if(b, n, i)
CASE WHEN n <> 0 THEN 7 / n ELSE 0 END; if(n = 0, 0, 7 % n); n <> 0 AND 7 / n > 0; n = 0 OR 7 / n > 0
coalesce(n, m); coalesce(x, n, 0); ifnull(s, ''); nvl(s, u); nullif(n, 0); nullif(s, ''); nullif(x, 'NaN'::double)
least(n, m); greatest(n, m, 1); least(x, y); greatest(x, y)
least(s, u); greatest(x, n); greatest(ts, ts); least(d, d)
n + m; n - m; n * m; i + 1; i - n; i * 2; t - t; t + i; x + y; x - n; x * y; f + f; f * i; f + n
n / nullif(m, 0); x / y; i / 4; f / 2
n % m; mod(i, 7); x % y; -7 % 3; x % -2.5D; t % m
-n; -x; negative(i); abs(n); abs(x); abs(i); -(-3)
round(x); round(y); round(x, 1); round(n, -1); round(i); round(2.5D); round(-2.5D); round(-0.4D); round(f)
ceil(nullif(y, 'NaN'::double)); ceiling(n); floor(i); floor(nullif(y, 'NaN'::double)); ceil(f)
sqrt(x); sqrt(n); exp(y); exp(i); ln(x); ln(n); ln(y); power(x, 2); pow(y, i); power(-8, 1 / 3D)
length(s); char_length(u); lower(s); lcase(u); upper(s); ucase(u); trim(s)
substring(s, 2, 3); substring(s, 0, 2); substring(s, -3); substring(s, -7, 4); substr(s, 3); substring(s, 2, 0)
concat(s, '-', u); s || u; concat(s)
year(ts); month(ts); day(ts); dayofmonth(d); hour(ts)
minute(ts); dayofweek(ts); year(d); month(d); dayofweek(d); hour(d)
CAST(n AS double); CAST(i AS string); CAST(b AS string)
CAST(b AS int); CAST('12' AS int); CAST(' -3 ' AS bigint)
CAST('1.5' AS double); CAST(f AS double); CAST(i AS smallint)
CAST(nullif(y, 'NaN'::double) AS int); CAST(ts AS date)
CAST(d AS timestamp); CAST(d AS string); coalesce(d, CAST('2012-02-29' AS date))
"""
CASES = [text.strip() for text in EXPRESSIONS.replace("\n", ";").split(";") if text.strip()]


def bind(text: str) -> Expression:
    """The expression, bound as a key: the one place where any type is taken."""
    statement = f"SELECT count(*) AS n FROM rows GROUP BY {text}, window(ts, '1 hour')"
    (query,) = parse_queries(statement, {"rows": STREAM}, name="q")
    return query.keys[0].expression


def described(column: Any) -> str:
    """Type and values; the last bits of exp, ln and power are the C and the Java library's own."""
    values = [
        round(value, 12) if isinstance(value, float) and math.isfinite(value) else value
        for value in column.to_pylist()
    ]
    return f"{type_name(column.type)} {values}"


def test_every_function_is_compared() -> None:
    calls = {node.function for text in CASES for node in walk(bind(text)) if isinstance(node, Call)}
    assert calls == set(FUNCTIONS)


@pytest.mark.spark
def test_same_values_and_types_as_spark(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS)
    theirs = frame.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(CASES))).toArrow()
    batch = ROWS.combine_chunks().to_batches()[0]
    faults = []
    for text, column in zip(CASES, theirs.columns, strict=True):
        ours = evaluate(bind(text), batch)
        told, wanted = described(ours), described(column)
        if told != wanted:
            faults.append(f"{text}\n  ours  {told}\n  spark {wanted}")
    assert not faults, "\n".join(faults)
