"""What a notebook shows of a query's handle, beside the text that stays what it was."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from inprocess import InProcessRunner, SteppingRunner
from IPython.core.formatters import DisplayFormatter

from workbench.session import LiveQuery, Session
from workbench.session.card import card_html

TABLE = pa.table(
    {
        "ts": pa.array([second * 1_000_000 for second in range(12)], pa.timestamp("us", "UTC")),
        "v": [float(second) for second in range(12)],
        "car": ["<b>a</b>"] * 12,
    }
)
SQL = "SELECT sum(v) AS total FROM events WHERE v < 11 GROUP BY zoom(ts, '3 s / 1 s', '6 s')"


class Words(HTMLParser):
    """The texts of a page by their element, and the elements that were opened and not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1], []).append(data)


def started(sql: str = SQL, launch: type[InProcessRunner] = SteppingRunner) -> LiveQuery:
    session = Session(launch=launch)
    session.source("events", TABLE, time="ts", delay="0 s")
    (handle,) = session.start(session.parse(sql, name="totals"))
    return handle


def shown(handle: LiveQuery) -> Words:
    data, _ = DisplayFormatter().format(handle)
    assert data["text/plain"] == str(handle.status())
    words = Words(data["text/html"])
    assert words.open == []
    return words


def test_the_handle_of_a_running_query_shows_how_it_is_doing() -> None:
    handle = started()
    runner = SteppingRunner.started[-1]
    assert isinstance(runner, SteppingRunner)
    runner.step(8)
    words = shown(handle)
    assert words.texts["b"] == ["totals"]
    assert "8 rows read" in words.texts["div"][-1]
    # Rows of 0 to 7 s, the watermark at 7 s. Of 3 s / 1 s the windows from -2 to 4 s have ended, of 6 s that of 0 s;
    # of the open ones the next to end is told.
    assert words.texts["th"] == ["windows", "final", "provisional", "revised"]
    assert words.texts["td"] == ["3 seconds / 1 second", "7", "1", "0", "6 seconds", "1", "1", "0"]
    assert words.texts["code"] == [
        "workbench.dashboard(totals)", "totals.results()", "totals.plan()", "totals.stop()"
    ]  # fmt: skip
    assert words.texts["pre"] == [handle.sql()]


def test_windows_along_a_measure_are_not_offered_as_a_plot() -> None:
    sql = "SELECT count(*) AS n FROM events GROUP BY measure_window(v, 5, 'drop')"
    assert "workbench.dashboard(totals)" not in shown(started(sql, InProcessRunner)).texts["code"]


def test_text_alone_is_not_offered_as_a_plot() -> None:
    sql = "SELECT max(car) AS last FROM events GROUP BY zoom(ts, '3 s')"
    words = shown(started(sql, InProcessRunner))
    assert words.texts["code"][0] == "totals.results()"


@pytest.mark.parametrize("part", ["error", "source", "text"])
def test_what_comes_from_outside_is_text(part: str) -> None:
    evil = "<script>alert(1)</script>"
    handle = started(launch=InProcessRunner)
    status = replace(handle.status(), error=evil if part == "error" else None)
    html = card_html(
        status,
        evil if part == "source" else "events",
        evil if part == "text" else "SELECT 1",
        drawable=True,
    )
    words = Words(html)
    assert "script" not in words.texts
    assert any(evil in text for texts in words.texts.values() for text in texts)


def test_the_text_says_how_long_a_micro_batch_took_only_where_it_is_known() -> None:
    status = started().status()
    assert "\n  batches    0\n" in str(status)
    assert "\n  batches    3, the latest took 1.50 s\n" in str(replace(status, batches=3, batch_seconds=1.5))


def test_an_error_of_several_lines_stands_under_its_word() -> None:
    text = str(replace(started().status(), error="division by zero\nhint: `nullif` gives NULL"))
    assert text.endswith("\n  error      division by zero\n             hint: `nullif` gives NULL")
