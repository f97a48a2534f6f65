"""A small stream and its plan, for the tests of the adapters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import SharedPlan, compile_workload

SECOND = 1_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("key", pa.string()), ("value", pa.int64())])
STREAM = Stream("events", SCHEMA, "ts", 5 * SECOND)


SQL = "SELECT key, sum(value) AS total, count(*) AS n FROM events GROUP BY key, zoom(ts, '1 minute')"


def make_plan(sql: str = SQL, delay: int = STREAM.delay) -> SharedPlan:
    """One query ``q`` on the stream ``events``."""
    stream = replace(STREAM, delay=delay)
    return compile_workload(Workload(stream, parse_queries(sql, {"events": stream}, name="q")))


def wait_for(condition: Callable[[], bool], timeout: float, what: str) -> None:
    """Poll until a condition holds; fails the test after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.05)
