"""One source, all queries on it, one running plan."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import EngineError
from workbench.logical import Query, Workload
from workbench.plan import SharedPlan, compile_workload
from workbench.results import QueryResults, ResultBatch
from workbench.runtime.lowering import result_schema
from workbench.runtime.wire import Report
from workbench.session.sources import Source

if TYPE_CHECKING:
    from workbench.spark.runner import Progress, StreamRunner


class SharedStream:
    """The queries of one source and the runner of their shared plan.

    A change of the workload starts the plan anew from the first row and catches up with the clock at full speed:
    exact for every query, cheap for a recorded source. Results that do not change are written over with
    themselves. Every method may be called from any thread.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = threading.RLock()
        self._queries: dict[str, Query] = {}
        self._results: dict[str, QueryResults] = {}
        self._plans: dict[str, SharedPlan] = {}
        self._last: dict[str, Progress] = {}
        self._runner: StreamRunner | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that run now."""
        with self._lock:
            return tuple(self._queries.values())

    def add(self, queries: tuple[Query, ...]) -> list[QueryResults]:
        """Start queries, all of them or, on an error, none; one with a name in use replaces the older."""
        with self._lock:
            workload = self._queries | {query.name: query for query in queries}
            plan = compile_workload(Workload(self.source.stream, tuple(workload.values())))
            fresh = {query.name for query in queries}
            before, self._results = self._results, self._results | {
                entry.query.name: QueryResults(result_schema(entry))
                for entry in plan.queries
                if entry.query.name in fresh
            }
            try:
                self._run(plan)
            except BaseException:
                self._results = before
                raise
            self._queries = workload
            self._plans |= dict.fromkeys(workload, plan)
            return [self._results[query.name] for query in queries]

    def remove(self, name: str) -> None:
        """Take a query out. The plan goes on as it is for the others and is trimmed at the next change."""
        with self._lock:
            if name not in self._queries:
                return
            last = self.progress(name)
            del self._queries[name]
            if not self._queries and self._runner is not None:
                self._runner.stop()
                last = self._runner.progress()
                self._runner = None
            self._last[name] = last if last.state in ("finished", "failed") else replace(last, state="stopped")
            self._results = {key: kept for key, kept in self._results.items() if key != name}

    def stop(self) -> None:
        """Take out all queries."""
        for query in self.queries:
            self.remove(query.name)

    def plan_of(self, name: str) -> SharedPlan:
        """The plan that a query runs in, or ran in last."""
        return self._plans[name]

    def progress(self, name: str) -> Progress:
        """How the plan of a query is doing, or how it ended."""
        with self._lock:
            if name in self._queries and self._runner is not None:
                return self._runner.progress()
            return self._last[name]

    def wait(self, timeout: float | None) -> bool:
        """Wait for the end of the stream; raises EngineError when it failed."""
        runner = self._runner
        if runner is None:
            return True
        ended = runner.wait(timeout)
        progress = runner.progress()
        if progress.state == "failed":
            raise EngineError(progress.error or "the query failed", hint="`.status()` says more")
        return ended

    def _run(self, plan: SharedPlan) -> None:
        from workbench.spark.replay import ReplayOptions
        from workbench.spark.runner import StreamRunner
        from workbench.spark.session import get_session

        session = get_session()
        clock = None
        if self._runner is not None:
            clock = self._runner.progress().clock
            self._runner.stop()
            self._runner = None
        options = ReplayOptions(
            paths=tuple(map(str, self.source.paths)),
            arrival=self.source.arrival,
            speed=self.source.speed,
            max_rows=self.source.max_rows,
            resume_clock=clock,
        )
        self._runner = StreamRunner(session, plan, options, self._deliver)
        self._runner.start()

    def _deliver(self, reports: list[Report]) -> None:
        """Results of a micro-batch to the queries that still run.

        Called on Spark's callback thread, so it takes no lock: ``_results`` is replaced as a whole, never changed.
        """
        results = self._results
        by_query: dict[str, list[ResultBatch]] = defaultdict(list)
        for report in reports:
            for name, batch in report.results:
                by_query[name].append(batch)
        for name, batches in by_query.items():
            if name in results:
                results[name].apply(batches)
