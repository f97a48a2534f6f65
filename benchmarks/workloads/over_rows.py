"""OVER windows, one result per row in the order of the rows, in process beside DuckDB, polars and pandas.

10 M rows in order of time (ms, one hour), int32 keys of 1,000, float64 values; two threads on all sides (pandas has
one). Frames hold the rows of the last so many seconds, both ends included.

- ``keyed_SIDE_m_s``: M rows/s of the average over the last 60 s by key, ``keyed_x`` how many times polars' (bar);
- ``global_SIDE_m_s``: M rows/s of ten averages without a key, over the last 10 s to 1 h; ``global_x`` as above (bar);
- ``..._x_cpu``: the same ratios by processor time of the process, which a busy machine disturbs less;
- ``global_limit_m_s``: M rows/s at which the same threads write ten columns past the caches into memory that is at
  hand, and do nothing else: what no program that keeps its results can exceed here.

Every run starts from the table and ends with a column for each frame. Medians of 3 interleaved rounds, in each of
which a side is called twice, once the process is at rest, and the second call counts, as in
:mod:`benchmarks.timing`. pandas gets a tenth of the rows, DuckDB's rows come in its own order; neither takes part in
the global case, where DuckDB needs minutes. Sampled results of ours and of polars are compared with NumPy on the rows
of their frames first.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import peers
from benchmarks.timing import rate, rest
from benchmarks.workload import Bar, Figures, Workload

Array = npt.NDArray[Any]

ROWS, QUICK_ROWS, HOUR, KEYS, THREADS, ROUNDS = 10_000_000, 300_000, 3_600_000, 1_000, 2, 3
SIZES = (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600)
#: Seconds of the frames, and whether they are by key.
CASES = {"keyed": ((60,), True), "global": (SIZES, False)}


def table(rows: int) -> pa.Table:
    """The rows, with the time as a number (``ms``) as well as a timestamp (``ts``)."""
    random = np.random.default_rng(29)
    times = pa.array(np.arange(rows) * HOUR // rows)
    keys = random.integers(0, KEYS, rows).astype(np.int32)
    return pa.table({"ms": times, "ts": times.view(pa.timestamp("ms")), "k": keys, "x": random.normal(size=rows)})


def run(quick: bool) -> Figures:
    """Check each case and measure all sides in turn."""
    rows = QUICK_ROWS if quick else ROWS
    data, figures = table(rows), dict[str, float]()
    for name in CASES:
        sides = _sides(name, data)
        for side in ("winquery", "polars"):
            _check(name, data, side, sides[side]())
        wall: dict[str, list[float]] = {side: [] for side in sides}
        spent: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(1 if quick else ROUNDS):
            for side, case in sides.items():
                rest()
                case()
                begin = time.perf_counter(), time.process_time()
                case()
                wall[side].append(time.perf_counter() - begin[0])
                spent[side].append(time.process_time() - begin[1])
        for side, seconds in wall.items():
            figures[f"{name}_{side}_m_s"] = rate(rows // 10 if side == "pandas" else rows, seconds) / 1e6
        for suffix, times in (("x", wall), ("x_cpu", spent)):
            pairs = zip(times["winquery"], times["polars"], strict=True)
            figures[f"{name}_{suffix}"] = statistics.median(theirs / mine for mine, theirs in pairs)
    return figures | {"global_limit_m_s": _limit(rows)}


def _limit(rows: int) -> float:
    """M rows/s of ten columns that are copies of one."""
    from workbench.kernels.jit import jit
    from workbench.kernels.streaming import stream

    def write(values: Array, out: Array, begin: int, end: int) -> None:
        for low in range(begin, end, 2048):
            high = min(low + 2048, end)
            for column in range(out.shape[0]):
                stream(values[low:high], out[column, low:high], 0, high - low)

    compiled, seconds = jit(write, keep=False), []
    values, out = np.ones(rows), np.zeros((len(SIZES), rows))
    cuts = np.linspace(0, rows, THREADS + 1).astype(int).tolist()
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(ROUNDS + 1):
            begin = time.perf_counter()
            list(pool.map(compiled, *zip(*((values, out, *cut) for cut in pairwise(cuts)), strict=True)))
            seconds.append(time.perf_counter() - begin)
    assert (out == 1).all()
    return rate(rows, seconds[1:]) / 1e6


def _sides(name: str, data: pa.Table) -> dict[str, Callable[[], Any]]:
    sizes, keyed = CASES[name]
    found: dict[str, Callable[[], Any]] = {
        "winquery": _ours(sizes, keyed, data),
        "polars": _polars(sizes, keyed, data),
    }
    return found | ({"duckdb": _duckdb(sizes, data), "pandas": _pandas(data)} if keyed else {})


def _ours(sizes: tuple[int, ...], keyed: bool, data: pa.Table) -> Callable[[], list[Array]]:
    from workbench.language import parse_queries
    from workbench.logical import Stream, Workload
    from workbench.plan import compile_workload
    from workbench.runtime.over_table import OverTable

    by = "PARTITION BY k " if keyed else ""
    items = [f"avg(x) OVER ({by}ORDER BY ts RANGE INTERVAL '{size}' SECOND PRECEDING) AS m{size}" for size in sizes]
    stream = Stream("rows", data.schema, "ts", 0)
    queries = parse_queries(f"SELECT {', '.join(items)} FROM rows", {"rows": stream}, name="q")
    runner = OverTable(compile_workload(Workload(stream, queries)), THREADS)
    return lambda: [column.to_numpy() for column in runner.run(data)["q"].columns]


def _polars(sizes: tuple[int, ...], keyed: bool, data: pa.Table) -> Callable[[], list[Array]]:
    os.environ.setdefault("POLARS_MAX_THREADS", str(THREADS))
    import polars as pl

    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    means = [pl.col("x").rolling_mean_by("ts", f"{size}s", closed="both").alias(f"m{size}") for size in sizes]
    means = [mean.over("k") for mean in means] if keyed else means
    return lambda: [column.to_numpy() for column in frame.select(means)]


def _duckdb(sizes: tuple[int, ...], data: pa.Table) -> Callable[[], Any]:
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    connection.register("source", data)
    connection.execute("CREATE TABLE rows AS SELECT ms, k, x FROM source")
    items = [
        f"avg(x) OVER (PARTITION BY k ORDER BY ms RANGE BETWEEN {size * 1_000} PRECEDING AND CURRENT ROW) AS m{size}"
        for size in sizes
    ]
    return lambda: connection.sql(f"SELECT {', '.join(items)} FROM rows").to_arrow_table()


def _pandas(data: pa.Table) -> Callable[[], Any]:
    frame = data.slice(0, len(data) // 10).to_pandas()
    return lambda: frame.groupby("k").rolling("60s", on="ts", closed="both")["x"].mean()


def _check(name: str, data: pa.Table, side: str, found: list[Array]) -> None:
    """Sampled results against NumPy on the rows of their frames."""
    sizes, keyed = CASES[name]
    times, keys, values = (data[column].to_numpy() for column in ("ms", "k", "x"))
    for size, column in zip(sizes, found, strict=True):
        rows = peers.sample(len(values), [1_000, 200_000 % len(values)])
        expected = []
        for row in rows:
            low, high = np.searchsorted(times, [times[row] - size * 1_000, times[row] + 1])
            mine = values[low:high][keys[low:high] == keys[row]] if keyed else values[low:high]
            expected.append(mine.mean())
        peers.same(f"{name} by {side}, {size} s", column[rows], np.array(expected))


def warm_up(quick: bool) -> None:
    """Compile the kernels."""
    data = table(QUICK_ROWS)
    for sizes, keyed in CASES.values():
        _ours(sizes, keyed, data)()


WORKLOAD = Workload(
    name="over-rows",
    summary="OVER windows, one result per row: 60 s by 1,000 keys, and ten frames of 10 s to 1 h, beside others",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=(Bar("keyed_x", ">=", 3), Bar("global_x", ">=", 20)),
    repeats=1,
)
