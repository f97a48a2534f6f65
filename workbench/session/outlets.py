"""Where the results of a running query go: its store, and sinks that the user has attached."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from workbench.results import MANY, QueryResults, ResultBatch, Shelves
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

    def since(self, plan: int) -> int | None:
        """The version that the levels in a result of a plan are those of; None where it is not for this outlet."""
        known = tuple(self.labels)  # at once: a level may be added meanwhile
        return max((version for version in known if version <= plan), default=None)


Outlets = dict[str, Outlet]


class Turn:
    """A lock on handing out results that tells whether this very thread has it: a sink may do less meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = None
        self._lock.release()

    @property
    def is_mine(self) -> bool:
        """Whether this thread hands out results now."""
        return self._owner == threading.get_ident()


class Delivery:
    """Hands the results of the micro-batches of one run to the outlets there are at the time.

    Results of many queries that are alike go by way of shelves, except to outlets with sinks: those get what a
    micro-batch has for them in one piece, as do stores where it is few. It has the ``turn`` meanwhile, so that a sink
    can be attached between two micro-batches.
    """

    def __init__(self, outlets: Outlets, run: int, turn: Turn) -> None:
        self._outlets = outlets
        self._run = run
        self._turn = turn
        #: The micro-batch whose results came last; -1 before any.
        self.latest = -1
        self._shelves = Shelves()
        self._known: list[Any] = []

    def __call__(self, reports: list[Report]) -> None:
        with self._turn:
            self.latest = max([self.latest, *(report.batch for report in reports)])
            outlets = self._outlets.copy()  # others may add to it meanwhile
            self._look(outlets)
            for (name, version), batches in self._sorted(reports, outlets).items():
                labels = outlets[name].labels[version]
                outlets[name].store.apply(batches, labels)
                for sink in outlets[name].sinks:
                    sink.write(self._run, reports[0].batch, batches, labels)

    def close(self) -> None:
        """The stores take what is still on its way."""
        with self._turn:
            self._shelves.close()

    def _look(self, outlets: Outlets) -> None:
        """Clear the shelves where the outlets are no longer those that they were made for."""
        known = [(name, outlet, len(outlet.labels), len(outlet.sinks)) for name, outlet in outlets.items()]
        if known != self._known:
            self._shelves.close()
            self._known = known

    def _sorted(self, reports: list[Report], outlets: Outlets) -> dict[tuple[str, int], list[ResultBatch]]:
        """Result batches by query and by the version that its levels are those of, but for those on shelves."""
        found: dict[tuple[str, int], list[ResultBatch]] = defaultdict(list)
        with_sinks = any(outlet.sinks for outlet in outlets.values())
        for report in reports:
            for bundle in report.bundles:
                many = len(bundle.targets) >= MANY
                if many:
                    place = partial(_place, outlets, report.plan)
                    self._shelves.of(bundle.targets, place, report.plan).put(bundle)
                for name, batch in bundle.batches() if with_sinks or not many else ():
                    outlet = outlets.get(name)
                    since = None if outlet is None or (many and not outlet.sinks) else outlet.since(report.plan)
                    if since is not None:
                        found[name, since].append(batch)
        return found


def _place(outlets: Outlets, plan: int, name: str) -> tuple[QueryResults, tuple[str, ...]] | None:
    """The store of a query for results of a plan, and their levels; None where they go another way, or nowhere."""
    outlet = outlets.get(name)
    since = None if outlet is None or outlet.sinks else outlet.since(plan)
    return None if outlet is None or since is None else (outlet.store, tuple(outlet.labels[since]))
