"""The columns of a source: as its files have them, or as a user declares them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from workbench.errors import SourceError, did_you_mean
from workbench.feeds.formats import SUFFIXES, format_of, plain, schema_of
from workbench.logical.types import SQL_TYPES, type_name

#: Columns as an Arrow schema, or as in SQL: ``"ts TIMESTAMP, key STRING, value BIGINT"``.
Columns: TypeAlias = pa.Schema | str

_COLUMN = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))\s+(?P<kind>\w+)\s*")


def parse_schema(columns: Columns) -> pa.Schema:
    """Declared columns, as those of a stream. Raises SourceError for a text that does not read as columns."""
    if isinstance(columns, pa.Schema):
        return pa.schema([plain(field) for field in columns.remove_metadata()])
    fields = []
    for part in columns.split(","):
        found = _COLUMN.fullmatch(part)
        if found is None:
            raise SourceError(
                f"cannot read `{part.strip()}` as a column", hint="write 'ts TIMESTAMP, key STRING, value BIGINT'"
            )
        kind = found["kind"].casefold()
        if kind not in SQL_TYPES:
            raise SourceError(f"no type `{found['kind']}` of a column", hint=did_you_mean(kind, SQL_TYPES, "type"))
        fields.append(pa.field(found["quoted"] or found["name"], SQL_TYPES[kind]))
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise SourceError(f"the schema has two columns `{name}`")
    return pa.schema(fields)


def schema_text(columns: pa.Schema) -> str | None:
    """Columns as :func:`parse_schema` reads them; None where SQL has no name for a type."""
    known = all(pa.types.is_timestamp(field.type) or field.type in SQL_TYPES.values() for field in columns)
    return ", ".join(f"`{field.name}` {type_name(field.type).upper()}" for field in columns) if known else None


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


def schema_of_files(paths: Sequence[Path], kind: str, times: tuple[str, ...]) -> pa.Schema:
    """The one schema of all files; lines are taken to be like those of the first file."""
    first = schema_of(str(paths[0]), kind, times)
    for path in paths[1:]:
        found = schema_of(str(path), kind, times)
        if found.names != first.names or (kind in ("parquet", "arrow") and not found.equals(first)):
            raise SourceError(f"`{path}` has other columns than `{paths[0]}`")
    return first
