"""Every control of a dashboard, used in JupyterLab with a mouse; the screenshots are those of the documentation."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pytest

from tests.browser.stage import FILL, SHOW, write_notebook

pytestmark = pytest.mark.browser

MARK = "results.apply([ResultBatch(0, np.arange(began + 38 * HOUR, began + 38 * HOUR + 5 * MINUTE, MINUTE), \
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
    return str(page.page.evaluate("() => getComputedStyle(document.querySelector('.bk-Column')).backgroundColor"))


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
    press(page, "UA")
    page.wait_text("1 of 6 keys on show, picked")
    press(page, "AA")
    page.wait_text("2 of 6 keys on show, picked")
    shoot(page, "dashboard-picked")
    press(page, "unpick all")
    page.wait_text("6 of 6 keys on show")
    press(page, "Options")

    # The theme is the page's.
    assert ground(page) == "rgb(255, 255, 255)"
    theme(page, "JupyterLab Dark")
    page.page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.bk-Column')).backgroundColor === 'rgb(17, 20, 24)'"
    )
    shoot(page, "dashboard-dark")
    press(page, "Multiples")
    page.page.get_by_text("mean_delay").first.wait_for(state="attached")
    time.sleep(1)
    shoot(page, "multiples-dark")
    press(page, "Table")
    page.wait_text("provisional")
    shoot(page, "table-dark")
    theme(page, "JupyterLab Light")
    page.page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.bk-Column')).backgroundColor === 'rgb(255, 255, 255)'"
    )
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
