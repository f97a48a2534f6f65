"""Files and folders as sources of a session: formats, declared columns, folders that grow, what is refused."""

from __future__ import annotations

import csv
import gzip
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from workbench.errors import SourceError
from workbench.feeds import Tally
from workbench.feeds.folder import FolderOptions
from workbench.feeds.formats import read_block, scan
from workbench.feeds.recording import FilePiece
from workbench.session import Session
from workbench.session.columns import parse_schema, schema_text
from workbench.session.sources import make_source, source_arguments
from workbench.template import time_of

LINES = "ts,key,value\n2024-01-01 00:00:00,a,1\n2024-01-01 00:00:01.5,b,2\n"


def test_a_recording_of_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    (tmp_path / "b.csv").write_text(LINES)
    (tmp_path / "_hidden.csv").write_text("nothing\n")
    source = make_source("s", tmp_path, time="ts")
    assert "4 rows" in repr(source)
    assert source.format == "csv"
    kinds = {field.name: field.type for field in source.stream.schema}
    assert kinds == {"ts": pa.timestamp("us"), "key": pa.string(), "value": pa.int64()}
    assert source_arguments(source)[3:] == ["format='csv'", "schema='`ts` TIMESTAMP, `key` STRING, `value` BIGINT'"]
    declared = make_source("s", tmp_path, time="ts", schema="ts TIMESTAMP, value DOUBLE")
    assert declared.stream.schema.names == ["ts", "value"]
    assert declared.rewinds


def test_a_folder_that_grows(tmp_path: Path) -> None:
    empty = make_source("s", tmp_path, time="ts", follow=True, format="json", schema="ts TIMESTAMP, `a key` STRING")
    assert empty.feed == FolderOptions(str(tmp_path), "json", empty.stream.schema, None)
    assert "follow=True" in source_arguments(empty)
    pq.write_table(pa.table({"ts": pa.array([0], pa.timestamp("ms")), "n": [1]}), tmp_path / "a.parquet")
    filled = make_source("s", tmp_path, time="ts", follow=True)
    assert filled.format == "parquet"
    assert filled.stream.schema == pa.schema([("ts", pa.timestamp("us")), ("n", pa.int64())])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "no format `xml` of files"),
        ({}, "holds files of several formats\nhint: give `format`: `csv` and `parquet`"),
        ({"format": "json"}, "holds no file of events"),
        ({"follow": True, "format": "json"}, "holds no file yet, so its columns are not known\nhint: give `schema`"),
        ({"follow": True, "format": "csv", "replay": "60x"}, "`replay` has no meaning for a folder that grows"),
        ({"follow": True, "format": "csv", "arrival": "ts"}, "`arrival` has no meaning for a folder that grows"),
        ({"format": "csv", "time": "key"}, "column `key` of type `string` is not a timestamp"),
        (
            {"format": "csv", "schema": "ts TIMESTAMPS"},
            "no type `TIMESTAMPS` of a column\nhint: did you mean `timestamp`?",
        ),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    pq.write_table(pa.table({"ts": pa.array([0], pa.timestamp("us"))}), tmp_path / "a.parquet")
    with pytest.raises(SourceError) as caught:
        make_source("s", tmp_path, **({"time": "ts"} | options))
    assert message in str(caught.value)


def test_only_a_folder_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    for data in (tmp_path / "a.csv", tmp_path / "nowhere", [tmp_path]):
        with pytest.raises(SourceError, match="folder"):
            make_source("s", data, time="ts", follow=True)
    (tmp_path / "new").mkdir()
    with pytest.raises(SourceError, match=r"`.*new` is empty"):
        make_source("s", tmp_path / "new", time="ts", follow=True, schema="ts TIMESTAMP")


def test_options_of_files_are_not_for_tables() -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("us"))})
    for option in ({"follow": True}, {"format": "csv"}, {"schema": "ts TIMESTAMP"}):
        with pytest.raises(SourceError, match=f"`{next(iter(option))}` has no meaning for a table in memory"):
            make_source("s", table, time="ts", **option)


def test_declared_columns_are_read_as_they_are_printed() -> None:
    text = "`ts` TIMESTAMP, `a b` STRING, `n` INT, `flag` BOOLEAN, `day` DATE"
    assert schema_text(parse_schema(text)) == text
    assert schema_text(pa.schema([("x", pa.list_(pa.int8()))])) is None
    odd = pa.schema([("sum, net", pa.int64()), ("a`b", pa.string()), ("x y", pa.float64())])
    assert parse_schema("`sum, net` BIGINT, `a``b` STRING,`x y` DOUBLE") == odd
    assert parse_schema(schema_text(odd) or "") == odd
    for text, part in (("a INT,", ""), ("a INT, b", "b"), ("", ""), ("`a, b` INT, `c INT", "`c INT")):
        with pytest.raises(SourceError, match=re.escape(f"cannot read `{part}` as a column")):
            parse_schema(text)


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("a.xls", b"ts,v\n2024-03-01,1\n", "`.xls` names no format that is read here (`.parquet`, `.pq`, "),
        ("a.csv", b"ts,v\nyesterday,1\n", "`time_format='...'` says how these times are written"),
        ("a.csv", b"ts,v\n12,1\n", "`time_format='...'` says how these times are written"),
        ("a.csv", b"ts;w;v\n1;01.03.2024;1\n", "timestamp columns: `w`"),
    ],
)
def test_a_file_that_cannot_be_read_comes_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, remedy: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError) as caught:
        make_source("s", tmp_path / name, time="ts")
    assert remedy in str(caught.value)


DAYS = pa.table({"day": pa.array([-1, 19_783], pa.date32()), "v": [1, 2]})


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "declared", "follow", "table"])
def test_a_day_is_the_time_at_which_it_begins(tmp_path: Path, kind: str) -> None:
    """Also before 1970."""
    data, options = tmp_path / f"a.{kind}", dict[str, Any]()
    if kind == "csv":
        data.write_text("day,v\n1969-12-31,1\n2024-03-01,2\n")
    elif kind == "arrow":
        feather.write_feather(DAYS, data)
    else:
        pq.write_table(DAYS, data := tmp_path / "a.parquet")
        options = {"declared": {"schema": "day DATE, v BIGINT"}, "follow": {"follow": True}}.get(kind, {})
    source = make_source(
        "s", DAYS if kind == "table" else tmp_path if kind == "follow" else data, time="day", **options
    )
    assert source.stream.schema.field("day").type == pa.timestamp("us", "UTC")
    form, path = source.format, str(data if kind == "follow" else source.paths[0])
    recorded = scan(path, form, source.stream.schema)
    (block,) = recorded.blocks
    piece = FilePiece(path, form, recorded.size, block, 0, block.rows)
    (rows,) = piece.read(source.stream.schema, Tally())
    assert rows["day"].cast(pa.int64()).to_pylist() == [-86_400_000_000, 19_783 * 86_400_000_000]


def test_days_are_among_the_columns_that_can_be_the_time(tmp_path: Path) -> None:
    pq.write_table(DAYS, tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="timestamp columns: `day`"):
        make_source("s", tmp_path / "a.parquet")
    assert time_of(tmp_path / "a.parquet") == "day"


def test_a_pattern_is_the_files_that_it_fits_by_name(tmp_path: Path) -> None:
    for name in ("2024-02.csv", "2024-01.csv", "2023-12.csv"):
        (tmp_path / name).write_text(LINES)
    source = make_source("s", str(tmp_path / "2024-*.csv"), time="ts")
    assert [path.name for path in source.paths] == ["2024-01.csv", "2024-02.csv"]
    with pytest.raises(SourceError, match=r"no file `.*2025-\*.csv`"):
        make_source("s", str(tmp_path / "2025-*.csv"), time="ts")
    with pytest.raises(SourceError, match=r"`https://example\.com/a\.csv` is no file of this machine"):
        make_source("s", "https://example.com/a.csv", time="ts")


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "", {}, "has no rows, so the types of its columns are not known\nhint: give `schema`"),
        ("a.csv", "ts,key\n", {"time_format": "dd.MM.yyyy"}, "has no rows"),
        ("a.json", "", {}, "has no rows"),
        ("a.csv", 'ts,key\n2024-01-01,"a\nb"\n', {}, "has 2 lines in its bytes .* but 1 rows"),
        ("a.json", '{"ts": "2024-01-01",\n"v": 1}\n', {}, "has 2 lines in its bytes .* but 1 rows"),
        ("a.csv", "ts,key\r2024-01-01,a\r", {}, r"lines must end in \\n, not in \\r alone"),
        ("a.csv", LINES, {"schema": "ts TIMESTAMP, kex STRING"}, "no column `kex`.*\nhint: did you mean `key`?"),
        ("a.csv", LINES, {"schema": "ts TIMESTAMP, key DOUBLE"}, "column `key`: .*invalid value 'a'"),
        ("a.csv", LINES, {"time_format": "dd.MM.yyyy"}, "is no time like `dd.MM.yyyy`"),
        ("a.csv", LINES, {"format": "parquet"}, "its name says that it is CSV: leave `format` out"),
        ("a.csv.gz", LINES, {}, r"Not a gzipped file \(b'ts'\)$"),
        (
            "a.csv",
            "ts\n2024-01-01T00:00:00.123456789\n",
            {},
            r"`ts` do not fit .*: '2024-01-01 00:00:00.123456789' has",
        ),
        ("a.json", '{"ts": "2024-01-01T00:00:00.1234567Z"}\n', {}, "`ts` do not fit into microseconds"),
    ],
)
def test_faults_that_the_first_lines_show_are_told_at_once(
    tmp_path: Path, name: str, content: str, options: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=message):
        make_source("s", tmp_path / name, time="ts", **options)


def test_declared_types_are_compared_with_those_of_the_files(tmp_path: Path) -> None:
    for name, kind in (("a.parquet", pa.int64()), ("b.parquet", pa.int32())):
        pq.write_table(pa.table({"ts": pa.array([0], pa.timestamp("us")), "n": pa.array([1], kind)}), tmp_path / name)
    declared = pa.schema([("ts", pa.timestamp("us")), ("n", pa.int64())])
    with pytest.raises(SourceError, match=r"column `n` of `.*b.parquet` is of type `int32`, but of type `int64`"):
        make_source("s", tmp_path, time="ts", schema=declared)


def test_nine_digits_of_a_second_are_read_where_nothing_is_lost(tmp_path: Path) -> None:
    """A column that is no event time stays text where its digits do not fit."""
    path = tmp_path / "a.csv"
    path.write_text("ts,seen\n2024-01-01T00:00:00.000001000Z,2024-01-01T00:00:00.000000001Z\n")
    source = make_source("s", path, time="ts")
    (block,) = scan(str(path), "csv").blocks
    table = read_block(str(path), "csv", block, source.stream.schema)
    assert table["ts"].cast(pa.int64()).to_pylist() == [1_704_067_200_000_001]
    assert table["seen"].to_pylist() == ["2024-01-01T00:00:00.000000001Z"]


@pytest.mark.parametrize(
    "options",
    [
        {"lateness": "90 minutes", "future": "1 day", "max_rows": 5, "store": "lazy"},
        {"replay": "60x", "idle": "30 seconds", "delay": "0 seconds"},
        {"replay": "backfill"},
        {"follow": True, "max_rows": 7, "idle": "1 hour"},
        {"checkpoint": "there"},
    ],
)
def test_the_python_of_a_source_makes_the_same_again(tmp_path: Path, options: dict[str, Any]) -> None:
    """Whatever changes results or how they come: with another lateness other rows would be late."""
    (tmp_path / "a.csv").write_text(LINES)
    place = tmp_path if "follow" in options else tmp_path / "a.csv"
    declared = {"format": "csv", "schema": "ts TIMESTAMP, key STRING"}
    source = Session().source("s", place, time="ts", **declared, **options)
    again = eval(f"Session().source('s', {', '.join(source_arguments(source))})")
    assert replace(again, paths=source.paths) == source


def read(source: Any) -> list[dict[str, Any]]:
    """All rows of a recording."""
    (path,) = map(str, source.paths)
    file = scan(path, source.format, dialect=source.dialect)
    tables = [read_block(path, source.format, block, source.stream.schema, source.dialect) for block in file.blocks]
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("before", [b"\n", b"\r\n\r\n", b"\xef\xbb\xbf\n"])
def test_empty_lines_may_stand_before_the_names(tmp_path: Path, before: bytes) -> None:
    """Empty lines are no rows; the first one was the line of names, so that there was no column."""
    (tmp_path / "a.csv").write_bytes(before + LINES.encode())
    source = make_source("s", tmp_path / "a.csv", time="ts")
    assert source.stream.schema.names == ["ts", "key", "value"]
    assert [row["value"] for row in read(source)] == [1, 2]


@pytest.mark.parametrize("long", ["z" * 3_000_000, '"' + "a,b;c" * 100_000 + '"'])
def test_a_text_of_any_length_is_one(tmp_path: Path, long: str) -> None:
    """Python's reader of CSV, which tells how a file is written, has a limit of 131,072 characters."""
    (tmp_path / "a.csv").write_text(LINES + f"2024-01-01 00:00:02,{long},3\n")
    source = make_source("s", tmp_path / "a.csv", time="ts")
    assert [(len(row["key"]), row["value"]) for row in read(source)] == [(1, 1), (1, 2), (len(long.strip('"')), 3)]
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("a.csv", gzip.compress(LINES.encode() * 99), "packed by gzip: name it so, such as `.csv.gz`"),
        ("a.json", gzip.compress(LINES.encode() * 99), "packed by gzip: name it so, such as `.csv.gz`"),
        ("a.csv", b"PK\x03\x04\x14", "a ZIP archive or of Excel: unpack it"),
        ("a.csv", b"PAR1\x15\x04", "Parquet: say it by `format='parquet'`"),
        ("a.arrow", b"PAR1\x15\x04", "Parquet: say it by `format='parquet'`"),
        ("a.parquet", b"ARROW1\0\0\0\0", "an Arrow IPC file: say it by `format='arrow'`"),
        ("a.arrow", b"\xff\xff\xff\xff\x78\0\0\0", "an Arrow IPC stream: give the table of"),
    ],
    ids=["gzip", "gzip-json", "zip", "parquet", "parquet-arrow", "arrow-parquet", "stream"],
)
def test_a_file_that_is_another_than_its_name_says(tmp_path: Path, name: str, content: bytes, hint: str) -> None:
    """They were told to be in another encoding, or to have no rows."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError) as caught:
        make_source("s", tmp_path / name, time="ts")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(f"by its first bytes it is {hint}")
