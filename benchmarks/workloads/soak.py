"""Half an hour at 100,000 rows a second with a plan change every minute: what grows, and whether results stay right.

A process of its own runs a query all the while; another query comes and goes. Memory is that of all processes (the
driver, Java, Python workers), and what is compared is the median of the second fifth of the time with that of the
last, so that all have warmed up. The windows of the first query are counted at the end: each second holds the same
rows of each key.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import spark_lab
from benchmarks.workload import Bar, Figures, Workload
from workbench.time import SECOND

RATE, KEYS, PIECE = 100_000, 100, 60
MINUTES = 30
FIRST = (
    "SELECT key, sum(x) AS total, count(*) AS n FROM events GROUP BY key, zoom(ts, '1 second', '1 minute / 1 second')"
)
# Two pools of Spark's block manager add a thread for every broadcast that is removed until each has a hundred: that
# they fill says only how many batches there were.
POOLS = ("block-manager-a", "block-manager-s")
#: Spark watches each task of Python's until two seconds after its end: how many there are says how quick batches are.
WATCHING = ("Worker Monitor",)
SECOND_ONE = "SELECT max(x) AS top, count(*) AS n FROM events GROUP BY window(ts, '10 seconds')"


@dataclass(frozen=True)
class Sample:
    """Megabytes of the driver, of Java and of Python workers; threads (but :data:`POOLS` and :data:`WATCHING`) and
    open files of driver and Java; threads of the pools; Java's counted threads by name, numbers left out.
    """

    at: float
    driver: float
    java: float
    workers: float
    threads: int
    files: int
    pools: int = 0
    names: Counter[str] = field(default_factory=Counter)


def recording(seconds: int, rate: int = RATE) -> list[str]:
    """Rows in order, each key in turn, values 1: a file a minute, some 5 MB, made once."""
    folder = Path(tempfile.gettempdir()) / f"winquery-soak-{os.getuid()}-{seconds}-{rate}"
    done = folder / "done"
    if not done.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        for begin in range(0, seconds, PIECE):
            rows = min(PIECE, seconds - begin) * rate
            times = begin * SECOND + np.arange(rows) * SECOND // rate
            keys = pa.array((np.arange(rows) % KEYS).astype(np.int32))
            columns = [pa.array(times).cast(pa.timestamp("us", "UTC")), keys, pa.array(np.ones(rows))]
            pq.write_table(
                pa.table(columns, schema=spark_lab.SCHEMA),
                folder / f"{begin:05d}.parquet",
                row_group_size=1 << 17,
                use_dictionary=["key", "x"],
                column_encoding={"ts": "DELTA_BINARY_PACKED"},
            )
        done.touch()
    return sorted(map(str, folder.glob("*.parquet")))


def soak(seconds: int, change_every: int, rate: int = RATE) -> dict[str, Any]:
    """The figures of one run of ``seconds``; raises where a result is wrong. In a process of its own."""
    from workbench.session import Session

    spark_lab.our_session()
    session = Session()
    session.source("events", recording(seconds, rate), time="ts", replay="1x", delay="1 second", max_rows=50 * rate)
    (first,) = session.start(session.parse(FIRST, name="first"))
    assert first.wait_for_results(300), first.status()
    samples, changes, other, over = [], 0, None, threading.Event()
    begin = time.monotonic()
    while not over.wait(min(2.0, seconds / 60)):
        samples.append(_sample(time.monotonic() - begin))
        state = first.progress().state
        if state not in ("starting", "running"):
            break
        # Not towards the end: without a stream that runs, a query begins with the first row.
        if (changes + 1) * change_every < samples[-1].at < 0.9 * seconds:
            changes += 1
            if other is None:
                (other,) = session.start(session.parse(SECOND_ONE, name="second"), history=False)
            else:
                other.stop()
                other = None
    first.wait(300)
    status = first.status()
    _check(first.results("1 second", status="final", format="arrow"), status.rows, rate)
    session.stop_all()
    return _figures(samples) | {
        "rows": float(status.rows),
        "changes": float(changes),
        "batch_s": status.batch_seconds,
    }


def _check(windows: pa.Table, rows: int, rate: int) -> None:
    """Each second and key once, with all of its rows."""
    counts = windows["n"].to_numpy()
    wrong = int((counts != rate // KEYS).sum())
    if wrong or len(counts) != rows // (rate // KEYS):
        raise AssertionError(f"{wrong} windows are wrong, {len(counts)} of {rows // (rate // KEYS)} are there")


def _sample(at: float) -> Sample:
    me = psutil.Process()
    sizes = {"driver": me.memory_info().rss / 1e6, "java": 0.0, "workers": 0.0}
    threads, files, pools = me.num_threads(), me.num_fds(), 0
    others: Counter[str] = Counter()
    for process in me.children(recursive=True):
        try:
            kind = "java" if "java" in process.name() else "workers"
            # What a worker shares with the daemon that it is a fork of is not its own.
            memory = process.memory_info().rss if kind == "java" else process.memory_full_info().uss
            sizes[kind] += memory / 1e6
            if kind == "java":
                names = [path.read_text().strip() for path in Path(f"/proc/{process.pid}/task").glob("*/comm")]
                pools = sum(name in POOLS for name in names)
                counted = [re.sub(r"\d+", "#", name) for name in names if name not in (*POOLS, *WATCHING)]
                others.update(counted)
                threads, files = threads + len(counted), files + process.num_fds()
        except (psutil.Error, OSError):
            continue
    return Sample(at, **sizes, threads=threads, files=files, pools=pools, names=others)


def _figures(samples: list[Sample]) -> dict[str, float]:
    """Sizes at the end, and growth from the second fifth of the time to the last."""
    span = samples[-1].at
    early = [each for each in samples if span / 5 <= each.at < 2 * span / 5]
    late = [each for each in samples if 4 * span / 5 <= each.at]
    figures = {"pools": float(max(each.pools for each in samples))}
    for name in ("driver", "java", "workers", "threads", "files"):
        before, after = (statistics.median(float(getattr(each, name)) for each in part) for part in (early, late))
        unit = "_mb" if name in ("driver", "java", "workers") else ""
        figures |= {f"{name}{unit}": after, f"{name}_growth": after / before - 1 if unit else after - before}
    for name in sorted(set().union(*(each.names for each in samples))):
        before, after = (statistics.median(each.names[name] for each in part) for part in (early, late))
        if after > before:
            figures[f"more of {name}"] = after - before
    return figures


def soak_in_a_process(seconds: int, change_every: int) -> dict[str, float]:
    """As :func:`soak`, in a fresh process."""
    return spark_lab.child("soak", f"soak({seconds}, {change_every})")


def run(quick: bool) -> Figures:
    """Half an hour, a change a minute; if quick a minute, a change every ten seconds."""
    seconds, every = (60, 10) if quick else (60 * MINUTES, 60)
    return soak_in_a_process(seconds, every)


WORKLOAD = Workload(
    name="soak",
    summary="half an hour at 100,000 rows/s with a plan change a minute: growth of memory, threads, open files",
    group="spark",
    run=run,
    repeats=1,
    bars=(
        Bar("driver_growth", "<=", 0.1),
        Bar("java_growth", "<=", 0.1),
        Bar("workers_growth", "<=", 0.1),
        Bar("threads_growth", "<=", 4),
        Bar("pools", "<=", 200),
        Bar("files_growth", "<=", 8),
    ),
)
