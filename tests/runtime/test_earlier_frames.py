"""Frames that end before the current row: by hand, equal to Spark's, and with no more state than they need.

That they equal the oracle in any split and order is in ``test_over.py``: its strategies draw them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from each_row import compare, kept_for, ones, rows_at, run, with_peers, without_peers
from strategies import SECOND

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.over_table import OverTable


def test_by_hand() -> None:
    """Without the row itself, and without its peers::

    time    0  1  1  4  9
    x       1  2  4  8 16
    rows    -  1  3  6 12   the two rows before
    two     0  0  1  2  3   how many rows lie two or more before
    range   -  1  1  7  -   1 to 4 s before
    all     -  -  -  7  15  2 s before and earlier
    """
    table = rows_at([0, 1, 1, 4, 9], x=[1, 2, 4, 8, 16])
    sql = (
        "SELECT x, sum(x) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS a, "
        "count(*) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS b, "
        "sum(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '4' SECOND PRECEDING AND INTERVAL '1' SECOND PRECEDING) "
        "AS c, "
        "sum(x) OVER (ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '2' SECOND PRECEDING) AS d FROM s"
    )
    for cuts in ((), (2,), (1, 3, 4)):
        engine, rows = run(sql, table, cuts, delay=5 * SECOND)
        whole = OverTable(engine.plan).run(table)["q"].to_pylist()
        for found in (rows, whole):
            assert [row["a"] for row in found] == [None, 1, 3, 6, 12]
            assert [row["b"] for row in found] == [0, 0, 1, 2, 3]
            assert [row["c"] for row in found] == [None, 1, 1, 7, None]
            assert [row["d"] for row in found] == [None, None, None, 7, 15]


def test_coarse_times_of_a_table_and_fine_frames() -> None:
    """Times in seconds: at most 2.5 s and at least 1.5 s before is 2 s before."""
    table = pa.table({"ts": pa.array([0, 1, 2, 3, 5]).cast(pa.timestamp("s")), "x": [1, 2, 4, 8, 16]})
    stream = Stream("s", table.schema, "ts", 0)
    frame = "RANGE BETWEEN INTERVAL '2500' MILLISECOND PRECEDING AND INTERVAL '1500' MILLISECOND PRECEDING"
    queries = parse_queries(f"SELECT sum(x) OVER (ORDER BY ts {frame}) AS t FROM s", {"s": stream}, name="q")
    found = OverTable(compile_workload(Workload(stream, queries))).run(table)["q"]
    assert found["t"].to_pylist() == [None, None, 1, 2, 8]


def test_what_is_kept_is_what_frames_still_reach() -> None:
    """100 rows a key and one that waits: the last so many of each, or those of so long; a partial for the others."""
    for frame, kept in (
        ("ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING", 3),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING", 2),
        ("RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND INTERVAL '2' SECOND PRECEDING", 5),
        ("RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '4' SECOND PRECEDING", 4),
    ):
        assert kept_for(frame) == 2 * (kept + 1), frame


@pytest.mark.parametrize("threads", [1, 2])
def test_compiled_kernels_over_a_whole_table(threads: int, monkeypatch: Any) -> None:
    """Case: x = 1 in every row and three keys, so counts and sums are known by hand, over pieces and chunks."""
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    rows = 90_000
    within = np.arange(rows) // 3
    table = ones(rows)
    stream = Stream("s", table.schema, "ts", 0)
    reaches = [(5, 1), (12_000, 9_000), (2, 2), (20_000, 1), (None, 7)]
    items = []
    for place, (most, least) in enumerate(reaches):
        start = "UNBOUNDED" if most is None else most
        items.append(f"sum(x) OVER (w ROWS BETWEEN {start} PRECEDING AND {least} PRECEDING) AS r{place}")
        start = "UNBOUNDED" if most is None else f"INTERVAL '{most}' MILLISECOND"
        end = f"INTERVAL '{least}' MILLISECOND"
        items.append(f"count(*) OVER (w RANGE BETWEEN {start} PRECEDING AND {end} PRECEDING) AS t{place}")
    sql = f"SELECT {', '.join(items)} FROM s WINDOW w AS (PARTITION BY k ORDER BY ts)"
    workload = Workload(stream, parse_queries(sql, {"s": stream}, name="q"))
    found = OverTable(compile_workload(workload), threads).run(table)["q"]
    for place, (most, least) in enumerate(reaches):
        first = 0 if most is None else np.maximum(within - most, 0)
        sizes = np.maximum(within - least + 1 - first, 0)
        assert (found[f"t{place}"].to_numpy() == sizes).all()
        assert (found[f"r{place}"].fill_null(0).to_numpy() == sizes).all()


@pytest.mark.spark
def test_equal_to_the_batch_answer_of_spark(spark: Any) -> None:
    """Times are distinct within a key for frames by rows; RANGE has peers."""
    table = with_peers(9)
    calls = ["avg(x)", "sum(n)", "count(*)", "count(x)", "min(x)", "max(n)", "stddev_samp(x)", "corr(x, n)"]
    frames = [
        "ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND INTERVAL '1' SECOND PRECEDING",
        "ORDER BY ts RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND INTERVAL '7' SECOND PRECEDING",
        "ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '3' SECOND PRECEDING",
    ]
    compare(spark, table, frames, calls)
    distinct = without_peers(table)
    frames = [
        "ORDER BY ts ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING",
        "ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 3 PRECEDING",
        "ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    ]
    compare(spark, distinct, frames, calls)
