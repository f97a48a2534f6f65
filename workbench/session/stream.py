"""One source, all queries on it, one running plan."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import QueryError
from workbench.logical import Query, Window, Workload
from workbench.plan import SharedPlan, compile_workload
from workbench.results import QueryResults, ResultBatch
from workbench.runtime.lowering import result_schema
from workbench.runtime.wire import Report
from workbench.session.launch import Deliver, Launch, Runner, raise_failure
from workbench.session.sources import Source

if TYPE_CHECKING:
    from workbench.spark.runner import Progress


class SharedStream:
    """The queries of one source and the runner of their shared plan.

    A change of the workload starts the plan anew from the first row and catches up with the clock at full speed:
    exact for every query, cheap for a recorded source. Results that do not change are written over with
    themselves. Every method may be called from any thread.
    """

    def __init__(self, source: Source, launch: Launch) -> None:
        self.source = source
        self._launch = launch
        self._lock = threading.RLock()
        self._queries: dict[str, Query] = {}
        self._results: dict[str, QueryResults] = {}
        self._plans: dict[str, SharedPlan] = {}
        self._last: dict[str, Progress] = {}
        self._runner: Runner | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that run now."""
        return tuple(self._queries.values())

    def add(self, queries: tuple[Query, ...]) -> list[QueryResults]:
        """Start queries, all of them or none: on an error what ran before goes on untouched.

        A query with a name in use replaces the older one.
        """
        with self._lock:
            workload = self._queries | {query.name: query for query in queries}
            plan = compile_workload(Workload(self.source.stream, tuple(workload.values())))
            fresh = {
                entry.query.name: QueryResults(result_schema(entry))
                for entry in plan.queries
                if entry.query in queries
            }
            results = self._results | fresh
            self._change(plan, results)
            return [results[query.name] for query in queries]

    def add_level(self, name: str, window: Window) -> Query:
        """Give a running query one more zoom level; its results and those of all others stay. Returns the new query.

        On an error everything goes on as before.
        """
        with self._lock:
            query = self._queries.get(name)
            if query is None:
                raise QueryError(f"the query `{name}` does not run", hint="run its cell again")
            if window in query.windows:
                raise QueryError(f"the query `{name}` has the level `{window.label}` already")
            regular = [each for each in query.windows if isinstance(each, Window)]
            if len(regular) < len(query.windows):
                other = next(each for each in query.windows if not isinstance(each, Window))
                raise QueryError(
                    f"windows `{other.label}` have no zoom levels", hint="only `window` and `zoom` have them"
                )
            windows = tuple(sorted((*regular, window), key=lambda each: (each.size, each.slide, each.offset)))
            changed = replace(query, windows=windows)
            workload = self._queries | {name: changed}
            plan = compile_workload(Workload(self.source.stream, tuple(workload.values())))
            position = windows.index(window)
            schema = next(result_schema(entry) for entry in plan.queries if entry.query is changed)
            store = self._results[name]
            store.add_level(schema.levels[position], position)
            try:
                self._change(plan, self._results)
            except Exception:
                store.drop_level(position)
                raise
            return changed

    def _change(self, plan: SharedPlan, results: dict[str, QueryResults]) -> None:
        """Run another plan instead of the one that runs, from the clock of which it goes on."""
        older = self._runner
        clock = None if older is None else older.progress().clock
        runner = self._launch(plan, self.source, clock, _deliver_to(results, plan))
        runner.start()
        queries = {entry.query.name: entry.query for entry in plan.queries}
        self._runner, self._queries, self._results = runner, queries, results
        self._plans |= dict.fromkeys(queries, plan)
        if older is not None:
            older.stop()

    def remove(self, name: str) -> None:
        """Take a query out. The plan goes on as it is for the others and is trimmed at the next change."""
        with self._lock:
            if name not in self._queries:
                return
            last = self.progress(name)
            self._results.pop(name)
            if len(self._queries) == 1 and self._runner is not None:
                self._runner.stop()
                last = self._runner.progress()
                self._runner = None
            self._last[name] = last if last.state in ("finished", "failed") else replace(last, state="stopped")
            self._queries = {key: query for key, query in self._queries.items() if key != name}

    def stop(self) -> None:
        """Take out all queries."""
        for query in self.queries:
            self.remove(query.name)

    def plan_of(self, name: str) -> SharedPlan:
        """The plan that a query runs in, or ran in last."""
        return self._plans[name]

    def progress(self, name: str) -> Progress:
        """How the plan of a query is doing, or how it ended. Takes no lock: plots ask several times a second."""
        runner = self._runner
        return runner.progress() if runner is not None and name in self._queries else self._last[name]

    def wait(self, timeout: float | None) -> bool:
        """Wait for the end of the stream; raises EngineError when it failed."""
        runner = self._runner
        if runner is None:
            return True
        ended = runner.wait(timeout)
        raise_failure(runner.progress())
        return ended


def _deliver_to(results: dict[str, QueryResults], plan: SharedPlan) -> Deliver:
    """Hands the results of a micro-batch to the stores that ``results`` still holds, on Spark's callback thread.

    A level goes by its label: a store may have got one more, of which this plan knows nothing.
    """
    labels = {entry.query.name: [window.label for window in entry.query.windows] for entry in plan.queries}

    def deliver(reports: list[Report]) -> None:
        by_query: dict[str, list[ResultBatch]] = defaultdict(list)
        for report in reports:
            for name, batch in report.results:
                by_query[name].append(batch)
        for name, batches in by_query.items():
            store = results.get(name)
            if store is not None:
                store.apply(batches, labels[name])

    return deliver
