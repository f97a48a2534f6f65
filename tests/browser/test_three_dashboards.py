"""Three dashboards of three queries in one notebook, over two streams: each is its own, none disturbs another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import settled, wait_until
from tests.browser.stage import RIDES

pytestmark = pytest.mark.browser

SESSION = (
    RIDES
    + """
import threading
runners = SteppingRunner.started
session = Session(launch=SteppingRunner)
session.source("rides", rides, time="ts", delay="0 s")
session.source("others", rides, time="ts", delay="0 s")
levels = "zoom(ts, '1 minute / 20 seconds', '30 minutes / 3 minutes', '6 hours / 1 hour')"

def run(name, source, what):
    (live,) = session.start(session.parse(f"SELECT zone, {what} FROM {source} GROUP BY zone, {levels}", name=name))
    dashboards.show(live)

def send(steps):
    for runner in runners:
        if runner not in SteppingRunner.stopped:
            for _ in range(steps):
                runner.step(10)
"""
)
CELLS = [
    SESSION.strip(),
    "run('fares', 'rides', 'avg(fare) AS fare')",
    "run('ways', 'rides', 'sum(distance) AS way')",
    "run('counts', 'others', 'count(*) AS n')",
    "send(300)",
    # Queries, pumps of dashboards, threads of the session's own and runners that go on.
    "print(len(session.queries()), sum(t.name.startswith('dashboard ') for t in threading.enumerate()), "
    "threading.active_count(), sum(r not in SteppingRunner.stopped for r in runners))",
]
#: What each dashboard of the page shows, by its title: level, range, the windows that it has drawn of its first key.
SHOWN = """() => Object.fromEntries(Bokeh.documents.map((document) => {
  const models = [...document._all_models.values()]
  const {start, end} = models.find((model) => model.type === "Range1d")
  const lines = models.find((model) => model.type === "ColumnDataSource" && "first" in model.data).data
  const strip = models.filter((model) => model.type === "Div").map((model) => model.text).join(" ")
  const said = new DOMParser().parseFromString(strip, "text/html").body.textContent
  const level = said.match(/level:\\s*(.*?) \\((auto|pinned)/)?.[1]
  return [document.title(), {level, start, end, windows: lines.xs?.[0]?.length ?? 0, keys: new Set(lines.label).size}]
}))"""


def shown(page: LabPage) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = page.page.evaluate(SHOWN)
    return found


def levels(page: LabPage) -> list[str]:
    return [each["level"] for _, each in sorted(shown(page).items())]


def test_three_dashboards_in_one_notebook(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    page = lab(write_notebook(tmp_path / "three.ipynb", CELLS), height=2000)
    for number in range(5):
        page.run_cell(number)
    wait_until(page, lambda: len(shown(page)) == 3, "three dashboards")
    wait_until(page, lambda: all(d["keys"] == 5 and d["windows"] > 5 for d in shown(page).values()), "all lines")
    counts, fares, ways = sorted(shown(page))
    assert [counts, fares, ways] == ["counts", "fares", "ways"]
    page.run_cell(5)
    before = page.cell_output_text(5).split()
    assert before[:2] == ["3", "3"]
    comms = page.comms()

    # Each is zoomed by itself: figures stand in the order of the cells, one of each dashboard.
    fine, middle, coarse = "1 minute / 20 seconds", "30 minutes / 3 minutes", "6 hours / 1 hour"
    assert levels(page) == [middle] * 3
    for _ in range(2):
        page.wheel(-300, index=0)
    wait_until(page, lambda: levels(page) == [middle, fine, middle], "the level of the first one alone")
    first = settled(page, lambda: shown(page), "the first one")
    for _ in range(6):
        page.wheel(300, index=1)
    wait_until(page, lambda: levels(page) == [middle, fine, coarse], "the level of the second one alone")
    second = settled(page, lambda: shown(page), "the second one")
    for name in (counts, fares):
        assert second[name] == first[name], "the second one has moved another"
    page.screenshot("three-dashboards")

    # The cell of the first is run again: it begins anew, the others are where they were, and nothing is left over.
    page.run_cell(1)
    wait_until(page, lambda: len(shown(page)) == 3 and not shown(page)[fares]["keys"], "a new first one, empty yet")
    third = shown(page)
    for name in (counts, ways):
        assert (third[name]["level"], third[name]["start"]) == (second[name]["level"], second[name]["start"])
    page.run_cell(5)
    assert page.cell_output_text(5).split() == before
    assert page.comms() == comms

    # New rows reach all three.
    seen = shown(page)["counts"]["windows"]
    page.run_cell(4)
    wait_until(page, lambda: shown(page)["counts"]["windows"] > seen, "later windows of the third")
    wait_until(page, lambda: shown(page)["fares"]["windows"] > 0, "windows of the new first one")
    assert page.errors == []
