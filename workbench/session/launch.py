"""How a shared plan is set running: the one place where a session meets Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from workbench.errors import EngineError
from workbench.logical import Query
from workbench.plan import SharedPlan
from workbench.runtime.wire import Report
from workbench.session.frames import FrameSource
from workbench.session.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.spark.progress import Progress

Deliver = Callable[[list[Report]], None]


class Runner(Protocol):
    """A running plan. ``stop`` leaves nothing behind; with ``finish`` it first lets one last micro-batch close all
    windows. The progress stays readable after the end.

    ``plan`` is the one that runs, once it is started, which need not be the one that it was made with.
    ``change`` goes on with another plan from the next micro-batch on and returns its version, one more than
    ``version``; ``wait_for`` waits until it runs, and is False where the stream ended first.
    """

    @property
    def plan(self) -> SharedPlan: ...

    @property
    def version(self) -> int: ...

    def start(self) -> None: ...

    def stop(self, timeout: float = 5.0, *, finish: bool = False) -> object: ...

    def change(self, plan: SharedPlan) -> int: ...

    def wait_for(self, version: int) -> bool: ...

    def wait(self, timeout: float | None) -> bool: ...

    def progress(self) -> Progress: ...


#: Makes a runner of a plan over a source, not started. It delivers the reports of every micro-batch; rows that
#: arrived before the given clock come at once.
Launch = Callable[[SharedPlan, Source, int | None, Deliver], Runner]


def on_spark(plan: SharedPlan, source: Source, clock: int | None, deliver: Deliver) -> Runner:
    """A runner on the running Spark session, or a new local one. PySpark is imported no earlier than here."""
    from workbench.spark.runner import StreamRunner
    from workbench.spark.session import get_session

    if isinstance(source, FrameSource):
        from workbench.spark.backfill import FrameBackfill
        from workbench.spark.streaming import FrameRunner

        if source.is_streaming:
            return FrameRunner(plan, source.options, deliver, source.checkpoint)
        return FrameBackfill(plan, source.options, deliver)
    if source.backfill:
        from workbench.spark.backfill import RecordingBackfill

        return RecordingBackfill(get_session(), plan, source.recorded(), deliver)
    return StreamRunner(get_session(), plan, source.feed_options(clock), deliver, source.checkpoint)


def earlier_queries(source: Source) -> tuple[Query, ...]:
    """The queries of the last run on the checkpoint of a source, which can go on.

    Empty without a checkpoint, and where the stream is defined otherwise now: its runner says so. Raises EngineError
    where they cannot be read.
    """
    if source.checkpoint is None:
        return ()
    from workbench.spark.checkpoint import last_plan

    plan = last_plan(source.checkpoint)
    return () if plan is None or plan.stream != source.stream else tuple(entry.query for entry in plan.queries)


def spark_of(source: Source) -> SparkSession:
    """The session whose catalog results of a source are written to: the user's own, where they gave a DataFrame."""
    from workbench.spark.session import get_session

    return source.options.frame.sparkSession if isinstance(source, FrameSource) else get_session()


def raise_failure(progress: Progress) -> None:
    """Raise EngineError where the progress is that of a failed plan."""
    if progress.state == "failed":
        raise EngineError(progress.error or "the query failed", hint="`.status()` and `.progress().details` say more")
