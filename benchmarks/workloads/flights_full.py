"""All flights of 2013 at full speed through the quickstart's query: three levels, by carrier, on local Spark."""

from __future__ import annotations

import time

from benchmarks.workload import Bar, Figures, Workload
from benchmarks.workloads.first_picture import SQL

QUICK_ROWS = 50_000


def run(quick: bool) -> Figures:
    """From the call to the end of the stream with every window final; the session is up, its start not counted."""
    return _replay(QUICK_ROWS if quick else None)


def warm_up(quick: bool) -> None:
    """Start the session and compile the kernels on a part of the same stream."""
    _replay(QUICK_ROWS)


def _replay(limit: int | None) -> Figures:
    # Not above, so that `python -m benchmarks list` answers at once.
    import pyarrow.parquet as pq

    import workbench

    dataset = workbench.datasets.flights()
    rows = pq.read_metadata(dataset.paths[0]).num_rows
    if limit is None:
        workbench.source("flights", dataset, time="ts", replay="max")
    else:
        rows = limit
        head = pq.read_table(dataset.paths[0]).slice(0, limit)
        workbench.source("flights", head, time="ts", arrival="arrival", delay=dataset.delay, replay="max")
    begin = time.perf_counter()
    query = workbench.run(SQL, name="delays")
    query.wait(600)
    seconds = time.perf_counter() - begin
    windows = len(query.results(status="final", format="arrow"))
    query.stop()
    return {"seconds": seconds, "rows_per_s": rows / seconds, "final_windows": float(windows)}


WORKLOAD = Workload(
    name="flights-full",
    summary="336,776 flights at full speed, three levels by carrier, local Spark",
    run=run,
    warm_up=warm_up,
    bars=(Bar("seconds", "<=", 40),),
)
