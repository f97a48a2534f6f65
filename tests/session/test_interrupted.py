"""An interruption (the stop button of a notebook) at any moment: what comes after it works."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from inprocess import SteppingRunner

from workbench.session import Session

TABLE = pa.table(
    {"ts": pa.array([second * 1_000_000 for second in range(600)], pa.timestamp("us", "UTC")), "v": range(600)}
)
SQL = "SELECT count(*) AS n FROM events GROUP BY zoom(ts, '2 minutes / 1 minute')"
FINE = "20 seconds / 10 seconds"


def interrupted(*_: object, **__: object) -> bool:
    raise KeyboardInterrupt


@pytest.fixture(params=[True, False], ids=["rewinds", "goes on"])
def session(request: pytest.FixtureRequest, tmp_path: str) -> Iterator[Session]:
    made = Session(launch=SteppingRunner)
    where = {} if request.param else {"checkpoint": tmp_path}
    made.source("events", TABLE, time="ts", delay="0 seconds", **where)
    yield made
    made.stop_all()


@pytest.mark.parametrize("where", ["start", "change", "wait_for", "stop"])
def test_a_level_is_there_once_or_not_at_all(session: Session, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    (live,) = session.start(session.parse(SQL, name="q"))
    SteppingRunner.started[-1].step(100)
    with monkeypatch.context() as patch:
        patch.setattr(SteppingRunner, where, interrupted)
        try:
            live.add_level(FINE)
        except KeyboardInterrupt:
            there = FINE in live.sql()
        else:
            there = True
    labels = [level.label for level in live.store.schema.levels]
    assert labels == [FINE, "2 minutes / 1 minute"][not there :]
    assert [window.label for window in session.queries()[0].query.windows] == labels
    if not there:
        live.add_level(FINE)
    SteppingRunner.started[-1].step(600)
    SteppingRunner.started[-1].finish()
    # 600 rows, each in two windows of a level: of two minutes from -1 to 9 minutes, of 20 seconds from -10 to 590. A
    # level that joins a running stream begins later.
    fine, coarse = live.results(FINE), live.results("2 minutes / 1 minute")
    assert (len(coarse), coarse["n"].sum()) == (11, 1_200)
    assert set(fine["n"]) <= {10, 20}
    assert len(fine) == 61 if session.sources["events"].checkpoint is None else 45 < len(fine) < 61


def test_stopping_once_more_does_the_rest(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    live, other = session.start(session.parse(f"{SQL}; {SQL}", name="q"))
    for handle, method in ((live, "change"), (other, "stop")):
        with monkeypatch.context() as patch:
            patch.setattr(SteppingRunner, method, interrupted)
            with pytest.raises(KeyboardInterrupt):
                handle.stop()
        assert handle in session.queries()
        handle.stop()
        assert handle not in session.queries()
        assert handle.status().state == "stopped"
    session.stop_all()
    (again,) = session.start(session.parse(SQL, name="q"))
    SteppingRunner.started[-1].step(600)
    SteppingRunner.started[-1].finish()
    assert again.results()["n"].sum() == 1_200


def test_a_query_that_runs_all_the_same_has_a_handle(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.start(session.parse(SQL, name="q"))
    SteppingRunner.started[-1].step(100)
    with monkeypatch.context() as patch:
        patch.setattr(SteppingRunner, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.start(session.parse(SQL, name="second"), history=False)
    assert [handle.name for handle in session.queries()] == ["q", "second"]
    second = session.queries()[1]
    SteppingRunner.started[-1].step(500)
    assert second.status().state == "running"
    second.stop()
    assert [handle.name for handle in session.queries()] == ["q"]
