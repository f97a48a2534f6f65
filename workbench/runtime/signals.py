"""Time-centric programs over tables: rows by key and time, cuts, threads (*TiLT* §6.2).

Time is cut into pieces; each is computed from its own rows and the overlap that boundary resolution found, by
whichever thread is free, without waiting for any other: what they write lies apart.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.codegen import signals
from workbench.temporal import Program, Reach

Array = npt.NDArray[Any]

#: Points of a cut, at most: enough that the overlap is small beside it, few enough for the second-level cache.
CUT = 32_768


@dataclass(frozen=True)
class Rows:
    """The rows of one source: keys as numbers from 0 on, times in microseconds, columns as floats.

    ``present[name]`` tells the rows that have a value; a column without it has one in every row.
    """

    keys: Array
    times: Array
    columns: Mapping[str, Array]
    present: Mapping[str, Array]

    @classmethod
    def joined(cls, first: Rows, second: Rows) -> Rows:
        """The rows of both, of the same columns."""
        present = {}
        for name in {**first.present, **second.present}:
            flags = [rows.present.get(name, np.ones(len(rows), np.bool_)) for rows in (first, second)]
            present[name] = np.concatenate(flags)
        columns = {name: np.concatenate([column, second.columns[name]]) for name, column in first.columns.items()}
        keys, times = np.concatenate([first.keys, second.keys]), np.concatenate([first.times, second.times])
        return cls(keys, times, columns, present)

    def __len__(self) -> int:
        return len(self.times)

    def take(self, index: Array) -> Rows:
        """Some rows, in an order."""
        columns = {name: column[index] for name, column in self.columns.items()}
        present = {name: flags[index] for name, flags in self.present.items()}
        return Rows(self.keys[index], self.times[index], columns, present)

    @cached_property
    def order(self) -> Array | None:
        """The order by key and time, rows of one time as they came; None: they stand in it."""
        by_time = np.argsort(self.times, kind="stable") if _descends(self.times) else None
        keys = self.keys if by_time is None else self.keys[by_time]
        if not _descends(keys):
            # By time alone is by key and time where keys ascend with it; one key is the common case.
            return by_time
        by_key = np.argsort(keys, kind="stable")
        return by_key if by_time is None else by_time[by_key]

    def ordered(self) -> Rows:
        """In that order."""
        return self if self.order is None else self.take(self.order)

    @cached_property
    def fresh(self) -> Array | None:
        """Where a key or a time begins, of rows in order; None: at every row."""
        new = np.ones(len(self), np.bool_)
        np.not_equal(self.times[1:], self.times[:-1], out=new[1:])
        new[1:] |= self.keys[1:] != self.keys[:-1]
        return None if new.all() else new


@dataclass(frozen=True)
class Points:
    """What a program gives: keys and times of its points, by key and time, and the outputs' values there."""

    keys: Array
    times: Array
    values: tuple[Array, ...]
    present: tuple[Array, ...]

    def take(self, index: Array) -> Points:
        """Some points, in an order."""
        columns = [tuple(column[index] for column in each) for each in (self.values, self.present)]
        return Points(self.keys[index], self.times[index], *columns)


def evaluate(
    program: Program,
    sources: Mapping[str, Rows],
    keys: int,
    threads: int | None = None,
    cut: int = CUT,
    span: tuple[int, int] | None = None,
) -> Points:
    """The values of all points, or of those with ``span[0] < time <= span[1]``.

    ``sources[name]`` has its rows in the order of :attr:`Rows.order`, keys below ``keys``. Cost: one pass over the
    rows and points, whatever the width of the windows.
    """
    nullable = frozenset((name, column) for name, rows in sources.items() for column in rows.present)
    run = signals.load(program, nullable)
    runs = {name: np.searchsorted(rows.keys, np.arange(keys + 1)) for name, rows in sources.items()}
    owners, points = _points(program, sources[program.at], runs[program.at])
    cuts = _Cuts(program, sources, runs, owners, points, cut, span)
    outputs = range(len(program.outputs))
    values, present = ([np.empty(len(points), kind) for _ in outputs] for kind in (np.float64, np.bool_))
    arguments = [cuts.points, *cuts.rows.values()]
    given = [points]
    for table in ("times", "columns", "present"):
        for name, rows in sources.items():
            held = rows.columns if table == "columns" else rows.present
            arrays = [rows.times] if table == "times" else [held[n] for n in program.columns[name] if n in held]
            # An address that a kernel may look at where there is no row.
            beyond = bool(np.any(cuts.rows[name][:, 0] == len(rows)))
            given += [_padded(array) if beyond else array for array in arrays]

    def work(part: tuple[int, int]) -> None:
        run(*arguments, *part, *given, *values, *present)

    parts = cuts.parts(_threads(threads))
    if len(parts) == 1:
        work(parts[0])
    elif parts:
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(work, parts))
    found = Points(owners, points, tuple(values), tuple(present))
    return found if cuts.kept is None else found.take(cuts.kept)


def _threads(given: int | None) -> int:
    return given or len(os.sched_getaffinity(0))


def _padded(array: Array) -> Array:
    """With one element more, which is never used."""
    return np.append(array, np.zeros(1, array.dtype))


def _descends(array: Array) -> bool:
    return bool((array[1:] < array[:-1]).any())


def _points(program: Program, rows: Rows, runs: Array) -> tuple[Array, Array]:
    """Keys and times of the domain, each time once: of its rows, or of the multiples of ``every`` that they span."""
    if program.every is None:
        return (rows.keys, rows.times) if rows.fresh is None else (rows.keys[rows.fresh], rows.times[rows.fresh])
    some = np.flatnonzero(runs[1:] > runs[:-1])
    first = -(-rows.times[runs[some]] // program.every)
    last = -(-rows.times[runs[some + 1] - 1] // program.every)
    counts = last - first + 1
    begins = np.cumsum(counts) - counts
    steps = np.arange(int(counts.sum())) + np.repeat(first - begins, counts)
    return np.repeat(some, counts), steps * program.every


class _Cuts:
    """Pieces of time of single keys: their points, and the rows of each source that these depend on."""

    def __init__(
        self,
        program: Program,
        sources: Mapping[str, Rows],
        runs: Mapping[str, Array],
        owners: Array,
        points: Array,
        most: int,
        span: tuple[int, int] | None,
    ) -> None:
        bounds = np.unique(np.searchsorted(owners, np.arange(len(runs[program.at]))))
        begins, ends = bounds[:-1], bounds[1:]
        counts = -(-(ends - begins) // most)
        owner = np.repeat(np.arange(len(begins)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        kept = begins[owner] + number * most
        stop = np.minimum(kept + most, ends[owner])
        #: The points that are asked for; None: all.
        self.kept: Array | None = None
        if span is not None:
            inside = (points > span[0]) & (points <= span[1])
            self.kept = np.flatnonzero(inside)
            before = np.concatenate([[0], np.cumsum(inside)])
            some = before[stop] > before[kept]
            owner, kept, stop = owner[some], kept[some], stop[some]
        whole = counts[owner] == 1
        keys = owners[kept] if len(kept) else kept
        origin = kept.copy()
        reach = program.boundaries
        for c in np.flatnonzero(~whole) if reach.points else ():
            low = begins[owner[c]]
            origin[c] = low + np.searchsorted(points[low : kept[c]], points[kept[c]] - reach.points, side="right")
        self.points = np.stack([origin, kept, stop], axis=1)
        self.rows = {}
        for name, rows in sources.items():
            bound = np.stack([runs[name][keys], runs[name][keys + 1]], axis=1)
            for c in np.flatnonzero(~whole):
                own = reach.sources.get(name, Reach())
                bound[c] = _needed(rows.times, bound[c], points[kept[c]], points[stop[c] - 1], own)
            self.rows[name] = bound

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Ranges of cuts with about as many points each."""
        cuts = len(self.points)
        if not cuts:
            return []
        total = np.cumsum(self.points[:, 2] - self.points[:, 0])
        edges = np.searchsorted(total, np.arange(1, count) * total[-1] / count)
        bounds = sorted({0, *map(int, edges), cuts})
        return list(itertools.pairwise(bounds))


def _needed(times: Array, run: Sequence[int], first: int, last: int, reach: Reach) -> tuple[int, int]:
    """The rows of a run that the points ``first .. last`` depend on."""
    low, high = int(run[0]), int(run[1])
    mine = times[low:high]
    # Windows are open on the left and tumbling ones closed: a row more never harms.
    begin = int(np.searchsorted(mine, first - reach.back, side="left")) - reach.before
    end = int(np.searchsorted(mine, last + reach.ahead, side="right")) + reach.after
    return low + max(0, begin), min(high, low + end)
