"""Goldens: SQL in, the printed query or the exact error out.

A file ``goldens/TOPIC.test`` holds cases, divided by lines of ``====``; a case is its SQL, a line ``---`` and the
text that must come out. A changed text is looked at, then written by hand or with

    WINQUERY_UPDATE_GOLDENS=1 pytest tests/language/test_goldens.py
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from workbench.errors import QueryError
from workbench.language import Catalog, parse_queries
from workbench.logical import Stream
from workbench.logical.joins import StaticTable

HERE = Path(__file__).parent / "goldens"
CASE_BREAK, ANSWER_BREAK = "\n====\n", "\n---\n"


class Word(str, Enum):  # noqa: UP042 - its own `str` is `Word.BLUE`, unlike that of a StrEnum
    BLUE = "blue"


class Sign(Enum):
    PLUS = 1


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
            ("taxi", pa.duration("us")),
            ("odd name", pa.int64()),
            ("place", pa.struct([("id", pa.int32()), ("spot", pa.struct([("x", pa.float64())]))])),
        ]
    ),
    time="ts",
    delay=0,
)
BROKEN = Stream("broken", pa.schema([("ts", pa.int64()), ("x", pa.int64())]), time="ts", delay=0)
TIMELESS = Stream("timeless", pa.schema([("at", pa.timestamp("us"))]), time="att", delay=0)
AIRPORTS = pa.table(
    {
        "faa": ["JFK", "LGA", None],
        "name": ["Kennedy", "La Guardia", "nowhere"],
        "gate": pa.array([1, 2, 3], pa.int64()),
        "ts": pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
    }
)
CATALOG = Catalog(
    {stream.name: stream for stream in (FLIGHTS, BROKEN, TIMELESS)},
    {"Airports": StaticTable.of("Airports", AIRPORTS)},
    snippets={
        "late": "SELECT ts, Carrier AS carrier, dep_delay / 60 AS hours FROM flights WHERE dep_delay > {{limit}}",
        "wrong": "SELECT ts, carier FROM flights",
    },
    hidden=["early"],
    parameters={
        "limit": 30,
        "below": -1.5,
        "carriers": ["AA", "it's"],
        "gates": np.array([1, 2]),
        "since": date(2013, 1, 31),
        "moment": datetime(2013, 1, 31, 10, 15, tzinfo=UTC),
        "size": timedelta(minutes=15),
        "level": "1 hour / 5 minutes",
        "nothing": None,
        "yes": True,
        "none": [],
        "qs": [0.5, 0.9],
        "table": pa.table({"x": [1]}),
        "evil": "x' OR '1' = '1",
        "word": Word.BLUE,
        "sign": Sign.PLUS,
        "exact": Decimal("1.50"),
        "nanos": np.array(["2013-01-31T10:15", "NaT"], "M8[ns]"),
        "fine": np.datetime64("2013-01-31T10:15:00.123456789"),
        "_private": 1,
    },
)


def answer(sql: str) -> str:
    try:
        return "\n".join(map(str, parse_queries(sql, CATALOG, name="q")))
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
