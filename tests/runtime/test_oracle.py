"""The shared plan against the oracle: any workload, order, split into batches, tasks and buckets, any restart."""

from __future__ import annotations

import os
from dataclasses import replace
from zlib import crc32

import pyarrow as pa
import pytest
from answers import check, same
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from strategies import SECOND, TYPES, streams, workloads

from workbench.logical import Store, Workload
from workbench.plan import compile_workload
from workbench.plan.gag import Algorithm
from workbench.results import Status
from workbench.runtime import BucketOperator
from workbench.runtime.engine import Engine
from workbench.runtime.reference import reference

ALL = tuple(TYPES)


@settings(max_examples=300, deadline=None)
@given(workloads(most=12, types=ALL), streams(), st.integers(1, 3))
def test_all_window_types_mixed_equal_the_oracle(workload: Workload, batches: list[pa.Table], buckets: int) -> None:
    engine = Engine(compile_workload(workload), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)


@settings(max_examples=150, deadline=None)
@given(workloads(), streams(), st.integers(1, 3))
def test_any_workload_equals_the_oracle(workload: Workload, batches: list[pa.Table], buckets: int) -> None:
    engine = Engine(compile_workload(workload), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)


@settings(max_examples=50, deadline=None)
@given(workloads(types=ALL), streams(), st.data())
def test_the_split_into_tasks_changes_nothing(
    workload: Workload, batches: list[pa.Table], data: st.DataObject
) -> None:
    engine = Engine(compile_workload(workload), buckets=2)
    for batch in batches:
        cut = data.draw(st.integers(0, len(batch)))
        engine.step([batch.slice(cut), batch.slice(0, cut)])
    engine.step([], finish=True)
    check(workload, batches, engine)


@settings(max_examples=50, deadline=None)
@given(workloads(types=ALL), streams(), st.data())
def test_a_restart_from_written_state_changes_nothing(
    workload: Workload, batches: list[pa.Table], data: st.DataObject
) -> None:
    """After every micro-batch the state is written; at random ones the operator is made anew from what was."""
    plan = compile_workload(workload)
    engine = Engine(plan, buckets=2)
    written: list[tuple[bytes | None, dict[int, bytes]]] = [(None, {}), (None, {})]
    for batch in [*batches, None]:
        if batch is None:
            engine.step([], finish=True)
        else:
            half = len(batch) // 2
            engine.step([batch.slice(0, half), batch.slice(half)])
        for bucket, operator in enumerate(engine.operators):
            changes = operator.changes()
            kept = {key: value for key, value in written[bucket][1].items() if key not in changes.remove}
            written[bucket] = (changes.meta, kept | changes.put)
            assert BucketOperator.token_of(changes.meta) == operator.token
        if data.draw(st.booleans()):
            for bucket, (meta, blocks) in enumerate(written):
                engine.operators[bucket] = BucketOperator(plan)
                engine.operators[bucket].load(meta, data.draw(st.permutations(list(blocks.values()))))
    check(workload, batches, engine)


@pytest.mark.parametrize("store", [Store.LAZY, Store.EAGER])
@settings(max_examples=60, deadline=None)
@given(workloads(types=ALL), streams(), st.data())
def test_lazy_and_eager_stores_equal_the_oracle(
    store: Store, workload: Workload, batches: list[pa.Table], data: st.DataObject
) -> None:
    """Any order, any split into micro-batches and tasks, and restarts, after which there is no tree yet."""
    plan = compile_workload(replace(workload, stream=replace(workload.stream, store=store)))
    forced = {Store.LAZY: Algorithm.TWO_STACKS, Store.EAGER: Algorithm.FLAT_FAT}[store]
    assert {method.algorithm for method in plan.methods} <= {forced}
    engine = Engine(plan, buckets=2)
    written: list[dict[int, bytes]] = [{}, {}]
    for batch in batches:
        cut = data.draw(st.integers(0, len(batch)))
        engine.step([batch.slice(cut), batch.slice(0, cut)])
        again = data.draw(st.booleans())
        for bucket, operator in enumerate(engine.operators):
            changes = operator.changes()
            kept = {key: value for key, value in written[bucket].items() if key not in changes.remove}
            written[bucket] = kept | changes.put
            if again:
                engine.operators[bucket] = BucketOperator(plan)
                engine.operators[bucket].load(changes.meta, written[bucket].values())
    engine.step([], finish=True)
    check(workload, batches, engine)


@settings(max_examples=60, deadline=None)
@given(workloads(), streams())
def test_provisional_results_are_what_is_known_so_far(workload: Workload, batches: list[pa.Table]) -> None:
    """Whatever a store shows as provisional equals the oracle's answer if the stream ended here."""
    engine = Engine(compile_workload(workload))
    for number, batch in enumerate(batches):
        engine.step([batch])
        expected, _ = reference(workload, batches[: number + 1])
        for name, answer in expected.items():
            store = engine.results[name]
            labels = [level.label for level in store.schema.levels]
            for row in store.table(status=Status.PROVISIONAL).to_pylist():
                start, end = (round(row[side].timestamp() * SECOND) for side in ("window_start", "window_end"))
                key = tuple(row[key] for key, _ in store.schema.keys)
                values = tuple(row[value] for value, _ in store.schema.values)
                assert all(map(same, values, answer[labels.index(row["level"]), key, start, end, 0]))


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@settings(max_examples=1_000, deadline=None)
@given(workloads(most=8, types=ALL), streams(most=120), st.integers(1, 4))
def test_many_workloads_equal_the_oracle(workload: Workload, batches: list[pa.Table], buckets: int) -> None:
    engine = Engine(compile_workload(workload), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)


#: Ten thousand examples in parts, each a test that can be run by itself: a minute or so of array code.
PARTS, PART = 20, 500


@pytest.mark.slow
@pytest.mark.skipif(
    "WINQUERY_NIGHTLY" not in os.environ, reason="half an hour; set WINQUERY_NIGHTLY=1, or 2 for others"
)
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_workloads_equal_the_oracle(part: int) -> None:
    """The value of WINQUERY_NIGHTLY and the part decide which examples these are."""

    @seed(crc32(f"{os.environ['WINQUERY_NIGHTLY']} {part}".encode()))
    @settings(max_examples=PART, deadline=None)
    @given(workloads(most=12, types=ALL), streams(most=80), st.integers(1, 3))
    def equal(workload: Workload, batches: list[pa.Table], buckets: int) -> None:
        engine = Engine(compile_workload(workload), buckets=buckets)
        engine.run(batches)
        check(workload, batches, engine)

    equal()
