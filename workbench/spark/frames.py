"""DataFrames of the user: what their columns are to us, their rows into the messages of level 1, their session.

A DataFrame is a stream's definition as the user wrote it: its filters, joins and casts are Spark's and mean what they
mean in the user's session. We add the choice of the columns that a plan reads, and fold the rows in the same tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    DataType,
    DateType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from workbench.errors import SourceError, did_you_mean
from workbench.logical import Stream
from workbench.spark.epochs import current, in_force
from workbench.spark.fused import open_folders, open_plan
from workbench.spark.spool import Spool
from workbench.spark.worker import settle

#: What ``mapInArrow`` runs.
Mapper: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
#: The rows that level 1 sends on: a message for a bucket.
MESSAGES = "bucket int, payload binary"

_ARROW = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])
#: The column of the wall clock, where rows may be too far in the future.
_NOW = "winquery_now"
#: Rows that one call of a fold gets; Spark hands over fewer, and the call has a price of its own.
_FOLD_ROWS = 1 << 17
#: Rows, and bytes, of what Spark hands over at once, where it need not look at the bytes of each row.
_HANDED_ROWS, _HANDED_BYTES = 1 << 16, 1 << 24
#: The settings of :func:`handing_over`.
HANDING = ("spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch")


@dataclass(frozen=True)
class FrameOptions:
    """A DataFrame and how it is run.

    ``trigger`` of a stream: None for micro-batch after micro-batch, ``"available_now"``, or a duration as Spark
    reads it. ``level1`` of a batch frame: ``"auto"``, ``"arrow"`` or ``"tungsten"``.
    """

    frame: DataFrame
    trigger: str | None = None
    level1: str = "auto"


def schema_of(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame as Arrow has them, timestamps in microseconds, UTC.

    Columns of types that Arrow has not (``interval``, ``variant``) are left out: no expression could read them.
    Raises SourceError where the session has ended, or two columns have one name.
    """
    if frame.sparkSession.sparkContext._jsc is None:
        raise SourceError(
            "the Spark session of this DataFrame has been stopped",
            hint="make the DataFrame again in a running session",
        )
    fields, seen = [], set()
    for field in frame.schema:
        if field.name.casefold() in seen:
            raise SourceError(
                f"the DataFrame has two columns `{field.name}`", hint="rename one of them; Spark ignores case"
            )
        seen.add(field.name.casefold())
        try:
            fields.append(pa.field(field.name, to_arrow_type(field.dataType, timezone="UTC"), field.nullable))
        except PySparkException:
            continue
    return pa.schema(fields)


def check_time(frame: DataFrame, name: str | None, source: str) -> str:
    """The time column, if it can be one. Raises SourceError with the way to make one."""
    types = {field.name: field.dataType for field in frame.schema}
    stamps = [each for each, kind in types.items() if isinstance(kind, TimestampType)]
    shown = "timestamp columns: " + ", ".join(f"`{each}`" for each in stamps)
    if name is None:
        raise SourceError(
            f"source `{source}` needs its event time",
            hint=f"time=... {shown}" if stamps else "no column is a timestamp",
        )
    if name not in types:
        raise SourceError(f"no column `{name}` for `time`", hint=did_you_mean(name, types, "column"))
    kind = types[name]
    if not isinstance(kind, TimestampType):
        raise SourceError(
            f"column `{name}` of type `{kind.simpleString()}` is not a timestamp, so it cannot be the time",
            hint=_remedy(frame, name, kind),
        )
    return name


def _remedy(frame: DataFrame, name: str, kind: DataType) -> str:
    """How a column becomes a timestamp."""
    if isinstance(kind, TimestampNTZType):
        zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
        return (
            f"without a time zone it is no moment: `df.withColumn('{name}', col('{name}').cast('timestamp'))` "
            f"takes it in the session's time zone, `{zone}`"
        )
    if isinstance(kind, StringType):
        return f"`df.withColumn('{name}', to_timestamp('{name}'))` reads it as one; a format may follow"
    if isinstance(kind, NumericType):
        return f"`timestamp_seconds('{name}')`, `timestamp_millis` or `timestamp_micros` makes one of it, by its unit"
    if isinstance(kind, DateType):
        return f"`df.withColumn('{name}', col('{name}').cast('timestamp'))` takes the midnight of each day"
    return "make a timestamp column of it before"


def columns_of(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Some columns by their exact names, whatever signs are in these."""
    return frame.select([column(name) for name in names])


def rows_for(frame: DataFrame, names: Iterable[str], stream: Stream) -> DataFrame:
    """The columns that plans on a stream read, for :class:`ArrowFold`.

    Where rows may be too far in the future the wall clock comes with them, as Spark has written it to the log of its
    micro-batches: one that runs again after a crash decides as it did before.
    """
    rows = columns_of(frame, names)
    return rows if stream.future is None else rows.withColumn(_NOW, F.unix_micros(F.current_timestamp()))


def numbered(frame: DataFrame) -> DataFrame:
    """The same columns as ``c0``, ``c1``, ...: PySpark's functions over Arrow take a dot in a name for a field."""
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))


def map_rows(frame: DataFrame, function: Mapper, schema: str | StructType) -> DataFrame:
    """``mapInArrow`` over columns of any names, by which ``function`` knows them."""
    return numbered(frame).mapInArrow(_Named(function, frame.columns), schema)


class _Named:
    """Gives :func:`numbered` columns their names back."""

    def __init__(self, function: Mapper, names: Sequence[str]) -> None:
        self._function, self._names = function, list(names)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(batch.rename_columns(self._names) for batch in batches)


def column(name: str) -> Column:
    """The column of exactly this name; `col` would take a dot for a field, and no backtick at all."""
    return F.expr("`" + name.replace("`", "``") + "`")


def at_home_in(session: SparkSession, frame: DataFrame) -> DataFrame:
    """The same DataFrame in another session of its context.

    All that it means is settled in its own session (names, time zone, functions); here it only runs. A global
    temporary view is the public way from one session to another; it is gone when this returns.
    """
    name = f"winquery_{uuid.uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        return session.table(f"global_temp.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)


def handing_over(frame: DataFrame, schema: pa.Schema) -> dict[str, str]:
    """Settings by which Spark brings rows of these columns of a DataFrame to Python at the least cost, if there are.

    Spark bounds the bytes of a batch by asking for its size before each row, which takes as long as all else that it
    does to hand the row over: docs/decisions/0010-rows-by-number.md. Where all values of a column have one length the
    number of rows bounds the bytes as well. Not where Python may run in the DataFrame itself, on columns of any kind:
    it would get such batches too.
    """
    patterns = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    analyzed = frame._jdf.queryExecution().analyzed()
    # Table functions of Python have no mark of their own among those that make rows of a row.
    if any(analyzed.containsPattern(each) for each in (patterns.PYTHON_UDF(), patterns.GENERATE())):
        return {}
    try:
        width = sum(field.type.bit_width + 1 for field in schema)
    except ValueError:  # texts
        return {}
    rows = max(min(_HANDED_ROWS, 8 * _HANDED_BYTES // width), 1)
    return dict(zip(HANDING, (str(rows), str((1 << 31) - 1)), strict=True))


class ArrowFold:
    """Level 1 "arrow", for ``mapInArrow``: the rows of a task into one message for each bucket.

    A task without rows sends messages too: each bucket must learn what all tasks have seen. ``plans`` are pickled, by
    the micro-batch from which on they hold; ``keys`` are the ids of the buckets. The rows are :func:`rows_for`.
    """

    def __init__(self, plans: Mapping[int, bytes], keys: tuple[int, ...], spool: Spool) -> None:
        self._plans = plans
        self._keys = keys
        self._spool = spool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        from workbench.runtime import Level1

        pickled = in_force(self._plans)
        plan = open_plan(pickled)
        parts = joined(batches, _FOLD_ROWS)
        first = next(parts, None)
        now: int | None = None
        if plan.stream.future is not None and first is not None and len(first):
            now = first.column(_NOW)[0].as_py()
        level1 = Level1(plan, len(self._keys), now, open_folders(pickled), self._spool.horizon(current()))
        needed = pa.schema([plan.stream.schema.field(name) for name in level1.columns])
        for batch in chain([] if first is None else [first], parts):
            level1.fold(_in_types(batch, needed))
        yield messages(self._keys, map(self._spool.put, level1.messages()))


def messages(keys: Iterable[int], payloads: Iterable[bytes]) -> pa.RecordBatch:
    """Messages for buckets as rows."""
    return pa.record_batch([pa.array(keys, pa.int32()), pa.array(list(payloads), pa.binary())], schema=_ARROW)


def joined(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Record batches of at least so many rows, except for the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= rows:
            yield _one(waiting)
            waiting = []
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _in_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns in the types of a schema: Spark names the session's time zone and may use large types."""
    columns: list[Any] = []
    for field in schema:
        column = batch.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.record_batch(columns, schema=schema)
