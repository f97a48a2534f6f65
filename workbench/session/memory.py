"""Tables in memory, of whatever library, as Arrow has them; and as files, which tasks can read."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import SourceError
from workbench.feeds.formats import without_views

_SPILL = "winquery-tables-"


@runtime_checkable
class ArrowStream(Protocol):
    """What hands out its rows by Arrow's PyCapsule interface: DataFrames of polars, relations of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Table: TypeAlias = pd.DataFrame | pa.Table | pa.RecordBatch | ArrowStream


def is_table(data: object) -> TypeGuard[Table]:
    """Whether something is a table in memory."""
    return isinstance(data, pd.DataFrame | pa.Table | pa.RecordBatch | ArrowStream)


def as_arrow(data: Table) -> pa.Table:
    """The table in Arrow; the index of a DataFrame is left out. Raises SourceError for what Arrow has no type for."""
    try:
        if isinstance(data, pd.DataFrame):
            return pa.Table.from_pandas(data, preserve_index=False)
        table = pa.table(data)
        for place, field in enumerate(table.schema):
            column = without_views(table.column(place))
            table = table.set_column(place, field.with_type(column.type), column)
        return table
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # Arrow's errors about a column have two parts: what is wrong, and where.
        reason = "; ".join(map(str, error.args))
        raise SourceError(
            f"this {type(data).__name__} cannot be read as a table: {reason}",
            hint="give each column another name, and its values one type; or leave the column out",
        ) from None


def spill(name: str, data: Table) -> Path:
    """A table as a Parquet file that lives as long as this process. Raises SourceError for what it cannot hold."""
    table = as_arrow(data)
    path = _spill_folder() / f"{name[:40]}-{os.urandom(4).hex()}.parquet"
    try:
        pq.write_table(table, path, row_group_size=1 << 15)
    except pa.ArrowNotImplementedError as error:
        raise SourceError(f"this table has a column that is not supported: {error}", hint="leave it out") from None
    return path


def is_spilled(path: Path) -> bool:
    """Whether a file is one of :func:`spill`."""
    return path.parent.name.startswith(_SPILL)


def check_index(data: Any, time: str | None) -> None:
    """Raises SourceError where the times of a DataFrame are its index, which is not among its columns."""
    if not isinstance(data, pd.DataFrame) or time in data.columns:
        return
    if time is None and isinstance(data.index, pd.DatetimeIndex):
        name = data.index.name or "time"
        raise SourceError(
            "the times of this DataFrame are its index, which is no column",
            hint=f"give `data.reset_index(names={name!r})` and `time={name!r}`",
        )
    if time is not None and time in data.index.names:
        raise SourceError(f"`{time}` is the index of this DataFrame, no column", hint="give `data.reset_index()`")


@cache
def _spill_folder() -> Path:
    folder = tempfile.mkdtemp(prefix=_SPILL)
    atexit.register(_remove, folder, os.getpid())
    return Path(folder)


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a fork that ends does not need them, but its parent does
        shutil.rmtree(folder, ignore_errors=True)
