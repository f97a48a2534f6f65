"""A Python streaming data source that replays recorded events in order of arrival and folds them in its tasks.

Three processes meet here. The driver writes a run folder (:class:`RunFolder`). Spark's planner process on the driver
asks :class:`ReplayReader` for offsets and partitions. Tasks read the rows of a partition, fold them into slice
partials, and send one row per bucket; rows of events never reach the JVM.

The plan may change while the stream runs. The driver publishes plans by version (:class:`PlanFolder`); the version
that a micro-batch runs is part of its offset, and a micro-batch whose two offsets differ in it carries the plan to
every bucket, so whatever crashes in between, the change happens before the same rows again.
"""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from workbench.spark.parquet import Piece, Recording, read

if TYPE_CHECKING:
    from workbench.plan import SharedPlan

#: Fewer rows than this are not worth another task.
TASK_ROWS = 50_000

_BATCH = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])


@dataclass(frozen=True)
class ReplayOptions:
    """What to replay and how fast.

    ``paths`` are Parquet files whose rows stand in order of arrival. ``arrival`` names the column of arrival times;
    None takes the event time. ``speed`` is microseconds of arrival per second of wall time, None is as fast as
    possible. Rows that arrived up to ``resume_clock`` come without waiting. ``max_rows`` bounds a micro-batch,
    ``tasks`` the tasks it is cut into (None: one per bucket).
    """

    paths: tuple[str, ...]
    arrival: str | None = None
    speed: float | None = None
    max_rows: int = 500_000
    resume_clock: int | None = None
    tasks: int | None = None


class Offset(TypedDict):
    """Where a micro-batch ends: Spark writes it to its log before the batch runs, so a replay decides the same.

    ``row`` rows are out, the last of them at ``clock`` (None without a speed); ``finished`` closes all windows.
    ``plan`` is the version of the plan that the micro-batch runs, 0 before the first.
    """

    row: int
    clock: int | None
    finished: bool
    plan: int


@dataclass(frozen=True)
class RunSpec:
    """All that the planner process needs: where plans are, the time column, the replay, the key of each bucket."""

    plans: Path
    time: str
    replay: ReplayOptions
    keys: tuple[int, ...]


@lru_cache(maxsize=4)
def open_plan(pickled: bytes) -> SharedPlan:
    """The plan in a task, opened once per worker.

    The planner does without: it starts a second sooner when it need not import the modules of a plan.
    """
    plan: SharedPlan = pickle.loads(pickled)
    return plan


def without_tables(plan: SharedPlan) -> bytes:
    """A pickled plan for the stateful operator, which joins nothing: not with all rows of static tables."""
    from workbench.logical.joins import StaticTable

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, StaticTable):
                return StaticTable, (obj.name, obj.digest, obj.rows, obj.schema, b"")
            return NotImplemented

    content = io.BytesIO()
    Pickler(content).dump(plan)
    return content.getvalue()


class RunFolder:
    """The folder through which the driver speaks to the planner process. Only the driver writes.

    Files are renamed into place, so that a reader sees all of one or none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, spec: RunSpec) -> None:
        """Publish the run. The folder is made here, readable by its owner alone: the planner unpickles from it."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        self._put("run.pickle", pickle.dumps(spec))

    def read(self) -> RunSpec:
        """What the driver published."""
        spec: RunSpec = pickle.loads((self.path / "run.pickle").read_bytes())
        return spec

    def request_finish(self) -> None:
        """Ask that the stream ends with the next micro-batch, wherever it is."""
        self._put("finish", b"")

    def finish_requested(self) -> bool:
        """Whether :meth:`request_finish` was called. One look into the folder."""
        return (self.path / "finish").exists()

    def _put(self, name: str, content: bytes) -> None:
        _put(self.path / name, content)


class PlanFolder:
    """The pickled plans of a stream by version, from 1 on. Only the driver writes; nothing is ever changed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def publish(self, version: int, plan: bytes) -> None:
        """Make a plan the newest. The folder is made where it is missing, readable by its owner alone."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _put(self._file(version), plan)

    def newest(self, known: int = 0) -> int:
        """The newest version, where one is ``known``; 0 if there is none. One look into the folder for each newer."""
        while self._file(known + 1).exists():
            known += 1
        return known

    def read(self, version: int) -> bytes:
        """A plan, still pickled."""
        return self._file(version).read_bytes()

    def _file(self, version: int) -> Path:
        return self.path / f"plan-{version}.pickle"


def _put(path: Path, content: bytes) -> None:
    aside = path.with_name(f".{path.name}.new")
    aside.write_bytes(content)
    os.replace(aside, path)


class Pace:
    """Arrival time as a function of wall time: ``speed`` microseconds per second, from ``clock`` on at first use."""

    def __init__(self, speed: float, now: Callable[[], float] = time.monotonic) -> None:
        self._speed = speed
        self._now = now
        self._origin: tuple[float, int] | None = None

    def due(self, clock: int) -> int:
        """The arrival time reached by now. The first call starts the run, at ``clock``."""
        if self._origin is None:
            self._origin = self._now(), clock
        begun, first = self._origin
        return first + int((self._now() - begun) * self._speed)


class ReplayReader(DataSourceStreamReader):  # type: ignore[misc]
    """Offsets and partitions for the planner process, rows for the tasks.

    Spark pickles the reader into every task for the sake of :meth:`read`, so it starts out as a mere path, and
    ``read`` uses nothing but its partition.
    """

    def __init__(self, folder: RunFolder, now: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._now = now

    @cached_property
    def _spec(self) -> RunSpec:
        return self._folder.read()

    @cached_property
    def _plans(self) -> PlanFolder:
        return PlanFolder(self._spec.plans)

    @cached_property
    def _recording(self) -> Recording:
        replay = self._spec.replay
        return Recording(replay.paths, replay.arrival or self._spec.time)

    @cached_property
    def _pace(self) -> Pace | None:
        speed = self._spec.replay.speed
        return None if speed is None else Pace(speed, self._now)

    def initialOffset(self) -> Offset:
        """Before the first row and the first plan."""
        return Offset(row=0, clock=None, finished=False, plan=0)

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most ``max_rows`` more rows per micro-batch."""
        return ReadMaxRows(self._spec.replay.max_rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far the next micro-batch may go: rows that are due, within ``limit``. Never waits.

        The batch that takes the last row also finishes the stream; an empty recording finishes in a batch of no row.
        A new plan starts a batch too, whether rows are due or not.
        """
        if start["finished"]:
            return start
        version = self._plans.newest(start["plan"])
        if self._folder.finish_requested():
            return Offset(row=start["row"], clock=start["clock"], finished=True, plan=version)
        row = self._recording.rows
        if isinstance(limit, ReadMaxRows):
            row = min(row, start["row"] + limit.max_rows)
        clock = None
        if self._pace is not None and self._recording.rows:
            row = self._recording.rows_out(self._due(self._pace, start), start["row"], row)
            clock = self._recording.clock(row - 1) if row else None
        finished = row == self._recording.rows
        if row == start["row"] and not finished and version == start["plan"]:
            return start
        return Offset(row=row, clock=clock, finished=finished, plan=version)

    def partitions(self, start: Offset, end: Offset) -> list[ReplayPartition]:
        """The rows between two offsets, cut into tasks; one without rows where only plan or end is new."""
        spec, rows = self._spec, end["row"] - start["row"]
        parts = max(1, min(spec.replay.tasks or len(spec.keys), rows // TASK_ROWS))
        runs = self._recording.split(start["row"], end["row"], parts)
        plan, changed = self._plans.read(end["plan"]), start["plan"] != end["plan"]
        return [
            ReplayPartition(plan, end["plan"], changed and not place, spec.keys, tuple(run), end["finished"])
            for place, run in enumerate(runs)
        ]

    def read(self, partition: ReplayPartition) -> Iterator[pa.RecordBatch]:
        """Fold the rows of a partition; a record batch with one row per bucket, and one of the plan if it is new."""
        from workbench.runtime import Level1  # here, since the planner process does without its compiler
        from workbench.runtime.wire import encode_plan

        plan = open_plan(partition.plan)
        level1 = Level1(plan, len(partition.keys), int(time.time() * 1e6))
        needed = pa.schema([plan.stream.schema.field(name) for name in level1.columns])
        for batch in read(partition.pieces, needed):
            level1.fold(batch)
        keys, payloads = list(partition.keys), level1.messages(finish=partition.finish)
        if partition.announce:
            payloads += [encode_plan(partition.version, without_tables(plan))] * len(keys)
            keys *= 2
        yield pa.record_batch([pa.array(keys, pa.int32()), pa.array(payloads, pa.binary())], schema=_BATCH)

    def _due(self, pace: Pace, start: Offset) -> int:
        """The arrival time reached by now; a restarted query goes on from where it was, not from the beginning."""
        reached = start["clock"] if start["clock"] is not None else self._recording.clock(0)
        resumed = self._spec.replay.resume_clock
        return pace.due(reached if resumed is None else max(reached, resumed))


@dataclass(frozen=True)
class ReplayPartition(InputPartition):  # type: ignore[misc]
    """The work of one task, complete in itself: an executor needs no path of the driver but the data files.

    ``announce``: the operators do not have this version of the plan yet.
    """

    plan: bytes
    version: int
    announce: bool
    keys: tuple[int, ...]
    pieces: tuple[Piece, ...]
    finish: bool


class ReplaySource(DataSource):  # type: ignore[misc]
    """Spark's way in: ``spark.readStream.format("winquery_replay").option("run_dir", path)``."""

    @classmethod
    def name(cls) -> str:
        return "winquery_replay"

    def schema(self) -> str:
        return "bucket int, payload binary"

    def streamReader(self, schema: Any) -> ReplayReader:
        return ReplayReader(RunFolder(Path(self.options["run_dir"])))
