"""The order of the conditions of a WHERE, from what a sample of the rows tells (*Grizzly* §6.1, §6.2.1).

Every so often each condition is asked by itself about a slice of the rows: how many pass it, and what a row costs.
Conditions then stand by rank ``(passing - 1) / cost``, the least first, which is the cheapest order where they are
independent. Between two samples the rows themselves are watched: where a condition passes another share of them than
when it was put into its place, the assumption has failed, and the next rows are sampled at once.

Nothing here knows of expressions; what is decided changes times, never results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import thread_time_ns
from typing import TypeAlias

#: Asks condition number ``i`` about the rows ``low .. high`` and says how many pass.
Probe: TypeAlias = Callable[[int, int, int], int]


@dataclass(frozen=True)
class Sampling:
    """How much is sampled, and when it is acted upon. Times in nanoseconds.

    One slice of at most ``rows`` rows in ``every`` pieces; none of pieces with fewer than ``least``. ``drift`` is how
    far a share may move before the next piece is sampled, ``gain`` the share of the cost by which another order must
    be cheaper. To take rows out of the way of later conditions costs ``call`` once, and ``move`` for each row and
    column, and to ask costs ``once`` whatever the rows: measured on a 2-core cloud machine, only the order of
    magnitude matters. The clock is that of the thread, which stands still while others run.
    """

    rows: int = 1 << 12
    every: int = 16
    least: int = 512
    drift: float = 0.1
    gain: float = 0.1
    call: float = 5e4
    move: float = 3.0
    once: float = 1e4
    clock: Callable[[], int] = thread_time_ns


@dataclass
class Predicate:
    """One condition: its text, how many columns it reads, the sampled share of rows that pass, nanoseconds a row.

    ``rows`` it has been asked about in fact, of which ``passed`` passed; ``share`` is what passed when it was put
    into its place, None before.
    """

    text: str
    columns: int
    passing: float = 1.0
    cost: float = 0.0
    rows: int = 0
    passed: int = 0
    share: float | None = None


@dataclass(frozen=True)
class Order:
    """The conditions in the order in which they are asked, each with nanoseconds a row from there on.

    ``rest[k]`` is what condition ``order[k]`` and all behind it cost, ``moved[k]`` what it costs to take rows out of
    their way.
    """

    order: tuple[int, ...]
    rest: tuple[float, ...]
    moved: tuple[float, ...]

    def narrows(self, place: int, rows: int, left: int, call: float) -> bool:
        """Whether to take out, before condition ``order[place]``, the rows that have failed: ``left`` pass on."""
        return (rows - left) * self.rest[place] > call + rows * self.moved[place]


@dataclass
class Profile:
    """What is known of the conditions of one filter in one process, for several threads.

    ``groups`` are the numbers of conditions that may change places among themselves, group after group.
    """

    predicates: list[Predicate]
    groups: Sequence[Sequence[int]]
    sampling: Sampling = field(default_factory=Sampling)
    #: How often the order has changed, and how often a share had moved away from what was assumed.
    reordered: int = 0
    drifted: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._pieces = 0
        self._due = True
        nothing = (0.0,) * len(self.predicates)
        self.order = Order(tuple(number for group in self.groups for number in group), nothing, nothing)

    def observe(self, rows: int, probe: Probe) -> None:
        """Sample a piece of so many rows, if it is time to, and put the conditions in order."""
        sampling = self.sampling
        with self._lock:
            self._pieces += 1
            if rows < sampling.least or not (self._due or self._pieces % sampling.every == 0):
                return
            self._due, count = False, self._pieces
        size = min(sampling.rows, rows)
        # Another part of each piece, so that what only begins of batches have in common is not taken for all rows.
        low = (count * 7_919 * size) % (rows - size + 1)
        found = []
        for number in range(len(self.predicates)):
            begin = sampling.clock()
            passed = probe(number, low, low + size)
            found.append((passed / size, max(sampling.clock() - begin - sampling.once, 0.0) / size))
        with self._lock:
            for predicate, (passing, cost) in zip(self.predicates, found, strict=True):
                # Caches may have been cold, so a cost grows slowly.
                predicate.passing = passing
                predicate.cost = cost if predicate.cost == 0 else min(cost, (3 * predicate.cost + cost) / 4)
            self._arrange()

    def _arrange(self) -> None:
        """Another order, if it is cheaper by what makes a change worth while."""
        best = [number for group in self.groups for number in sorted(group, key=self._rank)]
        now = self.order.order
        if self._expected(best) >= (1 - self.sampling.gain) * self._expected(now):
            best = list(now)
        elif tuple(best) != now:
            self.reordered += 1
        behind = [[self.predicates[number] for number in best[place:]] for place in range(len(best))]
        rest = tuple(sum(each.cost for each in later) for later in behind)
        moved = tuple(self.sampling.move * (1 + sum(each.columns for each in later)) for later in behind)
        self.order = Order(tuple(best), rest, moved)
        for predicate in self.predicates:
            predicate.share = None

    def _rank(self, number: int) -> float:
        predicate = self.predicates[number]
        return (predicate.passing - 1) / max(predicate.cost, 1e-3)

    def _expected(self, order: Sequence[int]) -> float:
        """Nanoseconds a row, where a condition is only asked about rows that have passed those before it."""
        total, reach = 0.0, 1.0
        for number in order:
            total += reach * self.predicates[number].cost
            reach *= self.predicates[number].passing
        return total

    def count(self, asked: Sequence[tuple[int, int, int]]) -> None:
        """Note (condition, rows that it was asked about, rows that passed) of one piece."""
        with self._lock:
            for number, rows, passed in asked:
                predicate = self.predicates[number]
                predicate.rows += rows
                predicate.passed += passed
                if rows < self.sampling.least:
                    continue
                share = passed / rows
                if predicate.share is None:
                    predicate.share = share
                elif abs(share - predicate.share) > self.sampling.drift and not self._due:
                    self._due = True
                    self.drifted += 1
