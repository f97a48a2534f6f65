"""One source, all queries on it, one running plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import EngineError, QueryError
from workbench.logical import Query, Window, Workload
from workbench.plan import SharedPlan, carry, compile_workload, passage
from workbench.results import QueryResults
from workbench.runtime.lowering import result_schema
from workbench.session.frames import FrameSource
from workbench.session.launch import Launch, Runner, earlier_queries, raise_failure
from workbench.session.levels import Levels, differ_in_levels, in_order
from workbench.session.outlets import Delivery, Outlet, Outlets, Sink, Turn
from workbench.session.sources import Source

if TYPE_CHECKING:
    from workbench.spark.progress import Progress


class SharedStream:
    """The queries of one source and the runner of their shared plan.

    There are two ways to add to a workload that runs. With ``history`` the plan starts anew from the first row and
    catches up with the clock at full speed: exact for every query, cheap for a recorded source; results that do not
    change are written over with themselves. Without, the running plan changes at its next micro-batch: new queries
    begin there, and the others do not notice. Taking a query out always does the latter, and so does everything on a
    source that cannot be read again, or goes on from a checkpoint. There all queries of the run before go on with the
    first one that is started: those that nobody has started yet are in the ``background``.

    Every method may be called from any thread, and interrupted at any moment: queries, plan and outlets fit each
    other then as well.
    """

    def __init__(self, source: Source, launch: Launch) -> None:
        self.source = source
        self._launch = launch
        self._lock = threading.RLock()
        self._queries: dict[str, Query] = {}
        self._outlets: Outlets = {}
        self._delivering = Turn()
        self._delivery = Delivery({}, 0, self._delivering)
        self._run = 0
        self._plans: dict[str, SharedPlan] = {}
        self._last: dict[str, Progress] = {}
        #: What became of queries that began as the stream ran, where it has a checkpoint.
        self._begun: dict[str, str] = {}
        self._earlier: set[str] = set()
        self._dropped: set[str] = set()
        self._runner: Runner | None = None

    @property
    def _rewinds(self) -> bool:
        """Whether a plan may start anew: from the first row, without a loss of results."""
        return self.source.rewinds and self.source.checkpoint is None

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that run now."""
        return tuple(self._queries.values())

    @property
    def background(self) -> tuple[str, ...]:
        """The queries that go on from an earlier run on the checkpoint, and that nobody has started in this one."""
        return tuple(name for name in self._queries if name in self._earlier)

    def store_of(self, name: str) -> QueryResults:
        """The results of a query that runs now."""
        return self._outlets[name].store

    def add(
        self, queries: tuple[Query, ...], *, history: bool | None = None, elsewhere: Collection[str] = ()
    ) -> None:
        """Start queries, all of them or none: on an error what ran before goes on untouched.

        A query with a name in use replaces the older one; without ``history``, one that is the same goes on. Where
        nothing runs, or the stream ends before the change, queries start from the first row either way; on a
        checkpoint all of the run before go on, but for those whose names run ``elsewhere``. One that goes on in the
        background is taken over with its results, also where its levels are others. Returns when they run. Raises
        QueryError for a query that cannot begin in the middle.
        """
        if history and self.source.checkpoint is not None:
            raise QueryError(
                f"`{self.source.name}` goes on from its checkpoint, it does not begin again from the first row",
                hint="leave `history` out, or define the source with another checkpoint, or without one",
            )
        history = self._rewinds if history is None else history
        self._require_rest("start a query on it")
        with self._lock:
            asked = {query.name: query for query in queries}
            workload = self._queries | asked
            if history or self._runner is None or not self._take_over(self._runner, workload):
                fresh = set(asked)
                if self._runner is None:
                    workload = self._earlier_run(elsewhere) | workload
                    fresh, self._earlier = set(workload), workload.keys() - fresh
                plan = compile_workload(Workload(self.source.stream, tuple(workload.values())))
                self._restart(plan, self._kept(plan) | _fresh(plan, fresh, 0))
            self._earlier -= asked.keys()
            self._dropped -= asked.keys()

    def _earlier_run(self, elsewhere: Collection[str]) -> dict[str, Query]:
        """The queries of the run before on the checkpoint, but for those that are not to go on."""
        gone = self._dropped.union(elsewhere)
        return {query.name: query for query in earlier_queries(self.source) if query.name not in gone}

    def _take_over(self, runner: Runner, workload: dict[str, Query]) -> bool:
        """As :meth:`_change`; queries of the background keep the results of levels that they go on to have."""
        keep = [name for name in self.background if differ_in_levels(self._queries[name], workload[name])]
        levels = {name: Levels(self._queries[name], self.store_of(name)) for name in keep}
        try:
            for name, each in levels.items():
                each.widen(workload[name])
            return self._change(runner, workload, keep=keep)
        finally:
            for name, each in levels.items():
                each.narrow(self._queries[name])

    def add_level(self, name: str, window: Window) -> None:
        """Give a running query one more zoom level; its results and those of all others stay.

        On an error everything goes on as before.
        """
        self._require_rest("add a level")
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
            changed = replace(query, windows=in_order((*regular, window)))
            workload = self._queries | {name: changed}
            plan = compile_workload(Workload(self.source.stream, tuple(workload.values())))
            levels = Levels(query, self.store_of(name))
            try:
                levels.widen(changed)
                if self._rewinds:
                    self._restart(plan, self._kept(plan))
                elif self._runner is None or not self._change(self._runner, workload, keep={name}):
                    raise QueryError("the stream has ended", hint="run the cell again with the level in it")
            finally:
                levels.narrow(self._queries[name])

    def _require_rest(self, what: str) -> None:
        """Raises QueryError inside a sink: what has to wait for the end of a micro-batch would wait for itself."""
        if self._delivering.is_mine:
            raise QueryError(
                f"a sink of `{self.source.name}` cannot {what}: the micro-batch waits for the sink",
                hint="do it in another thread",
            )

    def _kept(self, plan: SharedPlan) -> Outlets:
        """The outlets there are, for the results of a plan that starts anew."""
        labels = _labels(plan)
        return {n: Outlet(o.store, {0: labels[n]}, o.sinks) for n, o in self._outlets.items() if n in labels}

    def _restart(self, plan: SharedPlan, outlets: Outlets) -> None:
        """Run a plan from the first row, up to the clock of the one that runs without waiting."""
        older, before = self._runner, self._delivery
        clock = None if older is None else older.progress().clock
        self._run += 1
        delivery = Delivery(outlets, self._run, self._delivering)
        runner = self._launch(plan, self.source, clock, delivery)
        runner.start()
        queries = {entry.query.name: entry.query for entry in plan.queries}
        self._runner, self._queries, self._outlets, self._delivery = runner, queries, outlets, delivery
        self._plans |= dict.fromkeys(queries, runner.plan)
        self._begun = {}
        if older is not None:
            older.stop()
        before.close()

    def _change(
        self, runner: Runner, workload: dict[str, Query], *, keep: Collection[str] = (), wait: bool = True
    ) -> bool:
        """Let the running plan go on as that of another workload; False where it had ended.

        Queries that are not what they were begin with no results, except those to ``keep``, which got levels.
        """
        if runner.progress().state not in ("starting", "running"):
            return False
        if workload == self._queries:
            return True
        running = self._plans[next(iter(self._queries))]
        plan = compile_workload(Workload(self.source.stream, tuple(workload.values())), running=running)
        carry(running, plan)
        begin = {name for name, query in workload.items() if self._queries.get(name) != query}.difference(keep)
        # Results of the old plan may still be on their way: they must not get into the stores of the new one.
        next_version = runner.version + 1
        older = {name: self._outlets.pop(name) for name in begin & self._outlets.keys()}
        self._outlets |= _fresh(plan, begin, next_version)
        for name in keep:
            self._outlets[name].labels[next_version] = _labels(plan)[name]
        try:
            version = runner.change(plan)
        except BaseException:
            self._outlets = {name: each for name, each in self._outlets.items() if name not in begin} | older
            for name in keep:
                del self._outlets[name].labels[next_version]
            raise
        changed = True
        try:
            if wait and not runner.wait_for(version):
                changed = False
                self._outlets |= older
        finally:
            if changed:  # also where the waiting was interrupted: the plan is on its way
                self._queries = workload
                self._plans |= dict.fromkeys(workload, plan)
                if self.source.checkpoint is not None:
                    said = passage(running, plan)
                    self._begun |= {name: str(said.of(name)) for name in begin}
        return changed

    def remove(self, *names: str) -> None:
        """Take queries out. The plan goes on for the others from its next micro-batch; without any it ends.

        With nothing left but what is in the background it ends too; the next run on the checkpoint has all of them.
        Where that was interrupted, once more does the rest. Inside a sink it may return before that is done.
        """
        if not self._delivering.is_mine:
            with self._lock:
                self._remove(names)
        elif self._lock.acquire(blocking=False):
            try:
                self._remove(names)
            finally:
                self._lock.release()
        else:  # whoever has the lock may be waiting for the micro-batch, which waits for the sink
            threading.Thread(target=self.remove, args=names, name="winquery remove", daemon=True).start()

    def _remove(self, names: tuple[str, ...]) -> None:
        gone = [name for name in names if name in self._queries]
        left = {name: query for name, query in self._queries.items() if name not in gone}
        if left.keys() <= self._earlier:  # nobody asked for those in this run: they go on in the next one
            gone, left = list(self._queries), {}
        if not gone or self._runner is None:
            return
        if left and isinstance(self.source, FrameSource):
            self._require_rest("stop one of several queries on a DataFrame")
        # The last word first: others ask for the progress without the lock.
        self._last |= {name: _ended(self.progress(name)) for name in gone}
        if left:
            self._change(self._runner, left, wait=False)
            self._dropped.update(gone)
        else:
            self._runner.stop()
            self._last |= dict.fromkeys(gone, _ended(self._runner.progress()))
        for name in gone:
            self._outlets.pop(name, None)
        self._queries = left
        if not left:
            self._runner = None

    def finish(self, name: str, timeout: float = 60.0) -> None:
        """End the stream of a running query with a micro-batch that closes all windows.

        Raises QueryError where other queries run on it, EngineError where it fails or takes longer than ``timeout``
        seconds.
        """
        self._require_rest("finish its stream")
        with self._lock:
            runner = self._runner
            if name not in self._queries or runner is None:
                return
            others = [f"`{other}`" for other in self._queries if other != name]
            if others:
                raise QueryError(
                    f"`{name}` cannot finish its stream, on which others run: {', '.join(others)}",
                    hint="stop them first, or leave `finish` out",
                )
            runner.stop(timeout, finish=True)
            raise_failure(runner.progress())
            if runner.progress().state != "finished":
                raise EngineError(f"the stream did not finish within {timeout:.0f} s and was stopped")

    def attach(self, name: str, sink: Sink) -> None:
        """Give the results of a query to a sink too, between two micro-batches: those there are, then all others.

        A query that has ended only hands over what is kept.
        """
        self._require_rest("attach another one")
        with self._lock:
            outlet = self._outlets.get(name)
            if outlet is None:
                raise QueryError(f"the query `{name}` does not run", hint="run its cell again")
            with self._delivering:
                sink.fill(self._run, outlet.store.table(numbered=True), self._delivery.latest)
                outlet.sinks.append(sink)

    def stop(self) -> None:
        """Take out all queries."""
        self.remove(*self._queries)

    def plan_of(self, name: str) -> SharedPlan:
        """The plan that a query runs in, or ran in last."""
        return self._plans[name]

    def progress(self, name: str) -> Progress:
        """How the plan of a query is doing, or how it ended. Takes no lock: plots ask several times a second."""
        runner = self._runner
        if runner is None or name not in self._queries:
            return self._last[name]
        progress, begun = runner.progress(), self._begun.get(name)
        return progress if begun is None else replace(progress, resumed=begun)

    def wait(self, name: str, timeout: float | None) -> bool:
        """Wait for the end of the stream that a query runs on; raises EngineError when it failed.

        True at once for a query that has been taken out. Where the plan starts anew meanwhile, its new run counts.
        """
        if timeout is None:
            self._require_rest("wait for its end")
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            runner = self._runner
            if runner is None or name not in self._queries:
                return True
            ended = runner.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if runner is self._runner:
                raise_failure(runner.progress())
                return ended
            if not ended:
                return False


def _fresh(plan: SharedPlan, names: set[str], version: int) -> Outlets:
    """Empty outlets for the results of some queries from a version of the plan on."""
    labels = _labels(plan)
    return {
        entry.query.name: Outlet(QueryResults(result_schema(entry)), {version: labels[entry.query.name]})
        for entry in plan.queries
        if entry.query.name in names
    }


def _ended(progress: Progress) -> Progress:
    """How a query has ended that was taken out."""
    return progress if progress.state in ("finished", "failed") else replace(progress, state="stopped")


def _labels(plan: SharedPlan) -> dict[str, list[str]]:
    return {entry.query.name: [window.label for window in entry.query.windows] for entry in plan.queries}
