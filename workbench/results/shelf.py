"""Where bundles of results wait for the stores of their queries, each kept once for all of them.

What comes in is one entry, however many stores there are; a store takes its part when somebody reads it. Where much
waits, all stores take theirs::

    writer     | bundle | bundle | bundle | bundle |
    store a        read ^                              has taken one
    store b                                   read ^   has taken all; those that every store has are dropped
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from workbench.results.bundles import ResultBundle, Targets
from workbench.results.shapes import ResultBatch

#: Targets of a bundle from which on a shelf costs less than its stores.
MANY = 8
#: Windows that may wait on one shelf.
_HELD = 1 << 20


class Store(Protocol):
    """What takes its part of bundles from shelves, by :meth:`Shelf.take`, when somebody reads it."""

    def join(self, shelf: Shelf) -> None:
        """From now on results may wait on a shelf as well."""

    def leave(self, shelf: Shelf) -> None:
        """Take what waits on a shelf, and nothing from there any more."""

    def settle(self) -> None:
        """Put everything that has come into its place."""

    def tell(self) -> None:
        """The listeners are told that something has changed."""


#: A store, and the levels by which results for it count (None: its own).
Place = tuple[Store, tuple[str, ...] | None]

#: The order of bundles on all shelves: a store that stands on several takes them as they came.
_order = itertools.count()


@dataclass(frozen=True)
class Part:
    """What a bundle has for one store; ``order`` is its place among all bundles."""

    order: int
    batches: list[ResultBatch]
    labels: tuple[str, ...] | None


@dataclass(slots=True)
class _Waiting:
    """A bundle, and how many stores have not taken their part."""

    order: int
    bundle: ResultBundle
    left: int


class Shelf:
    """Bundles of the same targets on their way to stores. One thread puts, any number of them read the stores."""

    def __init__(self, members: Mapping[Store, tuple[int, ...]], labels: Mapping[Store, tuple[str, ...]]) -> None:
        """``members`` are the stores, each with the places of its targets; ``labels`` of those that have, as in
        :data:`Place`.
        """
        self._members = members
        self._labels = labels
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._rows = 0
        self._first = 0  # bundles that are dropped
        self._taken = dict.fromkeys(self._members, 0)
        self._watched: tuple[Store, ...] = ()
        for store in self._members:
            store.join(self)

    def put(self, bundle: ResultBundle) -> None:
        """Results for all stores; the listeners of those that have some are told. Costs nothing for the others."""
        if not self._members:
            return
        with self._lock:
            self._waiting.append(_Waiting(next(_order), bundle, len(self._members)))
            self._rows += len(bundle.columns)
            full, watched = self._rows > _HELD, self._watched
        if full:
            self._hand_out()
        for store in watched:
            if _batches(bundle, self._members[store]):
                store.tell()

    def take(self, store: Store) -> list[Part]:
        """What has come for a store since it asked last, oldest first; nothing once it has left."""
        with self._lock:
            if store not in self._taken:
                return []
            targets, begin = self._members[store], self._taken[store] - self._first
            parts = []
            for entry in self._waiting[begin:]:
                entry.left -= 1
                batches = _batches(entry.bundle, targets)
                if batches:
                    parts.append(Part(entry.order, batches, self._labels.get(store)))
            self._taken[store] = self._first + len(self._waiting)
            while self._waiting and not self._waiting[0].left:
                self._rows -= len(self._waiting.pop(0).bundle.columns)
                self._first += 1
            return parts

    def watch(self, store: Store, wanted: bool) -> None:
        """Whether somebody listens to a store."""
        with self._lock:
            others = tuple(each for each in self._watched if each is not store)
            self._watched = (*others, store) if wanted and store in self._members else others

    def close(self) -> None:
        """All stores take what waits, and leave. Nothing may be put here after that."""
        for store in self._members:
            store.leave(self)
        with self._lock:
            self._taken, self._watched = {}, ()

    def _hand_out(self) -> None:
        """Let all stores put what waits into its place."""
        for store in self._members:
            store.settle()


def _batches(bundle: ResultBundle, targets: tuple[int, ...]) -> list[ResultBatch]:
    found = []
    for place in targets:
        low, high = int(bundle.lows[place]), int(bundle.highs[place])
        if low < high:
            found.append(ResultBatch(bundle.targets.levels[place], bundle.columns, low, high))
    return found


class Shelves:
    """The shelves of one writer, for bundles of ``MANY`` targets and more: one for each set of targets."""

    def __init__(self) -> None:
        self._known: dict[tuple[Targets, int], Shelf] = {}

    def of(self, targets: Targets, find: Callable[[str], Place | None], version: int = 0) -> Shelf:
        """The shelf for some targets; ``find`` tells the store of a query, and need not do so twice.

        Targets of another ``version`` of what it tells have another shelf; see also :meth:`close`.
        """
        shelf = self._known.get((targets, version))
        if shelf is None:
            members: dict[Store, tuple[int, ...]] = {}
            labels: dict[Store, tuple[str, ...]] = {}
            for number, name in enumerate(targets.names):
                place = find(name)
                if place is not None:
                    store, label = place
                    known = members.get(store)
                    members[store] = (number,) if known is None else (*known, number)
                    if label is not None:
                        labels[store] = label
            shelf = self._known[targets, version] = Shelf(members, labels)
        return shelf

    def close(self) -> None:
        """All stores take what waits; what they are found by has changed."""
        for shelf in self._known.values():
            shelf.close()
        self._known.clear()
