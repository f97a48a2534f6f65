"""The live dashboard as a user meets it: JupyterLab, a store that fills in the background, a mouse."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import HASTY, labels, span, wait_until
from tests.browser.stage import BUSY, FILL, SHOW, STOP

pytestmark = pytest.mark.browser

#: A dashboard beside the first one.
MORE = """
view = DashboardView(results, "The same by the hour")
view.pin("1 day / 1 hour")
more = LiveDashboard.show("more", view)
"""
#: How often the page has been given BokehJS, a script of each of two files, and the dashboards that it holds.
BOKEHS = """() => [document.querySelectorAll("head script[src^='blob:']").length,
               Bokeh.documents.map((each) => each.title()).sort()]"""
#: The newest dashboard cannot draw what it is told next.
FAULT = """() => {
  Bokeh.documents.at(-1).apply_json_patch = () => { throw new Error("a fault of this moment") }
}"""


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A notebook: FILL, SHOW, BUSY, STOP, a cell that displays the widget again, MORE and a cell that ends that."""
    cells = [FILL.strip(), SHOW, BUSY, STOP, "live", MORE.strip(), "more.close()"]
    return write_notebook(tmp_path / "live.ipynb", cells)


def watermark(page: LabPage) -> str:
    """The watermark that the strip of the first dashboard shows."""
    text = page.page.locator("span", has_text="watermark:").first.inner_text()
    found = re.search(r"watermark:\s*([\d-]+ [\d:]+)", text)
    assert found, text
    return found.group(1)


def wait_moves(page: LabPage) -> None:
    """Wait until pixels and strip of the first dashboard have changed."""
    before, mark = page.figure().screenshot(), watermark(page)
    wait_until(page, lambda: watermark(page) > mark, "the watermark to move")
    wait_until(page, lambda: page.figure().screenshot() != before, "the picture to move")


def test_a_dashboard_lives_zooms_reloads_and_ends(lab: Callable[..., LabPage], notebook: Path) -> None:
    page = lab(notebook)
    page.run_cell(0)
    page.run_cell(1)
    page.wait_text("2 hours / 10 minutes (auto)")
    wait_moves(page)
    page.screenshot("live-dashboard")

    # Another cell runs: the plot goes on, and a zoom is answered meanwhile.
    page.run_cell(2, wait=False)
    wait_moves(page)
    for _ in range(4):
        page.wheel(-300)
    began = time.monotonic()
    page.wait_text("15 minutes / 1 minute (auto)", timeout=10)
    assert "done" not in page.cell_output_text(2), "the zoom was answered only after the cell had ended"
    print(f"zoom to new level: {time.monotonic() - began:.3f} s")
    page.screenshot("live-dashboard-zoomed")
    page.wait_idle()

    # A reload draws the same again, from the kernel's state; two dashboards share one BokehJS.
    page.run_cell(5)
    page.wait_text("1 day / 1 hour (pinned)")
    page.save()
    page.open()
    page.wait_text("15 minutes / 1 minute (auto)")
    page.wait_text("1 day / 1 hour (pinned)")
    page.figure(7).wait_for(state="visible")
    titles = ["Flight delays by carrier", "The same by the hour"]
    assert page.page.evaluate(BOKEHS) == [2, titles]
    page.run_cell(6)
    wait_until(page, lambda: page.page.evaluate(BOKEHS) == [2, titles[:1]], "one dashboard alone")

    # What goes wrong once in a page is drawn anew.
    page.page.evaluate(FAULT)
    wait_until(page, lambda: any("a fault of this moment" in line for line in page.console), "the fault")
    mark = watermark(page)
    wait_until(page, lambda: watermark(page) > mark, "the strip to go on")
    page.figure().wait_for(state="visible")

    # Running the cell again leaves one set of comms, and one dashboard in the page.
    page.run_cell(1)
    page.wait_text("2 hours / 10 minutes (auto)")
    comms = page.comms()
    for _ in range(3):
        page.run_cell(1)
    page.wait_text("2 hours / 10 minutes (auto)")
    assert page.comms() == comms
    assert page.page.evaluate(BOKEHS) == [2, titles[:1]]
    wait_moves(page)

    # The end leaves a picture, no comm and no thread.
    page.run_cell(3)
    assert page.cell_output_text(3).strip() == "[]"
    wait_until(page, lambda: page.comms() == 0, "the page to answer the closing of its comms")
    data = page.cell_outputs(1)[0]["data"]
    assert "image/svg+xml" in data
    assert "application/vnd.jupyter.widget-view+json" not in data
    page.screenshot("live-dashboard-closed")
    assert page.errors == []


def test_two_outputs_and_a_second_browser_show_the_same(lab: Callable[..., LabPage], notebook: Path) -> None:
    """Cases B8 and B9: every view of one dashboard moves, a page opened later draws what there is.

    The later one is so slow that anywidget gives up handing on what the kernel says.
    """
    page = lab(notebook, height=2000)
    for index in (0, 1, 4):
        page.run_cell(index)
    page.figure(5).wait_for(state="visible")
    page.save()
    other = lab(notebook, width=800, script=HASTY)
    wait_until(other, lambda: len(labels(other)) == 6, "the lines in the other browser")
    for _ in range(4):
        page.wheel(-300, index=3)
    for shown in (page, other):
        shown.wait_text("15 minutes / 1 minute (auto)")
    wait_until(page, lambda: span(page) == span(other), "the same range in both browsers")
    for shown in (page, other):
        mark = watermark(shown)
        wait_until(shown, lambda shown=shown, mark=mark: watermark(shown) > mark, "the strip to go on")
    other.scroll_to_output(1)
    other.screenshot("live-dashboard-800")
    page.screenshot("live-dashboard-two-outputs")
    page.run_cell(3)
    assert other.page.evaluate("window.givenUp") > 0, "this page was not slow"
    given_up = "[anywidget] Failed to initialize model."
    assert page.errors == [error for error in other.errors if error != given_up] == []
