"""What the workloads on Spark share: a recorded stream of any size, processes of their own, sums of all results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import SharedPlan, compile_workload
from workbench.results import Status
from workbench.runtime.wire import Report
from workbench.time import SECOND

SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("key", pa.int32()), ("x", pa.float64())])
KEYS = 1_000
#: Rows of event time in a file.
SPAN = 180 * SECOND
FILES = 20
DELAY = 1 * SECOND
QUICK_ROWS = 400_000

VALUES = "avg(x) AS mean, max(x) AS top, count(*) AS n"
ONE = ("1 minute / 1 second",)
DASHBOARD = (
    "10 seconds / 1 second",
    "30 seconds / 1 second",
    "1 minute / 1 second",
    "2 minutes / 2 seconds",
    "5 minutes / 5 seconds",
    "10 minutes / 10 seconds",
    "15 minutes / 15 seconds",
    "20 minutes / 20 seconds",
    "30 minutes / 30 seconds",
    "1 hour / 1 minute",
)


def recording(rows: int) -> list[str]:
    """Files with an hour of ``rows`` rows in order, keys 0 to 999 at random, whole numbers as doubles; made once.

    Whole numbers, so that sums are the same in any order.
    """
    folder = Path(tempfile.gettempdir()) / f"winquery-bench-{os.getuid()}-{rows}"
    done = folder / "done"
    if not done.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        for number in range(FILES):
            _write(folder / f"{number:02d}.parquet", number, rows // FILES)
        done.touch()
    return sorted(map(str, folder.glob("*.parquet")))


def _write(path: Path, number: int, rows: int) -> None:
    chance = np.random.default_rng(number)
    times = number * SPAN + np.arange(rows) * SPAN // rows
    keys, values = chance.integers(0, KEYS, rows, np.int32), chance.integers(0, 1_000, rows).astype(np.float64)
    columns = [pa.array(times).cast(SCHEMA.field("ts").type), pa.array(keys), pa.array(values)]
    pq.write_table(pa.table(columns, schema=SCHEMA), path, row_group_size=1 << 17)


def plan(levels: Sequence[str], *, keyed: bool = True, values: str = VALUES) -> SharedPlan:
    """One query ``q`` of all levels on the recording."""
    stream = Stream("events", SCHEMA, "ts", DELAY)
    zoom = ", ".join(f"'{level}'" for level in levels)
    key, by = ("key, ", "key, ") if keyed else ("", "")
    sql = f"SELECT {key}{values} FROM events GROUP BY {by}zoom(ts, {zoom})"
    return compile_workload(Workload(stream, parse_queries(sql, {"events": stream}, name="q")))


@dataclass
class Totals:
    """Sums over all final results of each level, which two engines must agree on."""

    windows: dict[int, int] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    tops: dict[int, float] = field(default_factory=dict)

    def __call__(self, reports: list[Report]) -> None:
        for _, batch in (each for report in reports for each in report.results):
            columns = batch.own()
            final = columns.status == Status.FINAL
            *_, top, n = (column.to_numpy(zero_copy_only=False)[final] for column in columns.values)
            self.windows[batch.level] = self.windows.get(batch.level, 0) + int(final.sum())
            self.rows[batch.level] = self.rows.get(batch.level, 0) + int(n.sum())
            self.tops[batch.level] = self.tops.get(batch.level, 0.0) + float(top.sum())

    def of(self, level: int) -> list[float]:
        """Windows, sum of counts, sum of maxima."""
        return [self.windows.get(level, 0), self.rows.get(level, 0), self.tops.get(level, 0.0)]


def run_plan(session: Any, compiled: SharedPlan, paths: Sequence[str], on_reports: Any, **options: Any) -> Any:
    """Run a plan over files to its end, at full speed; the progress at the end. Raises where it fails."""
    from workbench.feeds import ReplayOptions
    from workbench.spark.runner import StreamRunner

    return _to_its_end(StreamRunner(session, compiled, ReplayOptions(tuple(paths), **options), on_reports))


def run_backfill(session: Any, compiled: SharedPlan, paths: Sequence[str], on_reports: Any) -> Any:
    """The same in one job."""
    from workbench.feeds import ReplayOptions
    from workbench.spark.backfill import RecordingBackfill

    return _to_its_end(RecordingBackfill(session, compiled, ReplayOptions(tuple(paths)), on_reports))


def _to_its_end(runner: Any) -> Any:
    runner.start()
    runner.wait()
    progress = runner.progress()
    if progress.state != "finished":
        raise RuntimeError(f"{progress.error}\n{progress.details}")
    return progress


def our_session() -> Any:
    """Two cores, as every contestant gets."""
    from workbench.spark.session import get_session

    return get_session(master="local[2]")


def default_session() -> Any:
    """A Spark as its users start it, with both of Java's compilers; as many partitions as cores, which helps it."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def child(module: str, call: str, timeout: int = 7_200) -> dict[str, Any]:
    """What ``call``, an expression in a module of the workloads, gives in a fresh process, through JSON."""
    code = f"import json; from benchmarks.workloads import {module} as w; print(json.dumps(w.{call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(f"{module}.{call}: {done.stderr[-4_000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
