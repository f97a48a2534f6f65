"""A query written as SQL is the query again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from workbench.errors import QueryError
from workbench.language import parse_queries, sql_of
from workbench.language.windows import EXAMPLES
from workbench.logical import Stream

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("odd name", pa.float64())])
STREAM = Stream("my stream", SCHEMA, "ts", 0)


@pytest.mark.parametrize(
    "form",
    [
        *EXAMPLES.values(),
        "session_window(ts, CASE WHEN k = 'vip' THEN '1 hour' ELSE '10 minutes' END)",
        "last(5, '10 minutes', '1 minute')",
        "cumulate_window(ts, '1 hour', '20 minutes', '5 minutes')",
        "band_window(ts, '2013-01-01 00:00:00.5', '2013-02-01')",
        "calendar_window(ts, '2 weeks')",
        "measure_window(invoice, 1000, 100, -5)",
        "measure_window(km / 2, 1e3, 2.50, 0.125, 'drop')",
    ],
)
def test_every_window_form_is_read_back(form: str) -> None:
    schema = pa.schema([*SCHEMA, ("event", pa.string()), ("km", pa.float64()), ("invoice", pa.int64())])
    streams = {"s": Stream("s", schema, "ts", 0)}
    (query,) = parse_queries(f"SELECT k, count(*) AS n FROM s GROUP BY k, {form}", streams, name="q")
    assert parse_queries(sql_of(query), streams, name="q") == (query,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM `my stream` GROUP BY window(ts, '1 minute')",
        "SELECT upper(k) AS u, avg(`odd name`) + 1 AS `a b`, quantile(`odd name`, 0.9) AS p FROM `my stream` "
        "WHERE `odd name` > -1 OR k IN ('x\\'y', 'z') GROUP BY upper(k), "
        "zoom(ts, '10 seconds / 3 seconds + 1 second', '1 day') HAVING count(*) > 2",
        "SELECT k, max(`odd name`) AS m FROM `my stream` GROUP BY k, window(ts, '2 hours', '1 hour', '15 minutes')",
        "SELECT k, max(`odd name`) AS m FROM `my stream` GROUP BY k, window(ts, '2 hours') HAVING m > 1 FILL ZERO",
        "SELECT CAST(`odd name` AS double), min(-(2147483648)) AS l, max(-(2.5D)) AS m FROM `my stream` "
        "WHERE NOT (k IS NULL) GROUP BY CAST(`odd name` AS double), window(ts, '1 hour')",
    ],
)
def test_what_is_written_is_read_back(sql: str) -> None:
    streams = {STREAM.name: STREAM}
    (query,) = parse_queries(sql, streams, name="q")
    (again,) = parse_queries(sql_of(query), streams, name="q")
    assert again == query


def test_a_column_has_its_name_without_backticks_whatever_is_around_it() -> None:
    sql = "SELECT (`odd name`), count(*) AS n FROM `my stream` GROUP BY (`odd name`), window(ts, '1 hour')"
    (query,) = parse_queries(sql, {STREAM.name: STREAM}, name="q")
    assert [key.name for key in query.keys] == ["odd name"]


def test_a_window_without_a_form_is_refused_by_name() -> None:
    @dataclass(frozen=True)
    class Moon:
        label: str = "full moon"

    (query,) = parse_queries(
        "SELECT count(*) AS n FROM s GROUP BY window(ts, '1 day')", {"s": replace(STREAM, name="s")}, name="q"
    )
    with pytest.raises(QueryError, match="`full moon` cannot be written as SQL"):
        sql_of(replace(query, windows=(Moon(),)))  # type: ignore[arg-type]
