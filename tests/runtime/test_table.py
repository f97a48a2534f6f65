"""A plan over a whole table by threads equals the oracle and the engine, whatever the order of rows and the path."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from answers import answer_of, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SECOND, streams, workloads

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import SharedPlan, compile_workload
from workbench.results import batches_of
from workbench.runtime.engine import Engine
from workbench.runtime.reference import Answer, reference
from workbench.runtime.table import Limits, TableRunner

#: All cells at once, in one and in many parts, blocks of keys, and blocks whose cells are sorted where possible.
PATHS = {
    "whole": Limits(),
    "parts": Limits(block=2),
    "blocks": Limits(dense=0, block=64, sparse=1 << 40),
    "sorted": Limits(dense=0, block=64, sparse=0),
}


def answers(plan: SharedPlan, table: pa.Table, threads: int, limits: Limits) -> dict[str, Answer]:
    engine = Engine(plan)
    for query, batch in batches_of(TableRunner(plan, threads, limits).run(table)):
        engine.results[query].apply([batch])
    return {name: answer_of(results) for name, results in engine.results.items()}


@settings(max_examples=150, deadline=None)
@given(workloads(), streams(), st.integers(1, 4), st.sampled_from(sorted(PATHS)))
def test_any_workload_equals_the_oracle(workload: Workload, batches: list[pa.Table], threads: int, path: str) -> None:
    """The table is one micro-batch, in as many chunks as it comes in."""
    table = pa.concat_tables(batches)
    expected, _ = reference(workload, [table])
    for name, answer in answers(compile_workload(workload), table, threads, PATHS[path]).items():
        assert_same(answer, expected[name])


def sensors(rows: int, order: str, kind: pa.DataType, unit: str) -> pa.Table:
    """Rows around 1970 with keys of a type, NULLs in every column, NaN and both zeros."""
    random = np.random.default_rng(3)
    times = random.integers(-200, 400, rows) * 1_000_000
    times = np.sort(times) if order == "sorted" else times
    keys = random.integers(-150, 150, rows)
    key: pa.Array = pa.array(keys)
    if pa.types.is_floating(kind):
        key = pa.array(np.select([keys == 3, keys == 4], [-0.0, np.nan], keys.astype(float)))
    missing = pa.array(random.random(rows) < 0.02)
    value = pa.array(random.integers(-99, 99, rows) / 8, mask=random.random(rows) < 0.1)
    columns = {
        "ts": pa.array(times).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC")),
        "k": key.cast(pa.string() if pa.types.is_dictionary(kind) else kind),
        "j": pa.array(keys % 7),
        "x": value,
    }
    if order != "sorted":
        columns["ts"] = pa.array(columns["ts"].to_pylist(), columns["ts"].type, mask=np.asarray(missing))
    if not pa.types.is_unsigned_integer(kind):
        columns["k"] = pc.if_else(missing, pa.scalar(None, columns["k"].type), columns["k"])
    if pa.types.is_dictionary(kind):
        columns["k"] = columns["k"].dictionary_encode()
    return pa.table(columns)


QUERIES = """
SELECT k, avg(x) AS m, count(*) AS n, max(x) AS most FROM s GROUP BY k, window(ts, '60 seconds', '7 seconds');
SELECT k, j, sum(x) AS t FROM s WHERE x > 0 GROUP BY k, j, window(ts, '50 seconds');
SELECT count(x) AS n FROM s WHERE j <> 2 GROUP BY zoom(ts, '10 seconds', '100 seconds / 10 seconds')
"""


@pytest.mark.parametrize("path", sorted(PATHS))
@pytest.mark.parametrize("order", ["sorted", "any"])
@pytest.mark.parametrize(("kind", "unit"), [(pa.int16(), "ms"), (pa.string(), "s"), (pa.float64(), "us")])
def test_kinds_of_keys_and_times(path: str, order: str, kind: pa.DataType, unit: str) -> None:
    table = sensors(3_000, order, kind, unit)
    for queries in (QUERIES, QUERIES.split(";")[1]):
        stream = Stream("s", table.schema, "ts", 0)
        workload = Workload(stream, tuple(parse_queries(queries, {"s": stream}, name="q")))
        plan = compile_workload(workload)
        engine = Engine(plan)
        engine.run([table])
        for name, answer in answers(plan, table, 3, PATHS[path]).items():
            assert answer
            assert_same(answer, answer_of(engine.results[name]))


def test_an_empty_table_and_one_without_times_have_no_windows() -> None:
    table = sensors(10, "sorted", pa.int16(), "ms")
    stream = Stream("s", table.schema, "ts", 0)
    plan = compile_workload(Workload(stream, tuple(parse_queries(QUERIES, {"s": stream}, name="q"))))
    nowhere = table.set_column(0, "ts", pa.nulls(10, table.schema.field("ts").type))
    assert TableRunner(plan).run(table.slice(0, 0)) == []
    assert TableRunner(plan).run(nowhere) == []


def test_a_band_that_no_row_is_in_has_no_result() -> None:
    stream = Stream("rows", pa.schema([("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())]), "ts", 0)
    table = pa.table({"ts": pa.array([0, 5 * SECOND]), "x": [1, 2]}).cast(stream.schema)
    sql = "SELECT sum(x) AS s FROM rows GROUP BY band_window(ts, '1970-01-01 00:00:01', '1970-01-01 00:00:02')"
    plan = compile_workload(Workload(stream, parse_queries(sql, {"rows": stream}, name="q")))
    assert answers(plan, table, 1, Limits()) == {"q": {}}


def test_the_engine_takes_a_whole_table() -> None:
    table = sensors(500, "sorted", pa.int16(), "ms")
    stream = Stream("s", table.schema, "ts", 0)
    plan = compile_workload(Workload(stream, tuple(parse_queries(QUERIES, {"s": stream}, name="q"))))
    once, stepwise = Engine(plan), Engine(plan)
    stepwise.run([table])
    for name, results in once.run_table(table, threads=2).items():
        assert_same(answer_of(results), answer_of(stepwise.results[name]))
        assert results.extent(0) == stepwise.results[name].extent(0)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_compiled_kernels_on_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case: one row a millisecond with value 1, keys 0 to 9; a window of 10 s has 1,000 rows of each key."""
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    rows = np.arange(200_000)
    table = pa.table({"ts": pa.array(rows).cast(pa.timestamp("ms")), "k": rows % 10, "x": np.ones(len(rows))})
    stream = Stream("s", table.schema, "ts", 0)
    text = "SELECT k, sum(x) AS t FROM s GROUP BY k, window(ts, '10 seconds', '1 second')"
    plan = compile_workload(Workload(stream, tuple(parse_queries(text, {"s": stream}, name="q"))))
    (query,) = plan.queries
    found = answers(plan, table, threads, Limits())[query.query.name]
    assert len(found) == 10 * 209
    for start in range(191):
        bounds = start * SECOND, (start + 10) * SECOND
        assert all(found[0, (key,), *bounds, 0] == (1_000.0,) for key in range(10))
