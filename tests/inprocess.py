"""A runner without Spark: the plan runs to its end on the thread that starts it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pyarrow.parquet as pq

from workbench.plan import SharedPlan
from workbench.runtime.engine import Engine
from workbench.runtime.wire import Report
from workbench.session.launch import Deliver
from workbench.session.sources import Source
from workbench.spark.progress import Progress


class InProcessRunner:
    """Reads the whole source in two micro-batches. ``started`` and ``stopped`` collect all runners of a test."""

    started: ClassVar[list[InProcessRunner]] = []
    stopped: ClassVar[list[InProcessRunner]] = []

    def __init__(self, plan: SharedPlan, source: Source, clock: int | None, deliver: Deliver) -> None:
        self.plan, self.source, self.clock, self.deliver = plan, source, clock, deliver
        self._progress = Progress()

    def start(self) -> None:
        self.started.append(self)
        engine = Engine(self.plan)
        table = pq.read_table(list(map(str, self.source.paths)))
        half = len(table) // 2
        for part in (table.slice(0, half), table.slice(half)):
            self._count(engine.step([part]))
        self._count(engine.step([], finish=True))
        self._progress = replace(self._progress, state="finished")

    def _count(self, reports: list[Report]) -> None:
        self.deliver(reports)
        self._progress = self._progress.after(reports)

    def stop(self, timeout: float = 5.0, *, finish: bool = False) -> None:
        self.stopped.append(self)

    @property
    def version(self) -> int:
        return 1

    def change(self, plan: SharedPlan) -> int:
        raise AssertionError("the stream has ended")

    def wait_for(self, version: int) -> bool:
        return False

    def wait(self, timeout: float | None) -> bool:
        return True

    def progress(self) -> Progress:
        return self._progress


class SteppingRunner(InProcessRunner):
    """Reads the next rows of the source when the test says so; a change of the plan takes a micro-batch of no row."""

    def start(self) -> None:
        self.started.append(self)
        self._engine = Engine(self.plan)
        self._table = pq.read_table(list(map(str, self.source.paths)))
        self._row = 0
        self._progress = replace(self._progress, state="running")

    def step(self, rows: int) -> None:
        self._count(self._engine.step([self._table.slice(self._row, rows)]))
        self._row += rows

    def finish(self) -> None:
        self.deliver(self._engine.step([], finish=True))
        self._progress = replace(self._progress, state="finished")

    @property
    def version(self) -> int:
        return self._engine.version

    def change(self, plan: SharedPlan) -> int:
        late = self._engine.step([])  # a micro-batch of the old plan that is still on its way
        self._engine.change(plan)
        self.deliver(late)
        self.deliver(self._engine.step([]))
        return self._engine.version

    def wait_for(self, version: int) -> bool:
        return True
