"""Sources, names and the life of queries, on the in-process runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inprocess import InProcessRunner

from workbench.errors import QueryError, SourceError
from workbench.results.rows import rows_of
from workbench.session import Session
from workbench.session.sources import make_source, parse_replay

TABLE = pa.table(
    {
        "ts": pa.array([0, 1_000_000, 2_500_000, 2_600_000], pa.timestamp("us", "UTC")),
        "k": ["a", "b", "a", None],
        "v": [1.0, 2.0, None, 4.0],
    }
)
SQL = "SELECT k, sum(v) AS total FROM events GROUP BY k, window(ts, '2 seconds')"


@pytest.fixture
def session() -> Session:
    InProcessRunner.started.clear()
    InProcessRunner.stopped.clear()
    made = Session(launch=InProcessRunner)
    made.source("events", TABLE, time="ts")
    return made


def test_a_query_runs_and_its_handle_tells_all(session: Session) -> None:
    (handle,) = session.start(session.parse(SQL, name="totals"))
    assert handle.wait(1)
    frame = handle.results(format="arrow")
    assert frame.select(["k", "total", "status"]).to_pylist() == [
        {"k": "a", "total": 1.0, "status": "final"},
        {"k": "b", "total": 2.0, "status": "final"},
        {"k": "a", "total": None, "status": "final"},
        {"k": None, "total": 4.0, "status": "final"},
    ]
    assert handle.results("2 seconds", status="provisional").empty
    assert len(handle.results()) == 4
    assert "sum_float(v)" in handle.explain()
    status = handle.status()
    assert (status.state, status.rows, status.late) == ("finished", 4, 0)
    assert "4 final" in str(status)
    with pytest.raises(QueryError, match="formats are"):
        handle.results(format="xml")
    with pytest.raises(QueryError, match="did you mean `final`"):
        handle.results(status="finall")


def test_rows_that_go_back_are_told(session: Session) -> None:
    rows = {"ts": TABLE["ts"], "car": ["a", "a", "a", None], "km": pa.array([3, 9, 8, 7], pa.int32())}
    session.source("trips", pa.table(rows), time="ts")
    sql = "SELECT car, count(*) AS n FROM trips GROUP BY car, measure_window(km, 5, 'drop')"
    (handle,) = session.start(session.parse(sql, name="along"))
    status = handle.status()
    assert status.backward == 1
    assert status.gone_back == "`km` of `a` is `8` at 1970-01-01 00:00:02.500000, where an earlier row has `9`"
    assert "measure    1 rows went back and were left out: `km` of `a`" in str(status)
    table = rows_of(handle.store.schema, [], ["5 of km"])
    assert table.schema.field("window_start").type == pa.int64()
    assert handle.results()[["window_start", "window_end", "n"]].to_numpy().tolist() == [
        [0, 5, 1],
        [5, 10, 1],
        [5, 10, 1],
    ]


def test_the_status_tells_what_late_rows_made_of_slices() -> None:
    """Two micro-batches: the third row joins the sessions of the first two, the fourth is of a session of its own."""
    seconds = pa.array([time * 1_000_000 for time in (0, 15, 7, 60)])
    made = Session(launch=InProcessRunner)
    made.source("events", pa.table({"ts": seconds.cast(pa.timestamp("us", "UTC"))}), time="ts", delay="1 hour")
    sql = "SELECT count(*) AS n FROM events GROUP BY session_window(ts, '10 seconds')"
    (handle,) = made.start(made.parse(sql, name="q"))
    status = handle.status()
    assert (status.merges, status.splits, status.recomputations, status.tuples) == (1, 0, 0, 0)
    assert "  slicing    1 merges, 0 splits, 0 recomputations" in str(status)


def test_the_status_tells_what_tasks_have_learned() -> None:
    """Two micro-batches of two rows, too few for a sample: the order is the written one, counts by hand.

    Both conditions are asked about all four rows, since comparisons cost less than moving columns.
    """
    made = Session(launch=InProcessRunner)
    made.source("events", TABLE, time="ts")
    where = "v > 1 AND k IS NOT NULL"
    made.start(made.parse("SELECT count(*) AS n FROM events GROUP BY window(ts, '1 s')", name="other"))
    (handle,) = made.start(made.parse(SQL.replace("GROUP", f"WHERE {where} GROUP"), name="q"))
    (learned,) = handle.status().learned
    assert learned.where == (("v > 1.0", 4, 2), ("k IS NOT NULL", 4, 3))
    told = "  where      v > 1.0 (50.0% of 4), k IS NOT NULL (75.0% of 4); order changed 0 times"
    assert told in str(handle.status())


def test_statements_of_several_cells_become_one_plan(session: Session) -> None:
    session.start(session.parse(SQL, name="one"))
    session.start(session.parse("SELECT count(*) AS n FROM events GROUP BY window(ts, '1 second')", name="two"))
    runner = InProcessRunner.started[-1]
    assert [entry.query.name for entry in runner.plan.queries] == ["one", "two"]
    assert len(InProcessRunner.stopped) == 1
    assert {handle.name for handle in session.queries()} == {"one", "two"}


def test_running_again_replaces(session: Session) -> None:
    """Case R5: the same cell twice leaves one query, the new one."""
    (first,) = session.start(session.parse(SQL, name="q"))
    (second,) = session.start(session.parse(SQL.replace("total", "other"), name="q"))
    assert [handle is second for handle in session.queries()] == [True]
    assert "total" in first.results().columns
    assert "other" in second.results().columns
    assert InProcessRunner.stopped == InProcessRunner.started[:1]


def test_a_failed_start_leaves_what_ran(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept,) = session.start(session.parse(SQL, name="kept"))

    def fail(self: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(InProcessRunner, "start", fail)
    with pytest.raises(RuntimeError):
        session.start(session.parse(SQL, name="new"))
    assert session.queries() == [kept]
    assert not InProcessRunner.stopped
    assert kept.status().state == "finished"


def test_stop_leaves_results_and_ends_the_stream_with_the_last(session: Session) -> None:
    (one,) = session.start(session.parse(SQL, name="one"))
    (two,) = session.start(session.parse(SQL, name="two"))
    stops = len(InProcessRunner.stopped)
    one.stop()
    one.stop()
    assert len(InProcessRunner.stopped) == stops
    two.stop()
    assert len(InProcessRunner.stopped) == stops + 1
    assert session.queries() == []
    assert len(one.results()) == 4
    assert one.status().state == "finished"


def test_a_source_defined_again_ends_the_older_ones_queries(session: Session) -> None:
    session.start(session.parse(SQL, name="q"))
    session.source("events", TABLE, time="ts")
    assert session.queries() == []


def test_unknown_source_and_level(session: Session) -> None:
    with pytest.raises(QueryError, match="did you mean `events`"):
        session.parse(SQL, name="q", source="event")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs its event time"),
        ({"time": "t"}, "no column `t` for `time`"),
        ({"time": "v"}, "column `v` of type `double` is not a timestamp"),
        ({"time": "ts", "arrival": "k"}, "column `k` of type `string` is not a timestamp"),
        ({"time": "ts", "delay": "-1 s"}, "must not be negative"),
        ({"time": "ts", "replay": "fast"}, "cannot read the replay speed `fast`"),
        ({"time": "ts", "max_rows": 0}, "`max_rows` must be at least 1"),
        ({"time": "ts", "store": "eagr"}, "no store `eagr`\nhint: did you mean `eager`"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        make_source("events", TABLE, **options)


def test_files_that_are_not_there_or_not_parquet(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file"):
        make_source("s", tmp_path / "nothing.parquet", time="ts")
    (tmp_path / "sales.csv").write_text("ts\n2024-01-01\n")
    with pytest.raises(SourceError, match=r"no file `.*sale\.csv`\nhint: in `.*`: did you mean `sales\.csv`\?"):
        make_source("s", tmp_path / "sale.csv", time="ts")
    (tmp_path / "sales.csv").unlink()
    with pytest.raises(SourceError, match="holds no file of events"):
        make_source("s", tmp_path, time="ts")
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(SourceError, match="cannot read"):
        make_source("s", tmp_path / "bad.parquet", time="ts")
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(TABLE.select(["ts", "k"]), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="has other columns than"):
        make_source("s", [tmp_path / "a.parquet", tmp_path / "b.parquet"], time="ts")


def test_a_name_that_sql_could_not_use_is_refused() -> None:
    with pytest.raises(SourceError, match="cannot name a source"):
        make_source("my flights", TABLE, time="ts")


def test_a_pandas_frame_is_a_source() -> None:
    frame = pd.DataFrame({"ts": pd.to_datetime(["2020-01-01"], utc=True), "v": [1]})
    source = make_source("s", frame, time="ts")
    assert source.stream.schema.field("ts").type == pa.timestamp("us", "UTC")
    assert "1 rows" in repr(source)


@pytest.mark.parametrize(
    ("text", "speed"),
    [("max", None), ("backfill", None), ("1 day/s", 86_400e6), ("60x", 60e6), ("2 hours / minute", 120e6), (1, 1e6)],
)
def test_replay_speeds(text: str | float, speed: float | None) -> None:
    assert parse_replay(text) == speed


def test_an_over_query_gives_a_row_for_each_row(session: Session) -> None:
    """By hand; the two rows without and with NULL of key a are 2.5 s apart, so each is alone in its frame of 2 s."""
    sql = "SELECT ts, k, v, sum(v) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL '2' SECOND PRECEDING) AS t, "
    sql += "count(*) OVER (PARTITION BY k ORDER BY ts) AS n FROM events"
    (handle,) = session.start(session.parse(sql, name="rows"))
    assert handle.wait(1)
    found = handle.results(format="arrow")
    assert found["status"].to_pylist() == ["final"] * 4
    assert found["ts"].to_pylist() == found["window_start"].to_pylist() == TABLE["ts"].to_pylist()
    assert found.select(["k", "v", "t", "n"]).to_pylist() == [
        {"k": "a", "v": 1.0, "t": 1.0, "n": 1},
        {"k": "b", "v": 2.0, "t": 2.0, "n": 1},
        {"k": "a", "v": None, "t": None, "n": 2},
        {"k": None, "v": 4.0, "t": 4.0, "n": 1},
    ]
    assert "rows are kept, because every row is an edge" in handle.explain()


def test_an_idle_time_out_is_a_duration_of_a_stream_that_can_fall_silent() -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC"))})
    made = make_source("s", table, time="ts", replay="2x", idle="30 seconds")
    assert made.stream.idle == 30_000_000
    with pytest.raises(SourceError, match="`idle` has no meaning for a recording that is read as fast as possible"):
        make_source("s", table, time="ts", idle="30 seconds")
    with pytest.raises(SourceError, match="cannot read the idle time-out"):
        make_source("s", table, time="ts", replay="2x", idle="soon")
    with pytest.raises(SourceError, match="the idle time-out must not be negative"):
        make_source("s", table, time="ts", replay="2x", idle="-1 second")
