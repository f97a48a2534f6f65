"""Dashboards in notebooks that are saved, opened again and converted, with their kernel and without it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import labels, press, span, wait_until
from tests.browser.stage import FILL, SHOW

pytestmark = pytest.mark.browser

#: Displays a dashboard inside other widgets, twice.
INSIDE = """
import ipywidgets as ipw
tab = ipw.Tab([ipw.HTML("first"), ipw.VBox([ipw.HBox([live], layout=ipw.Layout(width="100%"))])])
tab.selected_index = 1
display(tab, live)
"""
STILL = ".winquery-still img"


def test_a_saved_notebook_shows_its_last_picture_without_a_kernel(
    lab: Callable[..., LabPage], jupyter: tuple[str, Path], tmp_path: Path
) -> None:
    cells = [FILL.strip(), "running = False", SHOW]
    page = lab(write_notebook(tmp_path / "saved.ipynb", cells))
    for number in range(3):
        page.run_cell(number)
    wait_until(page, lambda: len(labels(page)) == 6, "the lines")
    page.wheel(-300)
    page.wheel(-300)
    page.wait_text("15 minutes / 1 minute (auto)")
    zoomed = span(page)
    assert not page.page.locator(STILL).is_visible(), "a picture beside the live dashboard"
    page.save()

    # The file holds what the page has drawn, as a picture; nbconvert's page shows it and no word of a widget.
    path = jupyter[1] / "saved.ipynb"
    shown, still = json.loads(path.read_text())["cells"][2]["outputs"]
    assert "application/vnd.jupyter.widget-view+json" in shown["data"]
    found = re.search(r' src="data:image/png;base64,([^"]+)"', "".join(still["data"]["text/html"]))
    assert found
    picture = b64decode(found.group(1))
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000
    html = tmp_path / "saved.html"
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    plain = page.page.context.new_page()
    plain.goto(html.as_uri())
    plain.locator(STILL).wait_for(state="visible")
    assert plain.locator(STILL).evaluate("(image) => image.naturalWidth") > 500
    assert "model not found" not in plain.content()
    assert "live dashboard" not in plain.locator("body").inner_text()
    plain.close()

    # Another page on the same kernel, as after closing and opening the notebook: live, and where it was.
    page.page.context.close()
    page = lab(path)
    page.wait_text("15 minutes / 1 minute (auto)")
    assert span(page) == zoomed
    assert not page.page.locator(STILL).is_visible()

    # The kernel is gone when the notebook is opened: the picture, and not JupyterLab's line about a lost widget.
    page.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.page.context.close()
    page = lab(path)
    page.page.locator(STILL).wait_for(state="visible")
    page.wait_text("Run the cell to see it live")
    assert page.page.locator(STILL).evaluate("(image) => image.naturalWidth") > 500
    assert not page.page.get_by_text("Error displaying widget").is_visible()
    page.scroll_to_output(2)
    page.screenshot("notebook-without-kernel")


def test_dashboards_inside_other_widgets_keep_their_size(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    """Cases B7 and B8: in a tab in boxes and in a collapsed output a plot keeps its size; both views of it draw."""
    hidden = SHOW.replace("LiveDashboard.show", "LiveDashboard.opened")
    page = lab(write_notebook(tmp_path / "inside.ipynb", [FILL.strip(), hidden, INSIDE.strip()]))
    for number in range(3):
        page.run_cell(number)
    page.figure(7).wait_for(state="visible")
    widths = [page.figure(number).bounding_box()["width"] for number in (0, 4)]
    assert min(widths) > 700
    first = page.figure(4).screenshot()
    wait_until(page, lambda: page.figure(4).screenshot() != first, "the second view to move")

    page.js("(panel) => { panel.content.widgets[2].outputHidden = true }")
    page.figure(0).wait_for(state="hidden")
    page.js("(panel) => { panel.content.widgets[2].outputHidden = false }")
    page.figure(7).wait_for(state="visible")
    assert [page.figure(number).bounding_box()["width"] for number in (0, 4)] == widths
    first = page.figure(0).screenshot()
    wait_until(page, lambda: page.figure(0).screenshot() != first, "the view in the tab to move")
    press(page, "Pause")
    page.wait_text("(auto, paused)")
    assert page.errors == []
