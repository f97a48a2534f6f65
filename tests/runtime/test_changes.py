"""Plans that change while the stream runs, against the oracle: what goes on is untouched, what begins is exact.

::

    rows      . ..  . .  | . . .. .  .           | the change, between two micro-batches
    goes on   [------)[------)[------)           as if nothing had happened
    begins    [---------)                        partly seen: nothing is told of it, provisional or final
                          [---------)            wholly behind all rows that came before: as any other
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from answers import answer_of, assert_same, same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SCHEMA, SECOND, TYPES, B, X, streams, workloads

from workbench.errors import EngineError, QueryError
from workbench.language import parse_queries
from workbench.logical import (
    AggregateCall,
    Call,
    CountWindow,
    LastRows,
    Literal,
    MeasureWindow,
    Named,
    Punctuation,
    Query,
    Session,
    Stream,
    UserContext,
    Window,
    Workload,
)
from workbench.plan import SharedPlan, compile_workload
from workbench.runtime import BucketOperator
from workbench.runtime.engine import Engine
from workbench.runtime.reference import Answer, reference

ALL = tuple(TYPES)


def cannot_begin(query: Query) -> bool:
    """A session with a gap of each row's own cannot begin in the middle, nor what is filled, along a measure or a
    user's that depends on rows.
    """
    return query.fill is not None or any(
        (isinstance(window, Session) and not isinstance(window.gap, int))
        or isinstance(window, MeasureWindow | UserContext)
        for window in query.windows
    )


def finals(engine: Engine, query: Query) -> Answer:
    return answer_of(engine.results[query.name], any(isinstance(window, CountWindow) for window in query.windows))


def times_of(batches: list[pa.Table]) -> list[int]:
    return [time for batch in batches for time in batch.column("ts").cast(pa.int64()).to_pylist()]


def check_begun(found: Answer, query: Query, batches: list[pa.Table], changed: int) -> None:
    """The results of a query that began before micro-batch ``changed``."""
    workload, before = Workload(query.stream, (query,)), times_of(batches[:changed])
    whole = reference(workload, batches)[0][query.name]
    if not before:
        assert_same(found, whole)
        return
    since = max(before) + 1
    unseen = [batch.filter(pc.greater_equal(batch.column("ts").cast(pa.int64()), since)) for batch in batches]
    after = reference(workload, unseen)[0][query.name]
    if isinstance(query.windows[0], CountWindow):
        assert_same(found, after)  # counting begins with the change
        return
    expected = {place: row for place, row in whole.items() if place[2] >= since + reach(query, place[0])}
    if isinstance(query.windows[0], LastRows | Punctuation):
        # As long as a key has no full window, or no mark, nobody can know whether earlier rows belong to it.
        expected = {place: row for place, row in expected.items() if same(row, after.get(place))}
        first = {key: min(place[2] for place in found if place[1] == key) for _, key, *_ in found}
        for place in expected.keys() - found.keys():
            assert place[2] <= first.get(place[1], place[2])
        expected = {place: row for place, row in expected.items() if place in found}
    assert_same(found, expected)


def reach(query: Query, level: int) -> int:
    """How long behind an earlier row a session may begin and still be one with it."""
    window = query.windows[level]
    return window.gap + window.joins - 1 if isinstance(window, Session) and isinstance(window.gap, int) else 0


#: What is written of each bucket.
Written = list[tuple[bytes | None, dict[int, bytes]]]
#: Micro-batches, queries, and by query the micro-batches before which it comes and goes.
History = tuple[list[pa.Table], list[Query], dict[str, tuple[int, int]]]


def reload(engine: Engine, written: Written, plan: SharedPlan, version: int) -> None:
    """Make every operator anew from what was written by a version of the plan."""
    for bucket, (meta, blocks) in enumerate(written):
        engine.operators[bucket] = BucketOperator(plan, version)
        engine.operators[bucket].load(meta, blocks.values())


def write(engine: Engine, written: Written) -> None:
    for bucket, operator in enumerate(engine.operators):
        changes = operator.changes()
        kept = {} if changes.afresh else written[bucket][1]
        kept = {key: value for key, value in kept.items() if key not in changes.remove}
        written[bucket] = (changes.meta, kept | changes.put)


@st.composite
def histories(draw: st.DrawFn, types: tuple[str, ...]) -> History:
    batches = draw(streams())
    queries = draw(workloads(most=5, types=types)).queries
    life = {}
    for query in queries:
        comes = 0 if cannot_begin(query) else draw(st.integers(0, len(batches)))
        goes = draw(st.one_of(st.just(len(batches) + 1), st.integers(comes + 1, len(batches) + 1)))
        life[query.name] = comes, goes
    return batches, list(queries), life


def replay(history: History, data: st.DataObject) -> None:
    """Run a history with crashes: after what was written, and between a change and the end of its micro-batch."""
    batches, queries, life = history
    stream = queries[0].stream
    plan = compile_workload(Workload(stream, tuple(query for query in queries if life[query.name][0] == 0)))
    engine = Engine(plan, buckets=2)
    written: Written = [(None, {}), (None, {})]
    for number, batch in enumerate([*batches, None]):
        wanted = tuple(query for query in queries if life[query.name][0] <= number < life[query.name][1])
        older, version = engine.plan, engine.version
        if wanted != tuple(entry.query for entry in older.queries):
            engine.change(compile_workload(Workload(stream, wanted), running=older))
            if data.draw(st.booleans()):
                reload(engine, written, older, version)
                for operator in engine.operators:
                    operator.change(engine.plan, engine.version)
        engine.step([] if batch is None else [batch], finish=batch is None)
        write(engine, written)
        if data.draw(st.booleans()):
            reload(engine, written, engine.plan, engine.version)
        if not wanted:
            assert not any(blocks for _, blocks in written), "state of queries that are gone"
    for query in queries:
        comes, goes = life[query.name]
        if goes > len(batches) and comes == 0:
            assert_same(finals(engine, query), reference(Workload(stream, (query,)), batches)[0][query.name])
        elif goes > len(batches):
            check_begun(finals(engine, query), query, batches, comes)


@settings(max_examples=60, deadline=None)
@given(histories(("sliding", "session")), st.data())
def test_any_change_of_sliding_windows_and_sessions(history: History, data: st.DataObject) -> None:
    replay(history, data)


@settings(max_examples=100, deadline=None)
@given(histories(ALL), st.data())
def test_any_change_of_all_window_types(history: History, data: st.DataObject) -> None:
    replay(history, data)


def rows(*seconds: float) -> pa.Table:
    """Rows with the value 1.0 at these seconds."""
    return pa.Table.from_pylist(
        [{"ts": round(at * SECOND), "k": "a", "i": 1, "x": 1.0, "b": None, "d": None} for at in seconds], SCHEMA
    )


def query_of(name: str, function: str, *windows: Window) -> Query:
    call = AggregateCall(pa.float64(), function, (X,))
    return Query(name, STREAM, None, (), windows, (Named("v", call),))


STREAM = Stream("s", SCHEMA, "ts", 0)
TEN, TWENTY = Window(10 * SECOND, 10 * SECOND), Window(20 * SECOND, 20 * SECOND)


def test_a_wider_partial_that_comes_and_goes_does_not_blank_the_narrow_one() -> None:
    """A variance beside a kurtosis would read its moments, which know nothing of the rows so far."""
    narrow, wide = query_of("q", "var_pop", TWENTY), query_of("r", "kurtosis", TEN)
    engine = Engine(compile_workload(Workload(STREAM, (narrow,))))
    engine.step([rows(1, 2)])
    for workload, batch in ((narrow, wide), rows(3, 4)), ((narrow,), rows(5, 21)):
        engine.change(compile_workload(Workload(STREAM, workload), running=engine.plan))
        engine.step([batch])
    engine.step([], finish=True)
    batches = [rows(1, 2), rows(3, 4), rows(5, 21)]
    assert_same(finals(engine, narrow), reference(Workload(STREAM, (narrow,)), batches)[0]["q"])


def test_a_query_whose_windows_are_there_already_loses_nothing() -> None:
    first, second = query_of("q", "avg", TWENTY), query_of("r", "sum", TWENTY)
    engine = Engine(compile_workload(Workload(STREAM, (first,))))
    engine.step([rows(1, 2)])
    engine.change(compile_workload(Workload(STREAM, (first, second)), running=engine.plan))
    engine.step([rows(3)], finish=True)
    assert finals(engine, second) == {(0, (), 0, 20 * SECOND, 0): (3.0,)}


def test_a_window_that_was_partly_seen_is_not_told_at_all() -> None:
    first, second = query_of("q", "sum", TWENTY), query_of("r", "sum", TEN)
    engine = Engine(compile_workload(Workload(STREAM, (first,))))
    engine.step([rows(1)])
    engine.change(compile_workload(Workload(STREAM, (first, second)), running=engine.plan))
    engine.step([rows(2)])
    assert len(engine.results["r"].table()) == 0
    engine.step([rows(11, 12)])
    assert engine.results["r"].table().column("status").to_pylist() == ["provisional"]


def test_state_of_another_version_is_recognised() -> None:
    plan = compile_workload(Workload(STREAM, (query_of("q", "sum", TEN),)))
    engine = Engine(plan)
    engine.step([rows(1)])
    changes = engine.operators[0].changes()
    assert BucketOperator.version_of(changes.meta) == 1
    with pytest.raises(EngineError, match="the state is of version 1 of the plan, this is version 2"):
        BucketOperator(plan, 2).load(changes.meta, changes.put.values())


def test_a_session_with_gaps_of_its_rows_cannot_begin_and_nothing_changes() -> None:
    first, gap = query_of("q", "sum", TEN), Call(pa.string(), "case", (B, Literal(pa.string(), "2 seconds")))
    second = replace(query_of("r", "sum", TEN), windows=(Session(gap),))
    engine = Engine(compile_workload(Workload(STREAM, (first,))))
    engine.step([rows(1)])
    changed = compile_workload(Workload(STREAM, (first, second)), running=engine.plan)
    with pytest.raises(QueryError, match="cannot begin while the stream runs"):
        engine.operators[0].change(changed, 2)
    engine.step([rows(2)], finish=True)
    assert finals(engine, first) == {(0, (), 0, 10 * SECOND, 0): (2.0,)}


@pytest.mark.parametrize(
    ("running", "begins", "value"),
    [
        ("min(k)", "first(k)", "a"),
        ("max(i)", "range(i)", 4),
        ("count(i)", "8 / sum(i)", 2.0),
        ("sum(x)", "1 / count(i)", 0.5),
    ],
)
@pytest.mark.parametrize("form", ["window(ts, '10 seconds')", "session_window(ts, '5 seconds')"])
@pytest.mark.parametrize("restart", [False, True])
def test_nothing_is_computed_of_a_window_that_was_partly_seen(
    form: str, restart: bool, running: str, begins: str, value: object
) -> None:
    """Its partials are at odds: a count knows of rows that a sum has not seen. It overflowed, or divided by zero."""
    older, newer = (
        parse_queries(f"SELECT {item} AS v FROM s GROUP BY {form}", {"s": STREAM}, name=name)[0]
        for name, item in (("q", running), ("r", begins))
    )
    engine = Engine(compile_workload(Workload(STREAM, (older,))))
    engine.step([pa.Table.from_pylist([{"ts": SECOND, "k": "b", "i": 5, "x": 0.5}], SCHEMA)])
    engine.change(compile_workload(Workload(STREAM, (older, newer)), running=engine.plan))
    if restart:
        changes = engine.operators[0].changes()
        engine.operators[0] = BucketOperator(engine.plan, engine.version)
        engine.operators[0].load(changes.meta, changes.put.values())
    later = [{"ts": t * SECOND, "k": "a", "i": i, "x": 0.5} for t, i in ((21, 0), (23, 4))]
    engine.run([pa.Table.from_pylist(later, SCHEMA)])
    assert engine.results["q"].table().column("status").to_pylist() == ["final", "final"]
    assert engine.results["r"].table().select(["v", "status"]).to_pylist() == [{"v": value, "status": "final"}]


@pytest.mark.parametrize(
    ("form", "late"),
    [
        ("window(ts, '5 seconds')", 1),
        ("window(ts, '10 seconds', '5 seconds')", 1),
        ("cumulate_window(ts, '5 seconds', '1 second')", 1),
        ("gap_window(ts, '3 seconds')", 1),
        ("count_window(2)", 2),
    ],
)
@pytest.mark.parametrize("restart", [False, True])
def test_rows_are_late_for_a_query_only_where_it_would_have_been_told(form: str, late: int, restart: bool) -> None:
    """It begins behind 20 s. Only the query before it misses 3; with the watermark at 50 s both miss 37.

    22 is in windows, and in a session, that it could not be told of. Where rows are counted, it begins with any.
    """
    older, newer = (
        parse_queries(f"SELECT {item} AS v FROM s GROUP BY {form}", {"s": STREAM}, name=name)[0]
        for name, item in (("q", "count(*)"), ("r", "sum(x)"))
    )
    engine = Engine(compile_workload(Workload(STREAM, (older,))))
    first, *others = (
        pa.Table.from_pylist([{"ts": t * SECOND, "k": "a", "i": 1, "x": 0.5}], SCHEMA) for t in (20, 3, 50, 22, 37)
    )
    engine.step([first])
    engine.change(compile_workload(Workload(STREAM, (older, newer)), running=engine.plan))
    if restart:
        changes = engine.operators[0].changes()
        engine.operators[0] = BucketOperator(engine.plan, engine.version)
        engine.operators[0].load(changes.meta, changes.put.values())
    for rows in others:
        engine.step([rows])
    assert engine.late == {"q": 3, "r": late}
