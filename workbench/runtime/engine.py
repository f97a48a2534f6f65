"""The whole plan in one process, over Arrow tables: for tests, for trying things out, and without Java."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from workbench.logical import EachRow
from workbench.plan import SharedPlan
from workbench.results import MANY, QueryResults, ResultBundle, Shelves
from workbench.runtime.assembling import Assembler
from workbench.runtime.level1 import Level1, folders_of
from workbench.runtime.lowering import result_schema
from workbench.runtime.operator import BucketOperator
from workbench.runtime.table import TableRunner
from workbench.runtime.wire import Report, added, decode_report


class Engine:
    """Runs a plan micro-batch by micro-batch; ``results`` holds what has come out, by query name.

    ``buckets`` is the number of operators that the keys are shared out to, ``budget`` the bytes kept per level.
    """

    def __init__(self, plan: SharedPlan, *, buckets: int = 1, budget: int = 256 << 20) -> None:
        self.plan = plan
        self.version = 1
        self._budget = budget
        self._folders = folders_of(plan)
        self.operators = [BucketOperator(plan) for _ in range(buckets)]
        self.results = {entry.query.name: QueryResults(result_schema(entry), budget) for entry in plan.queries}
        self._shelves = Shelves()
        self.late = {entry.query.name: 0 for entry in plan.queries}
        self.backward: dict[str, tuple[int, str]] = {}

    def change(self, plan: SharedPlan) -> None:
        """Go on with another plan, compiled with ``running`` set to this one; see :meth:`BucketOperator.change`.

        Queries that are in both keep their results, new ones begin with none, the rest are gone.
        """
        self.version += 1
        for operator in self.operators:
            operator.change(plan, self.version)
        self._shelves.close()
        running = {entry.query: entry.query.name for entry in self.plan.queries}
        kept, counted = self.results, self.late
        names = {entry.query.name for entry in plan.queries if entry.query in running}
        self.backward = {name: told for name, told in self.backward.items() if name in names}
        self.results, self.late = {}, {}
        for entry in plan.queries:
            name = running.get(entry.query)
            self.results[entry.query.name] = (
                QueryResults(result_schema(entry), self._budget) if name is None else kept[name]
            )
            self.late[entry.query.name] = 0 if name is None else counted[name]
        self.plan = plan
        self._folders = folders_of(plan)

    def compile(self) -> None:
        """Wait until all kernels are compiled. Without it the first micro-batches may run on array code."""
        for folder in self._folders:
            folder.compile()
        Assembler(self.plan).compile()

    def step(
        self,
        tasks: Iterable[pa.Table | pa.RecordBatch],
        *,
        finish: bool = False,
        now: int | None = None,
        passed: int = 0,
    ) -> list[Report]:
        """One micro-batch, a table a task; ``finish`` closes all windows. Returns the buckets' reports.

        ``now`` is the wall clock in microseconds, for a stream with a limit of the future; ``passed`` how far event
        time has gone on behind the latest row while no row came.
        """
        messages, horizon = [], self.operators[0].horizon
        for task in tasks:
            level1 = Level1(self.plan, len(self.operators), now, self._folders, horizon)
            batches = task.to_batches() if isinstance(task, pa.Table) else [task]
            for batch in batches:
                level1.fold(batch)
            messages.append(level1.messages())
        if finish or passed:
            level1 = Level1(self.plan, len(self.operators), now, self._folders)
            messages.append(level1.messages(finish=finish, passed=passed))
        reports = []
        for bucket, operator in enumerate(self.operators):
            reports.append(decode_report(operator.apply([message[bucket] for message in messages])))
        self._take(reports)
        return reports

    def run(self, batches: Iterable[pa.Table]) -> dict[str, QueryResults]:
        """All micro-batches, one task each, and the end of the stream."""
        for batch in batches:
            self.step([batch])
        self.step([], finish=True)
        return self.results

    def run_table(self, table: pa.Table, *, threads: int | None = None) -> dict[str, QueryResults]:
        """The whole stream at once, as one micro-batch: what :meth:`run` gives.

        By way of :class:`TableRunner` if all windows are context free and have results only where rows are, and of
        :class:`OverTable` if every row has one.
        """
        if all(isinstance(assembly.window, EachRow) for assembly in self.plan.assemblies):
            # Here, as it loads the compiler.
            from workbench.runtime.over_table import OverTable

            for query, batch in OverTable(self.plan, threads).told(table):
                self.results[query].apply([batch])
            return self.results
        filled = any(entry.query.fill is not None for entry in self.plan.queries)
        if filled or any(fold.gaps or fold.columns is not None for fold in self.plan.folds):
            return self.run([table])
        self._store(TableRunner(self.plan, threads).run(table))
        return self.results

    def _store(self, bundles: Iterable[ResultBundle]) -> None:
        for bundle in bundles:
            if len(bundle.targets) >= MANY:
                self._shelves.of(bundle.targets, lambda query: (self.results[query], None)).put(bundle)
            else:
                for query, batch in bundle.batches():
                    self.results[query].apply([batch])

    def _take(self, reports: list[Report]) -> None:
        for report in reports:
            self._store(report.bundles)
            for query, count in report.late.items():
                self.late[query] += count
            self.backward = added(self.backward, report.backward)
