"""``str(expression)`` read back gives the same expression: brackets stand where they are needed, not elsewhere."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from workbench.language import parse_queries
from workbench.language.printed import sql_of
from workbench.logical import Call, Column, Expression, Literal, Stream
from workbench.logical.expressions import quote_name

STREAM = Stream(
    "rows",
    pa.schema([("ts", pa.timestamp("us")), ("p", pa.bool_()), ("x", pa.float64()), ("a b`c", pa.float64())]),
    "ts",
    0,
)
BOOL, DOUBLE = pa.bool_(), pa.float64()


def read(text: str) -> Expression:
    statement = f"SELECT count(*) AS n FROM rows WHERE {text} GROUP BY window(ts, '1 hour')"
    (query,) = parse_queries(statement, {"rows": STREAM}, name="q")
    assert query.where is not None
    return query.where


def call(kind: pa.DataType, name: str, *arguments: Expression) -> Expression:
    return Call(kind, name, arguments)


def calls(kind: pa.DataType, names: list[str], *arguments: Any) -> Any:
    return st.builds(call, st.just(kind), st.sampled_from(names), *arguments)


def minus(value: Expression) -> Expression:
    """A minus before a constant is part of the constant."""
    return Literal(DOUBLE, -value.value) if isinstance(value, Literal) else call(DOUBLE, "negate", value)


def negation(value: Expression) -> Expression:
    """NOT before IS NULL is IS NOT NULL."""
    if isinstance(value, Call) and value.function == "is_null":
        return call(BOOL, "is_not_null", *value.arguments)
    return call(BOOL, "not", value)


number_leaves = st.one_of(
    st.sampled_from([Column(DOUBLE, "x"), Column(DOUBLE, "a b`c")]),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: Literal(DOUBLE, value + 0.0)),
)
numbers = st.recursive(
    number_leaves,
    lambda inner: st.one_of(
        calls(DOUBLE, ["add", "subtract", "multiply", "divide", "modulo", "coalesce"], inner, inner),
        st.builds(minus, inner),
        calls(DOUBLE, ["abs"], inner),
    ),
    max_leaves=8,
)
comparisons = st.one_of(
    calls(BOOL, ["equal", "null_safe_equal", "not_equal", "less", "less_equal", "greater", "in"], numbers, numbers),
    calls(BOOL, ["is_null", "is_not_null"], numbers),
    st.sampled_from([Column(BOOL, "p"), Literal(BOOL, True)]),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        calls(BOOL, ["and", "or", "equal", "less"], inner, inner),
        calls(BOOL, ["is_null", "is_not_null"], inner),
        st.builds(negation, inner),
        calls(BOOL, ["case"], inner, inner, inner),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(conditions)
def test_printed_form_reads_back(condition: Expression) -> None:
    assert read(str(condition)) == condition


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((x) - (1.0)) - (2.0) > 0.0", "x - 1.0 - 2.0 > 0.0"),
        ("x - (1.0 - 2.0) > 0.0", "x - (1.0 - 2.0) > 0.0"),
        ("x * (1.0 + 2.0) > -x", "x * (1.0 + 2.0) > -x"),
        ("-(-x) = - -1.0", "-(-x) = -(-1.0)"),
        ("(NOT p) = p", "(NOT p) = p"),
        ("NOT (p = p)", "NOT p = p"),
        ("p AND (p AND p)", "p AND (p AND p)"),
        ("(p OR p) AND p OR p", "(p OR p) AND p OR p"),
        ("(p = p) = p", "(p = p) = p"),
        ("`a b``c` IS NULL", "`a b``c` IS NULL"),
        ("p IS TRUE IS NOT NULL", "(p <=> TRUE) IS NOT NULL"),
        ("(p AND p) IS DISTINCT FROM p", "NOT (p AND p) <=> p"),
        ("CAST(x AS string) NOT LIKE 'a!%' ESCAPE '!'", r"NOT CAST(x AS string) LIKE 'a\\%'"),
        ("(CAST(x AS int) + 1) DIV 2 * 3 = 1", "CAST(CAST(x AS int) + 1 AS bigint) DIV 2 * 3 = 1"),
        (
            "(ts + INTERVAL 1 DAY) - INTERVAL '90' MINUTE < ts",
            "ts + INTERVAL '1 day' - INTERVAL '1 hour 30 minutes' < ts",
        ),
        ("ts - INTERVAL '1' YEAR < ts", "ts - INTERVAL '12 months' < ts"),
        ("TRIM(BOTH 'x' FROM upper('x')) = ltrim('x')", "TRIM(BOTH 'x' FROM upper('x')) = ltrim('x')"),
        ("TRY_CAST(x AS string) RLIKE 'x'", "TRY_CAST(x AS string) RLIKE 'x'"),
    ],
)
def test_brackets(text: str, printed: str) -> None:
    assert str(read(text)) == printed
    assert read(printed) == read(text)


@settings(deadline=None)
@given(st.text())
def test_text_reads_back(value: str) -> None:
    literal = Literal(pa.string(), value)
    condition = call(BOOL, "equal", literal, Literal(pa.string(), ""))
    assert read(str(condition)) == condition


def test_words_of_sql_can_be_columns() -> None:
    """Every word that the parser knows, as a key, as a value and as the time, is read back where it is printed."""
    words = sorted(word.lower() for word in Spark.Tokenizer.KEYWORDS if word.isidentifier() and word.isascii())
    assert {"when", "select", "from", "date"} <= set(words)
    for word in words:
        name = quote_name(word)
        values = Stream("t", pa.schema([("at_time", pa.timestamp("us")), (word, pa.float64())]), "at_time", 0)
        times = Stream("t", pa.schema([(word, pa.timestamp("us"))]), word, 0)
        for stream, sql in (
            (values, f"SELECT {name}, count(*) AS n FROM t WHERE {name} > 1 GROUP BY {name}, zoom(at_time, '1 day')"),
            (values, f"SELECT avg({name} + 1) AS {name} FROM t WHERE {name} > 1 GROUP BY zoom(at_time, '1 day')"),
            (times, f"SELECT count(*) AS n FROM t GROUP BY zoom({name}, '1 day')"),
        ):
            (query,) = parse_queries(sql, {"t": stream}, name="q")
            assert parse_queries(sql_of(query), {"t": stream}, name="q") == (query,), word
    assert quote_name("When") == "`When`"
    assert quote_name("date") == "date"
