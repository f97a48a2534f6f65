"""Frames that end behind the current row: by hand, when they are told, what is kept, and equal to Spark's.

That they equal the oracle in any split and order is in ``test_over.py``: its strategies draw them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from answers import answer_of, assert_same
from each_row import compare, kept_for, ones, rows_at, run, with_peers, without_peers
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SECOND, over_workloads, streams

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine
from workbench.runtime.over_table import OverTable
from workbench.runtime.reference import reference


def test_by_hand() -> None:
    """The peers at 1 s, whose order is that of x, are rows behind one another, and in no frame that begins later::

    time    0  1  1  4  9
    x       1  2  4  8 16
    lead    2  4  8 16  -
    two     4  8 16  0  0   the second row behind, 0 where there is none
    rows    7 14 28 24 16   the row and the two behind it
    around  3  7 14 28 24   the row, the one before and the one behind it
    range   6  8  8  -  -   1 to 3 s behind
    all     7 15 15 15 31   up to 3 s behind
    """
    table = rows_at([0, 1, 1, 4, 9], x=[1, 2, 4, 8, 16])
    sql = (
        "SELECT x, lead(x) OVER w AS lead, lead(x, 2, 0) OVER w AS two, "
        "sum(x) OVER (w ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) AS rows, "
        "sum(x) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS around, "
        "sum(x) OVER (w RANGE BETWEEN INTERVAL '1' SECOND FOLLOWING AND INTERVAL '3' SECOND FOLLOWING) AS span, "
        "sum(x) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '3' SECOND FOLLOWING) AS every "
        "FROM s WINDOW w AS (ORDER BY ts)"
    )
    for cuts in ((), (2,), (1, 3, 4)):
        engine, rows = run(sql, table, cuts, delay=5 * SECOND)
        whole = OverTable(engine.plan).run(table)["q"].to_pylist()
        for found in (rows, whole):
            assert [row["lead"] for row in found] == [2, 4, 8, 16, None]
            assert [row["two"] for row in found] == [4, 8, 16, 0, 0]
            assert [row["rows"] for row in found] == [7, 14, 28, 24, 16]
            assert [row["around"] for row in found] == [3, 7, 14, 28, 24]
            assert [row["span"] for row in found] == [6, 8, 8, None, None]
            assert [row["every"] for row in found] == [7, 15, 15, 15, 31]


def told(engine: Engine, name: str) -> int:
    return len(engine.results[name].table())


def test_a_result_waits_for_what_it_needs_and_no_other_query_waits_with_it() -> None:
    """Case: two rows of a key behind the row, or the watermark 5 s behind it; a stream that ends closes all."""
    table = rows_at([0, 1, 2, 3, 9], k=["a", "a", "a", "b", "b"], x=[1, 2, 4, 8, 16])
    stream = Stream("s", table.schema, "ts", 0)
    window = "PARTITION BY k ORDER BY ts"
    sql = (
        f"SELECT lead(x, 2) OVER ({window}) AS v FROM s; "
        f"SELECT sum(x) OVER ({window} RANGE BETWEEN CURRENT ROW AND INTERVAL '5' SECOND FOLLOWING) AS v FROM s; "
        f"SELECT lag(x) OVER ({window}) AS v FROM s"
    )
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    names, counts = list(engine.results), []
    for place in range(len(table)):
        engine.step([table.slice(place, 1)])
        counts.append([told(engine, name) for name in names])
    # A row passes when a later one comes. At 9 s it is the one at 3 s, and those before 4 s have all they need.
    assert counts == [[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 3], [1, 4, 4]]
    engine.step([], finish=True)
    assert [told(engine, name) for name in names] == [5, 5, 5]
    found = [sorted(row["v"] or 0 for row in engine.results[name].table().to_pylist()) for name in names]
    assert found == [[0, 0, 0, 0, 4], [4, 6, 7, 8, 16], [0, 0, 1, 2, 8]]


@settings(max_examples=60, deadline=None)
@given(over_workloads(), streams(), st.data())
def test_queries_that_are_taken_out_take_nothing_from_others(
    workload: Workload, batches: list[pa.Table], data: st.DataObject
) -> None:
    """While rows are waiting and pending; frames before and behind the row, and such as have no beginning."""
    engine = Engine(compile_workload(workload), buckets=2)
    cut = data.draw(st.integers(0, len(batches)))
    for batch in batches[:cut]:
        engine.step([batch])
    kept = tuple(query for query in workload.queries if data.draw(st.booleans())) or workload.queries[:1]
    after = Workload(workload.stream, kept)
    engine.change(compile_workload(after, running=engine.plan))
    for batch in batches[cut:]:
        engine.step([batch])
    engine.step([], finish=True)
    for name, answer in reference(after, batches)[0].items():
        assert_same(answer_of(engine.results[name], unfilled=name.startswith("c")), answer)


def test_what_is_kept_is_what_frames_still_reach() -> None:
    """100 rows a key, of which one waits to pass; pending ones and those before them that their frames reach."""
    for frame, kept in (
        ("ROWS BETWEEN 2 PRECEDING AND 3 FOLLOWING", 2 + 3),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING", 3),
        # At the watermark 99 s those before 95 s are told.
        ("RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND INTERVAL '4' SECOND FOLLOWING", 5 + 4),
        ("RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '4' SECOND FOLLOWING", 4),
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
    ends = [(-1, 5), (-9_000, 12_000), (-2, -2), (3, 20_000), (None, 7), (None, 15_000)]
    items = []
    for place, (before, behind) in enumerate(ends):
        for kind, unit in (("ROWS", "{}"), ("RANGE", "INTERVAL '{}' MILLISECOND")):
            bounds = [
                "UNBOUNDED PRECEDING"
                if n is None
                else f"{unit.format(abs(n))} {'FOLLOWING' if n > 0 else 'PRECEDING'}"
                for n in (before, behind)
            ]
            items.append(f"sum(x) OVER (w {kind} BETWEEN {bounds[0]} AND {bounds[1]}) AS {kind}{place}")
    sql = f"SELECT {', '.join(items)} FROM s WINDOW w AS (PARTITION BY k ORDER BY ts)"
    workload = Workload(stream, parse_queries(sql, {"s": stream}, name="q"))
    found = OverTable(compile_workload(workload), threads).run(table)["q"]
    for place, (before, behind) in enumerate(ends):
        first = 0 if before is None else np.clip(within + before, 0, rows // 3)
        sizes = np.maximum(np.clip(within + behind + 1, 0, rows // 3) - first, 0)
        for kind in ("ROWS", "RANGE"):
            assert (found[f"{kind}{place}"].fill_null(0).to_numpy() == sizes).all()


@pytest.mark.spark
def test_equal_to_the_batch_answer_of_spark(spark: Any) -> None:
    """Times are distinct within a key for frames by rows; RANGE has peers."""
    table = with_peers(13)
    calls = ["avg(x)", "sum(n)", "count(*)", "min(x)", "stddev_samp(x)", "corr(x, n)"]
    frames = [
        "RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND INTERVAL '3' SECOND FOLLOWING",
        "RANGE BETWEEN INTERVAL '2' SECOND FOLLOWING AND INTERVAL '7' SECOND FOLLOWING",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '3' SECOND FOLLOWING",
        "RANGE BETWEEN CURRENT ROW AND INTERVAL '1' SECOND FOLLOWING",
    ]
    compare(spark, table, [f"ORDER BY ts {frame}" for frame in frames], calls)
    distinct = without_peers(table)
    frames = [
        "ROWS BETWEEN 5 PRECEDING AND 1 FOLLOWING",
        "ROWS BETWEEN 3 FOLLOWING AND 4 FOLLOWING",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
    ]
    compare(spark, distinct, [f"ORDER BY ts {frame}" for frame in frames], calls)
    compare(spark, distinct, ["ORDER BY ts"], ["lead(x)", "lead(n, 3, 7)", "lead(k, 2)", "lead(x, 1, -x)", "lag(x)"])
