"""The same query without a notebook: a page on this machine, and files."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from inprocess import InProcessRunner
from ipywidgets.widgets.widget import _instances

from workbench.errors import QueryError
from workbench.notebook import api, dashboards
from workbench.session import Session
from workbench.spark.progress import Progress
from workbench.time import SECOND
from workbench.widgets import LiveDashboard
from workbench.widgets.strip import strip_html

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


def test_windows_along_a_measure_have_no_picture(session: Session) -> None:
    """Neither before the query starts nor of one that runs; the table is there."""
    sql = "SELECT count(*) AS n FROM events GROUP BY measure_window(v, 10)"
    with pytest.raises(QueryError, match=r"windows of `10 of v` have no place on a time axis"):
        dashboards.dashboard(sql, name="along")
    assert not session.queries()
    live = api.run(sql, name="along")
    with pytest.raises(QueryError, match="`results\\(\\)` has them as a table"):
        dashboards.live_view(live)
    assert live.results()[["window_start", "window_end", "n"]].to_numpy().tolist() == [[0.0, 10.0, 2.0]]


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


def test_thirty_runs_of_a_cell_leave_one_query_one_picture_and_no_thread(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str) -> None:
        dashboards.show(api.run(SQL, name=name))

    names = ("first", "second", "third")
    for name in names:
        run(name)
    threads, widgets = threading.active_count(), len(_instances)
    for _ in range(30):
        run("first")
    assert threading.active_count() == threads
    assert len(_instances) == widgets
    assert sorted(live.name for live in session.queries()) == sorted(names)
    for name in names:
        LiveDashboard.close_named(name)
    assert len(_instances) == widgets - 2 * len(names), "a dashboard and its layout each"
    capsys.readouterr()


def test_the_form_runs_and_writes_cells(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    form = dashboards.builder("events")
    form.by["carrier"].value = True
    form.levels[0].value = (SECOND, SECOND)
    form.name.value = "made"
    assert "<svg" in form.picture.value
    form.run_query.click()
    assert form.said.value == ""
    (live,) = session.queries()
    assert live.name == "made"
    assert len(live.results("1 second")) == 2
    shown = form.place.children[0]
    assert isinstance(shown, LiveDashboard)
    form.run_query.click()
    assert form.place.children[0] is not shown
    assert not shown._pump.is_alive(), "running again closes the older picture"
    LiveDashboard.close_named("made")
    form.create_cell._received(None, {"type": "pressed", "done": False}, [])
    assert "there is no notebook" in form.said.value
    shell = SimpleNamespace(user_ns={"made": pa}, push=lambda variables: pytest.fail(str(variables)))
    monkeypatch.setattr(dashboards, "get_ipython", lambda: shell)
    form.run_query.click()
    assert "`made` is a module in this notebook" in form.said.value
    with pytest.raises(QueryError, match="no source `event`"):
        dashboards.builder("event")


def test_the_form_starts_nothing_that_has_no_picture(session: Session) -> None:
    """The first text of each window: SQL says it, and no line can show it."""
    form = dashboards.builder("events")
    while len(form.values) > 1:
        form._value_box.children[-1].children[-1].click()
    ((function, column),) = form.values
    function.value, column.value = "first", "carrier"
    assert "first(carrier)" in form.sql.value
    form.run_query.click()
    assert "nothing to plot: `first_carrier`" in form.said.value
    assert session.queries() == []


def test_a_cell_that_the_page_could_not_put_comes_with_the_next_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    class Shell:
        def set_next_input(self, text: str) -> None:
            given.append(text)

    monkeypatch.setattr(dashboards, "get_ipython", Shell)
    form = dashboards.builder()
    form.create_cell._received(None, {"type": "pressed", "done": False}, [])
    assert given == [form.draft.cell("query")]
    assert "below the next one" in form.said.value


def test_without_a_source_there_is_no_form(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Session(launch=InProcessRunner)
    monkeypatch.setattr(api, "default_session", lambda: empty)
    with pytest.raises(QueryError, match="there is no source yet"):
        dashboards.builder()


def test_a_dashboard_knows_its_query() -> None:
    live = api.run(SQL, name="totals")
    backing = dashboards.backing_of(live)
    assert backing.texts()["SQL"] == live.sql()
    assert "workbench.dashboard(" in backing.texts()["Python"]
    assert backing.plan().startswith("<svg")
    assert backing.roles.bands == {}
    assert backing.add_level is not None
    backing.add_level("1 second")
    assert [level.label for level in live.store.schema.levels] == ["1 second", "2 seconds", "1 minute"]


def test_the_strip_tells_of_a_source_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    live = api.run(SQL, name="totals")
    clock = [100.0]
    monkeypatch.setattr(dashboards.time, "monotonic", lambda: clock[0])
    progress = Progress(state="running", rows=5, watermark=10, max_event=25, details="a trace", error="a fault")
    monkeypatch.setattr(type(live), "progress", lambda self: progress)
    facts = dashboards.StripFacts(live)
    facts()
    clock[0] += 8
    told = facts()
    assert (told["quiet_seconds"], told["lag"]) == (8.0, 15)
    assert "totals.progress().details" in told["hint"]
    html = strip_html(told, "2 seconds")
    assert "no row for 8 s" in html
    assert "a fault\nhint:" in html
