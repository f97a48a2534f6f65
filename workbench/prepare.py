"""``python -m workbench prepare``: do once what would make the first queries on a machine slow."""

from __future__ import annotations

import textwrap

#: The quickstart's kind of query, run to its end on a handful of rows: it loads Spark's classes. The JVM must have
#: ended before the process does, so that its archive is whole.
PROGRAM = textwrap.dedent(
    """
    import pyarrow as pa
    import workbench
    from pyspark import SparkContext

    stamps = pa.array(range(0, 7_200_000_000, 60_000_000), pa.timestamp("us", "UTC"))
    numbers = pa.array(range(len(stamps)), pa.int64())
    workbench.source("events", pa.table({"ts": stamps, "k": numbers.cast(pa.string()), "v": numbers}), time="ts")
    select = "SELECT k, avg(v) AS a, max(v) AS b, count(*) AS n FROM events WHERE v IS NOT NULL GROUP BY k"
    query = workbench.run(f"{select}, zoom(ts, '15 minutes / 1 minute', '1 hour')", name="prepare")
    assert query.wait(300), query.status()
    workbench.stop_all()
    process = SparkContext._gateway.proc
    SparkContext._active_spark_context.stop()
    process.stdin.close()
    process.wait(300)
    """
)


def run() -> int:
    """Prepare this machine for this user and this environment; returns the exit status.

    Takes a minute the first time, a second or two later on.
    """
    from workbench.spark.archive import prepare

    path = prepare(PROGRAM)
    _compile_kernels()
    print("no cache folder: every first query will take a little longer" if path is None else f"prepared: {path}")
    return 0


def _compile_kernels() -> None:
    """The kernels that the first queries of most need: numba keeps them on disk."""
    import numpy as np

    from workbench.algebra import PARTIALS
    from workbench.codegen import AssembleKernel, FoldKernel, Lanes, Runs
    from workbench.codegen.source import Feed
    from workbench.kernels import later
    from workbench.plan.gag import Algorithm

    for kind in ("int", "float"):
        kinds = [f"sum_{kind}", f"max_{kind}"]
        for by in (np.ndarray, Runs, Lanes):  # with keys, and without, in order and not
            FoldKernel([Feed("count"), *(Feed(name, (0,)) for name in kinds)], by).compile()
        for name in ["count", *kinds, f"min_{kind}"]:
            group = PARTIALS[name].group
            for algorithm in [Algorithm.SLIDE_SIDE_INV] if group else [Algorithm.SLIDE_SIDE, Algorithm.TWO_STACKS]:
                AssembleKernel(name, algorithm).compile()
    later.compile_all()
