"""Handles of queries whose name a newer one takes, and what others see while a stream changes or ends."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from inprocess import InProcessRunner, SteppingRunner

from workbench.errors import EngineError, QueryError
from workbench.session import Session
from workbench.session.outlets import Outlet
from workbench.session.stream import SharedStream

TABLE = pa.table(
    {
        "ts": pa.array([second * 1_000_000 for second in range(12)], pa.timestamp("us", "UTC")),
        "v": [float(second) for second in range(12)],
    }
)
SUMS = "SELECT sum(v) AS total FROM {} GROUP BY window(ts, '3 s')"
COUNTS = "SELECT count(*) AS n FROM {} GROUP BY window(ts, '2 s')"


class Refused(InProcessRunner):
    """A runner that cannot start a plan over the source `later`."""

    def start(self) -> None:
        if self.source.name == "later":
            raise EngineError("no Spark here")
        super().start()


@pytest.fixture
def session() -> Session:
    InProcessRunner.started.clear()
    InProcessRunner.stopped.clear()
    made = Session(Refused)
    for name in ("events", "others", "later"):
        made.source(name, TABLE, time="ts")
    return made


def start(session: Session, sql: str, source: str = "events", name: str = "q", **options: Any) -> Any:
    (handle,) = session.start(session.parse(sql.format(source), name=name), **options)
    return handle


def test_a_query_goes_on_where_another_source_cannot_take_its_name(session: Session) -> None:
    kept = start(session, SUMS)
    with pytest.raises(EngineError, match="no Spark here"):
        start(session, SUMS, "later")
    assert session.queries() == [kept]
    assert not InProcessRunner.stopped


def test_results_of_a_stopped_query_stay_as_long_as_its_handle(session: Session) -> None:
    """A notebook may start thousands under names that never come again."""
    results = []
    for number in range(3):
        query = start(session, SUMS, name=f"q{number}")
        results.append(weakref.ref(query.store))
        query.stop()
        del query
    kept = start(session, SUMS, name="kept")
    kept.stop()
    newer = start(session, COUNTS, name="kept")
    InProcessRunner.started.clear()
    InProcessRunner.stopped.clear()
    gc.collect()
    assert [each() for each in results] == [None] * 3
    assert kept.results()["total"].tolist() == [3.0, 12.0, 21.0, 30.0]
    with pytest.raises(QueryError, match="a newer query has taken the name `kept`"):
        kept.add_level("1 s")
    assert session.queries() == [newer]


@pytest.mark.parametrize("source", ["events", "others"])
def test_the_handle_of_a_replaced_query_stands_for_what_it_was(session: Session, source: str) -> None:
    older = start(session, SUMS)
    newer = start(session, COUNTS, source)
    older.stop()
    older.stop(finish=True)
    assert session.queries() == [newer], "the name is the newer one's"
    assert older.wait(0)
    assert older.status().state == "finished"
    assert "sum_float(v)" in older.explain()
    assert "sum_float(v)" not in newer.explain()
    assert older.results()["total"].tolist() == [3.0, 12.0, 21.0, 30.0]
    for act in (lambda: older.add_level("1 s"), lambda: older.to_spark(print)):
        with pytest.raises(QueryError, match="a newer query has taken the name `q`"):
            act()
    newer.stop()
    assert session.queries() == []


def test_the_same_query_again_keeps_both_handles() -> None:
    """Without history it goes on, so either handle is that of the one query."""
    session = Session(SteppingRunner)
    session.source("events", TABLE, time="ts")
    older = start(session, SUMS)
    newer = start(session, SUMS, history=False)
    assert older.store is newer.store
    older.stop()
    assert session.queries() == []
    assert newer.status().state == older.status().state == "stopped"


class Asking(dict[str, Any]):
    """Asks a stream how a query is doing just before its last word is noted, as a plot may."""

    def __init__(self, stream: SharedStream) -> None:
        super().__init__()
        self._stream = stream
        self.heard: list[str] = []

    def __ior__(self, last: Any) -> Any:
        self.heard += [self._stream.progress(name).state for name in last]
        return super().__ior__(last)


def test_progress_can_be_asked_for_at_any_moment_of_a_stop() -> None:
    session = Session(SteppingRunner)
    source = session.source("events", TABLE, time="ts")
    stream = SharedStream(source, SteppingRunner)
    stream.add(session.parse(SUMS.format("events"), name="q"))
    asking = stream._last = Asking(stream)
    stream.stop()
    assert asking.heard[0] == "running"
    assert len(asking.heard) == 2, "before the end and at it"
    assert stream.progress("q").state == "stopped"


class Waited(SteppingRunner):
    """A runner that can be waited for; one that is stopped has ended."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.over, self.asked = threading.Event(), threading.Event()

    def wait(self, timeout: float | None) -> bool:
        self.asked.set()
        return self.over.wait(timeout)

    def stop(self, timeout: float = 5.0, *, finish: bool = False) -> None:
        super().stop(timeout, finish=finish)
        self.over.set()


def test_who_waits_for_the_end_waits_through_a_new_start_of_the_plan() -> None:
    InProcessRunner.started.clear()
    session = Session(Waited)
    session.source("events", TABLE, time="ts")
    handle = start(session, SUMS)
    first: Any = InProcessRunner.started[-1]
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(handle.wait(20)))
    waiting.start()
    assert first.asked.wait(20)
    start(session, COUNTS, name="other")
    second: Any = InProcessRunner.started[-1]
    assert first.over.is_set()
    assert second.asked.wait(20), "the end of the first run is not that of the stream"
    assert not found
    second.over.set()
    waiting.join(20)
    assert found == [True]


def test_a_query_that_was_taken_out_is_not_waited_for() -> None:
    session = Session(Waited)
    session.source("events", TABLE, time="ts")
    handle = start(session, SUMS)
    start(session, COUNTS, name="other")
    handle.stop()
    assert handle.wait(0), "the stream goes on for the other one"
    session.stop_all()


def test_levels_may_be_added_while_results_look_for_theirs(session: Session) -> None:
    outlet = Outlet(start(session, SUMS).store, {number: ["3 seconds"] for number in range(10_000)})

    def add() -> None:
        for number in range(10_000, 60_000):
            outlet.labels[number] = ["3 seconds"]

    adding = threading.Thread(target=add)
    adding.start()
    while adding.is_alive():
        assert outlet.since(9_999) == 9_999
    adding.join()


class Meddling:
    """A sink that does what it is told to, once, in the middle of a micro-batch."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def fill(self, run: int, kept: pa.Table, latest: int) -> None:
        """Nothing was there before."""

    def write(self, run: int, batch: int, results: list[Any], labels: list[str]) -> None:
        self._act()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda session, handle: start(session, COUNTS, name="other"), "cannot start a query on it"),
        (lambda session, handle: handle.add_level("1 s"), "cannot add a level"),
        (lambda session, handle: handle._stream.attach("q", Meddling(print)), "cannot attach another one"),
        (lambda session, handle: handle.wait(), "cannot wait for its end"),
        (lambda session, handle: handle.stop(finish=True), "cannot finish its stream"),
    ],
)
@pytest.mark.timeout(60)
def test_a_sink_that_would_wait_for_itself_is_refused(act: Callable[[Session, Any], object], message: str) -> None:
    """It was there for ever before, and with it whoever asked the session for something."""
    InProcessRunner.started.clear()
    session = Session(SteppingRunner)
    session.source("events", TABLE, time="ts", delay="0 s")
    handle = start(session, SUMS)
    handle._stream.attach("q", Meddling(lambda: act(session, handle)))
    runner: Any = InProcessRunner.started[-1]
    with pytest.raises(QueryError, match=f"a sink of `events` {message}: the micro-batch waits for the sink"):
        runner.step(6)
    session.stop_all()


def test_a_sink_may_stop_its_query() -> None:
    InProcessRunner.started.clear()
    session = Session(SteppingRunner)
    session.source("events", TABLE, time="ts", delay="0 s")
    handle = start(session, SUMS)
    handle._stream.attach("q", Meddling(handle.stop))
    runner: Any = InProcessRunner.started[-1]
    runner.step(6)
    assert session.queries() == []
    assert handle.status().state == "stopped"


@pytest.mark.timeout(60)
def test_a_sink_may_stop_its_query_while_another_is_attached() -> None:
    """The other waited for the micro-batch with the lock that the sink waited for, for ever."""
    InProcessRunner.started.clear()
    session = Session(SteppingRunner)
    session.source("events", TABLE, time="ts", delay="0 s")
    handle = start(session, SUMS)
    stream = handle._stream
    attaching = threading.Thread(target=stream.attach, args=("q", Meddling(lambda: None)), daemon=True)

    def act() -> None:
        attaching.start()
        while stream._lock.acquire(blocking=False):
            stream._lock.release()
            time.sleep(0.001)
        handle.stop()

    stream.attach("q", Meddling(act))
    runner: Any = InProcessRunner.started[-1]
    runner.step(6)
    attaching.join()
    while session.queries():
        time.sleep(0.001)
    assert handle.status().state == "stopped"
