"""Results that nobody wishes for, in a real page: very many keys, the largest numbers, no numbers, nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import LINES, choose, labels, press, wait_until
from tests.browser.stage import SILENT

pytestmark = pytest.mark.browser

STAGE = """
import numpy as np, pyarrow as pa
from workbench.results import Level, QueryResults, ResultBatch, Schema
from workbench.time import MINUTE, SECOND
from workbench.widgets import DashboardView, LiveDashboard

began = 1_356_998_400 * SECOND
starts = began + np.arange(30) * MINUTE

def store(name, values, keys):
    '''A store of half an hour by the minute: `values` of each key, a row a key.'''
    results = QueryResults(Schema(name, (Level("1 minute", MINUTE, MINUTE),), (("key", pa.string()),),
                                  (("value", pa.float64()),)))
    count = len(starts) * len(keys)
    if count:
        results.apply([ResultBatch.of(0, np.tile(starts, len(keys)), (pa.array(np.repeat(keys, len(starts))),),
            (pa.array(np.ravel(values)),), np.full(count, 2, np.int8), np.zeros(count, np.int16))])
    return results

def show(name, values, keys):
    LiveDashboard.show(name, DashboardView(store(name, values, keys), name))

ones = np.ones(len(starts))
"""
MANY = "show('many', np.outer(np.arange(10_000), ones), [f'key {n:04}' for n in range(10_000)])"
HUGE = """
bounds = [1.7e308, -1.7e308] * 15
show('huge', [1e300 * ones, -1e300 * ones, bounds, np.inf * ones], ['up', 'down', 'bounds', 'inf'])
"""
NAN = "show('nan', [np.nan * ones, np.nan * ones], ['a', 'b'])"
EMPTY = "show('empty', [], [])"
#: Range and ticks of the value axis of the newest dashboard's first figure.
VALUES = """() => {
  const figure = Bokeh.documents.at(-1).roots()[0].children[3].children[0][0]
  return [figure.y_range.start, figure.y_range.end]
}"""


def test_what_nobody_wishes_for(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    page = lab(write_notebook(tmp_path / "odd.ipynb", [STAGE.strip(), MANY, HUGE.strip(), NAN, EMPTY]), height=1150)
    page.run_cell(0)

    # Ten thousand keys: twenty are drawn; search, pick and order answer.
    page.run_cell(1)
    wait_until(page, lambda: len(labels(page)) == 20, "the first twenty keys")
    press(page, "Options")
    page.wait_text("20 of 10,000 keys on show")
    choose(page, "first 20", "first 5")
    choose(page, "most rows", "highest value")
    wait_until(page, lambda: labels(page) == [f"key {n}" for n in range(9_995, 10_000)], "the five highest")
    choose(page, "most rows", "lowest value")
    wait_until(page, lambda: labels(page) == [f"key 000{n}" for n in range(5)], "the five lowest")
    page.page.get_by_placeholder("find a key").fill("7777")
    press(page, "key 7777")
    page.wait_text("1 of 10,000 keys on show, picked")
    wait_until(page, lambda: labels(page) == ["key 7777"], "the picked key")

    # The largest numbers: a finite axis, every finite value on it.
    page.run_cell(2)
    wait_until(page, lambda: sorted(labels(page)) == ["bounds", "down", "inf", "up"], "the lines of huge values")
    low, high = page.page.evaluate(VALUES)
    assert low is not None
    assert high is not None
    assert low <= -1e300 < 1e300 <= high
    page.figure(1).evaluate("(element) => element.scrollIntoView({block: 'center'})")
    page.screenshot("bad-huge")

    # NaN alone: an empty plot that knows its keys, and the table says that there is no number.
    page.run_cell(3)
    wait_until(page, lambda: labels(page) == ["a", "b"], "two keys without a number")
    drawn = page.page.evaluate(LINES)["figures"][0]
    assert all(value is None or value != value for line in drawn for value in line["y"])
    page.page.get_by_role("button", name="Table", exact=True).last.click()
    page.page.get_by_text("\N{EN DASH}", exact=True).last.wait_for(state="visible")

    # Nothing: it says so.
    page.run_cell(4)
    page.wait_text("no window yet")
    page.scroll_to_output(4)
    page.screenshot("bad-empty")
    assert page.errors == []


def test_a_source_that_stops_sending_is_told_of_and_the_picture_stays(
    lab: Callable[..., LabPage], tmp_path: Path
) -> None:
    cells = [SILENT.strip(), "send(40)\n_ = dashboards.show(live)", "send(40)"]
    page = lab(write_notebook(tmp_path / "silent.ipynb", cells))
    page.run_cell(0)
    page.run_cell(1)
    wait_until(page, lambda: len(labels(page)) == 5, "the lines of five zones")
    wait_until(page, lambda: len(drawn(page)["x"]) > 5, "their windows")
    before = drawn(page)
    told = page.page.get_by_text("no row for")
    told.wait_for(state="visible", timeout=60_000)
    page.wait_text("running")
    assert drawn(page) == before
    assert page.figure().is_visible()
    page.screenshot("bad-silent")

    # It sends again: the strip is quiet about it, and the lines go on.
    page.run_cell(2)
    told.wait_for(state="detached", timeout=60_000)
    wait_until(page, lambda: drawn(page)["x"][-1] > before["x"][-1], "later windows")
    assert page.errors == []


def drawn(page: LabPage) -> dict[str, Any]:
    """The final windows of the first key in the first figure of the newest dashboard."""
    found: dict[str, Any] = page.page.evaluate(LINES)["figures"][0][0]
    return found
