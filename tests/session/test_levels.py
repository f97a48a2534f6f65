"""A level added to a running query: its results come, those that are there stay, other queries notice nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from inprocess import InProcessRunner

from workbench.errors import EngineError, QueryError
from workbench.results import ResultBatch
from workbench.session import Session

TABLE = pa.table(
    {
        "ts": pa.array([second * 1_000_000 for second in range(600)], pa.timestamp("us", "UTC")),
        "carrier": ["UA", "B6"] * 300,
        "v": [float(second) for second in range(600)],
    }
)
SQL = "SELECT carrier, sum(v) AS total, count(*) AS n FROM events GROUP BY carrier, zoom(ts, '2 minutes / 1 minute')"


@pytest.fixture
def session() -> Session:
    made = Session(launch=InProcessRunner)
    made.source("events", TABLE, time="ts", delay="0 seconds")
    return made


def test_the_new_level_has_results_and_the_old_ones_stay(session: Session) -> None:
    live, other = session.start(
        session.parse(SQL + "; SELECT max(v) AS top FROM events GROUP BY window(ts, '1 minute')", name="q")
    )
    before, untouched = live.results("2 minutes / 1 minute"), other.results()
    store, version = live.store, live.store.version
    live.add_level("20 seconds / 10 seconds")
    assert live.store is store
    assert store.version > version
    assert [level.label for level in store.schema.levels] == ["20 seconds / 10 seconds", "2 minutes / 1 minute"]
    assert live.results("2 minutes / 1 minute").equals(before)
    assert other.results().equals(untouched)
    fine = live.results("20 seconds / 10 seconds")
    # UA has the even seconds: the window [0:00, 0:20) holds 0 + 2 + ... + 18.
    first = fine[
        (fine["carrier"] == "UA") & (fine["window_start"].dt.hour == 0) & (fine["window_start"].dt.minute == 0)
    ]
    assert first[first["window_start"].dt.second == 0]["total"].tolist() == [90.0]
    assert "20 seconds / 10 seconds" in live.explain()
    assert "'20 seconds / 10 seconds'" in live.sql()


def test_a_late_word_of_the_older_plan_goes_to_the_right_level(session: Session) -> None:
    (live,) = session.start(session.parse(SQL, name="q"))
    older = InProcessRunner.started[-1]
    live.add_level("20 seconds / 10 seconds")
    before = live.results("2 minutes / 1 minute")
    older.start()  # delivers everything once more, by the levels it knows: one
    assert live.results("2 minutes / 1 minute").equals(before)


def test_a_level_that_is_there_or_cannot_be_read_is_refused(session: Session) -> None:
    (live,) = session.start(session.parse(SQL, name="q"))
    with pytest.raises(QueryError, match="has the level `2 minutes / 1 minute` already"):
        live.add_level("120 seconds / 60 seconds")
    with pytest.raises(QueryError, match="longer than the window"):
        live.add_level("1 minute / 2 minutes")
    live.stop()
    with pytest.raises(QueryError, match="does not run"):
        live.add_level("20 seconds / 10 seconds")


def test_a_plan_that_does_not_start_changes_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    (live,) = session.start(session.parse(SQL, name="q"))
    before = live.results()

    def fail(self: InProcessRunner) -> None:
        raise EngineError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(InProcessRunner, "start", fail)
        with pytest.raises(EngineError, match="no room"):
            live.add_level("20 seconds / 10 seconds")
    assert [level.label for level in live.store.schema.levels] == ["2 minutes / 1 minute"]
    assert live.results().equals(before)
    live.add_level("20 seconds / 10 seconds")
    assert len(live.store.schema.levels) == 2


def test_results_of_a_level_that_nobody_keeps_are_left_out(session: Session) -> None:
    (live,) = session.start(session.parse(SQL, name="q"))
    table = live.store.table()
    codes = pa.array([2], pa.int8()).to_numpy()
    starts = pa.array([0], pa.int64()).to_numpy()
    batch = ResultBatch.of(
        0, starts, (pa.array(["UA"]),), (pa.array([7.0]), pa.array([1])), codes, codes.astype("int16")
    )
    live.store.apply([batch], ["another"])
    assert live.store.table().equals(table)


def test_python_rebuilds_a_query_from_files(session: Session, tmp_path: object) -> None:
    import pyarrow.parquet as pq

    path = f"{tmp_path}/events.parquet"
    pq.write_table(TABLE, path)
    session.source("files", path, time="ts", delay="5 seconds", replay="60x")
    (live,) = session.start(session.parse(SQL.replace("events", "files"), name="totals"))
    calls: list[tuple[str, tuple[object, ...], dict[str, object]]] = []

    class Recorder:
        def __getattr__(self, name: str) -> object:
            return lambda *given, **named: calls.append((name, given, named))

    exec(live.python().replace("import workbench\n", ""), {"workbench": Recorder()})
    assert calls[0] == ("source", ("files", path), {"time": "ts", "delay": "5 seconds", "replay": "60x"})
    name, (sql,), named = calls[1]
    assert (name, named) == ("dashboard", {"name": "totals"})
    assert session.parse(str(sql), name="totals") == (live.query,)
    (memory,) = session.start(session.parse(SQL, name="q"))
    assert "# data: what the source was made of" in memory.python()
