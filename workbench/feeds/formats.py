"""File formats of events: Parquet, Arrow IPC files, CSV with a header line, JSON with one object a line.

A file is a sequence of *blocks* that can be read one by one: row groups, record batches, or runs of whole lines.
Lines are counted without being parsed: a line break inside a value of CSV is not supported, as in Spark by default.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.json as pajson
import pyarrow.parquet as pq

from workbench.errors import SourceError, did_you_mean
from workbench.feeds.times import MICROS, from_text, is_text, stamps, to_micros

#: The formats by name, with the endings of their files.
SUFFIXES = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
}

_NAMES = {"parquet": "Parquet", "arrow": "an Arrow IPC file", "csv": "CSV", "json": "JSON"}

#: Formats of lines, which have no mark at their end, and no types.
LINES = ("csv", "json")

#: Lines of one block at most, and how many bytes are looked at in one go.
_LINES = 1 << 15
_BITE = 1 << 22
_EMPTY = ("", "NULL", "null", "NA", "N/A")
_RETURN = ord("\r")
_PANDAS = "what pandas can read is a source as a DataFrame"


class UnreadableError(SourceError):
    """A file that is not of its format; perhaps it is still being written."""


@dataclass(frozen=True)
class Block:
    """``rows`` rows that can be read alone: row group or record batch ``place``, or lines in bytes ``[place, end)``.

    ``end`` may be one behind the end of a file whose last line does not end.
    """

    rows: int
    place: int
    end: int = 0


@dataclass(frozen=True)
class RecordedFile:
    """A complete file of ``size`` bytes and its blocks, in order."""

    path: str
    format: str
    size: int
    blocks: tuple[Block, ...]


def format_of(path: Path) -> str | None:
    """The format that the ending of a name tells."""
    return next((name for name, endings in SUFFIXES.items() if path.suffix.casefold() in endings), None)


def scan(path: str, kind: str, wanted: pa.Schema | None = None) -> RecordedFile:
    """A file and its blocks. Cost: the footer of Parquet, the headers of Arrow, one pass over the bytes of lines.

    Raises UnreadableError where it is not of its format, SourceError where it does not exist or does not have the
    columns of ``wanted`` in their types, as far as the format tells: CSV has no types, JSON no columns.
    """
    try:
        size = Path(path).stat().st_size
        if kind == "parquet":
            with pq.ParquetFile(path) as parquet:
                footer, found = parquet.metadata, parquet.schema_arrow
            blocks = [Block(footer.row_group(place).num_rows, place) for place in range(footer.num_row_groups)]
        elif kind == "arrow":
            with pa.memory_map(path) as content:
                counted = ipc.open_file(content, options=ipc.IpcReadOptions(included_fields=[0]))
                blocks = [Block(counted.get_batch(n).num_rows, n) for n in range(counted.num_record_batches)]
                found = ipc.open_file(content).schema
        else:
            blocks = list(_line_blocks(path, skip=kind == "csv"))
            found = pa.schema([(name, pa.null()) for name in _header(path)]) if kind == "csv" else None
    except FileNotFoundError:
        raise SourceError(f"no file `{path}`") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, kind, error) from None
    if wanted is not None and found is not None:
        check_columns(path, found, wanted, typed=kind != "csv")
    return RecordedFile(path, kind, size, tuple(block for block in blocks if block.rows))


def check_columns(path: str, found: pa.Schema, wanted: pa.Schema, *, typed: bool = True) -> None:
    """Refuse a file that lacks a column of ``wanted``, or has it in another type. Further columns do not matter."""
    for field in wanted:
        if field.name not in found.names:
            raise SourceError(
                f"`{path}` has no column `{field.name}`, which the source has",
                hint=did_you_mean(field.name, found.names, "column"),
            )
        kind = plain(found.field(field.name)).type
        if typed and kind != field.type:
            raise SourceError(
                f"column `{field.name}` of `{path}` is of type `{kind}`, but of type `{field.type}` in the source",
                hint="write the file again with that type, or take it out of the folder",
            )


def plain(field: pa.Field) -> pa.Field:
    """A stored column as that of a stream: dictionaries as their values, times in microseconds."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz)
    return pa.field(field.name, kind, field.nullable)


def schema_of(path: str, kind: str, times: tuple[str, ...] = ()) -> pa.Schema:
    """The columns of a file, as those of a stream; of CSV and JSON as the first lines have them.

    ``times`` are columns that must be times: text in them is read as such, if all of it can be. Raises SourceError.
    """
    try:
        found = _guess(path, kind, times) if kind in LINES else _stored_schema(path, kind)
    except FileNotFoundError:
        raise SourceError(f"no file `{path}`") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, kind, error) from None
    return pa.schema([plain(field) for field in found.remove_metadata()])


def _stored_schema(path: str, kind: str) -> pa.Schema:
    if kind == "parquet":
        return pq.read_schema(path)
    with pa.memory_map(path) as content:
        return ipc.open_file(content).schema


def read_block(path: str, kind: str, block: Block, wanted: pa.Schema) -> pa.Table:
    """The columns of ``wanted`` of one block; times as they are stored, of lines as instants.

    Raises SourceError where a column is missing or a line does not fit; Arrow's own errors for a broken file.
    """
    names = list(wanted.names)
    if kind == "parquet":
        with pq.ParquetFile(path) as parquet:
            check_columns(path, parquet.schema_arrow, wanted, typed=False)
            return parquet.read_row_group(block.place, columns=names)
    if kind == "arrow":
        return _arrow_block(path, block, wanted)
    with open(path, "rb") as lines:
        lines.seek(block.place)
        content = lines.read(block.end - block.place)
    header = _header(path) if kind == "csv" else []
    try:
        texts = _as_text(wanted)
        table = _parse_csv(content, header, texts) if kind == "csv" else parse_json(content, texts)
        columns = [_value(table.column(field.name), field) for field in wanted]
    except (pa.ArrowException, KeyError) as error:
        raise SourceError(
            f"cannot read `{path}` as {_NAMES[kind]}: {_reason(error, header)}",
            hint="give the source a `schema` where types were guessed from the first lines",
        ) from None
    if len(table) != block.rows:
        raise SourceError(
            f"`{path}` has {block.rows} lines in its bytes {block.place} to {block.end}, but {len(table)} rows",
            hint="every row must stand on a line of its own",
        )
    return pa.table(columns, names=names)


def _arrow_block(path: str, block: Block, wanted: pa.Schema) -> pa.Table:
    # Read, not mapped: a file that is cut short under a map kills the process.
    with pa.OSFile(path) as content:
        found = ipc.open_file(content).schema
        check_columns(path, found, wanted, typed=False)
        options = ipc.IpcReadOptions(included_fields=[found.names.index(name) for name in wanted.names])
        batch = ipc.open_file(content, options=options).get_batch(block.place)
        return pa.Table.from_batches([batch]).select(wanted.names)


def verify(file: RecordedFile, wanted: pa.Schema) -> None:
    """Make sure that a file can be read as ``wanted``, before its rows are counted.

    Cost: lines are parsed; of Parquet and Arrow only times in nanoseconds are read, which may not fit. Raises
    SourceError.
    """
    fields = list(wanted)
    if file.format not in LINES:
        stored = _stored_schema(file.path, file.format)
        kinds = {field.name: field.type for field in stored if pa.types.is_timestamp(field.type)}
        fields = [field for field in wanted if field.name in kinds and kinds[field.name].unit == "ns"]
    if fields:
        for block in file.blocks:
            table = read_block(file.path, file.format, block, pa.schema(fields))
            for field in fields:
                if pa.types.is_timestamp(field.type):
                    to_micros(table.column(field.name), field.name, file.path)


def parse_json(content: bytes, wanted: pa.Schema) -> pa.Table:
    """Objects, one a line, as the columns of ``wanted``, of which none is a time; other fields are left out.

    Raises pyarrow's ArrowInvalid for what is no such line.
    """
    if not content:
        return wanted.empty_table()
    options = pajson.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
    reading = pajson.ReadOptions(use_threads=False, block_size=len(content) + 1)
    table = pajson.read_json(pa.BufferReader(content), read_options=reading, parse_options=options)
    table.validate(full=True)  # the reader takes any bytes for text
    return table.select(wanted.names)


def _parse_csv(content: bytes, header: list[str], wanted: pa.Schema) -> pa.Table:
    converting = pacsv.ConvertOptions(
        include_columns=wanted.names,
        column_types=wanted,
        null_values=_EMPTY,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    reading = pacsv.ReadOptions(use_threads=False, column_names=header, block_size=max(len(content), 1))
    return pacsv.read_csv(pa.BufferReader(content), read_options=reading, convert_options=converting)


def _as_text(wanted: pa.Schema) -> pa.Schema:
    """Times and dates as texts: pyarrow's readers insist on a zone, or on none, and know no dates in JSON."""
    return pa.schema([(field.name, pa.string() if is_text(field.type) else field.type) for field in wanted])


def _value(column: Any, field: pa.Field) -> Any:
    return from_text(column, field.type) if is_text(field.type) else column


def _guess(path: str, kind: str, times: tuple[str, ...]) -> pa.Schema:
    """The columns of a file of lines, from its first block."""
    block = next(_line_blocks(path, skip=kind == "csv"), None)
    if block is None:
        return pa.schema([(name, pa.string()) for name in _header(path)]) if kind == "csv" else pa.schema([])
    with open(path, "rb") as lines:
        lines.seek(block.place)
        content = lines.read(block.end - block.place)
    size = len(content) + 1
    if kind == "csv":
        table = pacsv.read_csv(
            pa.BufferReader(content),
            read_options=pacsv.ReadOptions(column_names=_header(path), block_size=size),
            convert_options=pacsv.ConvertOptions(null_values=_EMPTY),
        )
    else:
        table = pajson.read_json(pa.BufferReader(content), read_options=pajson.ReadOptions(block_size=size))
    return pa.schema([_guessed(field, table.column(field.name), field.name in times) for field in table.schema])


def _guessed(field: pa.Field, column: Any, time: bool) -> pa.Field:
    """A column with the type that its first values have; what is no time although it must be is refused later."""
    if pa.types.is_null(field.type):
        return field.with_type(pa.string())
    if time and pa.types.is_date32(field.type):
        return field.with_type(MICROS)  # a day is the time at which it begins
    if time and pa.types.is_string(field.type):
        with suppress(pa.ArrowInvalid):
            stamps(column)
            return field.with_type(MICROS)
    return field


def _header(path: str) -> list[str]:
    """The names in the first line of a CSV file."""
    with open(path, encoding="utf-8-sig", newline="") as lines:
        return next(csv.reader(lines), [])


def _line_blocks(path: str, *, skip: bool) -> Iterator[Block]:
    """The lines of a file by blocks, in bytes; empty lines are no rows. ``skip`` leaves out the first line."""
    with open(path, "rb") as content:
        begin = len(content.readline()) if skip else 0
        content.seek(begin)
        rest = b""
        while True:
            bite = content.read(_BITE)
            text = rest + bite
            if not text:
                return
            if len(bite) < _BITE and not text.endswith(b"\n"):
                text += b"\n"
            data = np.frombuffer(text, np.uint8)
            ends = np.flatnonzero(data == ord("\n")) + 1
            starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
            lengths = ends - starts
            filled = ~((lengths == 1) | ((lengths == 2) & (data[starts] == _RETURN)))
            for first in range(0, len(ends), _LINES):
                last = min(first + _LINES, len(ends)) - 1
                rows = int(np.count_nonzero(filled[first : last + 1]))
                if rows:
                    yield Block(rows, begin + int(starts[first]), begin + int(ends[last]))
            done = int(ends[-1]) if len(ends) else 0
            rest, begin = text[done:], begin + done


def _unreadable(path: str, kind: str, error: Exception) -> UnreadableError:
    return UnreadableError(f"cannot read `{path}` as {_NAMES[kind]}: {error}", hint=_remedy(path, kind, error))


def _remedy(path: str, kind: str, error: Exception) -> str | None:
    """What a file may be instead, and who reads it then."""
    ending = Path(path).suffix.casefold()
    if kind == "parquet" and ending not in ("", *SUFFIXES["parquet"]):
        known = ", ".join(f"`{each}`" for endings in SUFFIXES.values() for each in endings)
        return f"`{ending}` names no format that is read here ({known}): {_PANDAS}"
    if isinstance(error, UnicodeDecodeError):
        return f"texts must be in UTF-8; pandas.read_csv(..., encoding='latin-1') reads others: {_PANDAS}"
    if kind == "csv":
        with open(path, encoding="utf-8", errors="replace") as lines:
            first = lines.readline()
        mark = max(";\t|", key=first.count)
        if first.count(mark) > first.count(","):
            return (
                f"its fields seem to be divided by {mark!r}; pandas.read_csv(..., sep={mark!r}) reads it: {_PANDAS}"
            )
        return "expected a line with names, then one row a line"
    return "expected one object a line" if kind == "json" else None


def _reason(error: Exception, header: list[str]) -> str:
    """What a reader complains of, with the name of the column where it gives the number."""
    text = str(error)
    numbered = re.search(r"In CSV column #(\d+): ", text)
    if numbered is not None and int(numbered[1]) < len(header):
        text = text.replace(numbered[0], f"column `{header[int(numbered[1])]}`: ")
    return text
