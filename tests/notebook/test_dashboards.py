"""The same query without a notebook: a page on this machine, and files."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from inprocess import InProcessRunner

from workbench.notebook import api, dashboards
from workbench.session import Session

TABLE = pa.table(
    {"ts": pa.array([0, 1_000_000], pa.timestamp("us", "UTC")), "carrier": ["UA", "B6"], "v": [1.0, 2.0]}
)
SQL = "SELECT carrier, sum(v) AS total FROM events GROUP BY carrier, zoom(ts, '2 seconds', '1 minute')"


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    made = Session(launch=InProcessRunner)
    made.source("events", TABLE, time="ts")
    monkeypatch.setattr(api, "default_session", lambda: made)
    yield made
    made.stop_all()


def test_a_script_serves_and_saves(tmp_path: Path) -> None:
    board = dashboards.dashboard(SQL, name="totals")
    assert board.wait(1)
    page = board.serve()
    try:
        with urllib.request.urlopen(page.url, timeout=30) as answer:
            assert "bokeh" in answer.read().decode().lower()
    finally:
        page.stop()
    svg = board.save(tmp_path / "totals.svg").read_text()
    assert svg.startswith("<svg")
    assert "UA" in svg
    assert "Bokeh" in board.save(tmp_path / "totals.html").read_text()
    board.stop()
    assert board.query.status().state == "finished"


def test_sql_and_builder_are_the_same_query() -> None:
    built = api.query("events").group_by("carrier").zoom("2 seconds", "1 minute").select("carrier", total="sum(v)")
    (spoken,) = api.bind(SQL, "totals", None)
    assert built.build("totals") == spoken
    assert str(api.explain(built, name="totals")) == str(api.explain(SQL, name="totals"))


def test_waiting_for_results(session: Session) -> None:
    live = api.run(SQL, name="totals")
    assert live.wait_for_results(1)
    session.source("nothing", TABLE.slice(0, 0), time="ts")
    empty = api.run("SELECT count(*) AS n FROM nothing GROUP BY window(ts, '1 minute')", name="empty")
    assert not empty.wait_for_results(1)
    assert empty.results().empty
