"""Which columns make a band behind which, from the query alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from workbench.language import parse_queries
from workbench.logical import Stream
from workbench.widgets import roles_of

STREAM = Stream(
    "s", pa.schema([("ts", pa.timestamp("us", "UTC")), ("x", pa.float64()), ("y", pa.float64())]), "ts", 0
)


@pytest.mark.parametrize(
    ("values", "bands", "count"),
    [
        ("avg(x) AS a, min(x) AS lo, max(x) AS hi, count(*) AS n", {"a": ("lo", "hi")}, "n"),
        ("avg(x) AS a, min(y) AS lo, max(y) AS hi", {}, None),
        ("avg(x) AS a, max(x) AS hi", {}, None),
        ("sum(x) AS s, min(x) AS lo, max(x) AS hi, count(x) AS n", {}, None),
        (
            "median(x) AS m, min(x) AS lo, quantile(x, 0.1) AS p10, quantile(x, 0.9) AS p90, max(x) AS hi",
            {"m": ("p10", "p90")},
            None,
        ),
        ("quantile(x, 0.5) AS m, avg(y) AS a, min(x) AS lo, max(x) AS hi", {"m": ("lo", "hi")}, None),
        ("avg(x) + 1 AS shifted, min(x) AS lo, max(x) AS hi", {}, None),
    ],
)
def test_roles(values: str, bands: dict[str, tuple[str, str]], count: str | None) -> None:
    (query,) = parse_queries(f"SELECT {values} FROM s GROUP BY window(ts, '1 minute')", {"s": STREAM}, name="q")
    assert (roles_of(query).bands, roles_of(query).count) == (bands, count)
