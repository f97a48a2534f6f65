"""One source, all queries on it, one running plan."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.logical import Query, Workload
from workbench.plan import SharedPlan, carry, compile_workload
from workbench.results import QueryResults, ResultBatch
from workbench.runtime.lowering import result_schema
from workbench.runtime.wire import Report
from workbench.session.launch import Deliver, Launch, Runner, raise_failure
from workbench.session.sources import Source

if TYPE_CHECKING:
    from workbench.spark.runner import Progress


#: Where results go, by query: the store, and the first version of the plan whose results are for it.
Stores = dict[str, tuple[QueryResults, int]]


class SharedStream:
    """The queries of one source and the runner of their shared plan.

    There are two ways to add to a workload that runs. With ``history`` the plan starts anew from the first row and
    catches up with the clock at full speed: exact for every query, cheap for a recorded source; results that do not
    change are written over with themselves. Without, the running plan changes at its next micro-batch: new queries
    begin there, and the others do not notice. Taking a query out always does the latter. Every method may be called
    from any thread.
    """

    def __init__(self, source: Source, launch: Launch) -> None:
        self.source = source
        self._launch = launch
        self._lock = threading.RLock()
        self._queries: dict[str, Query] = {}
        self._stores: Stores = {}
        self._plans: dict[str, SharedPlan] = {}
        self._last: dict[str, Progress] = {}
        self._runner: Runner | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that run now."""
        return tuple(self._queries.values())

    def add(self, queries: tuple[Query, ...], *, history: bool = True) -> list[QueryResults]:
        """Start queries, all of them or none: on an error what ran before goes on untouched.

        A query with a name in use replaces the older one; without ``history``, one that is the same goes on. Where
        nothing runs, or the stream ends before the change, queries start from the first row either way. Returns when
        they run. Raises QueryError for a query that cannot begin in the middle.
        """
        with self._lock:
            workload = self._queries | {query.name: query for query in queries}
            if history or self._runner is None or not self._change(self._runner, workload):
                self._restart(workload, queries)
            return [self._stores[query.name][0] for query in queries]

    def _restart(self, workload: dict[str, Query], queries: tuple[Query, ...]) -> None:
        """Run a workload from the first row."""
        plan = compile_workload(Workload(self.source.stream, tuple(workload.values())))
        kept = {name: (store, 0) for name, (store, _) in self._stores.items()}
        stores = kept | _fresh(plan, {query.name for query in queries}, 0)
        older = self._runner
        clock = None if older is None else older.progress().clock
        runner = self._launch(plan, self.source, clock, _deliver_to(stores))
        runner.start()
        self._runner, self._queries, self._stores = runner, workload, stores
        self._plans |= dict.fromkeys(workload, plan)
        if older is not None:
            older.stop()

    def _change(self, runner: Runner, workload: dict[str, Query], *, wait: bool = True) -> bool:
        """Let the running plan go on as that of another workload; False where it had ended."""
        if runner.progress().state not in ("starting", "running"):
            return False
        running = self._plans[next(iter(self._queries))]
        plan = compile_workload(Workload(self.source.stream, tuple(workload.values())), running=running)
        carry(running, plan)
        begin = {name for name, query in workload.items() if self._queries.get(name) != query}
        # Results of the old plan may still be on their way: they must not get into the stores of the new one.
        stores = {name: self._stores.pop(name) for name in begin & self._stores.keys()}
        self._stores |= _fresh(plan, begin, runner.version + 1)
        version = runner.change(plan)
        if wait and not runner.wait_for(version):
            self._stores |= stores
            return False
        self._queries = workload
        self._plans |= dict.fromkeys(workload, plan)
        return True

    def remove(self, *names: str) -> None:
        """Take queries out. The plan goes on for the others from its next micro-batch; without any it ends."""
        with self._lock:
            gone = [name for name in names if name in self._queries]
            left = {name: query for name, query in self._queries.items() if name not in gone}
            if not gone or self._runner is None:
                return
            last = {name: self.progress(name) for name in gone}
            for name in gone:
                self._stores.pop(name)
            if left:
                self._change(self._runner, left, wait=False)
            else:
                self._runner.stop()
                last = dict.fromkeys(gone, self._runner.progress())
                self._runner = None
            for name, progress in last.items():
                ended = progress.state in ("finished", "failed")
                self._last[name] = progress if ended else replace(progress, state="stopped")
            self._queries = left

    def stop(self) -> None:
        """Take out all queries."""
        self.remove(*self._queries)

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


def _fresh(plan: SharedPlan, names: set[str], version: int) -> Stores:
    """Empty stores for the results of some queries from a version of the plan on."""
    return {
        entry.query.name: (QueryResults(result_schema(entry)), version)
        for entry in plan.queries
        if entry.query.name in names
    }


def _deliver_to(stores: Stores) -> Deliver:
    """Hands the results of a micro-batch to those that ``stores`` holds at the time, on Spark's callback thread."""

    def deliver(reports: list[Report]) -> None:
        by_query: dict[str, list[ResultBatch]] = defaultdict(list)
        for report in reports:
            for name, batch in report.results:
                if name in stores and report.plan >= stores[name][1]:
                    by_query[name].append(batch)
        for name, batches in by_query.items():
            store = stores.get(name)
            if store is not None:
                store[0].apply(batches)

    return deliver
