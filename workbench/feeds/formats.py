"""File formats of events: Parquet, Arrow IPC files, CSV, JSON with one object a line.

A file is a sequence of *blocks* that can be read one by one: row groups, record batches, or runs of whole lines
(:mod:`workbench.feeds.lines`).
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from workbench.errors import SourceError, did_you_mean
from workbench.feeds.dialect import PLAIN, Dialect, LineOptions
from workbench.feeds.lines import Block, content_of, guess_json, header, line_blocks, parse_csv, parse_json, reason
from workbench.feeds.sniff import dialect_of
from workbench.feeds.times import MICROS, TooFineError, stamps, to_micros, whole_micros

#: The formats by name, with the endings of their files.
SUFFIXES = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
}

_NAMES = {"parquet": "Parquet", "arrow": "an Arrow IPC file", "csv": "CSV", "json": "JSON"}

#: Formats of lines, which have no mark at their end, and no types.
LINES = ("csv", "json")

_PANDAS = "what pandas can read is a source as a DataFrame"
_AS_JSON = "such as `pandas.json_normalize(json.load(open(path)))`"
#: What goes wrong in a file that is not what its name says.
_BROKEN = (OSError, EOFError, ValueError, zlib.error, pa.ArrowException)


class UnreadableError(SourceError):
    """A file that is not of its format; perhaps it is still being written."""


@dataclass(frozen=True)
class RecordedFile:
    """A complete file of ``size`` bytes and its blocks, in order; ``dialect`` is that of lines."""

    path: str
    format: str
    size: int
    blocks: tuple[Block, ...]
    dialect: Dialect = PLAIN


def format_of(path: Path) -> str | None:
    """The format that the ending of a name tells."""
    return next((name for name, endings in SUFFIXES.items() if path.name.casefold().endswith(endings)), None)


def scan(path: str, kind: str, wanted: pa.Schema | None = None, dialect: Dialect = PLAIN) -> RecordedFile:
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
            blocks = list(line_blocks(path, dialect, csv=kind == "csv"))
            found = pa.schema([(name, pa.null()) for name in header(path, dialect)]) if kind == "csv" else None
    except FileNotFoundError:
        raise SourceError(f"no file `{path}`") from None
    except _BROKEN as error:
        raise _unreadable(path, kind, error) from None
    if wanted is not None and found is not None:
        check_columns(path, found, wanted, typed=kind != "csv")
    return RecordedFile(path, kind, size, tuple(block for block in blocks if block.rows), dialect)


def check_columns(path: str, found: pa.Schema, wanted: pa.Schema, *, typed: bool = True) -> None:
    """Refuse a file that lacks a column of ``wanted``, or has it in another type. Further columns do not matter."""
    for field in wanted:
        if field.name not in found.names:
            raise SourceError(
                f"`{path}` has no column `{field.name}`, which the source has",
                hint=did_you_mean(field.name, found.names, "column"),
            )
        kind = plain(found.field(field.name)).type
        begins = pa.types.is_date32(kind) and field.type == MICROS  # a day is the time at which it begins
        if typed and kind != field.type and not begins:
            raise SourceError(
                f"column `{field.name}` of `{path}` is of type `{kind}`, but of type `{field.type}` in the source",
                hint="write the file again with that type, or take it out of the folder",
            )


#: What there is instead of the views in which polars keeps texts: little of Arrow, and no Parquet, can do with them.
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def without_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column, or categories, with plain texts and bytes in the place of views."""
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column.cast(_VIEWS[kind]) if kind in _VIEWS else column
    if kind.value_type not in _VIEWS:
        return column
    values = _VIEWS[kind.value_type]
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(values)) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.dictionary(kind.index_type, values))


def plain(field: pa.Field) -> pa.Field:
    """A stored column as that of a stream: dictionaries as their values, no views, times in microseconds."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    kind = _VIEWS.get(kind, kind)
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz)
    return pa.field(field.name, kind, field.nullable)


def find_dialect(path: str, kind: str, times: tuple[str, ...], given: LineOptions) -> Dialect:
    """How a file of lines is written; see :func:`~workbench.feeds.sniff.dialect_of`. Raises SourceError."""
    try:
        return dialect_of(path, kind, times, given)
    except _BROKEN as error:
        raise _unreadable(path, kind, error) from None


def schema_of(path: str, kind: str, times: tuple[str, ...] = (), dialect: Dialect = PLAIN) -> pa.Schema:
    """The columns of a file, as those of a stream; of CSV and JSON as the first lines have them.

    ``times`` are columns that must be times: text in them is read as such, if all of it can be. Raises SourceError.
    """
    try:
        found = _guess(path, kind, times, dialect) if kind in LINES else _stored_schema(path, kind)
    except FileNotFoundError:
        raise SourceError(f"no file `{path}`") from None
    except _BROKEN as error:
        raise _unreadable(path, kind, error) from None
    return pa.schema([plain(field) for field in found.remove_metadata()])


def _stored_schema(path: str, kind: str) -> pa.Schema:
    if kind == "parquet":
        return pq.read_schema(path)
    with pa.memory_map(path) as content:
        return ipc.open_file(content).schema


def try_first(path: str, kind: str, wanted: pa.Schema, dialect: Dialect = PLAIN) -> None:
    """Make sure that a file has the columns of ``wanted``, and that the first lines of one of lines can be read so.

    Raises SourceError. Cost: a footer, or a block of lines.
    """
    if kind not in LINES:
        check_columns(path, schema_of(path, kind), wanted)
        return
    if kind == "csv":
        check_columns(path, pa.schema([(name, pa.null()) for name in header(path, dialect)]), wanted, typed=False)
    block = next(line_blocks(path, dialect, csv=kind == "csv"), None)
    if block is not None:
        read_block(path, kind, block, wanted, dialect)


def read_block(path: str, kind: str, block: Block, wanted: pa.Schema, dialect: Dialect = PLAIN) -> pa.Table:
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
    names = header(path, dialect) if kind == "csv" else []
    try:
        content = content_of(path, block, dialect)
        stored = dialect.stored(wanted, csv=kind == "csv")
        table = parse_csv(content, names, stored, dialect) if kind == "csv" else parse_json(content, stored)
        columns = [_value(table, field, dialect) for field in wanted]
    except (UnicodeDecodeError, pa.ArrowException, KeyError) as error:
        raise SourceError(
            f"cannot read `{path}` as {_NAMES[kind]}: {reason(error, names)}", hint=_misfit(error, dialect)
        ) from None
    if len(table) != block.rows:
        raise SourceError(
            f"`{path}` has {block.rows} lines in its bytes {block.place} to {block.end}, but {len(table)} rows",
            hint="every row must stand on a line of its own; what pandas can read is a source as a DataFrame, "
            + ("such as `pandas.read_csv(path)`, which knows line breaks in quotes" if kind == "csv" else _AS_JSON),
        )
    return pa.table(columns, names=wanted.names)


def _value(table: pa.Table, field: pa.Field, dialect: Dialect) -> Any:
    """A column of lines as a value of the stream; what does not fit is told of with its name."""
    try:
        return dialect.value(table.column(field.name), field)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"column `{field.name}`: {error}") from None


def _misfit(error: Exception, dialect: Dialect) -> str:
    """What to do about a line that is not as those that were looked at."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError) or "UTF8" in text:
        return f"not all texts are in {dialect.encoding}: give the source its `encoding`, such as `encoding='cp1252'`"
    if "is no time like" in text:
        return "give the source the `time_format` of all its times"
    if "invalid value" in text and not dialect.thousands:
        other = "." if dialect.decimal == "," else ","
        return (
            "give the source a `schema` where types were guessed from the first lines, or "
            f"`thousands={other!r}` where thousands are marked"
        )
    return "give the source a `schema` where types were guessed from the first lines"


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
            table = read_block(file.path, file.format, block, pa.schema(fields), file.dialect)
            for field in fields:
                if pa.types.is_timestamp(field.type):
                    to_micros(table.column(field.name), field.name, file.path)


def _guess(path: str, kind: str, times: tuple[str, ...], dialect: Dialect) -> pa.Schema:
    """The columns of a file of lines, from its first block."""
    names = header(path, dialect) if kind == "csv" else []
    block = next(line_blocks(path, dialect, csv=kind == "csv"), None)
    if block is None:
        return pa.schema([(name, pa.null()) for name in names])
    content = content_of(path, block, dialect)
    table = parse_csv(content, names, None, dialect) if kind == "csv" else guess_json(content)
    return pa.schema([_guessed(field, table.column(field.name), times, dialect) for field in table.schema])


def _guessed(field: pa.Field, column: Any, times: tuple[str, ...], dialect: Dialect) -> pa.Field:
    """A column with the type that its first values have; what is no time although it must be is refused later."""
    if field.name in dict(dialect.times):
        return field.with_type(MICROS)
    if pa.types.is_null(field.type):
        return field.with_type(pa.string())
    if field.name in times and pa.types.is_date32(field.type):
        return field.with_type(MICROS)  # a day is the time at which it begins
    is_time = pa.types.is_timestamp(field.type)
    if not (is_time or pa.types.is_string(field.type)):
        return field
    if is_time or field.name in times:
        try:
            whole_micros(column) if is_time else stamps(column)
            return field if is_time else field.with_type(MICROS)
        except TooFineError as error:
            if field.name in times:
                raise _too_fine(field.name, error) from None
            return field.with_type(pa.string())
        except pa.ArrowInvalid:
            pass
    if dialect.thousands:
        with suppress(pa.ArrowInvalid):
            filled = dialect.numbers(column.drop_null())
            whole = len(filled) and not pc.any(pc.match_substring_regex(filled, r"[^\d+-]")).as_py()
            return field.with_type(pa.int64() if whole else pa.float64()) if len(filled) else field
    return field


def _too_fine(name: str, error: TooFineError) -> SourceError:
    return SourceError(
        f"times of the column `{name}` do not fit into microseconds: {error}",
        hint="nothing is cut off silently: read it with pandas, and give the DataFrame with "
        f"data[{name!r}].dt.floor('us') in its place",
    )


def _unreadable(path: str, kind: str, error: Exception) -> UnreadableError:
    return UnreadableError(f"cannot read `{path}` as {_NAMES[kind]}: {error}", hint=_remedy(path, kind, error))


#: What a file begins with, and what it is then.
_MAGIC = {
    b"\x1f\x8b": "packed by gzip: name it so, such as `.csv.gz`",
    b"PK\x03\x04": "a ZIP archive or of Excel: unpack it, or give the DataFrame of `pandas.read_excel(path)`",
    b"BZh": "packed by bzip2: unpack it",
    b"\xfd7zXZ": "packed by xz: unpack it",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it",
    b"PAR1": "Parquet: say it by `format='parquet'`",
    b"ARROW1": "an Arrow IPC file: say it by `format='arrow'`",
    b"\xff\xff\xff\xff": "an Arrow IPC stream: give the table of `pyarrow.ipc.open_stream(path).read_all()`",
}


def looks_like(path: str, kind: str) -> str | None:
    """What a file is by its first bytes, where that is not what it is taken for."""
    with suppress(OSError), open(path, "rb") as content:
        head = content.read(8)
        found = next((what for magic, what in _MAGIC.items() if head.startswith(magic)), None)
        if found is not None and not path.casefold().endswith(".gz") and not found.startswith(_NAMES[kind] + ":"):
            return f"by its first bytes it is {found}"
    return None


def _remedy(path: str, kind: str, error: Exception) -> str | None:
    """What a file may be instead, and who reads it then."""
    ending, named = Path(path).suffix.casefold(), format_of(Path(path))
    if (other := looks_like(path, kind)) is not None:
        return other
    if named not in (None, kind):
        return f"its name says that it is {_NAMES[str(named)]}: leave `format` out"
    if kind == "parquet" and ending and named is None:
        known = ", ".join(f"`{each}`" for endings in SUFFIXES.values() for each in endings)
        return f"`{ending}` names no format that is read here ({known}): say it by `format`; {_PANDAS}"
    if isinstance(error, OSError | EOFError | zlib.error):
        return None  # nothing is wrong with the lines: they cannot be had
    if isinstance(error, UnicodeError):
        return "the texts are in another encoding: give the source its `encoding`, such as `encoding='cp1252'`"
    if "two columns" in str(error):
        return "give the source other `names=[...]`, one for each column, and `header=True`"
    if kind == "csv":
        return "expected a line with names, then one row a line; `sep` and `names` say what is not found out"
    return f"expected one object a line; {_PANDAS}, {_AS_JSON}" if kind == "json" else None
