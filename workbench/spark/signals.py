"""Time-centric programs on Spark: keys and pieces of time as tasks that know nothing of each other (*TiLT* §6.2).

A row belongs to the piece of time that it lies in and to those whose stretch, widened by what boundary resolution
found, it lies in as well; Spark's shuffle brings each piece its rows, and the compiled loop of the process that
holds them keeps the points of that piece alone. Programs that ask for the rows *next* to a stretch, however far
away these are, have no bound in time: they are cut by key only.

Several tables go together through one shuffle, as one DataFrame: their keys and times in the same columns, what is
read of each in columns of its own, and the number of the table with each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StructField, StructType, TimestampType

from workbench.errors import SourceError
from workbench.runtime.signal_tables import check, run
from workbench.spark.frames import at_home_in, check_time, column, handing_over, numbered, schema_of
from workbench.spark.session import bucket_count, is_local, session_like, this_python
from workbench.spark.shipping import ship
from workbench.spark.signal_stream import OF, SignalTask, apart, read_as, stream_on_spark
from workbench.time import LIMIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from workbench.temporal import Program

_PIECE = "__piece"
_INSTANT = pa.timestamp("us", "UTC")


def on_spark(
    program: Program,
    frames: Mapping[str, DataFrame],
    time: str,
    by: Sequence[str],
    cut: int,
    delay: int | None,
    buckets: int | None,
) -> DataFrame:
    """Keys, time and outputs of all points, as a DataFrame.

    Batch frames are cut into pieces of ``cut`` microseconds; of streaming ones a point is given once, when rows are
    ``delay`` microseconds beyond all that it depends on.
    """
    _check(program, frames, time, by)
    main = frames[program.at]
    if not main.isStreaming and (delay is not None or buckets is not None):
        raise SourceError("`delay` and `buckets` are for streaming DataFrames, this one is a batch")
    context = main.sparkSession.sparkContext
    if not is_local(context):
        ship(context)
    task = SignalTask(program, time, tuple(by), delay or 0, buckets or bucket_count(context))
    parts = {name: _rows(task, name, frame) for name, frame in frames.items()}
    rows = _together(parts)
    fields = [rows.schema[name] for name in by]
    fields += [StructField(time, TimestampType()), *(StructField(name, DoubleType()) for name in program.outputs)]
    with this_python(context):
        if not rows.isStreaming:
            return _batch(task, parts, cut, StructType(fields))
        session = session_like(main.sparkSession)
        for name, value in handing_over(rows, schema_of(rows)).items():
            session.conf.set(name, value)
        return stream_on_spark(task, at_home_in(session, rows), StructType(fields))


def _check(program: Program, frames: Mapping[str, DataFrame], time: str, by: Sequence[str]) -> None:
    """Raises SourceError for frames that a program cannot read."""
    for name, frame in frames.items():
        check_time(frame, time, name)
    check(program, {name: schema_of(frame).empty_table() for name, frame in frames.items()}, time, by, tuple(frames))
    for name in program.sources:
        if name not in frames:
            raise SourceError(f"there is no DataFrame `{name}`", hint="pass {'name': frame, ...}, one for each table")
    if len({frame.isStreaming for frame in frames.values()}) > 1:
        raise SourceError("some of the DataFrames are streaming and some are not; signals read either")


def _rows(task: SignalTask, source: str, frame: DataFrame) -> DataFrame:
    """What is read of one table, under the names that it has in all tables together."""
    place = task.program.sources.index(source)
    columns = [column(name) for name in (*task.by, task.time)]
    columns += [column(name).alias(read_as(place, name)) for name in task.program.columns[source]]
    return frame.select(*columns, F.lit(place).alias(OF))


def _together(parts: Mapping[str, DataFrame]) -> DataFrame:
    return reduce(lambda some, other: some.unionByName(other, allowMissingColumns=True), parts.values())


def _batch(task: SignalTask, rows: Mapping[str, DataFrame], cut: int, schema: StructType) -> DataFrame:
    program, micros = task.program, F.unix_micros(column(task.time))
    reaches = {name: program.reach(name) for name in rows}
    bounded = program.every is None and not any(reach.before or reach.after for reach in reaches.values())
    cut = cut if bounded else 0
    parts = {}
    for name, own in rows.items():
        first, last = (_piece_of(each, cut) for each in (micros - reaches[name].ahead, micros + reaches[name].back))
        pieces = F.explode(F.sequence(first, last)) if bounded else F.lit(0).cast("long")
        parts[name] = own.withColumn(_PIECE, pieces)
    together = _together(parts)
    names, plain = together.columns, numbered(together)
    grouped = plain.groupBy(*(plain.columns[names.index(name)] for name in (*task.by, _PIECE)))
    piece = _Piece(task, cut)
    return grouped.applyInArrow(lambda table: piece(table.rename_columns(names)), schema)


def _piece_of(micros: Column, cut: int) -> Column:
    """``floor(micros / cut)``: by way of the multiple below, as a quotient of doubles rounds up to the next one."""
    return F.round((micros - F.pmod(micros, F.lit(cut))) / F.lit(cut)).cast("long")


class _Piece:
    """The rows of one piece of one key into its points, for ``applyInArrow``."""

    def __init__(self, task: SignalTask, cut: int) -> None:
        self._task, self._cut = task, cut

    def __call__(self, table: pa.Table) -> pa.Table:
        task, piece = self._task, table.column(_PIECE)[0].as_py()
        begin = piece * self._cut - 1
        span = (begin, begin + self._cut) if self._cut else (-LIMIT, LIMIT)
        tables = apart(task.program, table.drop_columns([_PIECE]))
        found = run(task.program, tables, task.time, task.by, threads=1, span=span)
        # Spark hands instants over in the zone of the session, and wants them back in UTC.
        for place, field in enumerate(found.schema):
            if pa.types.is_timestamp(field.type) and field.type.tz is not None:
                found = found.set_column(place, field.name, found.column(place).cast(_INSTANT))
        return found
