"""Time-centric programs on Spark: keys and pieces of time as tasks that know nothing of each other (*TiLT* §6.2).

A row belongs to the piece of time that it lies in and to those whose stretch, widened by what boundary resolution
found, it lies in as well; Spark's shuffle brings each piece its rows, and the compiled loop of the process that
holds them keeps the points of that piece alone. Programs that ask for the rows *next* to a stretch, however far
away these are, have no bound in time: they are cut by key only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StructField, StructType, TimestampType

from workbench.errors import SourceError
from workbench.runtime.signal_tables import check, run
from workbench.spark.frames import at_home_in, check_time, column, columns_of, handing_over, schema_of
from workbench.spark.session import bucket_count, is_local, session_like, this_python
from workbench.spark.shipping import ship
from workbench.spark.signal_stream import SignalTask, stream_on_spark
from workbench.temporal import Program
from workbench.time import LIMIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PIECE = "__piece"


def on_spark(
    program: Program, frame: DataFrame, time: str, by: Sequence[str], cut: int, delay: int | None, buckets: int | None
) -> DataFrame:
    """Keys, time and outputs of all points, as a DataFrame.

    A batch frame is cut into pieces of ``cut`` microseconds; of a streaming one a point is given once, when rows are
    ``delay`` microseconds beyond all that it depends on.
    """
    if len(program.sources) > 1:
        raise SourceError(f"signals on Spark read one DataFrame, this program reads {len(program.sources)} tables")
    if not frame.isStreaming and (delay is not None or buckets is not None):
        raise SourceError("`delay` and `buckets` are for streaming DataFrames, this one is a batch")
    check_time(frame, time, program.at)
    check(program, {program.at: schema_of(frame).empty_table()}, time, by)
    rows = columns_of(frame, dict.fromkeys([*by, time, *program.columns[program.at]]))
    fields = [rows.schema[name] for name in by]
    fields += [StructField(time, TimestampType()), *(StructField(name, DoubleType()) for name in program.outputs)]
    context = frame.sparkSession.sparkContext
    if not is_local(context):
        ship(context)
    with this_python(context):
        if not frame.isStreaming:
            return _batch(program, rows, time, tuple(by), cut, StructType(fields))
        session = session_like(frame.sparkSession)
        for name, value in handing_over(frame, schema_of(rows)).items():
            session.conf.set(name, value)
        rows = at_home_in(session, rows)
        task = SignalTask(program, time, tuple(by), delay or 0, buckets or bucket_count(context))
        return stream_on_spark(task, rows, StructType(fields))


def _batch(
    program: Program, rows: DataFrame, time: str, by: tuple[str, ...], cut: int, schema: StructType
) -> DataFrame:
    reach = program.boundaries.sources[program.at]
    bounded = not (reach.before or reach.after) and program.every is None
    micros = F.unix_micros(column(time))
    if bounded:
        pieces = F.explode(F.sequence(_piece_of(micros - reach.ahead, cut), _piece_of(micros + reach.back, cut)))
    else:
        pieces = F.lit(0).cast("long")
    task = _Piece(program, time, by, cut if bounded else 0)
    grouped = rows.withColumn(_PIECE, pieces).groupBy(*map(column, by), _PIECE)
    return grouped.applyInArrow(lambda table: task(table), schema)


def _piece_of(micros: Column, cut: int) -> Column:
    """``floor(micros / cut)``: by way of the multiple below, as a quotient of doubles rounds up to the next one."""
    return F.round((micros - F.pmod(micros, F.lit(cut))) / F.lit(cut)).cast("long")


class _Piece:
    """The rows of one piece of one key into its points, for ``applyInArrow``."""

    def __init__(self, program: Program, time: str, by: tuple[str, ...], cut: int) -> None:
        self._program, self._time, self._by, self._cut = program, time, by, cut

    def __call__(self, table: pa.Table) -> pa.Table:
        piece = table.column(_PIECE)[0].as_py()
        begin = piece * self._cut - 1
        span = (begin, begin + self._cut) if self._cut else (-LIMIT, LIMIT)
        found = run(self._program, {self._program.at: table}, self._time, self._by, threads=1, span=span)
        return _as(found, table.schema.field(self._time).type, self._time)


def _as(found: pa.Table, kind: Any, time: str) -> pa.Table:
    return found.set_column(found.schema.get_field_index(time), time, found.column(time).cast(kind))
