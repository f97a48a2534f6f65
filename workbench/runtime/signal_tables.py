"""Tables in, tables out: the rows that a program of signals reads, and what it gives, as Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.errors import DataError, QueryError, SourceError, did_you_mean
from workbench.feeds.formats import plain
from workbench.results import encode_columns
from workbench.runtime.folding import micros
from workbench.runtime.signals import CUT, Points, Rows, evaluate
from workbench.temporal import Program

Array = npt.NDArray[Any]

#: Whole numbers up to here are floats without loss.
_WHOLE = 2**53


def run(
    program: Program,
    tables: Mapping[str, pa.Table],
    time: str,
    by: Sequence[str],
    *,
    threads: int | None = None,
    cut: int = CUT,
    span: tuple[int, int] | None = None,
    aligned: bool = False,
) -> pa.Table:
    """Keys, time and outputs of every point of the program over some tables.

    They come by key and time, each time once; ``aligned``: those of a domain by rows for every row, in its order.
    """
    check(program, tables, time, by)
    codes, keys = keys_of([tables[name] for name in program.sources], by)
    sources, orders = {}, {}
    for name, own in zip(program.sources, codes, strict=True):
        rows = rows_of(tables[name], time, own, program.columns[name])
        orders[name] = rows.order
        sources[name] = rows.ordered()
    points = evaluate(program, sources, keys.num_rows, threads, cut, span)
    if aligned and program.every is None:
        points = _aligned(points, sources[program.at], orders[program.at])
    return table_of(program, points, keys, tables[program.at].schema.field(time), by)


def _aligned(points: Points, rows: Rows, order: Array | None) -> Points:
    """For each row, as they came, the point of its key and time."""
    if rows.fresh is not None:
        points = points.take(np.cumsum(rows.fresh) - 1)
    if order is None:
        return points
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows))
    return points.take(place)


def table_of(program: Program, points: Points, keys: pa.Table, time: pa.Field, by: Sequence[str]) -> pa.Table:
    """Keys, time (in the zone of the table's) and outputs of some points."""
    owners = pa.array(points.keys)
    columns = {name: keys.column(name).take(owners) for name in by}
    columns[time.name] = pa.array(points.times).cast(pa.timestamp("us", time.type.tz))
    for name, values, present in zip(program.outputs, points.values, points.present, strict=True):
        columns[name] = pa.array(values, mask=~present)
    return pa.table(columns)


def check(
    program: Program,
    tables: Mapping[str, pa.Table],
    time: str,
    by: Sequence[str],
    only: Sequence[str] | None = None,
) -> None:
    """Raises SourceError or QueryError for what is not there or does not fit, before anything runs.

    ``only`` are the sources that are asked for where that is not all of the program's.
    """
    for name in only or ():
        if name not in program.sources:
            raise SourceError(f"the program reads no table `{name}`", hint=did_you_mean(name, program.sources))
    taken = [name for name in program.outputs if name in (time, *by)]
    if taken:
        raise QueryError(f"`{taken[0]}` is the name of an output and of the time or a key", hint="name it otherwise")
    for source in program.sources if only is None else only:
        if source not in tables:
            raise SourceError(f"there is no table `{source}`", hint=did_you_mean(source, tables))
        schema = tables[source].schema
        for name in (time, *by, *program.columns[source]):
            if name not in schema.names:
                raise SourceError(f"`{source}` has no column `{name}`", hint=did_you_mean(name, schema.names))
        if not is_.is_timestamp(schema.field(time).type):
            raise SourceError(
                f"the time `{time}` of `{source}` is `{schema.field(time).type}`, not a timestamp",
                hint=f"pandas makes one: df['{time}'] = pandas.to_datetime(df['{time}'])",
            )
        for name in program.columns[source]:
            kind = schema.field(name).type
            if not (is_.is_integer(kind) or is_.is_floating(kind) or is_.is_boolean(kind) or is_.is_decimal(kind)):
                raise SourceError(f"a signal is a number, but `{name}` of `{source}` is `{kind}`")


def keys_of(tables: Sequence[pa.Table], by: Sequence[str]) -> tuple[list[Array], pa.Table]:
    """The key of every row of some tables as a number, and the keys in order of first appearance; NULL is one."""
    counts = [table.num_rows for table in tables]
    if not by:
        return [np.zeros(count, np.int64) for count in counts], pa.table({"": [0]})
    together = pa.concat_tables([table.select(list(by)) for table in tables], promote_options="permissive")
    together = together.cast(pa.schema([plain(field) for field in together.schema]))
    codes, distinct = encode_columns([column.combine_chunks() for column in together.columns])
    return np.split(np.asarray(codes, np.int64), np.cumsum(counts)[:-1]), pa.table(distinct, names=list(by))


def rows_of(table: pa.Table, time: str, keys: Array, columns: Sequence[str]) -> Rows:
    """The rows of a table. Raises DataError for times that are NULL or finer than microseconds, and lost digits."""
    stamps = table.column(time)
    if stamps.null_count:
        raise DataError(
            f"{stamps.null_count:,} rows have no `{time}`", hint=f"leave them out: dropna(subset=['{time}'])"
        )
    times = micros(stamps.combine_chunks(), time)
    values, present = {}, {}
    for name in columns:
        column = table.column(name).combine_chunks()
        if is_.is_integer(column.type):
            bounds = pc.min_max(column)
            if any(abs(bounds[side].as_py() or 0) > _WHOLE for side in ("min", "max")):
                raise DataError(f"`{name}` has whole numbers beyond 2**53, which a float cannot hold")
        floats = column.cast(pa.float64())
        values[name] = floats.fill_null(0.0).to_numpy(zero_copy_only=False)
        if floats.null_count:
            present[name] = floats.is_valid().to_numpy(zero_copy_only=False)
    return Rows(keys, times, values, present)
