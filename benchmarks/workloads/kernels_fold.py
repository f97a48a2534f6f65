"""A whole table into windows on two threads, beside DuckDB and polars, each in its best form that we know.

One hour of event time in order, in milliseconds, an int32 key and a float64 value:

- ``keyed``: the average per key (1,000 keys) of windows of 60 s sliding by 1 s; ``text``: the same by a text key;
- ``global``: ten averages without a key, windows of 10 s to 1 h, all sliding by 1 s;
- ``many``: the average per key (1,000,000 keys) of tumbling windows of 60 s.

The others aggregate by second first and then make windows of that: DuckDB with window functions ``RANGE BETWEEN n
PRECEDING`` over integers, polars with ``rolling_sum_by`` on an integer index. They report one window for each second
(and key) with data; we report every window with data, also those that end after the last row and those whose last
second has no row, which are 8 % more results. All three give Arrow columns; the rows are in each one's own memory
before (a table, a frame). Tumbling windows are the same for all.

- ``..._m_s``: M rows a second by wall clock; ``..._x``: times as fast as the better of the others, the median of
  the rounds' own ratios (bars); ``..._x_cpu``: the same by processor time, on which other work on the machine tells
  less.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import peers
from benchmarks.timing import rate
from benchmarks.workload import Bar, Figures, Workload

Array = npt.NDArray[Any]
Case = Callable[[], Any]

ROWS, QUICK_ROWS, HOUR = 10_000_000, 500_000, 3_600_000
KEYS, MANY_KEYS, THREADS, ROUNDS = 1_000, 1_000_000, 2, 3
SIZES = (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600)
NAMES = ("keyed", "global", "text", "many")
OURS, OTHERS = "winquery", ("duckdb", "polars")

QUERIES = {
    "keyed": "SELECT k, avg(x) AS m FROM rows GROUP BY k, window(ts, '60 seconds', '1 second')",
    "global": ";".join(
        f"SELECT avg(x) AS m FROM rows GROUP BY window(ts, '{size} seconds', '1 second')" for size in SIZES
    ),
    "many": "SELECT k, avg(x) AS m FROM rows GROUP BY k, window(ts, '60 seconds')",
}
QUERIES["text"] = QUERIES["keyed"]

_SECONDS = "WITH g AS (SELECT {key} ms // 1000 AS s, sum(x) AS t, count(x) AS n FROM {table} GROUP BY {key} s) "
_SLIDING = "SELECT k, s, sum(t) OVER w / sum(n) OVER w AS m FROM g "
_SLIDING += "WINDOW w AS (PARTITION BY k ORDER BY s RANGE BETWEEN 59 PRECEDING AND CURRENT ROW)"


@cache
def table(name: str, rows: int) -> pa.Table:
    """The rows of a case, with the time as a number (``ms``) as well as a timestamp (``ts``), in the same memory."""
    random = np.random.default_rng(29)
    times = pa.array(np.arange(rows) * HOUR // rows)
    keys = pa.array(random.integers(0, MANY_KEYS if name == "many" else KEYS, rows).astype(np.int32))
    if name == "text":
        keys = pa.array([f"sensor-{number:04d}" for number in range(KEYS)]).take(keys)
    return pa.table({"ms": times, "ts": times.view(pa.timestamp("ms")), "k": keys, "x": random.normal(size=rows)})


def run(quick: bool) -> Figures:
    """Check each case and measure it, the three in turn."""
    rows = QUICK_ROWS if quick else ROWS
    figures: dict[str, float] = {}
    for name in NAMES:
        cases = _cases(name, rows)
        check(name, rows, {side: case() for side, case in cases.items()})
        wall, spent = _in_turn(cases, 1 if quick else ROUNDS)
        for side, seconds in wall.items():
            figures[f"{name}_{side}_m_s"] = rate(rows, seconds) / 1e6
        figures[f"{name}_x"], figures[f"{name}_x_cpu"] = _lead(wall), _lead(spent)
        table.cache_clear()
    return figures


def check(name: str, rows: int, answers: Mapping[str, Any]) -> None:
    """Sampled windows of all three against NumPy on their own rows."""
    found = {side: _windows(name, answers[side]) for side in OTHERS}
    data = table("keyed" if name == "text" else name, rows)
    times, keys, values = (data.column(column).to_numpy() for column in ("ms", "k", "x"))
    wanted = list(found["duckdb"])[:: max(1, len(found["duckdb"]) // 16)]
    expected = []
    for size, key, second in wanted:
        low, high = np.searchsorted(times, [(second - size + 1) * 1_000, (second + 1) * 1_000])
        mine = values[low:high] if key is None else values[low:high][keys[low:high] == key]
        expected.append(mine.mean())
    averages = {side: [windows[place] for place in wanted] for side, windows in found.items()}
    averages[OURS] = [_our_window(name, answers[OURS], *place) for place in wanted]
    for side, values in averages.items():
        peers.same(f"{name} by {side}", np.array(values), np.array(expected))


def _in_turn(cases: Mapping[str, Case], rounds: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds by wall clock and processor time; the calls that checked the answers have warmed everything."""
    wall: dict[str, list[float]] = {side: [] for side in cases}
    spent: dict[str, list[float]] = {side: [] for side in cases}
    for _ in range(rounds):
        for side, case in cases.items():
            begin = time.perf_counter(), time.process_time()
            case()
            wall[side].append(time.perf_counter() - begin[0])
            spent[side].append(time.process_time() - begin[1])
    return wall, spent


def _lead(seconds: Mapping[str, list[float]]) -> float:
    others = zip(*(seconds[side] for side in OTHERS), strict=True)
    return statistics.median(min(theirs) / mine for mine, theirs in zip(seconds[OURS], others, strict=True))


def _cases(name: str, rows: int) -> dict[str, Case]:
    data = table(name, rows)
    return {OURS: _ours(name, data), "duckdb": _duckdb(name, data), "polars": _polars(name, data)}


def _ours(name: str, data: pa.Table) -> Case:
    from workbench.language import parse_queries
    from workbench.logical import Stream, Workload
    from workbench.plan import compile_workload
    from workbench.runtime.table import TableRunner

    stream = Stream("rows", data.schema, "ts", 0)
    queries = parse_queries(QUERIES[name], {"rows": stream}, name="q")
    runner = TableRunner(compile_workload(Workload(stream, queries)), THREADS)
    runner.compile()
    return lambda: runner.run(data)


def _duckdb(name: str, data: pa.Table) -> Case:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    columns = data.select(["ms", "k", "x"])
    connection.register("given", columns)
    connection.execute("CREATE TABLE held AS SELECT * FROM given")
    connection.unregister("given")
    if name == "many":
        query = "SELECT k, ms // 60000 AS s, avg(x) AS m FROM held GROUP BY k, s"
    elif name == "global":
        averages = ", ".join(f"sum(t) OVER w{size} / sum(n) OVER w{size} AS m{size}" for size in SIZES)
        windows = (f"w{size} AS (ORDER BY s RANGE BETWEEN {size - 1} PRECEDING AND CURRENT ROW)" for size in SIZES)
        query = _SECONDS.format(key="", table="held") + f"SELECT s, {averages} FROM g WINDOW {', '.join(windows)}"
    else:
        query = _SECONDS.format(key="k,", table="held") + _SLIDING
    return lambda: connection.sql(query).to_arrow_table()


def _polars(name: str, data: pa.Table) -> Case:
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(data.select(["ms", "k", "x"]))).with_columns(pl.col("ms").set_sorted()).lazy()
    second, total, count = (pl.col("ms") // 1_000).alias("s"), pl.col("x").sum().alias("t"), pl.col("x").count()
    sums = [total, count.alias("n")]
    if name == "many":
        lazy = frame.group_by("k", (pl.col("ms") // 60_000).alias("s")).agg(pl.col("x").mean().alias("m"))
    elif name == "global":
        lazy = frame.group_by(second).agg(sums).sort("s").select("s", *(_rolling(size) for size in SIZES))
    else:
        grouped = frame.group_by("k", second).agg(sums).sort("s")
        windows = [pl.col(column).rolling_sum_by("s", "60i").over("k") for column in ("t", "n")]
        lazy = grouped.with_columns(windows).select("k", "s", (pl.col("t") / pl.col("n")).alias("m"))
    return lambda: lazy.collect().to_arrow()


def _rolling(size: int) -> Any:
    import polars as pl

    total, count = (pl.col(column).rolling_sum_by("s", f"{size}i") for column in ("t", "n"))
    return (total / count).alias(f"m{size}")


def _windows(name: str, answer: Any) -> dict[tuple[int, int | None, int], float]:
    """Averages of some rows of a peer by window size, key (None: no key) and last second; the same rows of all."""
    part = answer.sort_by([("s", "ascending"), *([("k", "ascending")] if name != "global" else [])])
    part = part.take(pa.array(np.linspace(0, len(part) - 1, 400).astype(int)))
    columns = {column: part.column(column).to_pylist() for column in part.column_names}
    if name == "global":
        return {(size, None, s): m for size in SIZES for s, m in zip(columns["s"], columns[f"m{size}"], strict=True)}
    keys = [int(str(key).removeprefix("sensor-")) for key in columns["k"]]
    ends = [60 * s + 59 if name == "many" else s for s in columns["s"]]
    return {(60, key, end): m for key, end, m in zip(keys, ends, columns["m"], strict=True)}


def _our_window(name: str, answer: Any, size: int, key: int | None, end: int) -> float:
    from workbench.results import batches_of

    query = f"q_{SIZES.index(size) + 1}" if name == "global" and size != SIZES[0] else "q"
    start = (end - size + 1) * 1_000_000
    wanted = f"sensor-{key:04d}" if name == "text" else key
    for own in (batch.own() for asked, batch in batches_of(answer) if asked == query):
        rows = np.flatnonzero(own.starts == start)
        if key is not None:
            rows = rows[[value == wanted for value in own.keys[0].take(pa.array(rows)).to_pylist()]]
        if len(rows):
            return float(own.values[0][int(rows[0])].as_py())
    raise peers.Mismatch(f"{name}: no window of {size} s that ends with second {end} of key {key}")


WORKLOAD = Workload(
    name="kernels-fold",
    summary="10 M rows into windows on two threads: 1,000 and 1 M keys, text keys, ten windows; DuckDB, polars",
    group="kernels",
    run=run,
    bars=(Bar("keyed_x", ">=", 4), Bar("global_x", ">=", 1.2), Bar("text_x", ">=", 1), Bar("many_x", ">=", 1)),
    headline=tuple(f"{name}_{side}" for name in NAMES for side in (f"{OURS}_m_s", "x", "x_cpu")),
    repeats=1,
)
