"""What aggregates and measures cost: by time and by count of rows (*General Stream Slicing* Fig. 13, 14, 16).

Twenty tumbling windows of 1 to 20 s, or of as many rows as come in that time, a fifth of the rows delayed by up to
2 s. M rows/s of processor time of one thread, whole operator, results in their stores:

- ``time_F``, ``count_F``: the aggregate F;
- ``holistic_D_slices`` and ``holistic_D_buffer``: the median of values of which D are distinct, by slices with sorted
  runs, and by NumPy over the rows of each window, put in order of time once;
- ``windows_N_time``, ``windows_N_count``: the sum over N windows.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pyarrow as pa

from benchmarks.workload import Figures, Workload
from benchmarks.workloads import slicing
from workbench.language import parse_queries
from workbench.logical import Stream
from workbench.logical import Workload as Queries
from workbench.plan import SharedPlan, compile_workload
from workbench.runtime.engine import Engine
from workbench.time import SECOND

WINDOWS = 20
ROWS, QUICK_ROWS, COUNT_ROWS = 2_000_000, 300_000, 300_000
AGGREGATES = {
    "count": "count(*)",
    "sum": "sum(x)",
    "min": "min(x)",
    "max": "max(x)",
    "avg": "avg(x)",
    "stddev": "stddev_samp(x)",
    "arg_max": "max_by(x, x)",
    "product": "product(x)",
    "median": "median(x)",
    "percentile_90": "quantile(x, 0.9)",
}
#: As many as in the paper's machine and football data.
DISTINCT = (37, 84_232)
NUMBERS = (1, 10, 20, 40, 80)


def run(quick: bool) -> Figures:
    """All cases, one after the other."""
    table = slicing.rows(QUICK_ROWS if quick else ROWS, late=True)
    few = table.slice(0, QUICK_ROWS // 3 if quick else COUNT_ROWS)
    figures: dict[str, float] = {}
    for name, call in AGGREGATES.items():
        figures[f"time_{name}"] = slicing.speed(plan(call, WINDOWS, table.schema), table)
        if not quick:
            figures[f"count_{name}"] = slicing.speed(plan(call, WINDOWS, table.schema, count=True), few)
    for distinct in DISTINCT:
        values = slicing.rows(len(table), late=True, distinct=distinct)
        figures[f"holistic_{distinct}_slices"] = slicing.speed(plan("median(x)", WINDOWS, table.schema), values)
        figures[f"holistic_{distinct}_buffer"] = _buffer_speed(values)
    for number in () if quick else NUMBERS:
        figures[f"windows_{number}_time"] = slicing.speed(plan("sum(x)", number, table.schema), table)
        figures[f"windows_{number}_count"] = slicing.speed(plan("sum(x)", number, table.schema, count=True), few)
    return figures


def plan(call: str, number: int, schema: pa.Schema, *, count: bool = False) -> SharedPlan:
    """One query for each window."""
    stream = Stream("s", schema, "ts", slicing.DELAY)
    windows = [
        f"count_window({size * slicing.RATE // SECOND})" if count else f"window(ts, '{size} microseconds')"
        for size in slicing.sizes(number)
    ]
    sql = ";".join(f"SELECT {call} AS v FROM s GROUP BY {window}" for window in windows)
    return compile_workload(Queries(stream, parse_queries(sql, {"s": stream}, name="q")))


def _buffer_speed(table: pa.Table) -> float:
    begun = time.process_time()
    times, values = (table[name].cast(pa.int64()).combine_chunks().to_numpy() for name in ("ts", "x"))
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    for size in slicing.sizes(WINDOWS):
        edges = np.searchsorted(times, np.arange(0, int(times[-1]) + size + 1, size)).tolist()
        for low, high in pairwise(edges):
            if low < high:
                np.median(values[low:high])
    return len(table) / (time.process_time() - begun) / 1e6


def warm_up(quick: bool) -> None:
    """Compile the kernels of all cases."""
    few = slicing.rows(2_000, late=True)
    for call in AGGREGATES.values():
        for count in (False, True):
            engine = Engine(plan(call, 1, few.schema, count=count))
            engine.compile()
            engine.run([few])


WORKLOAD = Workload(
    name="slicing-aggregates",
    summary="aggregates, windows of time and of rows, medians of few and many distinct values",
    group="kernels",
    run=run,
    warm_up=warm_up,
    headline=("time_sum", "time_median", "holistic_37_slices", "holistic_37_buffer"),
)
