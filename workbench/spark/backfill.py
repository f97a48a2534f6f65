"""A shared plan over data that is all there: one Spark job, and then all windows are final.

The data are a batch DataFrame or table of the user's, or a recording, whose files our own tasks read.

The same plan as on a stream, in one micro-batch that is also the end of it: tasks fold their rows (level 1), Spark
brings the messages of a bucket together, and the operator of the bucket puts the windows together (levels 2 and 3).
Nothing is late here, and nothing is kept.
"""

from __future__ import annotations

import contextlib
import pickle
import tempfile
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from workbench.errors import EngineError
from workbench.feeds import Piece, ReplayOptions
from workbench.feeds.feed import task_count
from workbench.plan import SharedPlan, carry
from workbench.runtime.folding import plan_columns
from workbench.runtime.operator import horizon_of
from workbench.runtime.wire import Report, added, decode_report, signal
from workbench.spark.failure import root_cause
from workbench.spark.frames import MESSAGES, ArrowFold, FrameOptions, column, map_rows, messages, rows_for
from workbench.spark.fused import fold_pieces, open_plan, without_tables
from workbench.spark.progress import Progress
from workbench.spark.session import bucket_count, is_local, this_python
from workbench.spark.shipping import ship
from workbench.spark.spool import Spool
from workbench.spark.tungsten import chosen, tungsten
from workbench.spark.worker import settle

#: Tasks of a recording for each core: enough that none waits long for another that has more to do.
_TASKS = 2
#: Seconds between two tries to cancel a job.
_AGAIN = 0.1


class BackfillRunner(ABC):
    """Runs one shared plan in one job. Made once, started once.

    ``on_reports(reports)`` is called once, one report per bucket with rows, on a thread of the runner's. All methods
    may be called from any thread.
    """

    version = 1

    def __init__(self, session: SparkSession, plan: SharedPlan, on_reports: Callable[[list[Report]], None]) -> None:
        self._plan = plan
        self._on_reports = on_reports
        self._context = session.sparkContext
        self._tag = f"winquery-{uuid.uuid4().hex}"
        self._over = threading.Event()
        self._stopped = False
        self._progress = Progress()

    def start(self) -> None:
        """Start the job and return."""
        self._begun = time.monotonic()
        self._progress = replace(self._progress, state="running")
        name = f"winquery {self._plan.stream.name}"
        threading.Thread(target=self._watch, name=name, daemon=True).start()

    @property
    def plan(self) -> SharedPlan:
        """The only plan there is."""
        return self._plan

    def change(self, plan: SharedPlan) -> int:
        """The number that another plan would have: a job does not take it, see :meth:`wait_for`."""
        carry(self._plan, plan)
        return self.version + 1

    def wait_for(self, version: int, timeout: float | None = None) -> bool:
        """Wait until the job is over; False: no later plan than the first ever runs."""
        self._over.wait(timeout)
        return version == self.version

    def stop(self, timeout: float = 5.0, *, finish: bool = False) -> bool:
        """Cancel the job, if it runs; True when nothing of it is left. ``finish`` waits for its end first."""
        if finish and self._over.wait(timeout):
            return True
        self._stopped = True
        deadline = time.monotonic() + timeout
        # Spark cancels the jobs that it has: one that is still being planned is cancelled when it is there.
        while not self._over.is_set() and (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(Exception):  # the JVM is gone, and the job with it
                self._context.cancelJobsWithTag(self._tag)
            self._over.wait(min(left, _AGAIN))
        return self._over.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended in whatever way; False after ``timeout``."""
        return self._over.wait(timeout)

    def progress(self) -> Progress:
        """Where the job is now. Costs nothing."""
        return self._progress

    def _watch(self) -> None:
        try:
            self._context.addJobTag(self._tag)
            with this_python(self._context):
                reports = [] if self._stopped else self._run()
            if self._stopped:
                end = replace(self._progress, state="stopped")
            else:
                self._on_reports(reports)
                end = self._finished(reports)
        except Exception as error:  # whatever Spark raises ends the job: it is told as its progress
            text = str(error)
            cause = error.message if isinstance(error, EngineError) else root_cause(text)
            end = replace(self._progress, state="failed", error=cause, details=text)
        if self._stopped and end.state == "failed":
            end = replace(end, state="stopped", error=None)
        self._progress = end
        self._over.set()

    def _run(self) -> list[Report]:
        """The reports of all buckets."""
        # Below the context's own folder, which the JVM removes even when this process is killed.
        with tempfile.TemporaryDirectory(prefix="winquery-", dir=self._context._temp_dir) as scratch:
            spool = Spool.beside(Path(scratch), local=is_local(self._context))
            spool.note(0, horizon_of(self._plan.stream, None))
            sent = self._results(spool).toArrow().column("payload").to_pylist()
            return [decode_report(spool.get(each)) for each in sent]

    def _results(self, spool: Spool) -> DataFrame:
        """What tasks send for the reports of all buckets, lazily."""
        end = BucketEnd(self._plan, spool)
        folded = self._messages(tuple(range(bucket_count(self._context))), spool)
        # A plain function: PySpark looks for the type hints of whatever it is given, and of an object finds none.
        return folded.groupBy("bucket").applyInArrow(lambda table: end(table), "payload binary")

    @abstractmethod
    def _messages(self, buckets: tuple[int, ...], spool: Spool) -> DataFrame:
        """Level 1, lazily."""

    def _seen(self, reports: list[Report]) -> tuple[int, int | None]:
        """How many rows there were, and the latest event time."""
        return (reports[0].rows, reports[0].max_event) if reports else (0, None)

    def _finished(self, reports: list[Report]) -> Progress:
        rows, latest = self._seen(reports)
        late = {entry.query.name: 0 for entry in self._plan.queries}
        return replace(
            self._progress,
            state="finished",
            rows=rows,
            watermark=latest,
            max_event=latest,
            late=late,
            backward=reduce(added, [report.backward for report in reports], {}),
            ahead=reports[0].ahead if reports else 0,
            batches=1,
            batch_seconds=time.monotonic() - self._begun,
        )


class FrameBackfill(BackfillRunner):
    """Over a batch DataFrame, in its own session."""

    def __init__(self, plan: SharedPlan, options: FrameOptions, on_reports: Callable[[list[Report]], None]) -> None:
        super().__init__(options.frame.sparkSession, plan, on_reports)
        self._variant, _ = chosen(plan, options.level1)
        self._frame = options.frame
        self._observed = Observation()

    def _messages(self, buckets: tuple[int, ...], spool: Spool) -> DataFrame:
        rows = rows_for(self._frame, plan_columns(self._plan), self._plan.stream)
        if self._variant == "arrow":
            return map_rows(rows, ArrowFold({0: pickle.dumps(self._plan)}, buckets, spool), MESSAGES)
        latest = F.max(F.unix_micros(column(self._plan.stream.time))).alias("max_event")
        return tungsten(self._plan, rows.observe(self._observed, F.count("*").alias("rows"), latest), buckets, spool)

    def _seen(self, reports: list[Report]) -> tuple[int, int | None]:
        if not reports or self._variant == "arrow":
            return super()._seen(reports)
        # These messages tell of partials; Spark itself has seen the rows.
        return self._observed.get["rows"], self._observed.get["max_event"]


class RecordingBackfill(BackfillRunner):
    """Over the files of a recording: level 1 fused with the reading, as in the stream of the same recording."""

    def __init__(
        self,
        session: SparkSession,
        plan: SharedPlan,
        options: ReplayOptions,
        on_reports: Callable[[list[Report]], None],
    ) -> None:
        super().__init__(session, plan, on_reports)
        self._session = session
        self._options = options

    def _messages(self, buckets: tuple[int, ...], spool: Spool) -> DataFrame:
        if not is_local(self._context):
            ship(self._context)
        recording = self._options.recording(self._plan.stream.time)
        runs = recording.split(0, recording.rows, task_count(recording.rows, _TASKS * len(buckets)))
        tasks = self._session.range(0, len(runs), 1, len(runs))
        return tasks.mapInArrow(RecordingFold(pickle.dumps(self._plan), buckets, spool, runs), MESSAGES)


class RecordingFold:
    """Level 1 "fused", for ``mapInArrow``: the numbers of tasks into a message for each bucket from each task."""

    def __init__(self, plan: bytes, keys: tuple[int, ...], spool: Spool, runs: Sequence[Sequence[Piece]]) -> None:
        self._plan = plan
        self._keys = keys
        self._spool = spool
        self._runs = runs

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.column(0).to_pylist():
                folded = fold_pieces(self._plan, len(self._keys), self._runs[task], horizon=self._spool.horizon(0))
                yield messages(self._keys, map(self._spool.put, folded.messages()))


class BucketEnd:
    """Levels 2 and 3 of one bucket, for ``applyInArrow``: all messages there will ever be into one report."""

    def __init__(self, plan: SharedPlan, spool: Spool) -> None:
        self._plan = without_tables(plan)
        self._spool = spool

    def __call__(self, messages: pa.Table) -> pa.Table:
        settle()
        from workbench.runtime import BucketOperator

        operator = BucketOperator(open_plan(self._plan))
        payloads = map(self._spool.get, messages.column("payload").to_pylist())
        report = operator.apply([*payloads, signal(finish=True)])
        # A setting of the session makes all bytes of grouped data large ones.
        kind = messages.schema.field("payload").type
        return pa.table({"payload": pa.array([self._spool.put(report)], kind)})
