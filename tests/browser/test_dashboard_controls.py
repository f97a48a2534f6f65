"""The controls of a dashboard, used in JupyterLab with a mouse."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import DARK, LIGHT, choose, drag, ground, labels, press, settled, span, theme, wait_until
from tests.browser.stage import FILL, REST, SHOW

pytestmark = pytest.mark.browser

#: Revises six windows of a key.
REVISE = """
running = False
writer.join()
late = np.arange(began + 30 * HOUR, began + 31 * HOUR, 10 * MINUTE)
results.apply([ResultBatch.of(1, late, (pa.array(['AA'] * 6),),
    (pa.array([90.0] * 6), pa.array([9.0] * 6), pa.array([95.0] * 6), pa.array([30] * 6)),
    np.full(6, 3, np.int8), np.ones(6, np.int16))])
"""
FIRST = "Bokeh.documents.at(-1).roots()[0].children[3].children[0][0]"
#: How many revised windows the page marks in its first figure.
MARKED = f"() => {FIRST}.renderers.at(-1).data_source.data.x.length"
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def sheet(module_lab: Callable[..., LabPage], tmp_path_factory: pytest.TempPathFactory) -> LabPage:
    """A notebook with the cells REST, FILL, SHOW and REVISE, open in a page for all tests."""
    cells = [REST.strip(), FILL.strip(), SHOW, REVISE.strip()]
    return module_lab(write_notebook(tmp_path_factory.mktemp("sheet") / "controls.ipynb", cells), height=1150)


@pytest.fixture
def page(sheet: LabPage) -> LabPage:
    """A fresh dashboard that moves on by twenty minutes a second."""
    sheet.errors.clear()
    for cell in range(3):
        sheet.run_cell(cell)
    sheet.wait_text("2 hours / 10 minutes (auto)")
    wait_until(sheet, lambda: len(labels(sheet)) == 6, "the lines of six keys")
    return sheet


def saved(page: LabPage, kind: str) -> tuple[str, bytes]:
    """Name and content of the file that the menu gives."""
    with page.page.expect_download() as waiting:
        choose(page, "Export", kind)
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def test_keys_views_and_themes(page: LabPage) -> None:
    press(page, "Options")
    page.wait_text("6 of 6 keys on show")
    page.page.get_by_placeholder("find a key").fill("a")
    page.page.get_by_role("button", name="B6", exact=True).wait_for(state="detached")
    press(page, "UA")
    page.wait_text("1 of 6 keys on show, picked")
    press(page, "AA")
    page.wait_text("2 of 6 keys on show, picked")
    wait_until(page, lambda: labels(page) == ["UA", "AA"], "the picked keys alone")
    press(page, "unpick all")
    page.wait_text("6 of 6 keys on show")

    choose(page, "theme: auto", "dark")
    wait_until(page, lambda: ground(page) == DARK, "the dark ground chosen by hand")
    choose(page, "theme: auto", "theme: auto")
    wait_until(page, lambda: ground(page) == LIGHT, "the ground of the page")
    theme(page, "Dark")
    theme(page, "Light")

    press(page, "Multiples")
    figures = page.page.locator(".bk-Figure:visible")
    wait_until(page, lambda: figures.count() == 6, "a figure for each key, and no other")
    choose(page, "worst", "worst")
    press(page, "Table")
    for text in ("provisional", "final", "window (UTC)"):
        page.wait_text(text)
    press(page, "Plan")
    page.wait_text("no plan stands behind this stage")
    press(page, "Code")
    page.wait_text("SELECT carrier")
    press(page, "Lines")
    wait_until(page, lambda: figures.count() == 4, "a figure for each value")

    # A revised result is marked in the plot and named in the table.
    assert page.page.evaluate(MARKED) == 0
    page.run_cell(3)
    wait_until(page, lambda: page.page.evaluate(MARKED) == 6, "six marks")
    assert page.errors == []


def test_files_of_every_kind(page: LabPage) -> None:
    name, content = saved(page, "CSV")
    assert name == "flight-delays-by-carrier.csv"
    table = pa_csv.read_csv(io.BytesIO(content))
    assert {"carrier", "window_end", "mean_delay", "status"} <= set(table.column_names)
    assert len(table) > 100
    name, content = saved(page, "Parquet")
    assert name == "flight-delays-by-carrier.parquet"
    again = pa_parquet.read_table(io.BytesIO(content))
    assert again.column_names == table.column_names
    assert len(again) >= len(table)
    name, content = saved(page, "PNG")
    assert name == "Flight delays by carrier.png"
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000
    name, content = saved(page, "SVG")
    assert content.startswith(b"<svg")
    assert b"Flight delays by carrier" in content
    name, content = saved(page, "SQL")
    assert (name, content) == ("flight-delays-by-carrier.sql", b"SELECT carrier, avg(dep_delay) AS mean_delay\n")
    name, content = saved(page, "Python")
    assert (name, content) == ("flight-delays-by-carrier.py", b"import workbench\n")
    assert page.errors == []


def test_the_time_axis_moves_follows_holds_and_pauses(page: LabPage) -> None:
    # All: everything there is, and it grows at its end alone.
    began, end = span(page)
    wait_until(page, lambda: span(page)[1] > end, "the range to grow")
    assert span(page)[0] == began

    # A wheel comes closer and holds; a drag moves by what the mouse has moved.
    page.wheel(-300)
    page.wheel(-300)
    wait_until(page, lambda: span(page)[1] - span(page)[0] < (end - began) * 0.8, "a shorter range")
    page.wait_text("15 minutes / 1 minute (auto)")
    first, last = settled(page, lambda: span(page), "the range")
    drag(page, 150)
    wait_until(page, lambda: span(page) != (first, last), "the range to move")
    left, right = settled(page, lambda: span(page), "the range")
    assert right - left == pytest.approx(last - first)
    width = page.page.evaluate(f"() => {FIRST}.inner_width")
    assert first - left == pytest.approx((last - first) * 150 / width, rel=0.03)
    time.sleep(1)
    assert span(page) == (left, right), "it holds while the stream goes on"

    # Follow: as long as before, and along with the newest window.
    press(page, "Follow")
    wait_until(page, lambda: span(page)[1] > right, "the range to follow")
    first, last = span(page)
    assert last - first == pytest.approx(right - left)
    wait_until(page, lambda: span(page)[0] > first + HOUR_MS / 6, "its beginning to move along")
    press(page, "Hold")
    held = settled(page, lambda: span(page), "the range")
    time.sleep(1)
    assert span(page) == held
    press(page, "All")
    wait_until(page, lambda: span(page)[0] == began, "all windows again")

    # A level that is pinned stays through a zoom.
    choose(page, "level: auto", "1 day / 1 hour")
    page.wait_text("1 day / 1 hour (pinned)")
    page.wheel(-300)
    page.wheel(-300)
    time.sleep(0.6)
    page.wait_text("1 day / 1 hour (pinned)")
    choose(page, "level: auto", "level: auto")
    page.wait_text("(auto)")

    # A pause keeps the picture while the strip goes on.
    press(page, "All")
    press(page, "Pause")
    page.wait_text("(auto, paused)")
    time.sleep(0.6)
    before = page.figure().screenshot()
    time.sleep(1.2)
    assert page.figure().screenshot() == before
    press(page, "Pause")
    wait_until(page, lambda: page.figure().screenshot() != before, "the picture to go on")
    assert page.errors == []


def test_a_finer_level_is_added_and_a_dead_kernel_told_of(page: LabPage) -> None:
    """The last test here: it ends the kernel."""
    for _ in range(9):
        page.wheel(-300)
        time.sleep(0.1)
    time.sleep(0.6)
    button = page.page.locator("button", has_text="+ 30 seconds / 2 seconds")
    button.wait_for(state="visible")
    button.click()
    page.wait_text("30 seconds / 2 seconds (auto)")
    button.wait_for(state="hidden")

    # The kernel dies: the picture stays and says so.
    page.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.shutdown()")
    page.wait_text("the kernel has not answered since")
    assert page.figure().is_visible()
    assert page.errors == []
