"""What the goldens cannot show: names of several statements, default sources, spans, level texts."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import QueryError
from workbench.language import parse_queries
from workbench.language.sql import parse_statements
from workbench.language.windows import parse_level
from workbench.logical import Stream, Window

STREAM = Stream("rows", pa.schema([("ts", pa.timestamp("us")), ("x", pa.int64())]), "ts", 0)
STREAMS = {"rows": STREAM}
ONE = "SELECT count(*) AS n FROM rows GROUP BY window(ts, '1 hour')"


def test_one_statement_has_the_name_and_several_are_numbered() -> None:
    assert [query.name for query in parse_queries(ONE, STREAMS, name="q")] == ["q"]
    assert [query.name for query in parse_queries(f"{ONE};{ONE};{ONE}", STREAMS, name="q")] == ["q", "q_2", "q_3"]


def test_default_stream_serves_statements_without_from() -> None:
    text = "SELECT count(*) AS n GROUP BY window(ts, '1 hour')"
    (query,) = parse_queries(text, STREAMS, name="q", default_stream="rows")
    assert query.stream is STREAM
    with pytest.raises(QueryError, match="unknown source `other`"):
        parse_queries(text, STREAMS, name="q", default_stream="other")


def test_from_wins_over_the_default() -> None:
    other = Stream("other", STREAM.schema, "ts", 0)
    (query,) = parse_queries(ONE, {"rows": STREAM, "other": other}, name="q", default_stream="other")
    assert query.stream is STREAM


def test_span_is_in_the_whole_text() -> None:
    text = f"{ONE};\n-- the second\nSELECT max(y) AS m FROM rows GROUP BY window(ts, '1 hour')"
    with pytest.raises(QueryError) as caught:
        parse_queries(text, STREAMS, name="q")
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == "y"
    assert caught.value.sql == text


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("f(x, (a + 1))", "f(x, (a + 1))"),
        ("g(CASE WHEN x = 1 THEN 2 END + 1)", "g(CASE WHEN x = 1 THEN 2 END + 1)"),
        ("count( )", "count( )"),
        ("x IS NOT NULL", "x IS NOT NULL"),
        ("CAST(x AS int)", "CAST(x AS int)"),
        ("INTERVAL '1' DAY", "INTERVAL '1' DAY"),
        ("'(' || f(')')", "'(' || f(')')"),
    ],
)
def test_span_of_a_node(expression: str, part: str) -> None:
    text, (statement,) = parse_statements(f"SELECT 0, {expression} FROM rows")
    assert text.source(statement.expressions[1]) == part


def test_deep_nesting_is_a_user_error() -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_queries("SELECT " + "(" * 5000 + "1" + ")" * 5000, STREAMS, name="q")


@settings(deadline=None)
@given(st.text(alphabet="SELECT from(),;'`\"x 1*=-/{}:[]\n", max_size=40))
def test_any_text_gives_queries_or_a_user_error(text: str) -> None:
    with suppress(QueryError):
        parse_queries(text, STREAMS, name="q")


sizes = st.integers(1, 10**12)


@settings(deadline=None)
@given(sizes, sizes, st.integers(0, 10**12))
def test_level_text_is_inverse_to_the_label(size: int, slide: int, offset: int) -> None:
    window = Window(max(size, slide), min(size, slide), offset)
    assert parse_level(window.label) == window
