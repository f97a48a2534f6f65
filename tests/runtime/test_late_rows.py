"""Rows out of order without a key: neighbours go to different cells of a slice where the order does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from answers import check

from workbench.kernels import later
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine
from workbench.runtime.folding import Folder
from workbench.time import SECOND

EXACT = "sum(x) AS s, count(x) AS c, count(*) AS n, min(x) AS low, max(x) AS high, min(y) AS least"


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    later.compile_all()


def rows(count: int) -> pa.Table:
    """Three of ten rows up to two seconds late, one of ten without a value, integers at both ends of their range."""
    random = np.random.default_rng(31)
    times = np.arange(count) * (40 * SECOND // count)
    times = times[np.argsort(times + np.where(random.random(count) < 0.3, random.random(count) * 2 * SECOND, 0))]
    values = random.integers(-1_000, 1_000, count)
    values[random.integers(0, count, 20)] = 2**62
    values[random.integers(0, count, 20)] = -(2**63)
    floats = np.round(random.normal(size=count), 3)
    floats[random.integers(0, count, 3)] = [np.nan, np.inf, -np.inf]
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "x": pa.array(values, mask=random.random(count) < 0.1),
            "y": floats,
        }
    )


def workload(values: str, table: pa.Table) -> Workload:
    stream = Stream("rows", table.schema, "ts", 2 * SECOND)
    sql = f"SELECT {values} FROM rows GROUP BY zoom(ts, '3 seconds', '7 seconds')"
    return Workload(stream, parse_queries(sql, {"rows": stream}, name="q"))


@pytest.mark.parametrize("whole", [False, True])
def test_sums_and_extremes_equal_the_oracle(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    table, spread = rows(4_000), list[int]()
    known = Folder._fold_lanes

    def noted(*given: Any) -> None:
        spread.append(len(given[1]))
        known(*given)

    monkeypatch.setattr(Folder, "_fold_lanes", noted)
    queries = workload(EXACT.replace("sum(x)", "try_sum(x)"), table)
    engine = Engine(compile_workload(queries))
    if whole:
        engine.run_table(table, threads=2)
    else:
        engine.run([table.slice(0, 1_500), table.slice(1_500)])
    assert sum(spread) == len(table)
    check(queries, [table], engine)


def test_what_rounds_is_folded_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a sum of floats is that of one loop over the rows of a batch."""
    monkeypatch.setattr(Folder, "_fold_lanes", None)
    table = rows(4_000)
    finite = pa.array(np.random.default_rng(3).normal(size=len(table)))
    table = table.set_column(2, "y", finite)
    engine = Engine(compile_workload(workload("sum(y) AS s", table)))
    found = engine.run([table])["q"].table("7 seconds")
    times, values = table["ts"].cast(pa.int64()).to_numpy(), finite.to_numpy()
    for start, total in zip(found["window_start"].cast(pa.int64()).to_pylist(), found["s"].to_pylist(), strict=True):
        own = values[(times >= start) & (times < start + 7 * SECOND)]
        assert total == pytest.approx(own.sum(), rel=1e-12)
