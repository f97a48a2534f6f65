"""Queries that come and go while a stream runs: the plan changes under the others, or starts anew for its history."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from inprocess import InProcessRunner, SteppingRunner

from workbench.errors import QueryError
from workbench.session import Session

TABLE = pa.table(
    {
        "ts": pa.array([second * 1_000_000 for second in range(12)], pa.timestamp("us", "UTC")),
        "v": [float(second) for second in range(12)],
    }
)
SECONDS = "SELECT sum(v) AS total FROM events GROUP BY zoom(ts, '3 s')"
OTHER = "SELECT count(*) AS n FROM events GROUP BY zoom(ts, '2 s')"


@pytest.fixture
def session() -> Iterator[Session]:
    InProcessRunner.started.clear()
    InProcessRunner.stopped.clear()
    made = Session(SteppingRunner)
    made.source("events", TABLE, time="ts", delay="0 s")
    yield made
    made.stop_all()


def column(handle: object, name: str) -> dict[int, float]:
    """A result column by the start of its window in seconds."""
    rows = handle.results(format="arrow").to_pylist()  # type: ignore[attr-defined]
    return {int(row["window_start"].timestamp()): row[name] for row in rows}


def runner() -> SteppingRunner:
    newest = InProcessRunner.started[-1]
    assert isinstance(newest, SteppingRunner)
    return newest


def test_a_query_joins_from_now_on_and_the_other_does_not_notice(session: Session) -> None:
    (first,) = session.start(session.parse(SECONDS, name="a"))
    runner().step(5)
    (second,) = session.start(session.parse(OTHER, name="b"), history=False)
    assert len(InProcessRunner.started) == 1
    runner().step(7)
    runner().finish()
    assert column(first, "total") == {0: 3.0, 3: 12.0, 6: 21.0, 9: 30.0}
    assert column(second, "n") == {6: 2, 8: 2, 10: 2}, "the window of 4 and 5 s was half over"
    assert first.explain() == second.explain()


def test_with_history_it_has_all_windows(session: Session) -> None:
    session.start(session.parse(SECONDS, name="a"))
    runner().step(5)
    (second,) = session.start(session.parse(OTHER, name="b"))
    assert len(InProcessRunner.started) == 2
    runner().step(12)
    runner().finish()
    assert column(second, "n") == dict.fromkeys([0, 2, 4, 6, 8, 10], 2)


def test_a_replaced_query_shows_nothing_of_the_older_one(session: Session) -> None:
    (older,) = session.start(session.parse(SECONDS, name="a"))
    runner().step(5)
    (newer,) = session.start(session.parse(OTHER, name="a"), history=False)
    runner().step(7)
    runner().finish()
    assert column(newer, "n") == {6: 2, 8: 2, 10: 2}
    assert column(older, "total") == {0: 3.0, 3: 7.0}, "it stays as it was"


def test_the_same_cell_again_changes_nothing(session: Session) -> None:
    session.start(session.parse(SECONDS, name="a"))
    runner().step(5)
    (again,) = session.start(session.parse(SECONDS, name="a"), history=False)
    runner().step(7)
    runner().finish()
    assert column(again, "total") == {0: 3.0, 3: 12.0, 6: 21.0, 9: 30.0}


def test_a_stopped_query_leaves_the_plan_of_the_others(session: Session) -> None:
    (first,) = session.start(session.parse(SECONDS, name="a"))
    (second,) = session.start(session.parse(OTHER, name="b"), history=False)
    runner().step(5)
    second.stop()
    assert "2 seconds" not in first.explain()
    assert second.progress().state == "stopped"
    runner().step(7)
    runner().finish()
    assert column(first, "total") == {0: 3.0, 3: 12.0, 6: 21.0, 9: 30.0}
    assert not InProcessRunner.stopped


def test_after_the_end_a_query_starts_from_the_first_row(session: Session) -> None:
    session.start(session.parse(SECONDS, name="a"))
    runner().step(12)
    runner().finish()
    session.start(session.parse(OTHER, name="b"), history=False)
    assert len(InProcessRunner.started) == 2


def test_a_session_with_gaps_of_its_rows_cannot_join(session: Session) -> None:
    (first,) = session.start(session.parse(SECONDS, name="a"))
    runner().step(5)
    sql = "SELECT count(*) AS n FROM events GROUP BY session_window(ts, CASE WHEN v > 3 THEN '2 s' ELSE '1 s' END)"
    with pytest.raises(QueryError, match="cannot begin while the stream runs"):
        session.start(session.parse(sql, name="b"), history=False)
    assert [handle.name for handle in session.queries()] == ["a"]
    runner().step(7)
    runner().finish()
    assert column(first, "total") == {0: 3.0, 3: 12.0, 6: 21.0, 9: 30.0}
