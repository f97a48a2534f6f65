"""The columns of a source: as its files have them, or as a user declares them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias

import pyarrow as pa

from workbench.errors import SourceError, did_you_mean
from workbench.feeds.dialect import PLAIN, Dialect, LineOptions
from workbench.feeds.formats import LINES, SUFFIXES, find_dialect, format_of, looks_like, plain, schema_of, try_first
from workbench.feeds.sniff import said, times_in
from workbench.feeds.times import MICROS
from workbench.logical.types import SQL_TYPES, type_name

#: Columns as an Arrow schema, or as in SQL: ``"ts TIMESTAMP, key STRING, value BIGINT"``.
Columns: TypeAlias = pa.Schema | str

#: A column and its type; in backticks a name may have any sign, a backtick twice.
_COLUMN = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>\w+))\s+(?P<kind>\w+)\s*(?:(?P<more>,)|\Z)")

#: Options that are text, with what such a text may be; None means that nobody says.
_TEXTS = {
    "time": "ts", "arrival": "received", "delay": "10 minutes", "lateness": "1 hour", "future": "1 minute",
    "idle": "30 seconds", "format": "csv", "sep": ";", "decimal": ",", "thousands": ".", "encoding": "cp1252",
    "trigger": "5 seconds", "level1": "auto", "store": "auto",
}  # fmt: skip
#: The others that can only be of some types, and how that is said.
_KINDS: dict[str, tuple[type | UnionType, str]] = {
    "max_rows": (int, "a whole number"),
    "follow": (bool, "True or False"),
    "header": (bool, "True or False"),
    "schema": (pa.Schema | str, "an Arrow schema, or text such as 'ts TIMESTAMP, key STRING'"),
    "time_format": (str | Mapping, "text such as 'dd.MM.yyyy HH:mm', or a dictionary of such by column"),
    "checkpoint": (str | PathLike, "the path of a folder"),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Raises SourceError for an option of a source whose value is of a type that it can never have."""
    for name, value in options.items():
        kind, expected = _KINDS.get(name, (str, f"text such as {_TEXTS.get(name)!r}"))
        known = name in _KINDS or name in _TEXTS
        if known and value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise SourceError(f"`{name}` is {expected}, got {value!r}")
    formats = options.get("time_format")
    texts = [*formats, *formats.values()] if isinstance(formats, Mapping) else []
    wrong = next((each for each in texts if not isinstance(each, str)), None)
    if wrong is not None:
        raise SourceError(f"`time_format` is {_KINDS['time_format'][1]}, got {wrong!r} in it")


def parse_schema(columns: Columns) -> pa.Schema:
    """Declared columns, as those of a stream. Raises SourceError for a text that does not read as columns."""
    if isinstance(columns, pa.Schema):
        return pa.schema([plain(field) for field in columns.remove_metadata()])
    fields, place, more = [], 0, True
    while more:
        found = _COLUMN.match(columns, place)
        if found is None:
            part = columns[place:].partition(",")[0].strip()
            raise SourceError(
                f"cannot read `{part}` as a column", hint="write 'ts TIMESTAMP, key STRING, value BIGINT'"
            )
        kind = found["kind"].casefold()
        if kind not in SQL_TYPES:
            raise SourceError(f"no type `{found['kind']}` of a column", hint=did_you_mean(kind, SQL_TYPES, "type"))
        name = found["name"] or found["quoted"].replace("``", "`")
        fields.append(pa.field(name, SQL_TYPES[kind]))
        place, more = found.end(), found["more"] is not None
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise SourceError(f"the schema has two columns `{name}`")
    return pa.schema(fields)


def schema_text(columns: pa.Schema) -> str | None:
    """Columns as :func:`parse_schema` reads them; None where SQL has no name for a type."""
    known = all(pa.types.is_timestamp(field.type) or field.type in SQL_TYPES.values() for field in columns)
    if not known:
        return None
    names = ("`" + field.name.replace("`", "``") + "`" for field in columns)
    return ", ".join(f"{name} {type_name(field.type).upper()}" for name, field in zip(names, columns, strict=True))


def check_format(name: str | None) -> None:
    """Refuse a format that there is not."""
    if name is not None and name not in SUFFIXES:
        raise SourceError(f"no format `{name}` of files", hint=did_you_mean(name, SUFFIXES, "format"))


def files_in(folder: Path, kind: str | None) -> list[Path]:
    """The files of a format in a folder by name, without those that are hidden; all of them of the one there is."""
    found = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith((".", "_"))]
    kinds = sorted({format_of(path) for path in found} - {None}, key=str)
    if kind is None and len(kinds) > 1:
        names = " and ".join(f"`{each}`" for each in kinds)
        raise SourceError(f"the folder `{folder}` holds files of several formats", hint=f"give `format`: {names}")
    return [path for path in found if (format_of(path) == kind if kind else format_of(path) is not None)]


def schema_of_files(paths: Sequence[Path], kind: str, times: tuple[str, ...], dialect: Dialect = PLAIN) -> pa.Schema:
    """The one schema of all files; lines are taken to be like those of the first file."""
    first = schema_of(str(paths[0]), kind, times, dialect)
    if kind in LINES and all(pa.types.is_null(field.type) for field in first):
        raise SourceError(
            f"`{paths[0]}` has no rows, so the types of its columns are not known",
            hint=looks_like(str(paths[0]), kind)
            or "give `schema`, such as 'ts TIMESTAMP, key STRING'; or leave the file out, if there are others",
        )
    for path in paths[1:]:
        found = schema_of(str(path), kind, times, dialect)
        if found.names != first.names or (kind in ("parquet", "arrow") and not found.equals(first)):
            raise SourceError(f"`{path}` has other columns than `{paths[0]}`")
    return first


def dialect_of_files(paths: Sequence[Path], kind: str, times: tuple[str, ...], given: LineOptions) -> Dialect:
    """How files of lines are written: like the first one, or as is said where there is none yet."""
    if kind not in LINES:
        for name in (name for name, value in given.items() if value is not None):
            raise SourceError(f"`{name}` has no meaning for data that is not CSV or JSON", hint=f"leave `{name}` out")
        return PLAIN
    inside = files_in(paths[0], kind)[:1] if paths[0].is_dir() else paths[:1]
    return find_dialect(str(inside[0]), kind, times, given) if inside else said(times, given)


def declared_or_found(
    paths: Sequence[Path], kind: str, schema: Columns | None, times: tuple[str, ...], dialect: Dialect
) -> pa.Schema:
    """The columns of files as a user declares them, or as they have them; a growing folder is its first file.

    Days that must be ``times`` are instants: those at which they begin, UTC.
    """
    grows = paths[0].is_dir()
    if schema is not None:
        found = parse_schema(schema)
    else:
        found = schema_of_files(files_in(paths[0], kind)[:1] if grows else paths, kind, times, dialect)
    days = [field.name for field in found if field.name in times and pa.types.is_date32(field.type)]
    found = pa.schema([field.with_type(MICROS) if field.name in days else field for field in found])
    twice = next((name for name in found.names if found.names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"there are two columns `{twice}`", hint="rename one of them")
    if not grows and (schema is not None or kind in LINES):
        for path in paths[:1] if kind in LINES else paths:
            try_first(str(path), kind, found, dialect)
    return found


def times_of_files(
    paths: Sequence[Path], kind: str, dialect: Dialect, given: LineOptions
) -> Callable[[], tuple[str, ...]]:
    """Finds the columns of files that can be times though they are none, for who needs to know: texts and days."""

    def found() -> tuple[str, ...]:
        if not paths or not paths[0].is_file():
            return ()
        if kind in LINES:
            return tuple(times_in(str(paths[0]), kind, dialect, given))
        return tuple(field.name for field in schema_of(str(paths[0]), kind) if pa.types.is_date32(field.type))

    return found


def checked_time(
    source: str, schema: pa.Schema, time: str | None, arrival: str | None, among: Callable[[], tuple[str, ...]]
) -> str:
    """The column of event time; raises SourceError where there is none, or where a column cannot be a time."""
    if time is None:
        hint = f"time=... {_time_columns(schema, among())}"
        raise SourceError(f"source `{source}` needs its event time", hint=hint)
    _check_time(schema, time, "time", among)
    if arrival is not None:
        _check_time(schema, arrival, "arrival", among)
    return time


def _check_time(schema: pa.Schema, name: str, role: str, among: Callable[[], tuple[str, ...]]) -> None:
    """Raises SourceError where a column cannot be a time, with those that can; ``among`` finds more of them."""
    if name not in schema.names:
        raise SourceError(f"no column `{name}` for `{role}`", hint=did_you_mean(name, schema.names, "column"))
    kind = schema.field(name).type
    if not pa.types.is_timestamp(kind):
        raise SourceError(
            f"column `{name}` of type `{kind}` is not a timestamp, so it cannot be the {role}",
            hint=_time_columns(schema, among(), name, kind),
        )


def _time_columns(
    schema: pa.Schema, among: tuple[str, ...], name: str | None = None, kind: pa.DataType | None = None
) -> str:
    """The columns that can be the time; where there is none, how to make one, of column ``name`` if it is given."""
    names = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    names += [each for each in among if each not in names]
    if not names:
        column = f"data[{name!r}]" if name else "data[...]"
        unit = ", unit='s'" if kind is not None and pa.types.is_integer(kind) else ""
        return (
            "the data has no timestamp column; of CSV or JSON `time_format='...'` says how these times are written, "
            "such as 'dd.MM.yyyy HH:mm' or 'epoch ms'; in a DataFrame `data` pandas makes one: "
            f"{column} = pandas.to_datetime({column}{unit})"
        )
    return "timestamp columns: " + ", ".join(f"`{name}`" for name in names)
