"""A Python streaming data source whose tasks read rows and fold them: level 1, fused with the reading.

Three processes meet here. The driver writes a run folder (:class:`RunFolder`). Spark's planner process on the driver
asks :class:`FusedReader` for offsets and partitions, which asks the feed of the source. Tasks read the rows of a
partition, fold them into slice partials, and send one row per bucket; rows of events never reach the JVM.

The plan may change while the stream runs. The driver publishes plans by version (:class:`PlanFolder`); the version
that a micro-batch runs is part of its offset, and a micro-batch whose two offsets differ in it carries the plan to
every bucket, so whatever crashes in between, the change happens before the same rows again.
"""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from workbench.feeds import Feed, FeedOptions, Piece, Position, ReplayOptions, Tally
from workbench.spark.spool import Spool
from workbench.spark.worker import settle

if TYPE_CHECKING:
    from workbench.plan import SharedPlan
    from workbench.runtime import Level1
    from workbench.runtime.folding import Folder

_NO_SPOOL = Spool()
_BATCH = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])


#: Where a micro-batch ends: the feed's position; ``finished``, which closes all windows; ``plan``, the version of
#: the plan that it runs, 0 before the first; ``passed``, where the stream is idle: how far event time has gone on
#: behind the latest row, in microseconds; ``now``, where rows may be too far in the future: the wall clock. Spark
#: writes it to its log before the batch runs, so a replay decides the same.
Offset: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class RunSpec:
    """All that the planner process needs: where plans are, the time column, the feed, the key of each bucket.

    ``folder`` is the feed's own; like ``plans`` it lives as long as the offsets. ``idle`` is that of the stream;
    ``bounded``: rows of it may be too far in the future.
    """

    plans: Path
    time: str
    feed: FeedOptions
    keys: tuple[int, ...]
    folder: Path
    idle: int | None = None
    spool: Spool = _NO_SPOOL
    bounded: bool = False


@lru_cache(maxsize=4)
def open_plan(pickled: bytes) -> SharedPlan:
    """The plan in a task, opened once per worker.

    The planner does without: it starts a second sooner when it need not import the modules of a plan.
    """
    plan: SharedPlan = pickle.loads(pickled)
    return plan


@lru_cache(maxsize=4)
def open_folders(pickled: bytes) -> list[Folder]:
    """What folds rows by a plan in a task, once per worker: it learns from the rows of one task for the next."""
    from workbench.runtime.level1 import folders_of

    return folders_of(open_plan(pickled))


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


def fold_pieces(
    pickled: bytes, buckets: int, pieces: Iterable[Piece], now: int | None = None, horizon: int | None = None
) -> Level1:
    """Level 1 of all rows of a task; ``now`` is the wall clock in microseconds, None for that of this moment."""
    settle()
    from workbench.runtime import Level1  # here, since the planner process does without its compiler

    plan = open_plan(pickled)
    level1 = Level1(plan, buckets, _wall_clock() if now is None else now, open_folders(pickled), horizon)
    tally, needed = Tally(), pa.schema([plan.stream.schema.field(name) for name in level1.columns])
    for piece in pieces:
        for batch in piece.read(needed, tally):
            level1.fold(batch)
    level1.dropped = tally.dropped
    return level1


def _wall_clock() -> int:
    return int(time.time() * 1e6)


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


class FusedReader(DataSourceStreamReader):  # type: ignore[misc]
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
    def _silence(self) -> Silence | None:
        idle, feed = self._spec.idle, self._spec.feed
        speed = feed.speed if isinstance(feed, ReplayOptions) else None
        return None if idle is None else Silence(idle, speed or 1e6, self._now)

    @cached_property
    def _feed(self) -> Feed:
        spec = self._spec
        return spec.feed.open(spec.time, spec.folder, self._now)

    def initialOffset(self) -> Offset:
        """Before the first row and the first plan."""
        return _offset(self._feed.initial(), finished=False, plan=0)

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most ``max_rows`` more rows per micro-batch; without it the feed bounds them itself."""
        rows = self._spec.feed.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far the next micro-batch may go: as the feed says, within ``limit``. Never waits.

        The batch that takes the last row also finishes the stream. A new plan starts a batch too, whether there are
        rows or not, and so does a second of wall time in which the stream is idle.
        """
        if start["finished"]:
            return start
        version = self._plans.newest(start["plan"])
        if self._folder.finish_requested():
            return _offset(start, finished=True, plan=version)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        position, ended = self._feed.advance(_position(start), rows)
        still = position == _position(start) and not ended
        passed = 0 if self._silence is None else self._silence.passed(still, start.get("passed", 0))
        if still and version == start["plan"] and passed == start.get("passed", 0):
            return start  # the very same object: Spark compares the texts of offsets
        offset = _offset(position, finished=ended, plan=version)
        offset |= {"passed": passed} if passed else {}
        return offset | {"now": _wall_clock()} if self._spec.bounded else offset

    def partitions(self, start: Offset, end: Offset) -> list[FusedPartition]:
        """The rows between two offsets, cut into tasks; one without rows where only plan or end is new."""
        spec = self._spec
        runs = self._feed.pieces(_position(start), _position(end), spec.feed.tasks or len(spec.keys))
        plan, changed = self._plans.read(end["plan"]), start["plan"] != end["plan"]
        return [
            FusedPartition(
                plan,
                end["plan"],
                changed and not place,
                spec.keys,
                tuple(run),
                end["finished"],
                end.get("passed", 0),
                spec.spool,
                end.get("now"),
            )
            for place, run in enumerate(runs)
        ]

    def read(self, partition: FusedPartition) -> Iterator[pa.RecordBatch]:
        """Fold the rows of a partition; a record batch with one row per bucket, and one of the plan if it is new."""
        from workbench.runtime.wire import encode_plan  # here, since the planner process does without its compiler
        from workbench.spark.epochs import current

        plan = open_plan(partition.plan)
        horizon = partition.spool.horizon(current())
        level1 = fold_pieces(partition.plan, len(partition.keys), partition.pieces, partition.now, horizon)
        keys, payloads = list(partition.keys), level1.messages(finish=partition.finish, passed=partition.passed)
        payloads = [partition.spool.put(payload) for payload in payloads]
        if partition.announce:
            payloads += [encode_plan(partition.version, without_tables(plan))] * len(keys)
            keys *= 2
        yield pa.record_batch([pa.array(keys, pa.int32()), pa.array(payloads, pa.binary())], schema=_BATCH)

    def commit(self, end: Offset) -> None:
        """The micro-batch that ends there is in the checkpoint with all that came of it."""
        self._feed.commit(_position(end))

    def stop(self) -> None:
        """Spark's last word, in the planner process."""
        if "_feed" in self.__dict__:  # it may never have been asked for
            self._feed.close()


class Silence:
    """How long no row has come, and how far event time goes on because of it.

    ``idle`` is the time-out in microseconds of wall time, ``pace`` the microseconds of event time to a second of it.
    The silence is measured in this process: after a restart it begins anew.
    """

    def __init__(self, idle: int, pace: float, now: Callable[[], float]) -> None:
        self._idle = idle / 1e6
        self._pace = pace
        self._now = now
        self._since: float | None = None

    def passed(self, still: bool, before: int) -> int:
        """How far event time has gone on behind the latest row; ``before`` until a second more is over.

        ``still``: no row has come since the last call.
        """
        if not still or self._since is None:
            self._since = self._now()
            return before if still else 0
        passed = int((self._now() - self._since - self._idle) * self._pace)
        return passed if passed >= before + self._pace else before


def _position(offset: Offset) -> Position:
    """The part of an offset that is the feed's."""
    return {name: value for name, value in offset.items() if name not in ("finished", "plan", "passed", "now")}


def _offset(position: Position, *, finished: bool, plan: int) -> Offset:
    return position | {"finished": finished, "plan": plan}


@dataclass(frozen=True)
class FusedPartition(InputPartition):  # type: ignore[misc]
    """The work of one task, complete in itself: an executor needs no path of the driver but the data files.

    ``announce``: the operators do not have this version of the plan yet. ``passed``, ``now``: see :data:`Offset`.
    """

    plan: bytes
    version: int
    announce: bool
    keys: tuple[int, ...]
    pieces: tuple[Piece, ...]
    finish: bool
    passed: int = 0
    spool: Spool = _NO_SPOOL
    now: int | None = None


class FusedSource(DataSource):  # type: ignore[misc]
    """Spark's way in: ``spark.readStream.format("winquery").option("run_dir", path)``."""

    @classmethod
    def name(cls) -> str:
        return "winquery"

    def schema(self) -> str:
        return "bucket int, payload binary"

    def streamReader(self, schema: Any) -> FusedReader:
        return FusedReader(RunFolder(Path(self.options["run_dir"])))
