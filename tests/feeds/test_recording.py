"""Reading recorded events: units of time, parts of row groups, files that change while they are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import SourceError
from workbench.feeds import Tally
from workbench.feeds.formats import scan
from workbench.feeds.lines import Block
from workbench.feeds.recording import FilePiece, Recording
from workbench.feeds.times import MICROS

SCHEMA = pa.schema([("ts", MICROS), ("value", pa.int64())])


def piece(path: str, rows: int) -> FilePiece:
    """The first rows of a file with one row group."""
    return FilePiece(path, "parquet", Path(path).stat().st_size, Block(rows, 0), 0, rows)


def read(pieces: list[FilePiece], schema: pa.Schema) -> list[pa.RecordBatch]:
    return [batch for piece in pieces for batch in piece.read(schema, Tally())]


def write(path: Path, stamps: pa.Array, **options: object) -> str:
    pq.write_table(pa.table({"ts": stamps, "value": pa.array(range(len(stamps)), pa.int64())}), path, **options)
    return str(path)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_every_unit_and_zone_becomes_microseconds_in_utc(tmp_path: Path, unit: str, zone: str | None) -> None:
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    stamps = pa.array([-2 * scale, 0, 86_400 * scale], pa.int64()).cast(pa.timestamp(unit, tz=zone))
    path = write(tmp_path / "a.parquet", stamps)
    [batch] = read([piece(path, 3)], SCHEMA)
    assert batch.schema == SCHEMA
    assert batch.column(0).cast(pa.int64()).to_pylist() == [-2_000_000, 0, 86_400_000_000]


def test_nanoseconds_are_never_cut_off_silently(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.array([1_000, 1_001], pa.int64()).cast(pa.timestamp("ns")))
    with pytest.raises(SourceError, match=r"the column `ts` of `.*a\.parquet` does not fit into microseconds"):
        read([piece(path, 2)], SCHEMA)


def test_reads_the_rows_of_a_piece_and_no_others(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.array(range(10), pa.int64()).cast(MICROS), row_group_size=4)
    batches = read(Recording([scan(path, "parquet")], "ts").split(3, 9, 1)[0], SCHEMA)
    assert [value for batch in batches for value in batch.column(1).to_pylist()] == [3, 4, 5, 6, 7, 8]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no file `.*gone\.parquet`"):
        scan(str(tmp_path / "gone.parquet"), "parquet")


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    path.write_text("ts,value\n" * 100)
    with pytest.raises(SourceError, match=r"cannot read `.*text\.parquet` as Parquet"):
        scan(str(path), "parquet")


def test_a_file_that_vanishes_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.array([1, 2], pa.int64()).cast(MICROS))
    found = piece(path, 2)
    read([found], SCHEMA)
    Path(path).unlink()
    with pytest.raises(SourceError, match=r"the file `.*a\.parquet` has vanished"):
        read([found], SCHEMA)


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.array(range(1000), pa.int64()).cast(MICROS))
    found, content = piece(path, 1000), Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])
    with pytest.raises(SourceError, match=r"`.*a\.parquet` has changed since it was taken in: it had .* bytes then"):
        read([found], SCHEMA)
    Path(path).write_bytes(content)
    assert sum(map(len, read([found], SCHEMA))) == 1000, "it is as it was, so all goes on"


def test_a_file_that_is_broken_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.array(range(1000), pa.int64()).cast(MICROS))
    found, size = piece(path, 1000), Path(path).stat().st_size
    Path(path).write_bytes(b"PAR1" + bytes(size - 4))
    with pytest.raises(SourceError, match=r"cannot read `.*a\.parquet`, which has changed"):
        read([found], SCHEMA)


def test_a_file_with_fewer_rows_than_before_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.array(range(5), pa.int64()).cast(MICROS))
    with pytest.raises(SourceError, match="has become shorter"):
        read([piece(path, 6)], SCHEMA)


def test_a_file_that_loses_a_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ts": pa.array([1], pa.int64()).cast(MICROS)}), path)
    with pytest.raises(SourceError, match=r"`.*a\.parquet` has no column `value`"):
        read([piece(str(path), 1)], SCHEMA)
