"""What a row costs as its window grows, and as windows are added: the claim is that neither matters much.

One window of 1, 4, 16, ... 1,048,576 rows sliding by one, on one thread, results kept in one large array of 1,048,576
rows, for ``sum_i32``, ``min_i32`` and ``sum_f64`` (``A``):

- ``A_ROWS_ns``: nanoseconds a row; ``A_spread``: the largest of them by the smallest (bar 1.3).
- ``A_windows_K_ns``: nanoseconds a row for 1, 2, 5 and 10 windows of up to 131,072 rows (``kernels-multi``'s), into a
  reused buffer; ``A_ten_by_one``: what ten cost by what one costs (bar: under 10, that is, sharing pays).

Clock: processor time; medians of 9 interleaved rounds, of whose own ratios ``A_ten_by_one`` is the median. The
results are compared with a recalculation first.
"""

from __future__ import annotations

import statistics

from benchmarks.row_streams import AGGREGATES, Aggregate, Stream, check
from benchmarks.timing import interleaved, speedup
from benchmarks.workload import Bar, Figures, Workload
from benchmarks.workloads.kernels_multi import sizes

GROWING = [4**power for power in range(11)]
NUMBERS = (1, 2, 5, 10)
CHOSEN = [aggregate for aggregate in AGGREGATES if aggregate.name != "min_f64"]
ROWS, QUICK_ROWS, ROUNDS, QUICK_ROUNDS = 1 << 20, 1 << 16, 9, 2
BATCH, BATCH_MANY = 65_536, 16_384


def run(quick: bool) -> Figures:
    """One aggregate after the other: first its sizes, then its numbers of windows."""
    figures: dict[str, float] = {}
    for aggregate in CHOSEN:
        figures |= _growth(aggregate, quick)
        figures |= _numbers(aggregate, quick)
    return figures


def warm_up(quick: bool) -> None:
    """Compile the kernels and compare them with the recalculation."""
    for aggregate in CHOSEN:
        column = aggregate.column(QUICK_ROWS if quick else ROWS)
        for size in GROWING:
            check(aggregate, column, [size], BATCH)


def spread(costs: list[float]) -> float:
    """The largest by the smallest."""
    return max(costs) / min(costs)


def _growth(aggregate: Aggregate, quick: bool) -> dict[str, float]:
    column = aggregate.column(QUICK_ROWS if quick else ROWS)
    cases = {f"{size}": Stream(aggregate, column, [size], BATCH).large for size in GROWING}
    times = interleaved(cases, QUICK_ROUNDS if quick else ROUNDS)
    costs = {name: statistics.median(seconds) / len(column) * 1e9 for name, seconds in times.items()}
    figures = {f"{aggregate.name}_{name}_ns": cost for name, cost in costs.items()}
    return figures | {f"{aggregate.name}_spread": spread(list(costs.values()))}


def _numbers(aggregate: Aggregate, quick: bool) -> dict[str, float]:
    column = aggregate.column(QUICK_ROWS if quick else ROWS // 4)
    cases = {f"{number}": Stream(aggregate, column, sizes(number), BATCH_MANY).reused for number in NUMBERS}
    times = interleaved(cases, QUICK_ROUNDS if quick else ROUNDS)
    figures = {
        f"{aggregate.name}_windows_{name}_ns": statistics.median(seconds) / len(column) * 1e9
        for name, seconds in times.items()
    }
    return figures | {f"{aggregate.name}_ten_by_one": speedup(times, "1", "10")}


WORKLOAD = Workload(
    name="kernels-growth",
    summary="cost of a row as one window grows from 1 to 1 M rows, and for 1 to 10 windows",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=tuple(
        bar
        for aggregate in CHOSEN
        for bar in (Bar(f"{aggregate.name}_spread", "<=", 1.3), Bar(f"{aggregate.name}_ten_by_one", "<=", 10))
    ),
    repeats=1,
)
