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
from workbench.feeds import Tally
from workbench.feeds.formats import scan
from workbench.feeds.recording import FilePiece
from workbench.runtime.engine import Engine
from workbench.session import Session
from workbench.session.memory import as_arrow

ROWS = pd.DataFrame({"ts": pd.date_range("2024-01-01", periods=2, freq="h"), "v": [1, 2]})


class Capsule:
    """What polars and DuckDB have: Arrow's PyCapsule interface, and nothing else that is known here."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("texts", [pa.string(), pa.string_view()])
@pytest.mark.parametrize("index", [pa.uint8(), pa.uint32()])
def test_categories_of_any_library_are_texts(texts: pa.DataType, index: pa.DataType) -> None:
    """Those of polars, enums too, are views, which Parquet cannot hold as categories: such a table was refused."""
    categories = pa.array(["a", "b"], texts)
    column = pa.DictionaryArray.from_arrays(pa.array([1, None], index), categories)
    field = pa.field("ts", pa.timestamp("us"), nullable=False)
    given = pa.table([pa.array([0, 1], field.type), column], schema=pa.schema([field, ("c", column.type)]))
    session = Session()
    source = session.source("s", Capsule(given), time="ts")
    assert source.stream.schema.field("c").type == pa.string()
    assert not source.stream.schema.field("ts").nullable
    assert pq.read_table(source.paths[0])["c"].to_pylist() == ["b", None]
    assert session.table("t", Capsule(given)).open()["c"].to_pylist() == ["b", None]
    empty = session.source("e", Capsule(given.slice(0, 0)), time="ts")
    assert empty.stream.schema.field("c").type == pa.string()


@pytest.mark.parametrize("kind", ["table", "parquet", "arrow", "categories"])
def test_texts_of_polars_can_be_joined(tmp_path: Path, kind: str) -> None:
    """They are views, of which Arrow cannot take some: a join ended the query with an ArrowNotImplementedError."""
    texts: Any = pa.array(["a", "b", "a"], pa.string_view())
    if kind == "categories":
        texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), texts.slice(0, 2))
    given = pa.table({"ts": pa.array([0, 1, 2], pa.timestamp("us")), "c": texts})
    data: Any = Capsule(given)
    if kind == "parquet":
        pq.write_table(given, data := tmp_path / "a.parquet")
    elif kind != "table":
        with pa.ipc.new_file(data := tmp_path / "a.arrow", given.schema) as out:
            out.write_table(given)
    session = Session()
    source = session.source("s", data, time="ts")
    session.table("t", Capsule(pa.table({"c": texts.slice(0, 2), "w": [10, 20]})))
    queries = session.parse(
        "SELECT t.c, sum(t.w) AS w FROM s JOIN t ON s.c = t.c GROUP BY t.c, window(s.ts, '1 day')", name="q"
    )
    engine = Engine(session.plan(queries))
    file = scan(str(source.paths[0]), source.format or "parquet")
    piece = FilePiece(file.path, file.format, file.size, file.blocks[0], 0, 3)
    engine.run([pa.Table.from_batches(piece.read(source.stream.schema, Tally()))])
    assert engine.results["q"].table().select(["c", "w"]).to_pylist() == [{"c": "a", "w": 20}, {"c": "b", "w": 20}]


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
