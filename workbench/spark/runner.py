"""A shared plan over one of our own feeds, as one Spark query: its rows are read and folded in the same tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from workbench.feeds import FeedOptions
from workbench.plan import SharedPlan
from workbench.runtime.wire import Report
from workbench.spark.buckets import bucket_keys
from workbench.spark.failure import KILLED_IDLE
from workbench.spark.fused import FusedSource, RunFolder, RunSpec
from workbench.spark.querying import QueryRunner

#: So many Python processes may have been idle when they were killed.
_IDLE = 32


class StreamRunner(QueryRunner):
    """Runs one shared plan over one feed; see :class:`QueryRunner`."""

    def __init__(
        self,
        session: SparkSession,
        plan: SharedPlan,
        feed: FeedOptions,
        on_reports: Callable[[list[Report]], None],
        checkpoint: Path | None = None,
    ) -> None:
        super().__init__(session, plan, on_reports, checkpoint)
        self._feed = feed

    def _launch(self, scratch: Path, lasting: Path) -> Any:
        keys = bucket_keys(self._buckets)
        self._folder = RunFolder(scratch / "run")
        self._folder.write(
            RunSpec(
                self._plans.path,
                self._plan.stream.time,
                self._feed,
                keys,
                lasting / "winquery-feed",
                self._plan.stream.idle,
                self._spool,
                self._plan.stream.future is not None,
            )
        )
        self._session.dataSource.register(FusedSource)
        return self._write(self._loaded(), self._place(scratch))

    def _loaded(self) -> Any:
        """The stream of messages, by Python processes that are alive.

        Spark keeps idle ones for the next query. One that was killed meanwhile, for want of memory say, it tries to
        stop where it should take the next one, and fails; but then it is rid of it.
        """
        reader = self._session.readStream.format(FusedSource.name()).option("run_dir", str(self._folder.path))
        for _ in range(_IDLE):
            try:
                return reader.load()
            except Py4JJavaError as error:
                if KILLED_IDLE not in str(error):
                    raise
        return reader.load()

    def _request_finish(self) -> None:
        self._folder.request_finish()

    def _clock(self, latest: Any) -> int | None:
        offset = json.loads(latest.sources[0].endOffset or "null") or {}
        clock: int | None = offset.get("clock")
        return clock
