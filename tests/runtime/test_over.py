"""OVER: a result for each row, equal to the oracle's, whatever the split, order and restarts, and to Spark's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from answers import answer_of, assert_same, same
from each_row import compare, kept_for, rows_at, run, with_peers, without_peers
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CLOSE, SECOND, over_workloads, streams

from workbench.errors import DataError
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime import BucketOperator
from workbench.runtime.engine import Engine
from workbench.runtime.over_table import OverTable
from workbench.runtime.reference import reference


def check(workload: Workload, batches: list[pa.Table], engine: Engine) -> None:
    expected, late = reference(workload, batches)
    for name, answer in expected.items():
        assert_same(answer_of(engine.results[name], unfilled=name.startswith("c")), answer)
    assert engine.late == late


@settings(max_examples=100, deadline=None)
@given(over_workloads(), streams(), st.integers(1, 3))
def test_any_frames_equal_the_oracle(workload: Workload, batches: list[pa.Table], buckets: int) -> None:
    engine = Engine(compile_workload(workload), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)


@settings(max_examples=40, deadline=None)
@given(over_workloads(), streams(), st.data())
def test_tasks_and_restarts_change_nothing(workload: Workload, batches: list[pa.Table], data: st.DataObject) -> None:
    """Every micro-batch comes in two tasks; at random ones the operators start anew from written state."""
    plan = compile_workload(workload)
    engine = Engine(plan, buckets=2)
    written: list[tuple[bytes | None, dict[int, bytes]]] = [(None, {}), (None, {})]
    for batch in batches:
        cut = data.draw(st.integers(0, len(batch)))
        engine.step([batch.slice(cut), batch.slice(0, cut)])
        for bucket, operator in enumerate(engine.operators):
            changes = operator.changes()
            kept = {key: value for key, value in written[bucket][1].items() if key not in changes.remove}
            written[bucket] = (changes.meta, kept | changes.put)
        if data.draw(st.booleans()):
            for bucket, (meta, blocks) in enumerate(written):
                engine.operators[bucket] = BucketOperator(plan)
                engine.operators[bucket].load(meta, blocks.values())
    engine.step([], finish=True)
    check(workload, batches, engine)


@settings(max_examples=30, deadline=None)
@given(over_workloads(most=1), streams(), st.randoms())
def test_the_order_of_arrival_changes_nothing(workload: Workload, batches: list[pa.Table], random: Any) -> None:
    """Also where times are equal and frames go by rows."""
    table = pa.concat_tables(batches).combine_chunks()
    order = list(range(len(table)))
    random.shuffle(order)
    answers = []
    for rows in (table, table.take(pa.array(order, pa.int64()))):
        engine = Engine(compile_workload(workload))
        engine.run([rows])
        answers.append(answer_of(engine.results["q0"]))
    assert_same(answers[0], answers[1])


def test_both_kinds_of_frames_and_peers() -> None:
    """By hand::

    time    0  1  1  4  9
    x       1  2  4  8 16
    range   1  7  7 14 16      [time - 3, time], both rows at 1 are in each other's frame
    rows    1  3  6 12 24      the row before and the row
    all     1  7  7 15 31      no frame: all rows up to the row's time
    """
    table = rows_at([0, 1, 1, 4, 9], x=[1, 2, 4, 8, 16])
    _, rows = run(
        "SELECT x, sum(x) OVER (ORDER BY ts RANGE INTERVAL '3' SECOND PRECEDING) AS a, "
        "sum(x) OVER (ORDER BY ts ROWS 1 PRECEDING) AS b, sum(x) OVER (ORDER BY ts) AS c FROM s",
        table,
        (2,),
        delay=5 * SECOND,
    )
    assert [row["x"] for row in rows] == [1, 2, 4, 8, 16]
    assert [row["a"] for row in rows] == [1, 7, 7, 14, 16]
    assert [row["b"] for row in rows] == [1, 3, 6, 12, 24]
    assert [row["c"] for row in rows] == [1, 7, 7, 15, 31]


def test_a_float_sum_forgets_what_has_left_its_frame() -> None:
    """Cases N1, N3, N4: zeros after other values are exactly 0, 1e90 and inf live in their own frames alone."""
    table = rows_at(list(range(8)), x=[2.06, 0.888889, 0.0, 0.0, 1e90, 1.0, 1.0, float("inf")])
    _, rows = run("SELECT sum(x) OVER (ORDER BY ts ROWS 1 PRECEDING) AS t FROM s", table)
    assert [row["t"] for row in rows] == [2.06, 2.06 + 0.888889, 0.888889, 0.0, 1e90, 1e90, 2.0, float("inf")]


def test_overflow_is_an_error_where_it_happens_alone() -> None:
    """Case N7."""
    table = rows_at([0, 1, 2], x=[2**63 - 1, 1, -1])
    _, rows = run("SELECT try_sum(x) OVER (ORDER BY ts ROWS 1 PRECEDING) AS t FROM s", table)
    assert [row["t"] for row in rows] == [2**63 - 1, None, 0]
    with pytest.raises(Exception, match="integer overflow in `sum"):
        run("SELECT sum(x) OVER (ORDER BY ts ROWS 1 PRECEDING) AS t FROM s", table)


def test_what_is_kept_is_what_frames_still_reach() -> None:
    """100 rows a key; of each the last 3 are kept for ROWS, those of the last 5 s for RANGE, none for UNBOUNDED."""
    for frame, kept in (
        ("ROWS 3 PRECEDING", 3),
        ("RANGE INTERVAL '5' SECOND PRECEDING", 5),
        ("ROWS UNBOUNDED PRECEDING", 0),
    ):
        # The row at 99 s waits: another one of its time may come.
        assert kept_for(frame) == 2 * (kept + 1), frame


@pytest.mark.spark
def test_equal_to_the_batch_answer_of_spark(spark: Any) -> None:
    """Times are distinct within a key for frames by rows, where Spark has no order of equal ones; RANGE has peers."""
    table = with_peers(8)
    frames = [
        "ORDER BY ts",
        "ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW",
        "ORDER BY ts RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    ]
    calls = [
        "avg(x)",
        "sum(n)",
        "count(*)",
        "count(x)",
        "min(x)",
        "max(n)",
        "stddev_samp(x)",
        "var_pop(x)",
        "corr(x, n)",
    ]
    compare(spark, table, frames, calls)
    distinct = without_peers(table)
    rows_frames = ["ROWS BETWEEN 4 PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING", "ROWS CURRENT ROW"]
    compare(spark, distinct, [f"ORDER BY ts {frame}" for frame in rows_frames], calls)


def of_table(workload: Workload, table: pa.Table, threads: int) -> dict[str, list[tuple[Any, ...]]]:
    found = OverTable(compile_workload(workload), threads).run(table)
    return {name: [tuple(row.values()) for row in values.to_pylist()] for name, values in found.items()}


@settings(max_examples=80, deadline=None)
@given(over_workloads(), streams(), st.integers(1, 3))
def test_a_whole_table_equals_the_oracle(workload: Workload, batches: list[pa.Table], threads: int) -> None:
    """Results stand where their rows do; so those of one key and time are compared as a set."""
    table = pa.concat_tables(batches)
    expected, _ = reference(workload, [table])
    for name, rows in of_table(workload, table, threads).items():
        wanted = list(expected[name].values())
        assert len(rows) == len(wanted)
        for mine, other in zip(sorted(rows, key=ordered), sorted(wanted, key=ordered), strict=True):
            assert all(map(same, mine, other)), (mine, other)


@settings(max_examples=60, deadline=None)
@given(over_workloads(), streams(times=CLOSE), st.integers(1, 3))
def test_the_engine_takes_a_whole_table(workload: Workload, batches: list[pa.Table], threads: int) -> None:
    """Rows of equal time stand as they do in a stream, also where no frame depends on it."""
    engine = Engine(compile_workload(workload))
    table = pa.concat_tables(batches)
    engine.run_table(table, threads=threads)
    check(workload, [table], engine)


def test_a_time_out_of_reach_is_an_error_for_a_whole_table_too() -> None:
    table = pa.table({"ts": pa.array([0, (1 << 62) + 1]).cast(pa.timestamp("us", "UTC")), "x": [1, 2]})
    stream = Stream("s", table.schema, "ts", 0)
    queries = parse_queries("SELECT sum(x) OVER (ORDER BY ts) AS t FROM s", {"s": stream}, name="q")
    plan = compile_workload(Workload(stream, queries))
    with pytest.raises(DataError, match="a time in column `ts` is further than 146,000 years from 1970"):
        Engine(plan).run_table(table)


def ordered(row: tuple[Any, ...]) -> str:
    """The last digits of floats differ with the order of adding, so rows are not sorted by them."""

    def rounded(cell: Any) -> Any:
        if isinstance(cell, list):
            return list(map(rounded, cell))
        return f"{cell + 0.0:.6g}" if isinstance(cell, float) else cell

    return str(list(map(rounded, row)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keys", [0, 3])
@pytest.mark.parametrize("step", [1, 1_000])
def test_compiled_kernels_over_a_whole_table(threads: int, keys: int, step: int, monkeypatch: Any) -> None:
    """Case: x = 1 in every row, two rows at each time; so counts and sums of a frame are known by hand.

    Frames of a few rows, and of more than two chunks of them, by time and by rows, in milliseconds and microseconds.
    """
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    rows, group = 60_000, max(keys, 1)
    times = pa.array(np.arange(rows) // (2 * group) * step).cast(pa.timestamp("ms"))
    key = np.arange(rows) % group
    table = pa.table({"ts": times, "k": key, "x": np.ones(rows), "n": np.arange(rows) % 7})
    stream = Stream("s", table.schema, "ts", 0)
    by = "PARTITION BY k " if keys else ""
    reaches = {"few": 10 * step, "many": 9_000 * step}
    items = []
    for name, ms in reaches.items():
        over = f"OVER ({by}ORDER BY ts RANGE INTERVAL '{ms}' MILLISECOND PRECEDING)"
        items += [f"avg(n) {over} AS a_{name}", f"sum(x) {over} AS s_{name}"]
    for n in (5, 12_000):
        over = f"OVER ({by}ORDER BY ts ROWS {n} PRECEDING)"
        items += [f"avg(x) {over} AS m_{n}", f"sum(n) {over} AS r_{n}"]
    workload = Workload(stream, parse_queries(f"SELECT {', '.join(items)} FROM s", {"s": stream}, name="q"))
    found = OverTable(compile_workload(workload), threads).run(table)["q"]
    within = np.arange(rows) // group  # the row's place among those of its key
    for name, ms in reaches.items():
        first = np.maximum(within // 2 - ms // step, 0) * 2
        assert (found[f"s_{name}"].to_numpy() == within // 2 * 2 + 2 - first).all()
    for n in (5, 12_000):
        assert (found[f"m_{n}"].to_numpy() == 1).all()
    values = table["n"].to_numpy()
    for row in (0, 1, 2, 4_095, 12_287, 12_288, 30_001, rows - 1):
        mine = key == key[row]
        for name, ms in reaches.items():
            low = within // 2 >= within[row] // 2 - ms // step
            inside = mine & low & (within // 2 <= within[row] // 2)
            assert found[f"a_{name}"][row].as_py() == pytest.approx(values[inside].mean())
        # Rows of equal time are ordered by what is read of them, n and then x.
        order = np.lexsort((values, within // 2))
        order = order[mine[order]]
        at = int(np.flatnonzero(order == row)[0])
        for n in (5, 12_000):
            assert found[f"r_{n}"][row].as_py() == values[order[max(0, at - n) : at + 1]].sum()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keys", [0, 3])
@pytest.mark.parametrize("shuffled", [False, True])
def test_peers_are_taken_together(threads: int, keys: int, shuffled: bool, monkeypatch: Any) -> None:
    """Frames by time alone, none to twelve rows of a key at each time, every fifth value NULL: sampled, by NumPy."""
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    chance = np.random.default_rng(5)
    rows, group = 60_000, max(keys, 1)
    times, key = np.sort(chance.integers(0, rows // (4 * group), rows)), chance.integers(0, group, rows)
    if shuffled:
        times = chance.permutation(times)
    x, empty = chance.integers(-50, 50, rows).astype(float), np.arange(rows) % 5 == 0
    table = pa.table({"ts": pa.array(times).cast(pa.timestamp("ms")), "k": key, "x": x, "y": pa.array(x, mask=empty)})
    stream = Stream("s", table.schema, "ts", 0)
    by, items = ("PARTITION BY k " if keys else ""), []
    reaches = {"few": 20, "many": 3_000}
    for name, ms in reaches.items():
        over = f"OVER ({by}ORDER BY ts RANGE INTERVAL '{ms}' MILLISECOND PRECEDING)"
        items += [f"avg(x) {over} AS mean_{name}", f"count(*) {over} AS n_{name}", f"min(y) {over} AS least_{name}"]
        items += [f"x - avg(x) {over} AS off_{name}", f"sum(y) {over} AS sum_{name}"]
    workload = Workload(stream, parse_queries(f"SELECT {', '.join(items)} FROM s", {"s": stream}, name="q"))
    found = OverTable(compile_workload(workload), threads).run(table)["q"]
    for row in [0, 1, 2, 3, 77, 4_096, 30_000, rows - 2, rows - 1]:
        for name, ms in reaches.items():
            inside = (times >= times[row] - ms) & (times <= times[row]) & ((key == key[row]) | (not keys))
            known = x[inside & ~empty]
            assert found[f"n_{name}"][row].as_py() == inside.sum()
            assert found[f"mean_{name}"][row].as_py() == pytest.approx(x[inside].mean())
            assert found[f"off_{name}"][row].as_py() == pytest.approx(x[row] - x[inside].mean())
            assert found[f"least_{name}"][row].as_py() == (known.min() if len(known) else None)
            assert found[f"sum_{name}"][row].as_py() == (pytest.approx(known.sum()) if len(known) else None)


@pytest.mark.parametrize("spacing", ["ties", "even", "uneven", "bursts"])
def test_every_mean_of_many_rows_is_exact(spacing: str, monkeypatch: Any) -> None:
    """Whole numbers, whose sums are exact in any order, so that every mean is one division of what is known.

    Some frames begin at the first row for long, or always; pieces, tiles and chunks begin at any row of a time.
    """
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    chance = np.random.default_rng(11)
    rows = 60_000
    times = {
        "ties": np.arange(rows) * 3 // 8,
        "even": np.arange(rows) * 2,
        "uneven": np.cumsum(chance.integers(1, 4, rows)),
        "bursts": np.cumsum(np.where(chance.random(rows) < 0.1, chance.integers(1, 30, rows), 0)),
    }[spacing]
    x = chance.integers(-1_000, 1_000, rows).astype(float)
    table = pa.table({"ts": pa.array(times).cast(pa.timestamp("ms")), "x": x})
    stream = Stream("s", table.schema, "ts", 0)
    span = int(times[-1])
    reaches = [span // 5, span // 3 + 1, span // 2, 2 * span]
    items = [
        f"avg(x) OVER (ORDER BY ts RANGE INTERVAL '{ms}' MILLISECOND PRECEDING) AS m{place}"
        for place, ms in enumerate(reaches)
    ]
    workload = Workload(stream, parse_queries(f"SELECT {', '.join(items)} FROM s", {"s": stream}, name="q"))
    found = OverTable(compile_workload(workload), 2).run(table)["q"]
    sums, last = np.concatenate([[0.0], np.cumsum(x)]), np.searchsorted(times, times, "right")
    for place, ms in enumerate(reaches):
        first = np.searchsorted(times, times - ms)
        assert (found[f"m{place}"].to_numpy() == (sums[last] - sums[first]) / (last - first)).all(), ms
