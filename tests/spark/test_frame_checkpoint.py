"""DataFrames of the user's on a checkpoint that lasts: nothing lost, nothing doubled, whatever broke off before what.

The crash is made by hand: Spark knows of the latest micro-batch, but not that it is done. So it runs again, by the
plan that it began with::

    files     0-100  100-200  200-300  300-400 | 400-500  500-600  600-700
    batches     0       1        2        3    |    3        4 ...
    plan        1       1        1        1    |    1        2 ...
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SECOND, SQL, make_plan, wait_for
from tests.spark.faults import LONG, Windows, counted, kill, pythons
from tests.spark.test_lifecycle import finals
from tests.spark.test_runner import Collector
from workbench.session import LiveQuery, Session
from workbench.spark.frames import FrameOptions
from workbench.spark.residents import Homes
from workbench.spark.streaming import FrameRunner

pytestmark = pytest.mark.spark

ADDED = "SELECT key, sum(value) AS total, count(*) AS n FROM events GROUP BY key, window(ts, '30 seconds')"


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Four files of a hundred seconds each, a row a second."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    put(folder, 0, 4)
    return folder


def put(folder: Path, first: int, files: int) -> None:
    """The next files; their times of change tell Spark their order."""
    for number in range(first, first + files):
        rows = np.arange(number * 100, number * 100 + 100)
        stamps = pa.array(rows * SECOND).cast(SCHEMA.field("ts").type)
        keys = pa.array(np.array(["a", "b", "c"], object)[rows % 3], pa.string())
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table([stamps, keys, pa.array(np.full(100, 1))], schema=SCHEMA), folder / ".aside")
        os.utime(folder / ".aside", (1_000 + number, 1_000 + number))
        (folder / ".aside").rename(path)


def stream_of(spark: Any, inbox: Path) -> Any:
    """A file a micro-batch."""
    reader = spark.readStream.schema("ts timestamp, key string, value bigint").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(inbox))


def start(spark: Any, inbox: Path, queries: dict[str, str], **options: Any) -> tuple[Session, list[LiveQuery]]:
    session = Session()
    session.source("events", stream_of(spark, inbox), time="ts", delay="5 seconds", **options)
    parsed = [query for name, sql in queries.items() for query in session.parse(sql, name=name)]
    return session, session.start(tuple(parsed))


def what_is_there(spark: Any, inbox: Path, checkpoint: Path, queries: dict[str, str]) -> list[LiveQuery]:
    """A run over what is available now, to its end."""
    _, handles = start(spark, inbox, queries, checkpoint=checkpoint, trigger="available_now")
    assert handles[0].wait(LONG)
    return handles


def to_its_end(spark: Any, inbox: Path, checkpoint: Path, queries: dict[str, str], rows: int) -> list[LiveQuery]:
    """A run until so many rows were read, then the end of the stream: all windows are final."""
    session, handles = start(spark, inbox, queries, checkpoint=checkpoint)
    wait_for(lambda: handles[0].status().rows >= rows, LONG, "all rows")
    for handle in session.queries():
        if handle is not handles[0]:
            handle.stop()
    handles[0].stop(finish=True)
    assert (handles[0].status().state, handles[0].status().rows) == ("finished", rows)
    return handles


def break_off(checkpoint: Path) -> None:
    """The crash: the latest micro-batch is planned, and not done."""
    planned = max(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    (checkpoint / "commits" / str(planned)).unlink(missing_ok=True)


def since(windows: Windows, start: int) -> Windows:
    return {place: row for place, row in windows.items() if place[1] >= start}


def test_the_same_queries_go_on(spark: Any, inbox: Path, tmp_path: Path) -> None:
    """What is available now comes to an end, but not the stream: its last windows stay open for the next run."""
    checkpoint = tmp_path / "checkpoint"
    (first,) = what_is_there(spark, inbox, checkpoint, {"q": SQL})
    assert (first.status().state, first.status().rows) == ("finished", 400)
    assert finals(first) == {place: row for place, row in counted(400).items() if place[1] < 360}
    break_off(checkpoint)
    put(inbox, 4, 3)
    (second,) = what_is_there(spark, inbox, checkpoint, {"q": SQL})
    assert (second.status().rows, second.status().resumed) == (700, "goes on: `q`")
    assert finals(second) == {place: row for place, row in counted(700).items() if place[1] < 660}
    break_off(checkpoint)
    (third,) = to_its_end(spark, inbox, checkpoint, {"q": SQL}, 700)
    assert finals(third) == counted(700)


@pytest.mark.parametrize("known", [False, True], ids=["afresh", "known"])
def test_other_queries_and_levels_go_on(spark: Any, inbox: Path, tmp_path: Path, known: bool) -> None:
    """The micro-batch that broke off runs by the old plan, and is shown by its levels; the next one by the new plan.

    Windows of 30 seconds begin behind row 399, the latest before the change, with that of 420. Where a query that is
    not asked for had them already, all that were open then are told: from 390 on, as the watermark was at 394.
    """
    checkpoint = tmp_path / "checkpoint"
    what_is_there(spark, inbox, checkpoint, {"q": SQL} | ({"kept": ADDED} if known else {}))
    break_off(checkpoint)
    put(inbox, 4, 3)
    finer = {"q": SQL.replace("'1 minute'", "'30 seconds', '1 minute'"), "new": ADDED}
    handles = what_is_there(spark, inbox, checkpoint, finer)
    assert [handle.status().rows for handle in handles] == [700, 700]
    told = "goes on: `q`, `kept`, `new`" if known else "goes on: `q`; begins afresh: `q` at '30 seconds', `new`"
    assert handles[0].status().resumed == told
    break_off(checkpoint)
    query, new = to_its_end(spark, inbox, checkpoint, finer, 700)
    assert finals(query, "1 minute") == counted(700)
    fine = since(counted(700, size=30), 390 if known else 420)
    assert finals(query, "30 seconds") == fine
    assert finals(new, "30 seconds") == {place: row for place, row in fine.items() if place[1] < 690}


def test_a_query_that_is_started_after_the_others_goes_on(spark: Any, inbox: Path, tmp_path: Path) -> None:
    """As by a cell of its own: rows come before it is started, and the Spark query is not started again for it."""
    checkpoint = tmp_path / "checkpoint"
    what_is_there(spark, inbox, checkpoint, {"q": SQL, "r": ADDED})
    break_off(checkpoint)
    put(inbox, 4, 3)
    session, (first,) = start(spark, inbox, {"q": SQL}, checkpoint=checkpoint)
    wait_for(lambda: first.status().rows >= 700, LONG, "all rows")
    assert first.status().background == ("r",)
    query = first._stream._runner._query  # type: ignore[union-attr]
    (second,) = session.start(session.parse(ADDED, name="r"))
    assert second._stream._runner._query is query  # type: ignore[union-attr]
    assert finals(first) == {place: row for place, row in counted(700).items() if place[1] < 660}
    told = {place: row for place, row in counted(700, size=30).items() if place[1] < 690}
    assert finals(second, "30 seconds") == told
    session.stop_all()


@pytest.mark.parametrize("other", [False, True])
def test_a_change_that_broke_off_comes_again(spark: Any, inbox: Path, tmp_path: Path, other: bool) -> None:
    """Before the same row; with another workload after the crash it comes still, and then that of the new one."""
    checkpoint = tmp_path / "checkpoint"
    session, (handle,) = start(spark, inbox, {"q": SQL}, checkpoint=checkpoint)
    wait_for(lambda: handle.status().rows == 400, LONG, "all rows")
    session.start(session.parse(ADDED, name="r"))
    session.stop_all()
    break_off(checkpoint)
    put(inbox, 4, 3)
    name = "s" if other else "r"
    query, added = to_its_end(spark, inbox, checkpoint, {"q": SQL, name: ADDED}, 700)
    assert finals(query) == counted(700)
    told = since(counted(700, size=30), 420)
    assert finals(added, "30 seconds") == {place: row for place, row in told.items() if place[1] < 690}


def test_an_end_that_was_asked_for_and_never_came_is_forgotten(spark: Any, inbox: Path, tmp_path: Path) -> None:
    """A stop that was to finish the stream did not manage; on its checkpoint the stream goes on."""
    checkpoint, got = tmp_path / "checkpoint", Collector()
    got.gate.clear()
    begun = threading.Event()

    def keep(reports: list[Any]) -> None:
        begun.set()
        got(reports)

    runner = FrameRunner(make_plan(), FrameOptions(stream_of(spark, inbox)), keep, checkpoint)
    runner.start()
    assert begun.wait(LONG)
    assert not runner.stop(0.2, finish=True), "the micro-batch that runs is in the way"
    got.gate.set()
    assert runner.wait(LONG)
    assert runner.progress().state == "stopped"
    assert (checkpoint / "winquery-signals" / "finish.parquet").exists()
    (handle,) = to_its_end(spark, inbox, checkpoint, {"q": SQL}, 400)
    assert finals(handle) == counted(400)


@pytest.mark.parametrize("lasting", [False, True])
def test_an_end_that_is_asked_for_while_what_is_available_is_read(
    spark: Any, inbox: Path, tmp_path: Path, lasting: bool
) -> None:
    """All that is available comes first, then the end of the stream."""
    got, checkpoint = Collector(), tmp_path / "checkpoint" if lasting else None
    got.gate.clear()
    begun = threading.Event()

    def keep(reports: list[Any]) -> None:
        begun.set()
        got(reports)

    options = FrameOptions(stream_of(spark, inbox), "available_now")
    runner = FrameRunner(make_plan(), options, keep, checkpoint)
    runner.start()
    assert begun.wait(LONG)
    ended: list[bool] = []
    asking = threading.Thread(target=lambda: ended.append(runner.stop(LONG, finish=True)))
    asking.start()
    wait_for(lambda: runner._asked, LONG, "the question")
    got.gate.set()
    asking.join(LONG)
    assert ended == [True]
    assert (runner.progress().state, runner.progress().rows) == ("finished", 400), runner.progress()
    assert got.finals() == counted(400)


def counting_queries(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that gets an entry for every Spark query that a runner starts."""
    started: list[Any] = []
    run = FrameRunner._run

    def counted_run(self: FrameRunner) -> Any:
        started.append(run(self))
        return started[-1]

    monkeypatch.setattr(FrameRunner, "_run", counted_run)
    return started


def at_the_end(spark: Any, inbox: Path) -> Collector:
    got = Collector()
    runner = FrameRunner(make_plan(), FrameOptions(stream_of(spark, inbox), "available_now"), got)
    runner.start()
    assert runner.wait(LONG)
    progress = runner.progress()
    assert (progress.state, progress.rows, progress.batches) == ("finished", 400, 5), progress.details
    return got


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="operators have a home on Linux alone")
def test_the_end_of_what_is_available_needs_no_further_query(
    spark: Any, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = counting_queries(monkeypatch)
    assert at_the_end(spark, inbox).finals() == counted(400)
    assert len(started) == 1


def test_where_no_operator_is_at_home_a_query_closes_the_windows(
    spark: Any, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every Python process dies after the last micro-batch; and a home that has answered does so in vain."""
    started, jvm = counting_queries(monkeypatch), int(spark.sparkContext._gateway.proc.pid)
    ask, answers = Homes.last_words, list[Any]()

    def in_vain(self: Homes, message: bytes) -> list[bytes] | None:
        answers.append(ask(self, message))
        for process in list(pythons(jvm)):
            kill(process)
        answers.append(ask(self, message))
        return None

    monkeypatch.setattr(Homes, "last_words", in_vain)
    assert at_the_end(spark, inbox).finals() == counted(400)
    assert len(started) == 2
    assert answers[-1] is None


def test_an_error_at_the_end_of_what_is_available_is_told(spark: Any, inbox: Path) -> None:
    """Whoever takes the results fails at the very last ones, which come without a query of Spark's."""

    def broken(reports: list[Any]) -> None:
        if any(report.finished for report in reports):
            raise RuntimeError("no room in the store")

    runner = FrameRunner(make_plan(), FrameOptions(stream_of(spark, inbox), "available_now"), broken)
    runner.start()
    assert runner.wait(LONG)
    assert (runner.progress().state, runner.progress().error) == ("failed", "RuntimeError: no room in the store")
    assert "Traceback" in (runner.progress().details or "")


def test_a_change_after_the_end_changes_nothing(spark: Any, inbox: Path) -> None:
    scratch = Path(spark.sparkContext._temp_dir)
    folders = set(scratch.glob("winquery-*"))
    runner = FrameRunner(make_plan(), FrameOptions(stream_of(spark, inbox), "available_now"), Collector())
    runner.start()
    assert runner.wait(LONG)
    assert not runner.wait_for(runner.change(make_plan()), LONG)
    assert runner.progress().state == "finished"
    assert set(scratch.glob("winquery-*")) == folders
    assert not runner._session.streams.active


LATER = 4_102_444_800  # 2100-01-01, in seconds


@pytest.mark.parametrize("ours", [False, True], ids=["frame", "recording"])
def test_what_is_too_far_in_the_future_is_decided_once(
    spark: Any, inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    """A micro-batch that runs again goes by the clock of its first time: here, as if that had been in 2100."""
    checkpoint = tmp_path / "checkpoint"
    stamps = pa.array([450 * SECOND, LATER * SECOND]).cast(SCHEMA.field("ts").type)
    pq.write_table(pa.table([stamps, pa.array(["a", "b"]), pa.array([1, 1])], schema=SCHEMA), inbox / "4.parquet")

    def ahead() -> tuple[int, int]:
        session = Session()
        data: Any = sorted(map(str, inbox.glob("*.parquet"))) if ours else stream_of(spark, inbox)
        options = {} if ours else {"trigger": "available_now"}
        session.source("events", data, time="ts", future="1 day", checkpoint=checkpoint, **options)
        (handle,) = session.start(session.parse(SQL, name="q"))
        assert handle.wait(LONG)
        return handle.status().rows, handle.progress().ahead

    assert ahead() == (402, 1)
    planned = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    text = planned.read_text()
    name = '"now": ' if ours else '"batchTimestampMs":'
    clock = LATER * (SECOND if ours else 1_000)
    assert name in text
    planned.write_text(re.sub(f"{name}[0-9]+", f"{name}{clock}", text))
    for check in (checkpoint / "offsets").glob(f".{planned.name}.crc"):
        check.unlink()
    for kept in (checkpoint / "winquery-results").glob(f"*{planned.name}.batch"):
        kept.unlink()
    break_off(checkpoint)
    assert ahead() == (402, 0)
