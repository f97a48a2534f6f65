"""Every control of a dashboard, used in JupyterLab with a mouse; the screenshots are those of the documentation."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pytest

from benchmarks.lab import write_notebook
from tests.browser.stage import FILL, SHOW

pytestmark = pytest.mark.browser

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(17, 20, 24)"

MARK = "results.apply([ResultBatch.of(0, np.arange(began + 38 * HOUR, began + 38 * HOUR + 5 * MINUTE, MINUTE), \
(pa.array(['AA'] * 5),), (pa.array([20.0] * 5), pa.array([9.0] * 5), pa.array([52.0] * 5), pa.array([30] * 5)), \
np.full(5, 3, np.int8), np.ones(5, np.int16))])"


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    return write_notebook(tmp_path / "controls.ipynb", [FILL.strip(), SHOW, MARK])


def press(page: Any, text: str) -> None:
    page.page.get_by_role("button", name=text, exact=True).first.click()


def choose(page: Any, showing: str, value: str) -> None:
    """Take ``value`` in the select box that shows ``showing``."""
    box = page.page.locator("select", has_text=showing).first
    box.select_option(value)


def theme(page: Any, name: str) -> None:
    page.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name)


def ground(page: Any) -> str:
    """The colour behind the dashboard."""
    return str(page.page.evaluate("() => getComputedStyle(document.querySelector('.bk-Column')).backgroundColor"))


def wait_ground(page: Any, colour: str) -> None:
    deadline = time.monotonic() + 60
    while ground(page) != colour:
        if time.monotonic() > deadline:
            page.screenshot("failure")
            raise AssertionError(f"the ground is {ground(page)}, not {colour}; errors: {page.errors}")
        time.sleep(0.2)


def shoot(page: Any, name: str) -> None:
    """The dashboard alone, in both widths."""
    for width in (1280, 800):
        page.page.set_viewport_size({"width": width, "height": 1150})
        time.sleep(1.2)
        page.scroll_to_output(1)
        page.screenshot(f"{name}-{width}")


def test_views_keys_themes_and_files(lab: Callable[..., Any], notebook: Path, tmp_path: Path) -> None:
    page = lab(notebook, height=1150)
    page.run_cell(0)
    page.run_cell(1)
    page.wait_text("2 hours / 10 minutes (auto)")

    # A key is found and picked: only it is drawn, with its band.
    press(page, "Options")
    page.wait_text("6 of 6 keys on show")
    page.page.get_by_placeholder("find a key").fill("a")
    page.page.get_by_role("button", name="B6", exact=True).wait_for(state="detached")
    press(page, "UA")
    page.wait_text("1 of 6 keys on show, picked")
    press(page, "AA")
    page.wait_text("2 of 6 keys on show, picked")
    shoot(page, "dashboard-picked")
    press(page, "unpick all")
    page.wait_text("6 of 6 keys on show")
    press(page, "Options")

    # The theme is the page's.
    assert ground(page) == LIGHT
    theme(page, "JupyterLab Dark")
    wait_ground(page, DARK)
    shoot(page, "dashboard-dark")
    press(page, "Multiples")
    page.page.get_by_text("mean_delay").first.wait_for(state="attached")
    time.sleep(1)
    shoot(page, "multiples-dark")
    press(page, "Table")
    page.wait_text("provisional")
    shoot(page, "table-dark")
    theme(page, "JupyterLab Light")
    wait_ground(page, LIGHT)
    shoot(page, "table")
    press(page, "Code")
    page.wait_text("SELECT carrier")
    press(page, "Multiples")
    time.sleep(1)
    shoot(page, "multiples")
    press(page, "Lines")
    page.page.set_viewport_size({"width": 1280, "height": 1150})

    # Files.
    page.page.set_default_timeout(30_000)
    with page.page.expect_download() as waiting:
        choose(page, "Export", "CSV")
    waiting.value.save_as(tmp_path / "x.csv")
    assert waiting.value.suggested_filename == "flight-delays-by-carrier.csv"
    table = pa_csv.read_csv(tmp_path / "x.csv")
    assert {"carrier", "window_end", "mean_delay", "status"} <= set(table.column_names)
    assert len(table) > 100
    with page.page.expect_download() as waiting:
        choose(page, "Export", "PNG")
    waiting.value.save_as(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "x.png").stat().st_size > 20_000

    # A pause keeps the picture while the strip goes on.
    press(page, "Pause")
    page.wait_text("(auto, paused)")
    time.sleep(0.5)
    before = page.figure().screenshot()
    time.sleep(1.5)
    assert page.figure().screenshot() == before
    press(page, "Pause")

    # Beyond the finest level another one is offered, and added to what runs.
    for _ in range(12):
        page.wheel(-300)
        time.sleep(0.1)
    button = page.page.get_by_role("button", name="+ ").first
    button.wait_for(state="visible", timeout=30_000)
    offered = button.inner_text().removeprefix("+ ")
    shoot(page, "finer-offered")
    page.page.set_viewport_size({"width": 1280, "height": 1150})
    button.click()
    page.wait_text(f"{offered} (auto)")

    # The kernel dies: the picture stays and says so.
    page.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.shutdown()")
    page.wait_text("the kernel has not answered since", timeout=60)
    assert page.figure().is_visible()
    page.screenshot("kernel-gone")
    assert page.errors == []


FORM = """
import numpy as np, pyarrow as pa
from tests.inprocess import InProcessRunner
from workbench.notebook import api, dashboards
from workbench.session import Session
seconds = np.arange(0, 86_400, 20)
rides = pa.table({
    "ts": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
    "zone": [f"zone {n % 5}" for n in range(len(seconds))],
    "vendor": [n % 2 for n in range(len(seconds))],
    "fare": 12 + 8 * np.sin(seconds / 9_000) + seconds % 7,
    "distance": 3 + np.cos(seconds / 5_000),
})
session = Session(launch=InProcessRunner)
session.source("rides", rides, time="ts")
api.default_session = lambda: session
"""
BUILD = "form = dashboards.builder(); form"
PLAN = "session.queries()[0].plan()"


def test_a_query_is_put_together_and_run(lab: Callable[..., Any], tmp_path: Path) -> None:
    page = lab(write_notebook(tmp_path / "form.ipynb", [FORM.strip(), BUILD, PLAN]), height=1150)
    page.run_cell(0)
    page.run_cell(1)
    page.wait_text("shared plan")
    press(page, "zone")
    page.page.get_by_text("GROUP BY zone").first.wait_for(state="visible")
    shoot(page, "builder")
    theme(page, "JupyterLab Dark")
    time.sleep(1)
    shoot(page, "builder-dark")
    page.page.set_viewport_size({"width": 1280, "height": 1150})
    press(page, "Run")
    page.wait_text("finished")
    page.figure().wait_for(state="visible")
    page.run_cell(2)
    page.page.locator("svg[role=img]").last.scroll_into_view_if_needed()
    page.screenshot("plan-dark")
    press(page, "Plan")
    time.sleep(1)
    page.page.get_by_role("button", name="Plan", exact=True).first.scroll_into_view_if_needed()
    page.screenshot("plan-tab-dark")
    theme(page, "JupyterLab Light")
    time.sleep(1)
    page.screenshot("plan-tab")

    # The cell of the form comes with the reply to the next one.
    press(page, "Create cell")
    page.wait_text("below the next one")
    page.run_cell(0)
    page.page.get_by_text("%%winquery query --source rides --live").first.wait_for(state="visible")
    assert page.errors == []
