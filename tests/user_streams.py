"""Queries over window types of a user's, and rows for them."""

from __future__ import annotations

import pyarrow as pa
from strategies import SCHEMA, SECOND

from workbench.language import parse_queries
from workbench.logical import Stream, Workload


def workload(forms: list[str], delay: int = 0, lateness: int = 0, keyed: bool = True) -> Workload:
    stream = Stream("s", SCHEMA, "ts", delay * SECOND, lateness * SECOND)
    key = "k, " if keyed else ""
    text = ";".join(f"SELECT {key}count(*) AS n, max(x) AS x FROM s GROUP BY {key}{form}" for form in forms)
    return Workload(stream, parse_queries(text, {"s": stream}, name="q"))


def rows(*given: tuple[float, float | None]) -> pa.Table:
    """Rows of (time in seconds, x), key a."""
    size = len(given)
    times = pa.array([round(time * SECOND) for time, _ in given], pa.int64()).cast(SCHEMA[0].type)
    x = pa.array([value for _, value in given], pa.float64())
    none = [pa.nulls(size, kind) for kind in SCHEMA.types]
    return pa.table([times, ["a"] * size, none[2], x, none[4], none[5]], schema=SCHEMA)
