"""Tables in memory as sources: of which libraries, and what is said about those that cannot be one."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import SourceError
from workbench.session import Session
from workbench.session.memory import as_arrow

ROWS = pd.DataFrame({"ts": pd.date_range("2024-01-01", periods=2, freq="h"), "v": [1, 2]})


class Capsule:
    """What polars and DuckDB have: Arrow's PyCapsule interface, and nothing else that is known here."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("make", [pa.table, Capsule, lambda table: table.to_batches()[0]])
def test_whatever_hands_out_arrow_data_is_a_table(make: Any) -> None:
    given = pa.table({"ts": pa.array([0, 1], pa.timestamp("us")), "v": [1, 2]})
    session = Session()
    source = session.source("s", make(given), time="ts")
    assert pq.read_table(source.paths[0]).equals(given)
    assert session.table("t", make(given)).open().equals(given)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "rows cannot be read from NoneType\nhint: give paths, a topic, or a table of pandas"),
        (5, "rows cannot be read from int"),
        (b"a.csv", "rows cannot be read from bytes"),
        ({"ts": [1]}, "rows cannot be read from dict\n.*`pandas.DataFrame\\(data\\)`"),
        ([{"ts": 1}], "rows cannot be read from list of dict"),
        (io.StringIO("ts"), "rows cannot be read from StringIO"),
        (ROWS.assign(v=[1, "a"]), "this DataFrame cannot be read as a table: .*'a'.* column v"),
        (ROWS.assign(v=[1j, 2]), "complex128"),
        (ROWS.assign(v=pd.Series([2**70, None], dtype=object)), "too large"),
        (pd.concat([ROWS, ROWS[["v"]]], axis=1), "Duplicate column names found"),
        (pa.table([[1], [2]], names=["v", "v"]), "there are two columns `v`"),
        (pa.table({"v": pa.array([None], pa.month_day_nano_interval())}), "a column that is not supported"),
        (Capsule(pa.chunked_array([[1]])), "this Capsule cannot be read as a table"),  # type: ignore[arg-type]
        (ROWS.set_index("ts"), "`ts` is the index of this DataFrame, no column\nhint: give `data.reset_index"),
    ],
)
def test_what_is_no_table_comes_with_what_to_do(data: Any, message: str) -> None:
    with pytest.raises(SourceError, match=f"(?s){message}"):
        Session().source("s", data, time="ts")


def test_times_that_are_the_index_are_found() -> None:
    """The call that the hint gives is one that works."""
    data = ROWS.set_index("ts").rename_axis(None)
    with pytest.raises(SourceError, match=r"data\.reset_index\(names='time'\)` and `time='time'`"):
        Session().source("s", data)
    assert Session().source("s", data.reset_index(names="time"), time="time").stream.time == "time"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("time", 0, "`time` is text such as 'ts', got 0"),
        ("delay", 5, "`delay` is text such as '10 minutes', got 5"),
        ("lateness", timedelta(hours=1), "`lateness` is text such as '1 hour'"),
        ("max_rows", "5", "`max_rows` is a whole number, got '5'"),
        ("max_rows", 1.5, "`max_rows` is a whole number"),
        ("max_rows", True, "`max_rows` is a whole number"),
        ("header", "no", "`header` is True or False, got 'no'"),
        ("schema", {"ts": "timestamp"}, "`schema` is an Arrow schema, or text"),
        ("time_format", 5, "`time_format` is text such as"),
        ("time_format", {"ts": 5}, "`time_format` is text .* got 5 in it"),
        ("sep", 5, "`sep` is text such as ';', got 5"),
        ("encoding", "base64", "no encoding `base64`"),
        ("names", 5, "`names` is a list of different names"),
        ("names", [1, 2], "`names` is a list of different names"),
        ("checkpoint", 5, "`checkpoint` is the path of a folder"),
    ],
)
def test_options_of_a_wrong_type_are_told_with_what_they_are(
    tmp_path: Path, option: str, value: Any, message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,v\n2024-01-01,1\n")
    with pytest.raises(SourceError, match=message):
        Session().source("s", path, **{"time": "ts", option: value})


def test_names_that_are_no_text_are_refused() -> None:
    with pytest.raises(SourceError, match="`5` cannot name a source"):
        Session().source(5, ROWS, time="ts")  # type: ignore[arg-type]


def test_a_long_name_is_one_too() -> None:
    """The file that holds the rows is named after the source, and names of files end at 255 bytes."""
    assert Session().source("s" * 300, ROWS, time="ts").stream.time == "ts"


def test_numbers_in_numpy_stay_what_they_are() -> None:
    data = ROWS.assign(u=np.array([1, 255], np.uint8))
    assert as_arrow(data).schema.field("u").type == pa.uint8()
