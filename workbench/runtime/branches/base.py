"""What all branches of the operator have in common.

A branch looks after one kind of windows over one fold: it takes the entries that tasks send, and when all entries of
a micro-batch are in, it moves with the watermark and says what comes out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra import PartialKind
from workbench.logical import AnyWindow
from workbench.plan import SharedPlan
from workbench.runtime.assembling import Emitted
from workbench.runtime.branches.keytable import KeyTable
from workbench.time import LIMIT

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Clock:
    """Time in one micro-batch: the watermark ``before`` and ``after`` it, and the latest event time, or the moment
    that time has come to in a silence behind it.

    A window is final once its end is at or before the watermark, and settled, which is to say that nothing changes it
    any more, once its end is ``lateness`` behind that. ``finish``: no row will ever follow.
    """

    before: int
    after: int
    newest: int
    lateness: int
    finish: bool

    @property
    def settled_before(self) -> int:
        """Rows that windows which ended by then would need are late."""
        return self.before - self.lateness

    @property
    def settled_after(self) -> int:
        """What windows that ended by then needed may be forgotten."""
        return self.after - self.lateness


@dataclass(frozen=True)
class Work:
    """What rows out of order make of slices beyond updates, counted (*General Stream Slicing* §5.2 and §5.3).

    ``merges``: slices that became part of another one. ``splits``: edges that came to lie between rows that were
    there before and had none between them; where a late row shifts those behind it, an edge moves past a row, which
    is one too. ``recomputations``: windows that were told before and were put together again from kept rows, because
    a row came that was not behind all others of its key.
    """

    merges: int = 0
    splits: int = 0
    recomputations: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.merges + other.merges, self.splits + other.splits, self.recomputations + other.recomputations
        )


class Branch(ABC):
    """One kind of windows over one fold. ``take`` is called for every table of a micro-batch, then ``advance`` once.

    ``table`` holds the keys that it has seen; it is written and read back beside the branch's own blocks.
    """

    table: KeyTable
    #: The windows it looks after, where that is one kind of several branches over a fold.
    window: AnyWindow | None = None
    #: Of the latest micro-batch, by position of the query: rows left out as their measure goes back, one in words.
    backward: Mapping[int, tuple[int, str]] = MappingProxyType({})
    #: What was done in the last micro-batch; whoever does any of it says so in ``advance``.
    work: Work = Work()

    @abstractmethod
    def take(self, keys: pa.RecordBatch, entries: pa.RecordBatch, clock: Clock, late: dict[int, int]) -> None:
        """Entries of one task. ``late`` counts rows by position of the query."""

    @abstractmethod
    def advance(self, clock: Clock, late: dict[int, int]) -> Emitted:
        """Everything is in: the results of this micro-batch."""

    def forget(self) -> None:
        """Let go of keys that nothing refers to, where these are more than half. Called behind ``advance``."""
        used = self.used() if self.table.many else None
        if used is not None and self.table.wasteful(used):
            kept = np.flatnonzero(used)
            self.table.keep(kept)
            self.renumber(kept)

    def used(self) -> Array | None:
        """A flag for each key: whether anything that is kept refers to it. None: not now, or all will be for ever.

        A key that nothing refers to is as one that never came, whatever comes later.
        """
        return None

    def renumber(self, kept: Array) -> None:
        """Key ``kept[n]`` is key ``n`` from now on; ``kept`` ascends. All of the state is to be written anew."""
        raise NotImplementedError

    @abstractmethod
    def changes(self) -> tuple[dict[int, pa.RecordBatch], set[int]]:
        """Blocks to write since the last call, by number, and the numbers of those that are gone."""

    @abstractmethod
    def restore(self, blocks: Mapping[int, pa.RecordBatch]) -> None:
        """Bring a fresh branch to what was written."""

    @abstractmethod
    def adopt(self, older: Branch, partials: Sequence[int | None]) -> None:
        """Bring a fresh branch to the state of the one for the same windows in an older plan, which is used up.

        ``partials`` are the places in the older fold of the partials of this one; None begins empty. All of the state
        is to be written anew.
        """

    def begin(self, since: Mapping[AnyWindow, int], told: Mapping[tuple[str, int], int]) -> None:  # noqa: B027
        """Called once before the first micro-batch: windows that began in the middle of the stream, and when.

        ``told`` is where the first window starts that a query, by name, and level of it may be told of. Rows that
        only earlier windows have missed are not late for it.
        """

    @property
    @abstractmethod
    def slices(self) -> int:
        """How many slices are kept."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of what is kept, about."""

    @property
    def tuples(self) -> int:
        """How many rows are kept."""
        return 0


def counted_since(
    plan: SharedPlan, users: Iterable[tuple[int, int]], told: Mapping[tuple[str, int], int]
) -> dict[int, int]:
    """From which time on rows can be late for queries, by position: where the first window of any level may start."""
    found: dict[int, int] = {}
    for query, level in users:
        since = told.get((plan.queries[query].query.name, level), -LIMIT)
        found[query] = min(since, found.get(query, LIMIT))
    return found


def flagged(size: int, *numbers: Array) -> Array:
    """A flag for each of so many keys: whether it is among some by number."""
    flags = np.zeros(size, np.bool_)
    for some in numbers:
        flags[some] = True
    return flags


def rearranged(
    fields: list[Array],
    older: Sequence[PartialKind],
    kinds: Sequence[PartialKind],
    partials: Sequence[int | None],
    cells: int,
) -> list[Array]:
    """The fields of partials in the order of another plan; those that it begins are blank."""
    bounds = [0]
    for kind in older:
        bounds.append(bounds[-1] + len(kind.fields))
    found: list[Array] = []
    for kind, place in zip(kinds, partials, strict=True):
        found += kind.blank(cells) if place is None else fields[bounds[place] : bounds[place + 1]]
    return found


def table_of(columns: list[Any]) -> pa.RecordBatch:
    """Columns by position."""
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    return pa.record_batch(arrays, names=[str(number) for number in range(len(arrays))])
