"""One window that slides by one row, on one thread: M rows/s beside a prefix sum and beside other libraries.

For each aggregate (``sum_i32``, ``min_i32``, ``sum_f64`` without inverse, ``min_f64``) and each window size 64, 4,096,
65,536 and 1,048,576, over 2,097,152 random rows in batches of 65,536; every row's result is stored:

- ``A_SIZE``: M rows/s with all results in one large array, which is what the bars are held to;
- ``A_SIZE_reused``: M rows/s where each batch's results go to the same buffer, and somebody has to read it in time;
- ``A_SIZE_x_cumsum``: times as fast as ``np.cumsum(x, out=...)`` of the same array. NumPy sums int32 into int64 unless
  told otherwise;
- ``A_SIZE_PEER``: M rows/s of bottleneck, numbagg, polars or pandas, who return a new array as they always do;
- ``A_x_PEER``: times as fast as that library at the size where we are the least ahead.

Without bars, so that nobody is misled: ``cumsum_i32`` and ``cumsum_f64`` are M rows/s of ``np.cumsum`` as above,
``cumsum_i32_narrow`` of ``np.cumsum(x, dtype=np.int32, out=x)``, in place, several times as fast; ``copy_gb_s`` is
``np.copyto`` of 64 MB, bytes read and written. Clock: processor time, see ``benchmarks/timing.py``; the median of 9
interleaved rounds. Before that, sampled windows are compared with their recalculation, and the peers' with ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.row_streams import AGGREGATES, Aggregate, Stream, check
from benchmarks.timing import interleaved, rate, speedup
from benchmarks.workload import Bar, Figures, Workload

SIZES = (64, 4096, 65_536, 1 << 20)
BATCH = 65_536
ROWS, ROUNDS = 1 << 21, 9
QUICK_ROWS, QUICK_ROUNDS = 1 << 20, 1
LIBRARIES = {"sum": ("bottleneck", "numbagg", "pandas", "polars"), "min": ("bottleneck", "pandas", "polars")}


def run(quick: bool) -> Figures:
    """Check, then measure one aggregate after the other."""
    figures = _memory(quick)
    for aggregate in AGGREGATES:
        figures |= _measure(aggregate, quick)
    return figures


def warm_up(quick: bool) -> None:
    """Compile every kernel and compare it with the recalculation."""
    for aggregate in AGGREGATES:
        column = aggregate.column(QUICK_ROWS if quick else ROWS)
        for size in SIZES:
            check(aggregate, column, [size], BATCH)
        _compare_peers(aggregate, column[: 20_000])


def _compare_peers(aggregate: Aggregate, column: peers.Array) -> None:
    for size in SIZES[:2]:
        ours = Stream(aggregate, column, [size], BATCH).results()[0]
        for library, call in peers.rolling(aggregate.function, column).items():
            peers.same(f"{aggregate.name} of {library}, window of {size}", ours, np.asarray(call(size)))


def _memory(quick: bool) -> dict[str, float]:
    source, target = np.ones(8 << 20), np.zeros(8 << 20)
    times = interleaved({"copy": lambda: np.copyto(target, source)}, QUICK_ROUNDS if quick else ROUNDS)
    return {"copy_gb_s": rate(2 * source.nbytes, times["copy"]) / 1e9}


def _measure(aggregate: Aggregate, quick: bool) -> dict[str, float]:
    column = aggregate.column(QUICK_ROWS if quick else ROWS)
    rows = len(column)
    summed = np.zeros(rows, np.cumsum(column[:1]).dtype)
    cases: dict[str, Callable[[], Any]] = {"cumsum": lambda: np.cumsum(column, out=summed)}
    if aggregate.name == "sum_i32":
        own = column.copy()
        cases["narrow"] = lambda: np.cumsum(own, dtype=np.int32, out=own)
    libraries = peers.rolling(aggregate.function, column)
    for size in SIZES:
        stream = Stream(aggregate, column, [size], BATCH)
        cases[f"{size}"], cases[f"{size}_reused"] = stream.large, stream.reused
        for library, call in libraries.items():
            cases[f"{size}_{library}"] = lambda call=call, size=size: call(size)  # type: ignore[misc]
    times = interleaved(cases, QUICK_ROUNDS if quick else ROUNDS)
    name = aggregate.name
    figures = {f"{name}_{case}": rate(rows, times[case]) / 1e6 for case in times if case[0].isdigit()}
    figures |= {f"{name}_{size}_x_cumsum": speedup(times, f"{size}", "cumsum") for size in SIZES}
    for library in libraries:
        figures[f"{name}_x_{library}"] = min(speedup(times, f"{size}", f"{size}_{library}") for size in SIZES)
    if aggregate.function == "sum":
        figures[f"cumsum_{name[-3:]}"] = rate(rows, times["cumsum"]) / 1e6
    if "narrow" in times:
        figures["cumsum_i32_narrow"] = rate(rows, times["narrow"]) / 1e6
    return figures


def _bars() -> tuple[Bar, ...]:
    limits = {"sum_i32": 2.6, "min_i32": 1.4, "sum_f64": 1.0}
    found = [Bar(f"{name}_{size}_x_cumsum", ">=", limit) for name, limit in limits.items() for size in SIZES]
    for aggregate in AGGREGATES:
        found += [Bar(f"{aggregate.name}_x_{library}", ">=", 2) for library in LIBRARIES[aggregate.function]]
    return tuple(found)


WORKLOAD = Workload(
    name="kernels-single",
    summary="one window sliding by one row, 64 to 1 M rows: M rows/s, beside numpy cumsum and rolling libraries",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=_bars(),
    repeats=1,
)
