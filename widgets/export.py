"""What a dashboard gives away as a file: the data on show, the SQL, the Python that shows it again."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from workbench.errors import QueryError
from workbench.results import QueryResults
from workbench.widgets.keys import Key

#: The kinds of files, by what the menu says. The page makes PNG by itself.
KINDS = ("CSV", "Parquet", "PNG", "SVG", "SQL", "Python")
_ENDINGS = {"CSV": "csv", "Parquet": "parquet", "PNG": "png", "SVG": "svg", "SQL": "sql", "Python": "py"}


@dataclass(frozen=True)
class File:
    """A file to be saved by a page."""

    name: str
    content: bytes


def file_name(title: str, kind: str) -> str:
    """A name for a file of some kind, such as ``delays.csv``."""
    stem = re.sub(r"\W+", "-", title).strip("-").lower() or "dashboard"
    return f"{stem}.{_ENDINGS[kind]}"


def rows_on_show(results: QueryResults, level: int, start: int, end: int, keys: Sequence[Key]) -> pa.Table:
    """The windows of a level that end in ``[start, end]`` microseconds, of some keys, in ``results.table``'s form."""
    shape = results.schema.levels[level]
    size = shape.size if shape.regular else 0
    table = results.table(level, start=start - size if size else None, end=end - size + 1, keys=keys)
    ends = table["window_end"].cast(pa.int64())
    return table.filter(pc.and_(pc.greater_equal(ends, start), pc.less_equal(ends, end)))


def csv_bytes(table: pa.Table) -> bytes:
    """The table as CSV; structs and lists as text."""
    plain = [
        pa.array([None if cell is None else str(cell) for cell in column.to_pylist()], pa.string())
        if pa.types.is_nested(column.type)
        else column
        for column in table.columns
    ]
    sink = io.BytesIO()
    pa.csv.write_csv(pa.table(plain, names=table.column_names), sink)
    return sink.getvalue()


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def text_of(texts: Mapping[str, str], kind: str) -> bytes:
    """The SQL or the Python of a query; raises QueryError where it has none."""
    if kind not in texts:
        raise QueryError(f"this query has no {kind}", hint="the view `Code` shows what is known of it")
    return (texts[kind].rstrip() + "\n").encode()
