"""Time-centric programs on a streaming DataFrame: their state is Spark's, and another DataFrame streams out.

Tasks of the source bring each bucket its rows, and all buckets the time that rows have reached; a stateful operator
(:class:`~workbench.runtime.signal_stream.SignalStream`) gives the points that are settled::

    rows -> mapInArrow: a message for each bucket -> transformWithState -> a block of points -> mapInArrow -> rows

At the start of a query Spark imports this in a process of its own, only to ask for the state's schema: what is needed
for more than that is imported where it is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import IntegerType, StructField, StructType

from workbench.errors import EngineError
from workbench.spark.processor import BLOCK, CONTENT
from workbench.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from workbench.runtime.signal_stream import SignalStream
    from workbench.temporal import Program

#: The columns that rows get: the number of their table, and of their bucket.
OF, _BUCKET = "__of", "__bucket"
_META = StructType([*CONTENT, StructField("buckets", IntegerType())])
_POINTS = "payload binary, points bigint, late bigint"
#: Metrics of one query need names of their own.
_numbers = itertools.count(1)


@dataclass(frozen=True)
class SignalTask:
    """A program over the rows of a stream; ``delay``: how far these may be out of order, in microseconds."""

    program: Program
    time: str
    by: tuple[str, ...]
    delay: int
    buckets: int

    def opened(self) -> SignalStream:
        """The stream at its beginning, in the process of a task."""
        from workbench.runtime.signal_stream import SignalStream

        return SignalStream(self.program, self.time, self.by, self.delay)


def read_as(place: int, column: str) -> str:
    """The name of a column of a table where all tables are one."""
    return f"__{place}_{column}"


def apart(program: Program, rows: pa.Table) -> dict[str, pa.Table]:
    """The rows of each table, under their own names."""
    import pyarrow.compute as pc

    found = {}
    for place, name in enumerate(program.sources):
        own = rows.filter(pc.equal(rows.column(OF), place)) if len(program.sources) > 1 else rows
        other = {
            read_as(n, each) for n, of in enumerate(program.sources) if n != place for each in program.columns[of]
        }
        own = own.drop_columns([OF, *other])
        mine = {read_as(place, each): each for each in program.columns[name]}
        found[name] = own.rename_columns([mine.get(each, each) for each in own.column_names])
    return found


def stream_on_spark(task: SignalTask, rows: DataFrame, schema: StructType) -> DataFrame:
    """The points of a program over a streaming DataFrame of its columns, with ``schema``, each point once."""
    from pyspark.sql import functions as F

    from workbench.spark.frames import MESSAGES, column, map_rows

    keys = F.hash(*map(column, task.by)) if task.by else F.lit(0)
    rows = rows.withColumn(_BUCKET, F.pmod(keys, F.lit(task.buckets)))
    messages = map_rows(rows, _Messages(task), MESSAGES)
    points = messages.groupBy("bucket").transformWithState(SignalProcessor(task), _POINTS, "Append", "None")
    told = [F.sum(name).alias(name) for name in ("points", "late")]
    return points.observe(f"signals {next(_numbers)}", *told).mapInArrow(_unpacked, schema)


class _Messages:
    """The rows of a task into one message for each bucket, also for those that get no rows."""

    def __init__(self, task: SignalTask) -> None:
        self._task = task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        import pyarrow.compute as pc

        from workbench.runtime import wire
        from workbench.spark.frames import messages

        parts = list(batches)
        if not parts:
            return
        table = pa.Table.from_batches(parts)
        latest = table.group_by(OF).aggregate([(self._task.time, "max")])
        times = latest.column(f"{self._task.time}_max").cast(pa.int64()).to_pylist()
        sources = [self._task.program.sources[place] for place in latest.column(OF).to_pylist()]
        newest = dict(zip(sources, times, strict=True))
        header = {"task": TaskContext.get().partitionId(), "newest": newest}
        keys = range(self._task.buckets)
        own = (table.filter(pc.equal(table.column(_BUCKET), key)).drop_columns([_BUCKET]) for key in keys)
        packed = [wire.pack(wire.Kind.SIGNALS_ROWS, header, [wire.one_batch(each)]) for each in own]
        yield messages(keys, packed)


class SignalProcessor(StatefulProcessor):  # type: ignore[misc]
    """The program for whatever buckets Spark hands over."""

    def __init__(self, task: SignalTask) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Called by Spark once per task."""
        self._meta = handle.getValueState("meta", _META)
        self._blocks = handle.getMapState("blocks", BLOCK, CONTENT)

    def handleInputRows(self, key: tuple[int], rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """All messages of one bucket and micro-batch; yields exactly one row."""
        settle()
        from workbench.runtime import wire

        stream = self._restored()
        late = stream.late
        # Rows of one time count in the order of their arrival, which is to be the same if this runs again.
        opened = [wire.unpack(wire.Kind.SIGNALS_ROWS, bytes(row.payload)) for row in rows]
        opened.sort(key=lambda message: message[0]["task"])
        rows = pa.Table.from_batches([table for _, (table,) in opened])
        newest = [time for header, _ in opened for time in header["newest"].items() if time[1] is not None]
        points = stream.push(apart(self._task.program, rows), newest)
        changes = stream.changes()
        for block, content in changes.put.items():
            self._blocks.updateValue((block,), (content,))
        for block in changes.remove:
            self._blocks.removeKey((block,))
        self._meta.update((changes.meta, self._task.buckets))
        payload = wire.pack(wire.Kind.SIGNALS_POINTS, {}, [wire.one_batch(points)])
        yield Row(payload=payload, points=points.num_rows, late=stream.late - late)

    def _restored(self) -> SignalStream:
        """The stream at the stored state, or at its beginning."""
        stream, stored = self._task.opened(), self._meta.get()
        if stored is None:
            return stream
        if stored[1] != self._task.buckets:
            raise EngineError(
                f"the checkpoint has the keys in {stored[1]} buckets, not in {self._task.buckets}",
                hint=f"on_spark(..., buckets={stored[1]}), or a new checkpoint folder",
            )
        stream.load(bytes(stored[0]), [bytes(content[0]) for content in self._blocks.values()])
        return stream


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blocks of points into rows."""
    from workbench.runtime import wire

    for batch in batches:
        for payload in batch.column("payload").to_pylist():
            yield from wire.unpack(wire.Kind.SIGNALS_POINTS, payload)[1]
