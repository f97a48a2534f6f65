"""Plans that change while the stream runs, against the oracle: what goes on is untouched, what begins is exact.

::

    rows      . ..  . .  | . . .. .  .           | the change, between two micro-batches
    goes on   [------)[------)[------)           as if nothing had happened
    begins    [---------)                        partly seen: nothing is told of it, provisional or final
                          [---------)            wholly behind all rows that came before: as any other
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from answers import answer_of, assert_same, same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TYPES, streams, workloads

from workbench.errors import EngineError, QueryError
from workbench.logical import (
    AggregateCall,
    CountWindow,
    LastRows,
    Punctuation,
    Query,
    Session,
    Stream,
    Window,
    Workload,
)
from workbench.plan import SharedPlan, compile_workload
from workbench.runtime import BucketOperator
from workbench.runtime.engine import Engine
from workbench.runtime.reference import Answer, reference

ALL = tuple(TYPES)


def cannot_begin(query: Query) -> bool:
    """A session with a gap of each row's own cannot begin in the middle."""
    return any(isinstance(window, Session) and not isinstance(window.gap, int) for window in query.windows)


def finals(engine: Engine, query: Query) -> Answer:
    return answer_of(engine.results[query.name], any(isinstance(window, CountWindow) for window in query.windows))


def times_of(batches: list[pa.Table]) -> list[int]:
    return [time for batch in batches for time in batch.column("ts").cast(pa.int64()).to_pylist()]


def check_begun(found: Answer, query: Query, batches: list[pa.Table], changed: int) -> None:
    """The results of a query that began before micro-batch ``changed``."""
    before = times_of(batches[:changed])
    since = max(before) + 1 if before else -math.inf
    unseen = (
        [batch.filter(pa.compute.greater_equal(batch.column("ts").cast(pa.int64()), int(since))) for batch in batches]
        if before
        else batches
    )
    workload = Workload(query.stream, (query,))
    whole, after = (reference(workload, rows)[0][query.name] for rows in (batches, unseen))
    reach = [
        window.gap + window.joins - 1 if isinstance(window, Session) and isinstance(window.gap, int) else 0
        for window in query.windows
    ]
    expected = {place: values for place, values in whole.items() if place[2] >= since + reach[place[0]]}
    match query.windows[0]:
        case CountWindow():
            assert_same(found, after)
            return
        case LastRows() | Punctuation() if before:
            # Where a key has no full window or no mark yet, nobody can know whether there were earlier rows.
            both = {
                place: values
                for place, values in expected.items()
                if place in after and all(map(same, values, after[place]))
            }
            told = {
                place: first for place in found if (first := min(p[2] for p in found if p[1] == place[1])) is not None
            }
            for place in both.keys() - found.keys():
                assert all(place[2] <= first for other, first in told.items() if other[1] == place[1])
            assert_same(found, {place: values for place, values in both.items() if place in found})
        case _:
            assert_same(found, expected)


def reload(
    engine: Engine, written: list[tuple[bytes | None, dict[int, bytes]]], plan: SharedPlan, version: int
) -> None:
    """Make every operator anew from what was written by a version of the plan."""
    for bucket, (meta, blocks) in enumerate(written):
        engine.operators[bucket] = BucketOperator(plan, version)
        engine.operators[bucket].load(meta, blocks.values())


def write(engine: Engine, written: list[tuple[bytes | None, dict[int, bytes]]]) -> None:
    for bucket, operator in enumerate(engine.operators):
        changes = operator.changes()
        kept = {} if changes.afresh else written[bucket][1]
        kept = {key: value for key, value in kept.items() if key not in changes.remove}
        written[bucket] = (changes.meta, kept | changes.put)


@st.composite
def histories(
    draw: st.DrawFn, types: tuple[str, ...]
) -> tuple[list[pa.Table], list[Query], dict[str, tuple[int, int]]]:
    """Micro-batches, queries, and the micro-batches before which each of them comes and goes."""
    batches = draw(streams())
    workload = draw(workloads(most=5, types=types))
    life = {}
    for query in workload.queries:
        comes = 0 if cannot_begin(query) else draw(st.integers(0, len(batches)))
        goes = draw(st.one_of(st.just(len(batches) + 1), st.integers(comes + 1, len(batches) + 1)))
        life[query.name] = comes, goes
    return batches, list(workload.queries), life


def replay(
    batches: list[pa.Table], queries: list[Query], life: dict[str, tuple[int, int]], data: st.DataObject
) -> None:
    stream = queries[0].stream
    engine: Engine | None = None
    running: list[Query] = []
    gone: dict[str, Answer] = {}
    written: list[tuple[bytes | None, dict[int, bytes]]] = [(None, {}), (None, {})]
    version_written = 0
    for number, batch in enumerate([*batches, None]):
        wanted = [query for query in queries if life[query.name][0] <= number < life[query.name][1]]
        plan_written = None if engine is None else engine.plan
        if engine is None:
            engine = Engine(compile_workload(Workload(stream, tuple(wanted))), buckets=2)
        elif wanted != running:
            gone |= {query.name: finals_so_far(engine, query) for query in running if query not in wanted}
            engine.change(compile_workload(Workload(stream, tuple(wanted)), running=engine.plan))
            if plan_written is not None and data.draw(st.booleans()):  # a crash before the change was written
                reload(engine, written, plan_written, version_written)
                for operator in engine.operators:
                    operator.change(engine.plan, engine.version)
        running = wanted
        engine.step([] if batch is None else [batch], finish=batch is None)
        write(engine, written)
        version_written = engine.version
        if data.draw(st.booleans()):
            reload(engine, written, engine.plan, engine.version)
    assert engine is not None
    for query in queries:
        comes, goes = life[query.name]
        if goes > len(batches):
            if comes == 0:
                assert_same(finals(engine, query), reference(Workload(stream, (query,)), batches)[0][query.name])
            else:
                check_begun(finals(engine, query), query, batches, comes)
    if not running:
        assert all(branch.nbytes == 0 for operator in engine.operators for branch in operator.state.branches)


def finals_so_far(engine: Engine, query: Query) -> Answer:
    return {}


@settings(max_examples=60, deadline=None)
@given(histories(("sliding", "session")), st.data())
def test_any_change_of_sliding_windows_and_sessions(
    history: tuple[list[pa.Table], list[Query], dict[str, tuple[int, int]]], data: st.DataObject
) -> None:
    replay(*history, data)


@settings(max_examples=100, deadline=None)
@given(histories(ALL), st.data())
def test_any_change_of_all_window_types(
    history: tuple[list[pa.Table], list[Query], dict[str, tuple[int, int]]], data: st.DataObject
) -> None:
    replay(*history, data)
