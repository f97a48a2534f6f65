"""One running stream on Spark: start, progress, stop; every end of a query goes through one thread.

That thread exists because ``query.stop()`` waits for the running callback, so a callback can never call it itself.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import threading
import time
import traceback
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from workbench.errors import EngineError
from workbench.logical import Workload
from workbench.plan import SharedPlan, carry, compile_workload
from workbench.runtime.operator import horizon_of
from workbench.runtime.wire import Report, decode_report
from workbench.spark.callback import Callback
from workbench.spark.checkpoint import PLANS, Checkpoint, going_on, kept_plan
from workbench.spark.failure import root_cause
from workbench.spark.fused import PlanFolder
from workbench.spark.processor import OUTPUT, BucketProcessor
from workbench.spark.progress import Progress, Rate
from workbench.spark.residents import Homes
from workbench.spark.session import bucket_count, is_alive, is_local, log_tail, this_python
from workbench.spark.shipping import ship
from workbench.spark.spool import Spool

#: How long a failure of the query may go unnoticed, seconds; success and stop are noticed at once.
_LOOK = 0.25
_SPARK_STOPPED = "Spark was stopped while the query ran; run its cell again, and Spark starts anew"


class QueryRunner(ABC):
    """Runs one shared plan as one Spark query. Made once, started once; all methods may be called from any thread.

    ``on_reports(reports)`` is called for every micro-batch, one report per bucket, in order, on a thread of Spark's;
    the next micro-batch waits for it. ``checkpoint`` is a folder that outlives the run, None a temporary one. On an
    older one :meth:`start` first hands on what runs before it led to; a micro-batch that broke off comes again.
    """

    def __init__(
        self,
        session: SparkSession,
        plan: SharedPlan,
        on_reports: Callable[[list[Report]], None],
        checkpoint: Path | None = None,
    ) -> None:
        self._session = session
        self._plan = plan
        self._on_reports = on_reports
        self._checkpoint = None if checkpoint is None else Checkpoint(checkpoint)
        self._buckets = 0
        self._spool = Spool()
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)
        self._version = 0
        self._in_force = 0
        #: The plan that the run began with, and its version.
        self._first = self._version, plan
        self._forget: dict[int, set[str]] = {}
        self._progress = Progress()
        #: The latest micro-batch, and the progress before it.
        self._before = -1, self._progress
        self._rate = Rate()
        self._wake = threading.Event()
        self._over = threading.Event()
        self._ending: Literal["finished", "stopped"] | None = None
        self._callback: int | None = None
        self._line: Callback | None = None
        self._query: Any = None

    def start(self) -> None:
        """Start the query on Spark and return. Raises EngineError where Spark or the checkpoint refuses it."""
        context, kept = self._session.sparkContext, self._checkpoint
        self._buckets = bucket_count(context)
        # Below the context's own folder, which the JVM removes even when this process is killed.
        scratch = Path(tempfile.mkdtemp(prefix="winquery-", dir=context._temp_dir))
        try:
            if kept is not None:
                kept.open(self._buckets)
                self._buckets = kept.buckets
            lasting = scratch if kept is None else kept.path
            self._plans = PlanFolder(lasting / PLANS)
            self._spool = Spool.beside(scratch, local=is_local(context))
            if not is_local(context):
                ship(context)
            self._publish()
            self._first = self._version, self._plan
            self._refill()
            if self._ending is None:  # else the checkpoint is that of a stream that has ended
                with this_python(context):
                    self._query = self._launch(scratch, lasting)
        except BaseException as error:
            self._leave(scratch)
            if isinstance(error, PySparkException):
                raise EngineError(root_cause(str(error))) from error
            raise
        name = f"winquery {self._plan.stream.name}"
        threading.Thread(target=self._watch, args=(scratch,), name=name, daemon=True).start()

    @property
    def plan(self) -> SharedPlan:
        """The newest plan, as it runs: on an older checkpoint queries keep the partials that they read before."""
        return self._plan

    @property
    def version(self) -> int:
        """The version of the newest plan, published or about to be; reports tell the one that they are of."""
        return self._version

    def change(self, plan: SharedPlan) -> int:
        """Go on with another plan, from the next micro-batch on, which begins at once; returns its version.

        Compile it with ``running`` set to the plan that runs; what begins and what goes on is told at
        :meth:`workbench.runtime.BucketOperator.change`. Where the stream ends first, nothing happens: see
        :meth:`wait_for`. Raises QueryError for a plan that cannot go on. Changes must not overlap.
        """
        carry(self._plan, plan)
        if self._over.is_set():
            return self._version + 1
        with self._lock:
            named = {*self._progress.late, *self._progress.backward}
            self._forget[self._version + 1] = named - going_on(self._plan, plan)
            self._plan, self._version = plan, self._version + 1
        self._plans.publish(self._version, pickle.dumps(plan))
        return self._version

    def wait_for(self, version: int, timeout: float | None = None) -> bool:
        """Wait until a version of the plan runs; False after ``timeout`` or when the stream ended first.

        Not to be called from ``on_reports``.
        """
        with self._moved:
            self._moved.wait_for(lambda: self._in_force >= version or self._over.is_set(), timeout)
            return self._in_force >= version

    def stop(self, timeout: float = 5.0, *, finish: bool = False) -> bool:
        """End the stream; True when nothing of it is left. An ended stream stays as it is.

        ``finish`` lets one last micro-batch close all windows, if it manages within ``timeout`` seconds. Called from
        ``on_reports`` it only asks, since the query cannot end before its callback returns.
        """
        inside = threading.get_ident() == self._callback
        if finish:
            self._request_finish()
            if inside or self._over.wait(timeout):
                return self._over.is_set()
        self._end("stopped")
        return self._over.is_set() if inside else self._over.wait(timeout)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the stream has ended in whatever way and all of it is cleaned up; False after ``timeout``."""
        return self._over.wait(timeout)

    def progress(self) -> Progress:
        """Where the stream is now. Costs one question to Spark while it runs."""
        self._ask_spark()
        with self._lock:
            return replace(self._progress, rows_per_s=self._rate.now())

    @abstractmethod
    def _launch(self, scratch: Path, lasting: Path) -> Any:
        """Start the query on Spark. ``scratch`` ends with the run, ``lasting`` with the checkpoint."""

    @abstractmethod
    def _request_finish(self) -> None:
        """Ask for one last micro-batch that closes all windows."""

    def _goes_on(self) -> bool:
        """Whether the query runs; asked all the time. What it raises has ended the stream."""
        return bool(self._query.isActive)

    def _running(self) -> Any:
        """The query that runs, or the last one that ran."""
        return self._query

    def _clock(self, latest: Any) -> int | None:
        """The arrival time reached by the latest micro-batch, of a source that has such."""
        return None

    def _place(self, scratch: Path) -> Path:
        """The folder of Spark's checkpoint."""
        return scratch / "checkpoint" if self._checkpoint is None else self._checkpoint.path

    def _write(
        self, messages: DataFrame, checkpoint: Path, given: Mapping[int, bytes] | None = None, **trigger: Any
    ) -> Any:
        """Levels 2 and 3 and the way to the driver, started on the messages of level 1.

        ``given`` are the plans where the messages bring none; see :class:`BucketProcessor`.
        """
        self._homes = Homes(uuid.uuid4().hex)
        processor = BucketProcessor(self._homes.run, self._spool, given)
        results = messages.groupBy("bucket").transformWithState(processor, OUTPUT, "Append", "None")
        writer = results.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint))
        if trigger:
            writer = writer.trigger(**trigger)
        self._hang_up()
        self._line = Callback(self._session, self._apply)
        return writer.foreachBatch(self._line).start()

    def _hang_up(self) -> None:
        """After the end of a query of Spark's."""
        if self._line is not None:
            self._line.close()

    def _publish(self) -> None:
        """The plan as the first of the stream, or on an older checkpoint as a change of the last one there."""
        self._version = self._plans.newest()
        if not self._version:
            self._spool.note(0, horizon_of(self._plan.stream, None))
        if self._version and self._checkpoint is not None:
            running = kept_plan(self._plans, self._version)
            queries = tuple(entry.query for entry in self._plan.queries)
            self._plan = compile_workload(Workload(self._plan.stream, queries), running=running)
            self._progress = replace(self._progress, resumed=self._checkpoint.resumed(self._plans, self._plan))
            if self._plan == running:
                return
        self._version += 1
        self._plans.publish(self._version, pickle.dumps(self._plan))

    def _refill(self) -> None:
        """Hand on what earlier runs have led to."""
        if self._checkpoint is None:
            return
        for batch, reports in self._checkpoint.led_to(self._plans, self._plan):
            self._on_reports(reports)
            self._count(batch, reports)
        self._rate = Rate()
        self._progress = replace(self._progress, state="starting")

    def _apply(self, results: DataFrame, batch: int) -> None:
        """Spark's callback with the result blobs of one micro-batch.

        What it raises Spark must see, also while it is being stopped, which cancels the jobs of a running batch: a
        batch whose callback returns is committed, and would be neither in the state nor among the results.
        """
        if self._ending == "finished":  # rows that came after the end, while the query was being stopped
            return
        sent, buckets, tokens = (column.to_pylist() for column in results.toArrow().columns)
        payloads = [self._spool.get(each) for each in sent]
        self._spool.sweep()
        self._deliver(batch, payloads)
        self._homes.note(dict(zip(buckets, tokens, strict=True)))

    def _deliver(self, batch: int, payloads: list[bytes]) -> None:
        """Keep and hand on the reports of a micro-batch."""
        self._callback = threading.get_ident()
        try:
            reports = [replace(decode_report(payload), batch=batch) for payload in payloads]
            if reports and not reports[0].finished:
                self._spool.note(batch + 1, horizon_of(self._plan.stream, reports[0].watermark))
            if self._checkpoint is not None:
                self._checkpoint.record.put(batch, payloads)
                version, plan = self._first
                if any(report.plan < version for report in reports):
                    # It broke off in an earlier run, so it has run by the plan of that one.
                    reports = self._checkpoint.fit(self._plans, plan, reports)
            self._on_reports(reports)
            self._count(batch, reports)
        finally:
            self._callback = None

    def _count(self, batch: int, reports: list[Report]) -> None:
        with self._lock:
            # A micro-batch that was stopped before Spark took note of its end runs again: it counts once.
            before = self._before[1] if batch == self._before[0] else self._progress
            self._in_force = max([self._in_force, *(report.plan for report in reports)])
            begun = [version for version in self._forget if version <= self._in_force]
            gone = {query for version in begun for query in self._forget.pop(version)}
            late = {query: count for query, count in before.late.items() if query not in gone}
            backward = {query: told for query, told in before.backward.items() if query not in gone}
            before = replace(before, state="running", late=late, backward=backward)
            self._before = batch, before
            self._rate.add(reports[0].rows if reports else 0)
            self._progress = before.after(reports)
            self._moved.notify_all()
        if any(report.finished for report in reports):
            self._end("finished")

    def _end(self, how: Literal["finished", "stopped"]) -> None:
        with self._lock:
            self._ending = self._ending or how
        self._wake.set()

    def _watch(self, scratch: Path) -> None:
        """The life of the query, on a thread of its own: ends it when asked, notices when it fails."""
        try:
            end = self._live()
        except Exception as error:  # py4j has no common base for a connection that broke: the JVM is gone
            end = replace(
                self._progress,
                state="stopped" if self._ending else "failed",
                error=None if self._ending else "Spark's Java process has ended",
                details=f"{error}\n{log_tail()}",
            )
        try:
            self._leave(scratch)
        finally:  # whatever it left: who waits for the end must not do so for ever
            with self._lock:
                self._rate = Rate()
                self._progress = end
                self._over.set()
                self._moved.notify_all()

    def _leave(self, scratch: Path) -> None:
        """Nothing of the run stays but its checkpoint, which is free for another one."""
        self._hang_up()
        _remove(scratch)
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _live(self) -> Progress:
        if self._query is None:
            return replace(self._progress, state="finished")
        try:
            while not self._wake.wait(_LOOK) and self._goes_on():
                pass
        except Exception:
            if self._ending is not None or not is_alive(self._session.sparkContext):
                raise
            text = traceback.format_exc()
            return replace(self._progress, state="failed", error=root_cause(text), details=text)
        query = self._running()
        self._ask_spark()
        if self._ending is not None:
            query.stop()
            return replace(self._progress, state=self._ending)
        failure = query._jsq.exception()
        if failure.isEmpty():
            return replace(self._progress, state="stopped", error=_SPARK_STOPPED)
        text = self._session._jvm.org.apache.spark.util.Utils.exceptionString(failure.get())
        if not is_alive(self._session.sparkContext):
            # What broke first as Spark went down is chance, and says nothing of the query.
            return replace(self._progress, state="stopped", error=_SPARK_STOPPED, details=text)
        return replace(self._progress, state="failed", error=root_cause(text), details=text)

    def _ask_spark(self) -> None:
        """Take over the replay clock and the duration of the latest finished micro-batch, as Spark recorded them."""
        if self._query is None or self._over.is_set():
            return
        try:
            latest = self._query.lastProgress
        except Exception:  # the JVM is going down: the watcher will say so
            return
        if latest is None:
            return
        seconds = latest.durationMs.get("triggerExecution", 0) / 1000
        with self._lock:
            self._progress = replace(self._progress, clock=self._clock(latest), batch_seconds=seconds)


def _remove(folder: Path) -> None:
    """Delete a folder in which a thread of Spark may still be ending its work: what it writes meanwhile goes too."""
    for _ in range(10):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
