"""10, 50 and 100 windows that slide by one row, on one thread: results/s as a share of a vector addition.

Sizes are uniform in 1 ... 131,072 (fixed seed). For each aggregate ``A`` and number of windows ``N``:

- ``A_N``: M results/s, ``A_N_share``: that as a share of the elements/s of ``np.add(a, b, out=c)`` on 8,192 int32,
  which stay in the first-level cache (``add_m_s``, M elements/s): about what a core can do at all;
- ``A_N_long_share``: the same for windows of at least 1,024 rows, of the same random sequence (``min`` only: shorter
  windows have kernels of their own);
- ``A_10_large`` and ``A_10_large_share``: the same with all results kept in one large array, so that memory counts.

Batches are of 16,384, 2,048 and 2,048 rows of int32, half as many of float64: the buffer of a batch's results,
written anew for every batch, has 0.4 to 0.8 MB, and stays in the second-level cache beside the half megabyte of rows
that windows reach. A pass is 2 M rows for 10 windows and 0.5 M for the others, several milliseconds: what other cases
have put into the caches in between is then a small part of it. Clock: processor time; medians of 15 interleaved
rounds, after a comparison with recalculated windows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.row_streams import AGGREGATES, Aggregate, Stream, check
from benchmarks.timing import interleaved, rate, speedup
from benchmarks.workload import Bar, Figures, Workload

LARGEST, LONG = 131_072, 1024
#: Number of windows: bytes of a batch's rows, rows of a pass.
NUMBERS = {10: (65_536, 1 << 21), 50: (8192, 1 << 19), 100: (8192, 1 << 19)}
ROUNDS, QUICK_ROUNDS = 15, 2
ADDED, TIMES = 8192, 500

SHARES = {"sum_i32": (1.1, 1.3, 1.2), "min_i32": (0.35, 0.65, 0.9), "min_f64": (0.175, 0.325, 0.45)}


def sizes(number: int, least: int = 1) -> list[int]:
    """The first ``number`` of one random sequence that are no less than ``least``; fewer are a part of more."""
    drawn = np.random.default_rng(3).integers(1, LARGEST + 1, 1000)
    return [int(size) for size in drawn if size >= least][:number]


def run(quick: bool) -> Figures:
    """One number of windows after the other; the addition runs in every round of each."""
    figures: dict[str, float] = {}
    for number in NUMBERS:
        figures |= _measure(number, quick)
    return figures


def warm_up(quick: bool) -> None:
    """Compile the kernels and compare them with the recalculation, past the point where all windows are full."""
    for aggregate in AGGREGATES:
        check(aggregate, aggregate.column(LARGEST + 20_000), sizes(10 if quick else 100), 2048)


def _addition() -> Callable[[], None]:
    a, b = (np.arange(ADDED, dtype=np.int32) for _ in range(2))
    c = np.zeros_like(a)

    def add() -> None:
        for _ in range(TIMES):
            np.add(a, b, out=c)

    return add


def _measure(number: int, quick: bool) -> dict[str, float]:
    size, rows = NUMBERS[number]
    cases: dict[str, Callable[[], Any]] = {"add": _addition()}
    for aggregate in AGGREGATES:
        batch = size // np.dtype(aggregate.dtype).itemsize
        stream = _full(aggregate, rows, sizes(number), batch)
        cases[f"{aggregate.name}_{number}"] = stream.reused
        if number == 10:
            cases[f"{aggregate.name}_{number}_large"] = stream.large
        if aggregate.function == "min":
            cases[f"{aggregate.name}_{number}_long"] = _full(aggregate, rows, sizes(number, LONG), batch).reused
    times = interleaved(cases, QUICK_ROUNDS if quick else ROUNDS)
    results, added = rows * number, ADDED * TIMES
    figures: dict[str, float] = {"add_m_s": rate(added, times["add"]) / 1e6} if number == 10 else {}
    for case in list(cases)[1:]:
        figures[case] = rate(results, times[case]) / 1e6
        figures[f"{case}_share"] = speedup(times, case, "add") * results / added
    return figures


def _full(aggregate: Aggregate, rows: int, windows: list[int], batch: int) -> Stream:
    """A stream whose windows are full."""
    stream = Stream(aggregate, aggregate.column(rows), windows, batch)
    for _ in range(-(-LARGEST // rows)):
        stream.reused()
    return stream


WORKLOAD = Workload(
    name="kernels-multi",
    summary="10, 50, 100 windows of up to 131,072 rows sliding by one: results/s as a share of numpy add in cache",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=tuple(
        Bar(f"{name}_{number}_share", ">=", limit)
        for name, limits in SHARES.items()
        for number, limit in zip(NUMBERS, limits, strict=True)
    ),
    repeats=1,
)
