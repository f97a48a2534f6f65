"""Sources: streams of recorded events, of folders that grow, of topics. And static tables beside them."""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets import Dataset
from workbench.errors import QueryError, SourceError, did_you_mean
from workbench.feeds import FeedOptions, ReplayOptions
from workbench.feeds.dialect import PLAIN, Dialect, LineOptions
from workbench.feeds.folder import FolderOptions
from workbench.feeds.formats import LINES, SUFFIXES, format_of, plain, scan
from workbench.logical import Store, Stream
from workbench.logical.joins import StaticTable
from workbench.session.columns import (
    Columns,
    check_format,
    checked_time,
    declared_or_found,
    dialect_of_files,
    files_in,
    schema_of_files,
    schema_text,
    times_of_files,
)
from workbench.session.memory import Table, as_arrow, check_index, is_spilled, is_table, spill
from workbench.session.topics import TOPICS, KafkaTopic, MqttTopic
from workbench.time import SECOND, format_duration, parse_duration

#: How far rows may come out of order where nobody says: short, so that results become final soon.
DEFAULT_DELAY = "10 minutes"
#: Messages of a topic in a micro-batch where nobody bounds them.
_TOPIC_ROWS = 100_000


@dataclass(frozen=True)
class Source:
    """A named stream of events: recorded ones in files, or what ``feed`` gives, for one that never ends by itself.

    ``arrival`` names the column that says when a row came in (None: rows come in file order, by the running
    maximum of the event time). ``speed`` is microseconds of arrival time per second, None for as fast as
    possible; ``max_rows`` bounds a micro-batch, None leaves that to the feed. ``format`` is that of the files at
    ``paths``, ``dialect`` how their lines are written. ``checkpoint`` is the folder from which a run goes on where
    the one before it ended; without one, every run begins anew. ``backfill``: a recording is no stream but one job,
    with all windows final.
    """

    stream: Stream
    paths: tuple[Path, ...]
    arrival: str | None
    speed: float | None
    max_rows: int | None
    format: str = "parquet"
    feed: FeedOptions | None = None
    checkpoint: Path | None = field(default=None, kw_only=True)
    backfill: bool = field(default=False, kw_only=True)
    dialect: Dialect = field(default=PLAIN, kw_only=True)

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def rewinds(self) -> bool:
        """Whether a second run gets the very same rows from the first one on."""
        return self.feed is None or self.feed.replayable

    @property
    def own_options(self) -> dict[str, object]:
        """Options of the call that makes this source which its kind of data alone has."""
        return {}

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.stream.schema)
        what = f"follows {self.feed}" if self.feed is not None else f"{self._rows():,} rows"
        read = f", read with {self.dialect}" if self.dialect != PLAIN else ""
        return f"Source `{self.name}`: {what}, event time `{self.stream.time}` ({columns}){read}"

    def _rows(self) -> int:
        files = (scan(str(path), self.format, dialect=self.dialect) for path in self.paths)
        return sum(block.rows for file in files for block in file.blocks)

    def feed_options(self, clock: int | None) -> FeedOptions:
        """Where a run gets its rows from; those that arrived up to ``clock`` come without waiting."""
        return self.recorded(clock) if self.feed is None else self.feed

    def recorded(self, clock: int | None = None) -> ReplayOptions:
        """The same of a recording."""
        paths = tuple(map(str, self.paths))
        return ReplayOptions(
            paths,
            self.arrival,
            self.speed,
            self.max_rows,
            clock,
            format=self.format,
            schema=self.stream.schema,
            dialect=self.dialect,
        )


Files: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Data: TypeAlias = Dataset | KafkaTopic | MqttTopic | Files | Table


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
    idle: str | None = None,
    max_rows: int | None = None,
    format: str | None = None,
    schema: Columns | None = None,
    follow: bool = False,
    store: str = "auto",
    **lines: Unpack[LineOptions],
) -> Source:
    """A source from a data set, files (a path, a folder or a list), a growing folder, a topic or a table in memory.

    Raises SourceError where the data cannot be read or the time column is not a timestamp.
    """
    check_name(name, "a source")
    check_format(format)
    if isinstance(data, Dataset) or is_table(data):
        _refuse("a table in memory or a data set", format=format, schema=schema, follow=follow or None)
    kind = "parquet"
    paths: tuple[Path, ...] = ()
    feed: FeedOptions | None = None
    if isinstance(data, TOPICS):
        given = {"format": format, "schema": schema, "follow": follow or None, "arrival": arrival}
        _refuse("a topic", **given, replay=None if replay == "max" else replay)
        columns = data.columns()
    elif isinstance(data, Dataset):
        time, arrival, delay = time or data.time, arrival or data.arrival, delay or data.delay
        paths = tuple(data.paths)
    elif is_table(data):
        check_index(data, time)
        paths = (spill(name, data),)
    elif follow:
        _refuse("a folder that grows", arrival=arrival, replay=None if replay == "max" else replay)
        paths, kind = _followed(data, format, schema)
    else:
        paths, kind = recorded_files(data, format)
    times = tuple(filter(None, (time, arrival)))
    dialect = dialect_of_files(paths, kind, times, lines)
    if paths:
        columns = declared_or_found(paths, kind, schema, times, dialect)
    time = checked_time(name, columns, time, arrival, times_of_files(paths, kind, dialect, lines))
    if max_rows is not None and max_rows < 1:
        raise SourceError(f"`max_rows` must be at least 1, got {max_rows}")
    stream = make_stream(name, columns, time, delay, lateness, future, idle, store)
    if not (follow or isinstance(data, TOPICS)) and parse_replay(replay) is None:
        _refuse("a recording that is read as fast as possible", idle=idle)
    if follow:
        feed = FolderOptions(str(paths[0]), kind, columns, max_rows, dialect=dialect)
    elif isinstance(data, TOPICS):
        feed = data.feed(max_rows or _TOPIC_ROWS)
    backfill = _is(replay, "backfill")
    if backfill:
        _refuse("a backfill", max_rows=max_rows, lateness=lateness)
    speed = parse_replay(replay)
    return Source(stream, paths, arrival, speed, max_rows, kind, feed, backfill=backfill, dialect=dialect)


def make_stream(
    name: str,
    schema: pa.Schema,
    time: str,
    delay: str | None,
    lateness: str | None,
    future: str | None,
    idle: str | None = None,
    store: str = "auto",
) -> Stream:
    """The stream of a source, its durations read. Raises SourceError for what cannot be."""
    known = [each.value for each in Store]
    if store not in known:
        raise SourceError(f"no store `{store}`", hint=did_you_mean(store, known, "store"))
    behind = _distance("watermark delay", delay or DEFAULT_DELAY)
    allowed = _distance("allowed lateness", lateness or "0 seconds")
    ahead = None if future is None else _distance("limit of the future", future)
    silence = None if idle is None else _distance("idle time-out", idle)
    return Stream(name, schema, time, behind, allowed, ahead, silence, Store(store))


def _refuse(what: str, **options: object) -> None:
    """Refuse options that mean nothing for such a source."""
    for name, value in options.items():
        if value is not None:
            raise SourceError(f"`{name}` has no meaning for {what}", hint=f"leave `{name}` out")


def _followed(data: Any, kind: str | None, schema: Columns | None) -> tuple[tuple[Path, ...], str]:
    """The folder, as a path, and its format: as asked for, or that of the files in it."""
    if not isinstance(data, str | os.PathLike):
        raise SourceError("only one folder can be followed", hint="give the path of a folder")
    folder = Path(data).expanduser().resolve()
    if not folder.is_dir():
        raise SourceError(f"no folder `{folder}`", hint="only a folder can be followed; it must exist")
    found = [format_of(path) for path in files_in(folder, kind)]
    if schema is None and not found:
        raise SourceError(
            f"the folder `{folder}` holds no file yet, so its columns are not known", hint="give `schema`"
        )
    kind = kind or next(iter(found), None)
    if kind is None:
        raise SourceError(
            f"the folder `{folder}` is empty, so its format is not known", hint=f"give `format`: {_listed(SUFFIXES)}"
        )
    return (folder,), kind


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


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
    if is_table(data):
        table = as_arrow(data)
    else:
        paths, kind = recorded_files(data, None)
        if kind != "parquet":
            raise SourceError(
                f"a static table is read from Parquet, not from `{kind}`", hint="pandas reads it: give the DataFrame"
            )
        schema_of_files(paths, kind, ())
        table = pa.concat_tables(pq.read_table(path) for path in paths)
    columns = pa.schema([plain(field) for field in table.schema])
    try:
        return StaticTable.of(name, table.cast(columns).replace_schema_metadata())
    except pa.ArrowInvalid as error:
        raise SourceError(f"the table `{name}` has a time that is no whole microsecond: {error}") from None


def check_name(name: str, what: str) -> None:
    """Raises SourceError for a name that SQL cannot say."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise SourceError(f"`{name}` cannot name {what}", hint="use letters, digits and `_`, beginning with a letter")


def parse_replay(replay: str | float) -> float | None:
    """Microseconds of arrival time per second of ``'1 day/s'``, ``'60x'`` or a factor; None for those without one."""
    if _is(replay, "max") or _is(replay, "backfill"):
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
            f"cannot read the replay speed `{replay}`", hint="write '1 day/s', '60x', 'max' or 'backfill'"
        ) from None
    return speed


def _is(replay: str | float, word: str) -> bool:
    return isinstance(replay, str) and replay.strip().casefold() == word


def source_arguments(source: Source) -> list[str]:
    """The arguments of a call that makes this source again, after its name, as Python.

    A table that was in memory, a topic and a DataFrame are told by ``data``, a name that the reader must fill in.
    """
    spilled = not source.paths or is_spilled(source.paths[0])
    paths = [str(path) for path in source.paths]
    data = "data" if spilled else repr(paths[0] if len(paths) == 1 else paths)
    arguments: dict[str, object] = {
        "time": source.stream.time,
        "arrival": source.arrival,
        "delay": format_duration(source.stream.delay),
        "lateness": format_duration(source.stream.lateness) if source.stream.lateness else None,
        "future": None if source.stream.future is None else format_duration(source.stream.future),
        "idle": None if source.stream.idle is None else format_duration(source.stream.idle),
        "max_rows": source.max_rows,
        "checkpoint": None if source.checkpoint is None else str(source.checkpoint),
        **source.own_options,
    }
    if source.stream.store is not Store.AUTO:
        arguments["store"] = source.stream.store.value
    if isinstance(source.feed, FolderOptions):
        arguments["follow"] = True
    if source.format != "parquet":
        arguments["format"] = source.format
    if source.format in LINES:
        arguments["schema"] = schema_text(source.stream.schema)
    arguments |= source.dialect.options()
    if source.backfill:
        arguments["replay"] = "backfill"
    if source.speed is not None:
        arguments["replay"] = f"{source.speed / SECOND:.10g}x"
    return [data, *(f"{name}={value!r}" for name, value in arguments.items() if value is not None)]


def recorded_files(data: Any, kind: str | None) -> tuple[tuple[Path, ...], str]:
    """The files of a recording, and their one format: as asked for, or as names tell; Parquet where they do not.

    Raises SourceError for what is not there.
    """
    found: list[Path] = []
    for entry in _entries(data):
        path = Path(entry).expanduser()
        inside = files_in(path, kind) if path.is_dir() else [path] if path.exists() else _matching(str(entry))
        if not inside:
            raise SourceError(f"the folder `{path}` holds no file of events", hint=f"formats: {_listed(SUFFIXES)}")
        found += inside
    if not found:
        raise SourceError("a source needs at least one file")
    kinds = {kind} if kind else {format_of(path) or "parquet" for path in found}
    if len(kinds) > 1:
        raise SourceError(f"files of several formats cannot be one source: {_listed(sorted(kinds))}")
    return tuple(path.resolve() for path in found), kinds.pop()


def _entries(data: Any) -> list[str | os.PathLike[str]]:
    """The paths that are given. Raises SourceError for what is none, and no other source either."""
    if isinstance(data, str | os.PathLike):
        return [data]
    is_list = isinstance(data, Iterable) and not isinstance(data, bytes | Mapping | io.IOBase)
    given = list(data) if is_list else [data]
    wrong = next((each for each in given if not isinstance(each, str | os.PathLike)), None)
    if given and (wrong is not None or data is None):
        what = type(data).__name__ + (f" of {type(wrong).__name__}" if is_list else "")
        raise SourceError(
            f"rows cannot be read from {what}",
            hint="give paths, a topic, or a table of pandas, polars, Arrow, DuckDB or Spark; "
            "`pandas.DataFrame(data)` makes one of lists and dictionaries",
        )
    return given


def _matching(given: str) -> list[Path]:
    """The files that a pattern means, by name. Raises SourceError where there is none, or no such file."""
    if re.match(r"\w+://", given):
        raise SourceError(f"`{given}` is no file of this machine", hint="read it with pandas, and give the DataFrame")
    path = Path(given).expanduser()
    found = [Path(each) for each in sorted(glob.glob(str(path), recursive=True)) if Path(each).is_file()]
    if not found:
        beside = [each.name for each in path.absolute().parent.glob("*") if each.is_file()]
        hint = f"in `{path.absolute().parent}`: {did_you_mean(path.name, beside, 'file')}"
        raise SourceError(f"no file `{path}`", hint=hint)
    return found
