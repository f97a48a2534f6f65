"""Every format gives the rows that were written, block by block; what cannot be read is named with the reason."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from workbench.errors import SourceError
from workbench.feeds import Tally
from workbench.feeds.dialect import PLAIN
from workbench.feeds.formats import UnreadableError, format_of, read_block, scan, schema_of
from workbench.feeds.lines import line_blocks
from workbench.feeds.payloads import Payloads
from workbench.feeds.recording import Recording
from workbench.feeds.times import MICROS
from workbench.logical.types import SQL_TYPES

SCHEMA = pa.schema([("ts", MICROS), ("key", pa.string()), ("value", pa.int64()), ("share", pa.float64())])
ROWS = [
    {"ts": datetime(2024, 1, 1, 0, 0, n, 250_000 * (n % 4), UTC), "key": "ab"[n % 2], "value": n, "share": n / 4}
    for n in range(50)
] + [{"ts": datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "key": None, "value": None, "share": None}]
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)


def write_parquet(path: Path) -> None:
    pq.write_table(TABLE, path, row_group_size=20)


def write_arrow(path: Path) -> None:
    with ipc.new_file(path, SCHEMA, options=ipc.IpcWriteOptions(compression="lz4")) as out:
        out.write_table(TABLE, max_chunksize=20)


def write_csv(path: Path) -> None:
    cells = [["" if value is None else str(value) for value in row.values()] for row in ROWS]
    path.write_text("\n".join([",".join(SCHEMA.names), *(",".join(line) for line in cells)]) + "\n")


def write_json(path: Path) -> None:
    lines = [json.dumps(row, default=datetime.isoformat) for row in ROWS]
    path.write_text("\n".join(lines))  # without a line break at the end


WRITERS: dict[str, Callable[[Path], None]] = {
    "parquet": write_parquet, "arrow": write_arrow, "csv": write_csv, "json": write_json,
}  # fmt: skip


@pytest.fixture(params=WRITERS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / f"events.{request.param}"
    WRITERS[request.param](path)
    return path, request.param


def test_a_format_gives_the_rows_that_were_written(file: tuple[Path, str]) -> None:
    path, kind = file
    assert format_of(path) == kind
    recording = Recording([scan(str(path), kind, SCHEMA)], "ts")
    assert recording.rows == len(ROWS)
    for start, end in [(0, 51), (0, 1), (19, 42), (50, 51)]:
        batches = [b for piece in recording.split(start, end, 1)[0] for b in piece.read(SCHEMA, Tally())]
        assert pa.Table.from_batches(batches).to_pylist() == ROWS[start:end]
    assert recording.clock(0) == 1_704_067_200_000_000
    assert recording.clock(50) == recording.clock(49), "the last row is older: it came when the one before it did"


def test_a_format_tells_its_columns(file: tuple[Path, str]) -> None:
    path, kind = file
    found = schema_of(str(path), kind, ("ts",))
    assert found.names == SCHEMA.names
    assert pa.types.is_timestamp(found.field("ts").type)
    assert found.field("ts").type.unit == "us"
    assert [found.field(name).type for name in ("key", "value", "share")] == [pa.string(), pa.int64(), pa.float64()]


def test_a_cut_file_of_parquet_or_arrow_is_unreadable(tmp_path: Path) -> None:
    for kind in ("parquet", "arrow"):
        path = tmp_path / f"events.{kind}"
        WRITERS[kind](path)
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(UnreadableError, match=rf"cannot read `.*events\.{kind}` as "):
            scan(str(path), kind)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_a_missing_column_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"events.{kind}"
    WRITERS[kind](path)
    with pytest.raises(SourceError, match=rf"`.*events\.{kind}` has no column `values`") as caught:
        scan(str(path), kind, pa.schema([("values", pa.int64())]))
    assert caught.value.hint == "did you mean `value`?"


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_column_of_another_type_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"events.{kind}"
    WRITERS[kind](path)
    with pytest.raises(SourceError, match=r"column `value` of `.*` is of type `int64`, but of type `double`"):
        scan(str(path), kind, pa.schema([("value", pa.float64())]))


@pytest.mark.parametrize("name", SQL_TYPES)
def test_every_type_that_can_be_declared_is_read_from_lines(tmp_path: Path, name: str) -> None:
    kind = SQL_TYPES[name]
    texts = {pa.bool_(): "true", pa.string(): "abc", pa.date32(): "1969-12-31", MICROS: "1969-12-31T23:59:59.000001Z"}
    text = texts.get(kind, "7")
    quoted = json.dumps(text) if kind in (pa.string(), pa.date32(), MICROS) else text
    (tmp_path / "a.csv").write_text(f"x,y\n{text},1\n,2\n")
    (tmp_path / "a.json").write_text(f'{{"x": {quoted}, "y": 1}}\n{{"y": 2}}\n')
    wanted = pa.schema([("x", kind)])
    (value,) = pa.array([text]).cast(kind)
    for path in sorted(tmp_path.iterdir()):
        lines = format_of(path) or ""
        (block,) = scan(str(path), lines).blocks
        table = read_block(str(path), lines, block, wanted)
        assert table.schema == wanted
        assert table.column(0).to_pylist() == [value.as_py(), None]
    table, _ = Payloads().decode((tmp_path / "a.json").read_bytes().splitlines(), wanted, str, Tally())
    assert table.column(0).to_pylist() == [value.as_py(), None]


def test_lines_without_rows_and_any_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(b'\xef\xbb\xbfts,key\r\n2024-01-01T00:00:00Z,a\r\n\r\n2024-01-01T00:00:01+01:00,"b,c"\r\n,""')
    wanted = pa.schema([("ts", MICROS), ("key", pa.string())])
    file = scan(str(path), "csv", wanted)
    assert [block.rows for block in file.blocks] == [3]
    rows = read_block(str(path), "csv", file.blocks[0], wanted).to_pylist()
    assert [row["key"] for row in rows] == ["a", "b,c", ""], "an empty text in quotes is none the less a text"
    assert [row["ts"] for row in rows] == [
        datetime(2024, 1, 1, tzinfo=UTC), datetime(2023, 12, 31, 23, 0, 1, tzinfo=UTC), None,
    ]  # fmt: skip


def test_many_lines_are_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the bites in which the bytes are looked at, every line is in one block, and whole."""
    path = tmp_path / "events.json"
    path.write_text("".join(f'{{"n": {n}, "pad": "{"x" * (n % 50)}"}}\n' for n in range(1_000)))
    wanted = pa.schema([("n", pa.int64())])
    monkeypatch.setattr("workbench.feeds.lines._LINES", 64)
    for bite in (1, 7, 100, 1 << 20):
        monkeypatch.setattr("workbench.feeds.lines._BITE", bite)
        file = scan(str(path), "json")
        read = [read_block(str(path), "json", block, wanted).column("n").to_pylist() for block in file.blocks]
        assert [n for block in read for n in block] == list(range(1_000))
        assert max(block.rows for block in file.blocks) <= 64


def test_a_long_line_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Putting it together bite by bite took a time that grew with the square: here seconds, for some milliseconds."""
    path = tmp_path / "events.json"
    path.write_text(f'{{"n": 1, "pad": "{"x" * (1 << 20)}"}}\n{{"n": 2}}')
    monkeypatch.setattr("workbench.feeds.lines._BITE", 32)
    began = time.perf_counter()
    (block,) = line_blocks(str(path), PLAIN, csv=False)
    assert time.perf_counter() - began < 2
    assert (block.rows, block.place, block.end) == (2, 0, path.stat().st_size + 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "ts,n\n2024-01-01,1\n2024-01-02,one\n", r"cannot read `.*a\.csv` as CSV: column `n`: .*'one'"),
        ("a.csv", "ts,n\n2024-01-01,1\n2024-01-02,1,2\n", r"cannot read `.*a\.csv` as CSV: .*Expected 2 columns"),
        ("a.csv", "ts,n\nyesterday,1\n", r"cannot read `.*a\.csv` as CSV: .*yesterday"),
        ("a.json", '{"ts": "2024-01-01", "n": 1}\n{"ts": "2024-01-01", "n": "1"}\n', r"`.*a\.json` as JSON: .*/n"),
        ("a.json", '{"ts": "2024-01-01", "n": 1} {"n": 2}\n', r"has 1 lines in its bytes 0 to 38, but 2 rows"),
        ("a.json", '{"ts": "2024-01-01", "n": 1\n', r"cannot read `.*a\.json` as JSON"),
    ],
)
def test_a_line_that_does_not_fit_is_told(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    wanted = pa.schema([("ts", MICROS), ("n", pa.int64())])
    kind = format_of(path) or ""
    (block,) = scan(str(path), kind).blocks
    with pytest.raises(SourceError, match=message):
        read_block(str(path), kind, block, wanted)


def test_files_without_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,n\n")
    (tmp_path / "a.json").write_text("")
    pq.write_table(TABLE.slice(0, 0), tmp_path / "a.parquet")
    assert all(not scan(str(path), format_of(path) or "").blocks for path in tmp_path.iterdir())
