"""One window that slides by one row, on one thread: M rows/s beside a prefix sum and beside other libraries.

For each aggregate (``sum_i32``, ``min_i32``, ``sum_f64`` without inverse, ``min_f64``, and ``fast_f64``, the sum with
``numerics='fast'``) and each window size 64, 4,096, 65,536 and 1,048,576, over 2,097,152 random rows in batches of
65,536; every row's result is stored:

- ``A_SIZE``: M rows/s where all results go to one large array; ``A_SIZE_reused``: where each batch's go to one
  buffer, which somebody has to read in time;
- ``A_SIZE_x_cumsum`` and ``A_SIZE_reused_x_cumsum``: times as fast as ``np.cumsum(x, out=...)`` of the same array, as
  one writes it (NumPy sums int32 into int64 unless told otherwise). The bars are on the reused buffer, which is how a
  query runs; in the large array memory takes a part, more where a neighbour uses it;
- ``A_SIZE_PEER``: M rows/s of bottleneck, numbagg, polars or pandas, who return a new array as they always do;
- ``A_x_PEER``: times as fast as that library at the size where we are the least ahead, ours in the large array.
  bottleneck and numbagg subtract what leaves from one running float, errors and infinities included, which is less
  work than ``sum_f64`` here, where nothing is ever subtracted; ``fast_f64`` does as they do.
- ``A_reused_x_PEER``: the same with each batch's results in one buffer of ours;
- ``A_copy_x_PEER``: of a bare ``np.copyto`` of the column into the large array, which is what nobody who reads every
  row and stores every result is faster than.

Without bars, so that nobody is misled: ``cumsum_i32`` and ``cumsum_f64`` are M rows/s of ``np.cumsum`` as above,
``cumsum_i32_narrow`` of ``np.cumsum(x, dtype=np.int32, out=x)``, in place, several times as fast; ``copy_gb_s`` is
``np.copyto`` of 64 MB, bytes read and written. Clock: processor time, see ``benchmarks/timing.py``; the median of 9
interleaved rounds. Before that, sampled windows are compared with their recalculation, and the peers' with ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.row_streams import AGGREGATES, FAST, Aggregate, Stream, check
from benchmarks.timing import interleaved, rate, speedup
from benchmarks.workload import Bar, Figures, Workload

SIZES = (64, 4096, 65_536, 1 << 20)
BATCH = 65_536
ROWS, ROUNDS = 1 << 21, 9
QUICK_ROWS, QUICK_ROUNDS = 1 << 20, 1
MEASURED = (*AGGREGATES, FAST)
LIBRARIES = {"sum": ("bottleneck", "numbagg", "pandas", "polars"), "min": ("bottleneck", "pandas", "polars")}


def run(quick: bool) -> Figures:
    """Check, then measure one aggregate after the other."""
    figures = _memory(quick)
    for aggregate in MEASURED:
        figures |= _measure(aggregate, quick)
    return figures


def warm_up(quick: bool) -> None:
    """Compile every kernel and compare it with the recalculation."""
    for aggregate in MEASURED:
        column = aggregate.column(QUICK_ROWS if quick else ROWS)
        for size in SIZES:
            check(aggregate, column, [size], BATCH)
        _compare_peers(aggregate, column[:20_000])


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
    kept = np.zeros_like(column)
    streams = {size: Stream(aggregate, column, [size], BATCH, kept) for size in SIZES}
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return _beside_cumsum(aggregate, column, streams, rounds) | _beside_peers(
        aggregate, column, kept, streams, rounds
    )


def _beside_cumsum(
    aggregate: Aggregate, column: peers.Array, streams: Mapping[int, Stream], rounds: int
) -> dict[str, float]:
    summed = np.zeros(len(column), np.cumsum(column[:1]).dtype)
    cases: dict[str, Callable[[], Any]] = {"cumsum": lambda: np.cumsum(column, out=summed)}
    if aggregate.name == "sum_i32":
        own = column.copy()
        cases["narrow"] = lambda: np.cumsum(own, dtype=np.int32, out=own)
    for size, stream in streams.items():
        cases[f"{size}"], cases[f"{size}_reused"] = stream.large, stream.reused
    times = interleaved(cases, rounds)
    name = aggregate.name
    figures = {f"{name}_{case}": rate(len(column), times[case]) / 1e6 for case in times if case[0].isdigit()}
    for size in SIZES:
        figures[f"{name}_{size}_x_cumsum"] = speedup(times, f"{size}", "cumsum")
        figures[f"{name}_{size}_reused_x_cumsum"] = speedup(times, f"{size}_reused", "cumsum")
    if aggregate.name.startswith("sum"):
        figures[f"cumsum_{name[-3:]}"] = rate(len(column), times["cumsum"]) / 1e6
    if "narrow" in times:
        figures["cumsum_i32_narrow"] = rate(len(column), times["narrow"]) / 1e6
    return figures


def _beside_peers(
    aggregate: Aggregate, column: peers.Array, kept: peers.Array, streams: Mapping[int, Stream], rounds: int
) -> dict[str, float]:
    libraries = peers.rolling(aggregate.function, column)
    figures: dict[str, float] = {}
    names = {"ours": "", "reused": "reused_", "copy": "copy_"}
    ahead: dict[str, list[float]] = {f"{name}x_{library}": [] for name in names.values() for library in libraries}
    for size in SIZES:
        cases: dict[str, Callable[[], Any]] = {"ours": streams[size].large, "reused": streams[size].reused}
        cases["copy"] = partial(np.copyto, kept, column)
        cases |= {library: partial(call, size) for library, call in libraries.items()}
        times = interleaved(cases, rounds)
        for library in libraries:
            figures[f"{aggregate.name}_{size}_{library}"] = rate(len(column), times[library]) / 1e6
            for case, name in names.items():
                ahead[f"{name}x_{library}"].append(speedup(times, case, library))
    return figures | {f"{aggregate.name}_{name}": min(ratios) for name, ratios in ahead.items()}


def _bars() -> tuple[Bar, ...]:
    limits = {"sum_i32": 2.6, "min_i32": 1.4, "sum_f64": 1.0}
    found = [Bar(f"{name}_{size}_reused_x_cumsum", ">=", limit) for name, limit in limits.items() for size in SIZES]
    for aggregate in MEASURED:
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
