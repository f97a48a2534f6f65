"""What slices take: bytes of written state and in memory against the bare numbers (*General Stream Slicing* Fig. 10).

1,000 keys, ten windows of 1 to 20 s, sum, min and max of a float (four partials with the count of rows), rows of
20 s at three rates:

- ``kept``, ``written``: bytes in memory and of the blocks written, by those of the partials as bare arrays
  ``[slice, key]``;
- ``by_rows``: written bytes at a hundred times the rows by written bytes at the lowest rate, both with every slice
  and key there.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.workload import Bar, Figures, Workload
from benchmarks.workloads import slicing
from workbench.language import parse_queries
from workbench.logical import Stream
from workbench.logical import Workload as Queries
from workbench.plan import compile_workload
from workbench.runtime.level1 import Level1
from workbench.runtime.operator import BucketOperator
from workbench.time import SECOND

KEYS = 1_000
#: Rows of each key in each tenth of a second.
RATES = (1, 10, 100)
QUICK_RATES = (1, 10)


def run(quick: bool) -> Figures:
    """One operator for each rate, after one micro-batch."""
    rates = QUICK_RATES if quick else RATES
    found = [state(rate) for rate in rates]
    kept, written, bare = found[-1]
    return {"kept": kept / bare, "written": written / bare, "by_rows": written / found[0][1]}


def state(rate: int) -> tuple[int, int, int]:
    """Bytes kept and written, and those of the bare numbers, where every slice and key has rows."""
    ticks = np.repeat(np.arange(200) * SECOND // 10, KEYS * rate)
    keys = np.tile(np.arange(KEYS, dtype=np.int32), 200 * rate)
    table = pa.record_batch(
        {
            "ts": pa.array(ticks + slicing.DELAY).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(keys),
            "x": pa.array(np.random.default_rng(3).normal(size=len(keys))),
        }
    )
    stream = Stream("s", table.schema, "ts", 60 * SECOND)
    windows = ", ".join(f"'{size} seconds'" for size in (1, 2, 3, 4, 5, 8, 10, 12, 15, 20))
    sql = f"SELECT k, sum(x) AS s, min(x) AS low, max(x) AS high FROM s GROUP BY k, zoom(ts, {windows})"
    plan = compile_workload(Queries(stream, parse_queries(sql, {"s": stream}, name="q")))
    level1, operator = Level1(plan, 1), BucketOperator(plan)
    level1.fold(table)
    operator.apply(level1.messages())
    changes = operator.changes()
    (branch,) = operator.state.branches
    fields = sum(len(partial.monoid.fields) for partial in plan.folds[0].partials)
    written = len(changes.meta) + sum(map(len, changes.put.values()))
    return branch.nbytes, written, branch.slices * KEYS * fields * 8


WORKLOAD = Workload(
    name="slicing-memory",
    summary="bytes of state against the bare numbers, whatever the number of rows",
    group="kernels",
    run=run,
    repeats=1,
    bars=(Bar("kept", "<=", 2), Bar("written", "<=", 2), Bar("by_rows", "<=", 1.05)),
)
