"""Files of lines, CSV and JSON: their blocks of whole lines, and what stands in them, in a dialect.

Lines are counted without being parsed: a line break inside a value of CSV is not supported, as in Spark by default.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import mmap
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from workbench.feeds.dialect import PLAIN, Dialect

#: Texts without quotes that are NULL in CSV.
EMPTY = ("", "NULL", "null", "NA", "N/A")

#: Lines of one block at most, and how many bytes are looked at in one go.
_LINES = 1 << 15
_BITE = 1 << 22
_RETURN = ord("\r")
#: Held while Python's limit of a field, which is one of the process, is another.
_FIELDS = threading.Lock()


@dataclass(frozen=True)
class Block:
    """``rows`` rows that can be read alone: row group or record batch ``place``, or lines in bytes ``[place, end)``.

    ``end`` may be one behind the end of a file whose last line does not end.
    """

    rows: int
    place: int
    end: int = 0


def open_lines(path: str, encoding: str = "utf-8") -> Any:
    """The bytes of a file of lines, its line breaks those of ASCII: unpacked, and in UTF-8 if it is UTF-16.

    What is unpacked lies in a temporary file as long as this process keeps it. Cost: once a process, all of the file.
    Raises OSError, EOFError or ValueError for what cannot be unpacked.
    """
    wide = _is_wide(encoding)
    if not wide and not path.casefold().endswith(".gz"):
        return open(path, "rb")
    stamp = Path(path).stat()
    plain = _unpacked(path, stamp.st_mtime_ns, stamp.st_size, encoding if wide else "")
    size = plain.seek(0, io.SEEK_END)
    return mmap.mmap(plain.fileno(), size, access=mmap.ACCESS_READ) if size else io.BytesIO()


@lru_cache(maxsize=8)
def _unpacked(path: str, modified: int, size: int, encoding: str) -> IO[bytes]:
    """A file without its packing, under no name, so that it goes with the process."""
    plain = tempfile.TemporaryFile()  # noqa: SIM115 - the cache keeps it open
    try:
        packed = path.casefold().endswith(".gz")
        with gzip.open(path, "rb") if packed else open(path, "rb") as content:
            if encoding:
                # Nothing is changed about line breaks, which are counted as they stand.
                texts = io.TextIOWrapper(content, encoding=encoding, newline="")
                while text := texts.read(_BITE):
                    plain.write(text.encode())
            else:
                shutil.copyfileobj(content, plain, _BITE)
        plain.flush()
    except BaseException:
        plain.close()
        raise
    return plain


def line_blocks(path: str, dialect: Dialect, *, csv: bool) -> Iterator[Block]:
    """The lines of a file by blocks, in bytes; empty lines are no rows, and neither is a header."""
    with open_lines(path, dialect.encoding) as content:
        begin = len(codecs.BOM_UTF8) if content.read(3) == codecs.BOM_UTF8 else 0
        content.seek(begin)
        if csv and dialect.header:
            begin += sum(map(len, _up_to_first(content)))
        for text in _whole_lines(content):
            data = np.frombuffer(text, np.uint8)
            ends = np.flatnonzero(data == ord("\n")) + 1
            starts = np.concatenate([[0], ends[:-1]])
            lengths = ends - starts
            filled = ~((lengths == 1) | ((lengths == 2) & (data[starts] == _RETURN)))
            for first in range(0, len(ends), _LINES):
                last = min(first + _LINES, len(ends)) - 1
                rows = int(np.count_nonzero(filled[first : last + 1]))
                if rows:
                    yield Block(rows, begin + int(starts[first]), begin + int(ends[last]))
            begin += len(text)


def _up_to_first(content: Any) -> Iterator[bytes]:
    """The lines up to the first that is not empty, which is that of names."""
    while line := content.readline():
        yield line
        if line.removeprefix(codecs.BOM_UTF8).strip(b"\r\n"):
            return
    yield b""


def _whole_lines(content: Any) -> Iterator[bytes]:
    """Runs of whole lines of about a bite; a last line that does not end has a line break all the same.

    What is before the end of a line is put together once, so a line of any length costs what its bytes cost.
    """
    parts: list[bytes] = []
    while bite := content.read(_BITE):
        if len(bite) < _BITE and not bite.endswith(b"\n"):
            bite += b"\n"
        done = bite.rfind(b"\n") + 1
        if done:
            yield b"".join([*parts, bite[:done]])
            parts = []
        parts.append(bite[done:])
    if rest := b"".join(parts):
        yield rest + b"\n"


def content_of(path: str, block: Block, dialect: Dialect) -> bytes:
    """The lines of a block, in UTF-8. Raises UnicodeDecodeError where they are not in the dialect's encoding."""
    with open_lines(path, dialect.encoding) as lines:
        lines.seek(block.place)
        content: bytes = lines.read(block.end - block.place)
    if codecs.lookup(dialect.encoding).name in ("utf-8", "utf-8-sig") or _is_wide(dialect.encoding):
        return content
    return content.decode(dialect.encoding).encode()


def _is_wide(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def header(path: str, dialect: Dialect) -> list[str]:
    """The names of the columns of a CSV file: the dialect's, or those of the first line without blanks around.

    A column without a name is `column_N`. Raises ValueError where two have the same name.
    """
    if dialect.names:
        return list(dialect.names)
    names = unnamed_header(path, dialect)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"there are two columns `{name}`")
    return names


def unnamed_header(path: str, dialect: Dialect) -> list[str]:
    """The same of the first line alone, for whose names nothing is checked."""
    with open_lines(path, dialect.encoding) as lines:
        *_, first = (line.removeprefix(codecs.BOM_UTF8) for line in _up_to_first(lines))
    fields = fields_of([first.decode("utf-8" if _is_wide(dialect.encoding) else dialect.encoding)], dialect.sep)
    names = fields[0] if fields else []
    return [name.strip() if dialect.header and name.strip() else f"column_{n}" for n, name in enumerate(names, 1)]


def fields_of(lines: list[str], sep: str) -> list[list[str]]:
    """The fields of some lines; empty lines are none. Raises ValueError for what is no line of CSV."""
    try:
        with _FIELDS:
            usual = csv.field_size_limit(max(map(len, lines), default=0) + 1)
            try:
                return [fields for fields in csv.reader(lines, delimiter=sep) if fields]
            finally:
                csv.field_size_limit(usual)
    except csv.Error as error:
        alone = any("\r" in line.rstrip("\r\n") for line in lines)
        raise ValueError("lines must end in \\n, not in \\r alone" if alone else str(error)) from None


def parse_csv(content: bytes, names: list[str], wanted: pa.Schema | None, dialect: Dialect = PLAIN) -> pa.Table:
    """Lines of CSV as columns ``wanted``, of which none is a time; without it as all of their ``names``, by types
    that are found out. Raises pyarrow's ArrowInvalid for what is no such line.
    """
    converting = pacsv.ConvertOptions(
        include_columns=None if wanted is None else wanted.names,
        column_types=wanted,
        null_values=EMPTY,
        strings_can_be_null=wanted is not None,
        quoted_strings_can_be_null=wanted is None,
        decimal_point=dialect.decimal,
    )
    reading = pacsv.ReadOptions(use_threads=False, column_names=names, block_size=max(len(content), 1))
    parsing = pacsv.ParseOptions(delimiter=dialect.sep)
    return pacsv.read_csv(pa.BufferReader(content), reading, parsing, converting)


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


def guess_json(content: bytes) -> pa.Table:
    """Objects, one a line, as they are."""
    return pajson.read_json(pa.BufferReader(content), read_options=pajson.ReadOptions(block_size=len(content) + 1))


def reason(error: Exception, names: list[str]) -> str:
    """What a reader complains of, with the name of the column where it gives the number."""
    text = str(error)
    numbered = re.search(r"In CSV column #(\d+): ", text)
    if numbered is not None and int(numbered[1]) < len(names):
        text = text.replace(numbered[0], f"column `{names[int(numbered[1])]}`: ")
    return text
