"""General stream slicing in one process, one thread: what concurrent windows, disorder and sessions cost a row.

The workload of the paper's Figures 8 and 9 (*General Stream Slicing* §6.2): 1, 10, 80, 1000 tumbling windows with
sizes spread from 1 to 20 s, the sum of an integer; rows in order, 100,000 a second of event time, in micro-batches of
500,000. M rows/s of processor time, whole operator, results included:

- ``order_N``: in order; ``late_N``: one row in five delayed by up to 2 s; ``session_N``: that, with a session of
  1 s and five silences a minute.
- ``buckets_100``: the paper's buckets, each row added to all of its 100 windows (compiled, dense arrays instead of a
  hash table), and ``by_buckets``: what slicing 100 windows makes of that.
- ``thousand_by_one``: ``order_1000`` by ``order_1``; ``late_by_order``: 10 windows, late by in order.

The sums of the buckets are compared with the operator's results first.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.alternatives import sums_by
from benchmarks.workload import Bar, Figures, Workload
from workbench.logical import AggregateCall, Column, Named, Query, Session, Stream, Window
from workbench.logical import Workload as Queries
from workbench.plan import SharedPlan, compile_workload
from workbench.runtime.engine import Engine
from workbench.time import MINUTE, SECOND

Array = npt.NDArray[np.int64]

NUMBERS = (1, 10, 80, 1_000)
ROWS, QUICK_ROWS, BATCH, RATE = 5_000_000, 1_000_000, 500_000, 100_000
DELAY = 2 * SECOND


def sizes(number: int) -> list[int]:
    """Window sizes from 1 to 20 s, evenly, in whole milliseconds; one alone is 10 s."""
    if number == 1:
        return [10 * SECOND]
    return [int(size) * 1_000 for size in np.linspace(1_000, 20_000, number)]


def rows(
    count: int,
    *,
    late: bool = False,
    silences: int = 0,
    share: float = 0.2,
    delay: int = DELAY,
    distinct: int = 1_000,
) -> pa.Table:
    """Rows with a time and a value, in order of arrival; ``silences`` of two seconds a minute.

    With ``late`` a ``share`` of the rows is delayed, by up to ``delay`` microseconds each.
    """
    chance = np.random.default_rng(1)
    times = np.arange(count) * (SECOND // RATE)
    if silences:
        times += times // (MINUTE // silences) * DELAY
    if late:
        arrival = times + np.where(chance.random(count) < share, chance.random(count) * delay, 0)
        times = times[np.argsort(arrival, kind="stable")]
    return pa.table({"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "x": chance.integers(0, distinct, count)})


def plan(number: int, schema: pa.Schema, *, session: bool = False, delay: int = DELAY) -> SharedPlan:
    """One query for each window."""
    stream = Stream("s", schema, "ts", delay)
    total = (Named("t", AggregateCall(pa.int64(), "sum", (Column(pa.int64(), "x"),))),)
    windows: list[Window | Session] = [Window(size, size) for size in sizes(number)]
    windows += [Session(SECOND)] if session else []
    queries = (Query(f"q{place}", stream, None, (), (window,), total) for place, window in enumerate(windows))
    return compile_workload(Queries(stream, tuple(queries)))


def run(quick: bool) -> Figures:
    """All cases, one after the other."""
    count = QUICK_ROWS if quick else ROWS
    ordered, late = rows(count), rows(count, late=True)
    broken = rows(count, late=True, silences=5)
    figures = {}
    for number in NUMBERS:
        figures[f"order_{number}"] = speed(plan(number, ordered.schema), ordered)
        figures[f"late_{number}"] = speed(plan(number, late.schema), late)
        figures[f"session_{number}"] = speed(plan(number, broken.schema, session=True), broken)
    hundred = speed(plan(100, ordered.schema), ordered)
    figures["buckets_100"] = alternative_speed("buckets", ordered, 100)
    return figures | {
        "by_buckets": hundred / figures["buckets_100"],
        "thousand_by_one": figures["order_1000"] / figures["order_1"],
        "late_by_order": figures["late_10"] / figures["order_10"],
    }


def warm_up(quick: bool) -> None:
    """Compile the kernels, and compare the buckets with the operator."""
    table = rows(QUICK_ROWS // 10, late=True, silences=5)
    for session in (False, True):
        for number in (1, 10):
            compiled = plan(number, table.schema, session=session)
            engine = Engine(compiled)
            engine.compile()
            engine.run([table])
    found = {size: _sums(engine, place) for place, size in enumerate(sizes(10))}
    for size, bucket in zip(sizes(10), by_alternative("buckets", table, 10), strict=True):
        assert found[size] == {int(k) * size: int(bucket[k]) for k in np.flatnonzero(bucket)}, size


def _sums(engine: Engine, place: int) -> dict[int, int]:
    table = engine.results[f"q{place}"].table()
    starts = table["window_start"].cast(pa.int64()).to_pylist()
    return {start: total for start, total in zip(starts, table["t"].to_pylist(), strict=True) if total}


def speed(compiled: SharedPlan, table: pa.Table) -> float:
    """M rows/s of processor time of a whole operator, results in their stores."""
    engine = Engine(compiled)
    engine.compile()
    begun = time.process_time()
    for low in range(0, len(table), BATCH):
        engine.step([table.slice(low, BATCH)])
    return len(table) / (time.process_time() - begun) / 1e6


def by_alternative(name: str, table: pa.Table, number: int) -> Array:
    """The sums of the windows by one of the alternatives."""
    times, values = (table[column].cast(pa.int64()).combine_chunks().to_numpy() for column in ("ts", "x"))
    return sums_by(name, times, values, np.array(sizes(number)), DELAY)


def alternative_speed(name: str, table: pa.Table, number: int) -> float:
    """M rows/s of processor time of one of the alternatives."""
    by_alternative(name, table.slice(0, 10), number)
    begun = time.process_time()
    by_alternative(name, table, number)
    return len(table) / (time.process_time() - begun) / 1e6


WORKLOAD = Workload(
    name="slicing",
    summary="1 to 1000 concurrent windows, 20% of the rows late, sessions; against buckets",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=(
        Bar("thousand_by_one", ">=", 0.8),
        Bar("by_buckets", ">=", 10),
        Bar("late_by_order", ">=", 0.75),
        Bar("session_10", ">=", 5),
        Bar("order_10", ">=", 50),
        Bar("order_80", ">=", 50),
    ),
    repeats=3,
)
