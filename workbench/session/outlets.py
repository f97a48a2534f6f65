"""Where the results of a running query go: its store, and sinks that the user has attached."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from workbench.results import QueryResults, ResultBatch
from workbench.runtime.wire import Report


class Sink(Protocol):
    """Takes the results of a query, batch by batch, on Spark's callback thread. An error ends the stream."""

    def write(self, run: int, batch: int, results: list[ResultBatch], labels: list[str]) -> None:
        """The results of micro-batch ``batch`` of the plan's ``run``; levels go by their labels.

        The same batch of the same run may come again, with the same results; a later run tells all results again.
        """
        ...

    def fill(self, run: int, kept: pa.Table, latest: int) -> None:
        """The results that were out when the sink was attached, up to micro-batch ``latest`` of the run that goes on.

        That micro-batch may come again.
        """
        ...


@dataclass(frozen=True)
class Outlet:
    """The store of a query, its sinks, and its levels by the version of the plan from which on they are the ones.

    Results of plans before the first of these are not for it. A level goes by its label: the store may have got one
    more, of which an older plan knows nothing.
    """

    store: QueryResults
    labels: dict[int, list[str]]
    sinks: list[Sink] = field(default_factory=list)


Outlets = dict[str, Outlet]


class Delivery:
    """Hands the results of the micro-batches of one run to the outlets there are at the time.

    ``lock`` is held meanwhile, so that a sink can be attached between two micro-batches.
    """

    def __init__(self, outlets: Outlets, run: int, lock: threading.Lock) -> None:
        self._outlets = outlets
        self._run = run
        self._lock = lock
        #: The micro-batch whose results came last; -1 before any.
        self.latest = -1

    def __call__(self, reports: list[Report]) -> None:
        with self._lock:
            self.latest = max([self.latest, *(report.batch for report in reports)])
            for (name, version), batches in self._sorted(reports).items():
                outlet = self._outlets.get(name)
                if outlet is None or version not in outlet.labels:
                    continue
                outlet.store.apply(batches, outlet.labels[version])
                for sink in outlet.sinks:
                    sink.write(self._run, reports[0].batch, batches, outlet.labels[version])

    def _sorted(self, reports: list[Report]) -> dict[tuple[str, int], list[ResultBatch]]:
        """Result batches by query and by the version that its levels are those of."""
        found: dict[tuple[str, int], list[ResultBatch]] = defaultdict(list)
        for report in reports:
            for name, batch in report.results:
                outlet = self._outlets.get(name)
                since = [] if outlet is None else [version for version in outlet.labels if version <= report.plan]
                if since:
                    found[name, max(since)].append(batch)
        return found
