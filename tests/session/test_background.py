"""Queries of an earlier run on a checkpoint that go on before their cells have run; without a Spark.

The runner begins at the first row each time, so what a query has is what this run has seen.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from inprocess import InProcessRunner, SteppingRunner

from workbench.errors import EngineError, QueryError
from workbench.logical import Workload
from workbench.notebook import api, commands
from workbench.notebook.commands import run_command
from workbench.plan import compile_workload
from workbench.runtime.wire import VERSION
from workbench.session import LiveQuery, Session
from workbench.spark.fused import PlanFolder

TABLE = pa.table(
    {
        "ts": pa.array([second * 1_000_000 for second in range(12)], pa.timestamp("us", "UTC")),
        "v": [float(second) for second in range(12)],
    }
)
A = "SELECT sum(v) AS total FROM events GROUP BY zoom(ts, '3 s')"
B = "SELECT count(*) AS n FROM events GROUP BY zoom(ts, '2 s', '4 s')"
Earlier = Callable[..., Session]


@pytest.fixture
def earlier(tmp_path: Path) -> Earlier:
    """A session on a checkpoint on which queries ran before."""
    InProcessRunner.started.clear()
    InProcessRunner.stopped.clear()

    def made(delay: str = "0 s", **ran: str) -> Session:
        session = Session(SteppingRunner)
        source = session.source("events", TABLE, time="ts", delay="0 s", checkpoint=tmp_path)
        queries = tuple(query for name, sql in ran.items() for query in session.parse(sql, name=name))
        plan = compile_workload(Workload(source.stream, queries))
        PlanFolder(tmp_path / "winquery-plans").publish(1, pickle.dumps(plan))
        (tmp_path / "winquery.json").write_text(json.dumps({"format": VERSION, "buckets": 1}))
        session.source("events", TABLE, time="ts", delay=delay, checkpoint=tmp_path)
        return session

    return made


def start(session: Session, sql: str, name: str) -> LiveQuery:
    (handle,) = session.start(session.parse(sql, name=name))
    return handle


def runner() -> SteppingRunner:
    newest = InProcessRunner.started[-1]
    assert isinstance(newest, SteppingRunner)
    return newest


def column(handle: LiveQuery, name: str, level: int | str = 0) -> dict[int, float]:
    """A result column by the start of its window in seconds."""
    rows = handle.results(level, format="arrow").to_pylist()
    return {int(row["window_start"].timestamp()): row[name] for row in rows}


def test_a_cell_takes_its_query_over_with_all_that_came_before(earlier: Earlier) -> None:
    session = earlier(a=A, b=B)
    first = start(session, A, "a")
    assert first.status().background == ("b",)
    told = "goes on from an earlier run: `b`; run the cell of each, or end it: `%winquery stop b`"
    assert f"  background {told}" in str(first.status())
    assert told in first._repr_html_()
    assert {handle.name: handle.in_background for handle in session.queries()} == {"a": False, "b": True}
    runner().step(6)
    version = runner().version
    second = start(session, B, "b")
    assert runner().version == version, "the plan is the same, so nothing changes"
    assert first.status().background == second.status().background == ()
    runner().step(6)
    runner().finish()
    assert len(InProcessRunner.started) == 1
    assert column(second, "n") == dict.fromkeys([0, 2, 4, 6, 8, 10], 2)
    assert column(first, "total") == {0: 3.0, 3: 12.0, 6: 21.0, 9: 30.0}


def test_a_cell_with_other_sql_replaces_it(earlier: Earlier) -> None:
    session = earlier(a=A, b=B)
    start(session, A, "a")
    runner().step(5)
    (older,) = [handle for handle in session.queries() if handle.name == "b"]
    newer = start(session, B.replace("count(*)", "sum(v)"), "b")
    assert newer.status().resumed == "begins afresh: `b`"
    assert older.status().state == "stopped"
    runner().step(7)
    runner().finish()
    assert column(newer, "n") == {6: 13.0, 8: 17.0, 10: 21.0}
    assert column(older, "n") == {0: 2, 2: 2, 4: 1}


@pytest.mark.parametrize("levels", ["'2 s'", "'4 s'", "'1 s', '2 s'", "'1 s', '4 s', '6 s'"])
def test_a_cell_with_other_levels_keeps_the_results_of_those_that_stay(earlier: Earlier, levels: str) -> None:
    """A level that is new begins behind the row of second 5."""
    session = earlier(a=A, b=B)
    start(session, A, "a")
    runner().step(6)
    handle = start(session, B.replace("'2 s', '4 s'", levels), "b")
    runner().step(6)
    runner().finish()
    assert [level.label for level in handle.store.schema.levels] == [
        f"{text[1:-2]}{'second' if text[1:-2] == '1 ' else 'seconds'}" for text in levels.split(", ")
    ]
    for text in levels.split(", "):
        size = int(text[1:2])
        since = 0 if size in (2, 4) else 6
        expected = dict.fromkeys(range(since, 12, size), size)
        assert column(handle, "n", text.strip("'")) == expected


def test_levels_that_cannot_begin_leave_everything_as_it_was(
    earlier: Earlier, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = earlier(a=A, b=B)
    start(session, A, "a")
    runner().step(6)

    def fail(self: SteppingRunner, plan: object) -> int:
        raise EngineError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(SteppingRunner, "change", fail)
        with pytest.raises(EngineError, match="no room"):
            start(session, B.replace("'2 s'", "'1 s'"), "b")
    (waiting,) = [handle for handle in session.queries() if handle.name == "b"]
    assert waiting.in_background
    assert [level.label for level in waiting.store.schema.levels] == ["2 seconds", "4 seconds"]
    assert column(start(session, B, "b"), "n") == {0: 2, 2: 2, 4: 2}


def test_a_new_query_joins_and_those_of_before_wait_for_their_cells(earlier: Earlier) -> None:
    session = earlier(a=A, b=B)
    new = start(session, "SELECT max(v) AS top FROM events GROUP BY window(ts, '6 s')", "c")
    assert new.status().background == ("a", "b")
    assert [entry.query.name for entry in new.plan().shared.queries] == ["a", "b", "c"]


def test_one_that_is_ended_alone_does_not_come_back(earlier: Earlier) -> None:
    session = earlier(a=A, b=B, c=B)
    first = start(session, A, "a")
    (waiting,) = [handle for handle in session.queries() if handle.name == "b"]
    waiting.stop()
    assert first.status().background == ("c",)
    assert [entry.query.name for entry in first.plan().shared.queries] == ["a", "c"]
    session.stop_all()
    # The plan of the checkpoint is that of the fixture still, as where the stream had failed before the stop.
    assert start(session, A, "a").status().background == ("c",)


def test_with_the_last_query_that_somebody_started_the_stream_ends_and_nothing_is_forgotten(earlier: Earlier) -> None:
    session = earlier(a=A, b=B)
    first = start(session, A, "a")
    runner().step(6)
    first.stop()
    assert InProcessRunner.stopped == InProcessRunner.started
    assert session.queries() == []
    assert [entry.query.name for entry in runner().plan.queries] == ["a", "b"], "nothing was taken out of the plan"
    again = start(session, B, "b")
    assert again.status().background == ("a",)
    assert first.status().state == "stopped"
    assert column(first, "total") == {0: 3.0, 3: 12.0}


def test_the_line_commands_know_the_background_and_stop_all_at_once(
    earlier: Earlier, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = earlier(a=A, b=B, c=A)
    for module in (api, commands):
        monkeypatch.setattr(module, "default_session", lambda: session)
    start(session, A, "c")
    start(session, A, "a")
    run_command(["list"])
    said = capsys.readouterr().out.splitlines()
    assert sorted(said) == ["a on events: running", "b on events: running, in the background", "c on events: running"]
    run_command(["stop"])
    assert session.queries() == []
    assert [entry.query.name for entry in runner().plan.queries] == ["a", "b", "c"], "the next run has all of them"


def test_a_name_that_runs_elsewhere_is_left_alone(earlier: Earlier) -> None:
    session = earlier(a=A, b=B)
    session.source("others", TABLE, time="ts", delay="0 s")
    other = start(session, B.replace("events", "others"), "b")
    first = start(session, A, "a")
    assert first.status().background == ()
    assert other.status().state == "running"
    assert {handle.name: handle.query.stream.name for handle in session.queries()} == {"a": "events", "b": "others"}


def test_other_queries_are_in_the_way_of_the_end_of_the_stream(earlier: Earlier) -> None:
    first = start(earlier(a=A, b=B), A, "a")
    with pytest.raises(QueryError, match="cannot finish its stream, on which others run: `b`"):
        first.stop(finish=True)


def test_queries_of_a_stream_that_was_another_do_not_go_on(earlier: Earlier) -> None:
    """Whoever takes the checkpoint up refuses that, with the difference; not so the runner of this test."""
    assert start(earlier(delay="1 s", a=A, b=B), A, "a").status().background == ()


def test_where_a_start_fails_nothing_runs(earlier: Earlier, monkeypatch: pytest.MonkeyPatch) -> None:
    session = earlier(a=A, b=B)

    def fail(self: SteppingRunner) -> None:
        raise EngineError("the checkpoint is in use")

    with monkeypatch.context() as patch:
        patch.setattr(SteppingRunner, "start", fail)
        with pytest.raises(EngineError, match="in use"):
            start(session, A, "a")
    assert session.queries() == []
    assert start(session, B, "b").status().background == ("a",)
