"""What a user holds: a query that can be awaited, leaves nothing when it stops, and goes on from a checkpoint."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql.classic.dataframe import DataFrame

from tests.spark.events import SQL, wait_for
from tests.spark.faults import LONG, counted
from workbench.errors import EngineError, QueryError, SourceError
from workbench.session import LiveQuery, Session

pytestmark = pytest.mark.spark


def session_on(path: str, **options: Any) -> Session:
    session = Session()
    session.source("events", path, time="ts", delay="5 seconds", **options)
    return session


def start(session: Session, sql: str = SQL, name: str = "q") -> LiveQuery:
    (query,) = session.start(session.parse(sql, name=name))
    return query


def finals(query: LiveQuery, level: str = "1 minute") -> dict[tuple[str, int], tuple[int, int]]:
    table = query.results(level, format="arrow", status="final")
    starts = [stamp.timestamp() for stamp in table["window_start"].to_pylist()]
    rows = zip(*(table[name].to_pylist() for name in ("key", "total", "n")), strict=True)
    return {(key, int(start)): (total, n) for start, (key, total, n) in zip(starts, rows, strict=True)}


@pytest.mark.usefixtures("spark")
def test_an_awaited_query_lets_others_work(recording: Callable[..., str]) -> None:
    query, ticks = start(session_on(recording())), 0

    async def cell() -> str:
        nonlocal ticks

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        other = asyncio.create_task(tick())
        status = await query
        other.cancel()
        return status.state

    assert asyncio.run(cell()) == "finished"
    assert ticks > 3
    assert finals(query) == counted()


@pytest.mark.usefixtures("spark")
def test_neither_results_nor_threads_of_stopped_queries_stay(recording: Callable[..., str]) -> None:
    """Java is handed what it calls for good, and each of its threads that calls has a thread here."""
    path, kept, threads = recording(), [], []
    for _ in range(4):
        query = start(session_on(path))
        assert query.wait(LONG)
        kept.append(weakref.ref(query.store))
        query.stop()
        del query
        gc.collect()
        threads.append(threading.active_count())
    assert [each() for each in kept] == [None] * 4
    assert threads[-1] <= threads[0] + 1, "one is for what Java collects"


@pytest.mark.usefixtures("spark")
def test_a_failed_query_raises_where_it_is_awaited_and_shows_its_trace_on_request(
    recording: Callable[..., str],
) -> None:
    query = start(session_on(recording(value=2**62)))
    assert query.traceback() is None

    async def cell() -> None:
        await query

    with pytest.raises(EngineError, match="overflow"):
        asyncio.run(cell())
    trace = query.traceback()
    assert trace is not None
    assert trace.startswith("Traceback (most recent call last):")
    assert "workbench.errors.DataError" in trace
    assert "\tat org.apache" not in trace


@pytest.mark.usefixtures("spark")
def test_stop_leaves_nothing(recording: Callable[..., str]) -> None:
    """Case R4: within five seconds; threads, files, processes are as many after the third stop as after the first."""
    me, path = psutil.Process(), recording()
    seconds: list[float] = []
    counts: list[tuple[int, int]] = []
    for _ in range(3):
        session = session_on(path, replay="1x")
        query = start(session)
        assert query.wait_for_results(LONG)
        begun = time.monotonic()
        query.stop()
        seconds.append(time.monotonic() - begun)
        assert query.status().state == "stopped"
        wait_for(lambda: not leftovers(), LONG, f"the end of {leftovers()}")
        counts.append((len(me.children(recursive=True)), me.num_fds()))
    assert max(seconds) < 5
    first, *later = counts
    assert all(processes <= first[0] and files <= first[1] + 2 for processes, files in later), counts


def leftovers() -> list[str]:
    """Threads of ours and planner processes of Spark's that live on."""
    threads = [thread.name for thread in threading.enumerate() if thread.name == "winquery events"]
    planners = [
        process.name()
        for process in psutil.Process().children(recursive=True)
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE and "source_runner" in command(process)
    ]
    return threads + planners


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.mark.usefixtures("spark")
def test_another_session_goes_on_from_the_checkpoint(recording: Callable[..., str], tmp_path: Path) -> None:
    path, checkpoint = recording(), tmp_path / "checkpoint"
    session = session_on(path, checkpoint=checkpoint, replay=60.0, max_rows=500)
    first = start(session)
    wait_for(lambda: first.progress().batches >= 2, LONG, "two batches")
    with pytest.raises(EngineError, match="is in use by process"):
        start(session_on(path, checkpoint=checkpoint))
    with pytest.raises(QueryError, match="goes on from its checkpoint"):
        session.start((first.query,), history=True)
    first.stop()
    before = finals(first)
    # As if it had been stopped a moment earlier: the latest micro-batch runs again, by the plan that it began with.
    max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name)).unlink()
    again = start(session_on(path, checkpoint=checkpoint), SQL.replace("'1 minute'", "'30 seconds', '1 minute'"))
    assert again.wait(LONG)
    status = again.status()
    assert (status.state, status.rows) == ("finished", 1_000)
    assert status.resumed == "goes on: `q`; begins afresh: `q` at '30 seconds'"
    assert f"checkpoint {status.resumed}" in str(status)
    minutes = again.results("1 minute", format="arrow", status="final")
    assert sorted(minutes["n"].to_pylist()) == sorted(n for _, n in counted().values())
    assert before.items() <= counted().items()
    fine = finals(again, "30 seconds")
    assert fine.items() <= counted(size=30).items()
    assert ("a", 960) in fine


@pytest.mark.usefixtures("spark")
def test_a_micro_batch_that_a_stop_has_cancelled_runs_again(
    recording: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in neither state nor results, so it must not count as done: the second of four here."""
    path, checkpoint, cancelled = recording(), tmp_path / "checkpoint", threading.Event()
    session, whole = session_on(path, checkpoint=checkpoint, max_rows=250), DataFrame.toArrow

    def cancel_second(frame: Any) -> Any:
        runner: Any = session._streams["events"]._runner
        if runner is not None and runner.progress().batches == 1:
            runner._ending = "stopped"
            cancelled.set()
            raise RuntimeError("part of cancelled job group")
        return whole(frame)

    monkeypatch.setattr(DataFrame, "toArrow", cancel_second)
    first = start(session)
    assert cancelled.wait(LONG)
    assert first.wait(LONG)
    monkeypatch.undo()
    first.stop()
    assert (first.status().state, first.status().error, first.status().batches) == ("stopped", None, 1)
    assert not (checkpoint / "commits" / "1").exists()
    again = start(session_on(path, checkpoint=checkpoint, max_rows=250))
    assert again.wait(LONG)
    assert again.status().rows == 1_000
    assert finals(again) == counted()


def test_a_batch_frame_has_no_checkpoint(spark: Any, recording: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a batch DataFrame is read once"):
        Session().source("events", spark.read.parquet(recording()), time="ts", checkpoint=tmp_path / "c")
