"""Goldens: SQL in, the printed query or the exact error out.

A file ``goldens/TOPIC.test`` holds cases, divided by lines of ``====``; a case is its SQL, a line ``---`` and the
text that must come out. A changed text is looked at, then written by hand or with

    WINQUERY_UPDATE_GOLDENS=1 pytest tests/language/test_goldens.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from workbench.errors import QueryError
from workbench.language import parse_queries
from workbench.logical import Stream

HERE = Path(__file__).parent / "goldens"
CASE_BREAK, ANSWER_BREAK = "\n====\n", "\n---\n"

FLIGHTS = Stream(
    "flights",
    pa.schema(
        [
            ("ts", pa.timestamp("us", tz="UTC")),
            ("arrival", pa.timestamp("us", tz="UTC")),
            ("Carrier", pa.string()),
            ("origin", pa.string()),
            ("dep_delay", pa.float64()),
            ("distance", pa.int64()),
            ("gate", pa.int32()),
            ("cancelled", pa.bool_()),
            ("day", pa.date32()),
            ("fare", pa.decimal128(10, 2)),
            ("odd name", pa.int64()),
        ]
    ),
    time="ts",
    delay=0,
)
BROKEN = Stream("broken", pa.schema([("ts", pa.int64()), ("x", pa.int64())]), time="ts", delay=0)
TIMELESS = Stream("timeless", pa.schema([("at", pa.timestamp("us"))]), time="att", delay=0)
STREAMS = {stream.name: stream for stream in (FLIGHTS, BROKEN, TIMELESS)}


def answer(sql: str) -> str:
    try:
        return "\n".join(map(str, parse_queries(sql, STREAMS, name="q")))
    except QueryError as error:
        return f"error: {error}"


@pytest.mark.parametrize("path", sorted(HERE.glob("*.test")), ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    cases = [case.partition(ANSWER_BREAK) for case in path.read_text().rstrip("\n").split(CASE_BREAK)]
    told = [(sql, answer(sql)) for sql, _, _ in cases]
    if os.environ.get("WINQUERY_UPDATE_GOLDENS"):
        path.write_text(CASE_BREAK.join(sql + ANSWER_BREAK + text for sql, text in told) + "\n")
        return
    for (sql, text), (_, _, wanted) in zip(told, cases, strict=True):
        assert text == wanted, f"in {path.name}:\n{sql}"
