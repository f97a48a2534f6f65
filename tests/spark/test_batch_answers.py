"""`window()` and `session_window()` mean what Spark's batch functions of the same name do: all windows, all keys.

On the flights, and on the four traces of the papers' workloads where they are there (``WINQUERY_DATA``, else
``shared/data`` beside the repository).
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from workbench import datasets
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DATA = Path(os.environ.get("WINQUERY_DATA", Path(__file__).parents[3] / "shared" / "data"))
DAY = 86_400_000_000


@dataclass(frozen=True)
class Trace:
    """A stream with keys and a value, and windows that suit it."""

    name: str
    read: Callable[[], pd.DataFrame]
    keys: tuple[str, ...]
    sliding: tuple[str, str]
    gap: str


def _text(name: str, columns: dict[int, str]) -> pd.DataFrame:
    path = DATA / f"{name}.txt.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in {DATA.name}; set WINQUERY_DATA")
    with gzip.open(path, "rt") as file:
        frame = pd.read_csv(file, sep=r"\s+", header=None)
    return frame[list(columns)].rename(columns=columns)


def _seconds(name: str, columns: dict[int, str]) -> pd.DataFrame:
    frame = _text(name, columns)
    return frame.assign(ts=pd.to_datetime(frame["ts"], unit="s", utc=True))


def _flights() -> pd.DataFrame:
    table = pq.read_table(datasets.flights().paths[0], columns=["ts", "carrier", "dep_delay"])
    return table.filter(pa.compute.is_valid(table["dep_delay"])).to_pandas()


def _manufacturing() -> pd.DataFrame:
    frame = _text("manufacturing-debs2012", {0: "ts", 2: "power", 40: "valve"})
    return frame.assign(ts=pd.to_datetime(frame["ts"].str.slice(0, 26) + "Z", utc=True))


TRACES = [
    Trace("flights", _flights, ("carrier",), ("2 hours", "10 minutes"), "45 minutes"),
    Trace(
        "cluster",
        lambda: _seconds("google-cluster", {0: "ts", 8: "cpu", 6: "category", 7: "priority"}),
        ("category", "priority"),
        ("60 seconds", "1 second"),
        "1 second",
    ),
    Trace(
        "grid",
        lambda: _seconds("smartgrid-debs2014", {0: "ts", 1: "value", 3: "plug", 4: "household", 5: "house"}),
        ("plug", "household", "house"),
        ("128 seconds", "1 second"),
        "2 seconds",
    ),
    Trace(
        "roads",
        lambda: _seconds("linear-road", {0: "ts", 2: "speed", 1: "vehicle", 5: "direction"}),
        ("vehicle", "direction"),
        ("300 seconds", "1 second"),
        "30 seconds",
    ),
    Trace("machine", _manufacturing, ("valve",), ("1 second", "300 milliseconds"), "15 milliseconds"),
]


@pytest.mark.parametrize("form", ["window", "session_window"])
@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_equals_sparks_batch_answer(spark: SparkSession, trace: Trace, form: str, tmp_path: Path) -> None:
    frame = trace.read()
    value = next(name for name in frame if name not in ("ts", *trace.keys))
    frame["ts"] = frame["ts"].astype("datetime64[us, UTC]")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    arguments = trace.sliding if form == "window" else (trace.gap,)
    quoted = ", ".join(f"'{text}'" for text in arguments)
    call = f"{form}(ts, {quoted})"
    found = _ours(table, trace.keys, value, call)

    pq.write_table(table, tmp_path / "rows.parquet")
    window = F.window("ts", *arguments) if form == "window" else F.session_window("ts", *arguments)
    grouped = spark.read.parquet(str(tmp_path / "rows.parquet")).groupBy(*trace.keys, window.alias("w"))
    answer = grouped.agg(F.count("*").alias("n"), F.max(value).alias("most"), F.avg(value).alias("mean"))
    bounds = F.unix_micros("w.start").alias("start"), F.unix_micros("w.end").alias("end")
    expected = answer.select(*trace.keys, *bounds, "n", "most", "mean").toArrow().to_pandas()

    order = [*trace.keys, "start"]
    found, expected = (side.sort_values(order).reset_index(drop=True) for side in (found, expected))
    assert len(expected) > 10
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-9)


def _ours(table: pa.Table, keys: tuple[str, ...], value: str, call: str) -> pd.DataFrame:
    """The same by the shared plan: in random order, in ten micro-batches, nothing late."""
    stream = Stream("s", table.schema, "ts", 1_000 * DAY)
    names = ", ".join(keys)
    sql = f"SELECT {names}, count(*) AS n, max({value}) AS most, avg({value}) AS mean FROM s GROUP BY {names}, {call}"
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    mixed = table.take(np.random.default_rng(7).permutation(len(table)))
    step = -(-len(table) // 10)
    for first in range(0, len(table), step):
        engine.step([mixed.slice(first, step)])
    engine.step([], finish=True)
    result = engine.results["q"].table()
    bounds = {name: result[f"window_{name}"].cast(pa.int64()) for name in ("start", "end")}
    columns = {name: result[name] for name in (*keys, "n", "most", "mean")}
    frame = pa.table({**columns, **bounds}).to_pandas()
    return frame[[*keys, "start", "end", "n", "most", "mean"]]
