"""Sources: recorded events that are replayed in order of arrival. And static tables beside them."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets import Dataset
from workbench.errors import QueryError, SourceError, did_you_mean
from workbench.logical import Stream
from workbench.logical.joins import StaticTable
from workbench.time import SECOND, format_duration, parse_duration

#: How far rows may come out of order where nobody says: short, so that results become final soon.
DEFAULT_DELAY = "10 minutes"
_SPILL = "winquery-tables-"


@dataclass(frozen=True)
class Source:
    """A named stream of recorded events.

    ``arrival`` names the column that says when a row came in (None: rows come in file order, by the running
    maximum of the event time). ``speed`` is microseconds of arrival time per second, None for as fast as
    possible; ``max_rows`` bounds a micro-batch. ``checkpoint`` is the folder from which a run goes on where the one
    before it ended; without one, every run begins anew.
    """

    stream: Stream
    paths: tuple[Path, ...]
    arrival: str | None
    speed: float | None
    max_rows: int
    checkpoint: Path | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def rewinds(self) -> bool:
        """Whether a second run gets the very same rows from the first one on."""
        return True

    def __repr__(self) -> str:
        rows = sum(pq.read_metadata(path).num_rows for path in self.paths)
        columns = ", ".join(f"{field.name} {field.type}" for field in self.stream.schema)
        return f"Source `{self.name}`: {rows:,} rows, event time `{self.stream.time}` ({columns})"


Data: TypeAlias = Dataset | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pa.Table | pd.DataFrame


def make_source(
    name: str,
    data: Data,
    *,
    time: str | None = None,
    arrival: str | None = None,
    replay: str | float = "max",
    delay: str | None = None,
    lateness: str | None = None,
    future: str | None = None,
    max_rows: int = 100_000,
) -> Source:
    """A source from a data set, Parquet files (a path, a folder or a list), or a table in memory.

    Raises SourceError where the data cannot be read or the time column is not a timestamp.
    """
    check_name(name, "a source")
    if isinstance(data, Dataset):
        time, arrival, delay = time or data.time, arrival or data.arrival, delay or data.delay
        paths = tuple(data.paths)
    elif isinstance(data, pd.DataFrame | pa.Table):
        paths = (_spill(name, data),)
    else:
        paths = _files(data)
    schema = _schema(paths)
    if time is None:
        raise SourceError(f"source `{name}` needs its event time", hint=f"time=... {_stamps(schema)}")
    _check_time(schema, time, "time")
    if arrival is not None:
        _check_time(schema, arrival, "arrival")
    if max_rows < 1:
        raise SourceError(f"`max_rows` must be at least 1, got {max_rows}")
    stream = make_stream(name, schema, time, delay, lateness, future)
    return Source(stream, paths, arrival, parse_replay(replay), max_rows)


def make_stream(
    name: str, schema: pa.Schema, time: str, delay: str | None, lateness: str | None, future: str | None
) -> Stream:
    """The stream of a source, its durations read. Raises SourceError for one that cannot be."""
    behind = _distance("watermark delay", delay or DEFAULT_DELAY)
    allowed = _distance("allowed lateness", lateness or "0 seconds")
    ahead = None if future is None else _distance("limit of the future", future)
    return Stream(name, schema, time, behind, allowed, ahead)


def _distance(what: str, text: str) -> int:
    try:
        micros = parse_duration(text)
    except QueryError as error:
        raise SourceError(f"cannot read the {what}: {error.message}", hint=error.hint) from None
    if micros < 0:
        raise SourceError(f"the {what} must not be negative, got `{text}`")
    return micros


def make_table(name: str, data: Data) -> StaticTable:
    """A static table from Parquet files (a path, a folder or a list), or a table in memory.

    Raises SourceError where the data cannot be read or is too large to travel with a plan.
    """
    check_name(name, "a table")
    if isinstance(data, Dataset):
        data = list(data.paths)
    if isinstance(data, pd.DataFrame | pa.Table):
        table = _arrow(data)
    else:
        paths = _files(data)
        _schema(paths)
        table = pa.concat_tables(pq.read_table(path) for path in paths)
    plain = pa.schema([_plain(field) for field in table.schema])
    try:
        return StaticTable.of(name, table.cast(plain).replace_schema_metadata())
    except pa.ArrowInvalid as error:
        raise SourceError(f"the table `{name}` has a time that is no whole microsecond: {error}") from None


def check_name(name: str, what: str) -> None:
    """Raises SourceError for a name that SQL cannot say."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise SourceError(f"`{name}` cannot name {what}", hint="use letters, digits and `_`, beginning with a letter")


def _arrow(data: pa.Table | pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(data, preserve_index=False) if isinstance(data, pd.DataFrame) else data


def parse_replay(replay: str | float) -> float | None:
    """Microseconds of arrival time per second of ``'1 day/s'``, ``'60x'`` or a factor; None for ``'max'``."""
    if isinstance(replay, str) and replay.strip().casefold() == "max":
        return None
    try:
        if isinstance(replay, str) and "/" in replay:
            amount, per = replay.rsplit("/", 1)
            speed = parse_duration(amount) / (parse_duration(per) / SECOND)
        else:
            speed = float(str(replay).strip().removesuffix("x")) * SECOND
        if not 0 < speed < float("inf"):
            raise ValueError
    except (ValueError, ZeroDivisionError, QueryError):
        raise SourceError(
            f"cannot read the replay speed `{replay}`", hint="write '1 day/s', '60x' or 'max'"
        ) from None
    return speed


def source_arguments(source: Source) -> list[str]:
    """The arguments of a call that makes this source again, after its name, as Python.

    A table that was in memory is told by ``data``, a name that the reader must fill in.
    """
    spilled = not source.paths or source.paths[0].parent.name.startswith(_SPILL)
    paths = [str(path) for path in source.paths]
    data = "data" if spilled else repr(paths[0] if len(paths) == 1 else paths)
    arguments = {"time": source.stream.time, "arrival": source.arrival, "delay": format_duration(source.stream.delay)}
    if source.speed is not None:
        arguments["replay"] = f"{source.speed / SECOND:.10g}x"
    return [data, *(f"{name}={value!r}" for name, value in arguments.items() if value is not None)]


def _files(data: Any) -> tuple[Path, ...]:
    given = [data] if isinstance(data, str | os.PathLike) else list(data)
    found: list[Path] = []
    for entry in given:
        path = Path(entry).expanduser()
        inside = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not inside:
            raise SourceError(f"the folder `{path}` holds no Parquet file")
        found += inside
    if not found:
        raise SourceError("a source needs at least one Parquet file")
    for path in found:
        if not path.exists():
            raise SourceError(f"no file `{path}`")
    return tuple(path.resolve() for path in found)


def _schema(paths: Sequence[Path]) -> pa.Schema:
    """The one schema of all files, dictionaries as their values."""
    first: pa.Schema | None = None
    for path in paths:
        try:
            found = pq.read_schema(path).remove_metadata()
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"cannot read `{path}` as Parquet: {error}") from None
        plain = pa.schema([_plain(field) for field in found])
        if first is None:
            first = plain
        elif not plain.equals(first):
            raise SourceError(f"`{path}` has other columns than `{paths[0]}`")
    assert first is not None
    return first


def _plain(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz)
    return pa.field(field.name, kind, field.nullable)


def _check_time(schema: pa.Schema, name: str, role: str) -> None:
    if name not in schema.names:
        raise SourceError(f"no column `{name}` for `{role}`", hint=did_you_mean(name, schema.names, "column"))
    kind = schema.field(name).type
    if not pa.types.is_timestamp(kind):
        raise SourceError(
            f"column `{name}` of type `{kind}` is not a timestamp, so it cannot be the {role}",
            hint=_stamps(schema),
        )


def _stamps(schema: pa.Schema) -> str:
    names = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    if not names:
        return "the data has no timestamp column; convert one before (pandas.to_datetime, for example)"
    return "timestamp columns: " + ", ".join(f"`{name}`" for name in names)


def _spill(name: str, data: pa.Table | pd.DataFrame) -> Path:
    """A table in memory as a Parquet file that lives as long as this process."""
    table = _arrow(data)
    path = _spill_folder() / f"{name}-{os.urandom(4).hex()}.parquet"
    pq.write_table(table, path, row_group_size=1 << 15)
    return path


@cache
def _spill_folder() -> Path:
    folder = tempfile.mkdtemp(prefix=_SPILL)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
