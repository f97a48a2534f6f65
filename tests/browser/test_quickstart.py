"""The first thing a user sees: the quickstart notebook in JupyterLab, on real Spark, with a mouse."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.spark]

QUICKSTART = Path(__file__).resolve().parents[2] / "notebooks" / "00_quickstart.ipynb"
SOURCE, QUERY, BUSY, TYPO, STOP = 1, 3, 5, 12, 16


def watermark(page: Any) -> str:
    text = page.page.locator("span", has_text="watermark:").first.inner_text()
    found = re.search(r"[\d-]{10} [\d:]{8}", text)
    assert found, text
    return found.group(0)


def execute(page: Any, code: str) -> None:
    """Run code in the kernel as a cell of its own would."""
    page.js("(panel, code) => panel.sessionContext.session.kernel.requestExecute({code}).done", code)


def processes() -> list[psutil.Process]:
    """Kernels, JVMs and workers that live below the Jupyter server."""
    server = next(
        child for child in psutil.Process(os.getpid()).children() if "jupyterlab" in " ".join(child.cmdline())
    )
    return [child for child in server.children(recursive=True) if child.is_running()]


def test_the_quickstart_moves_and_zooms(lab: Callable[..., Any]) -> None:
    others = processes()  # of notebooks that other tests have open on the same server

    def ours() -> list[psutil.Process]:
        return [each for each in processes() if each not in others]

    page = lab(QUICKSTART, height=1100)
    page.run_cell(SOURCE)
    page.run_cell(QUERY)
    page.wait_text("watermark:", timeout=120)
    page.wait_text("rows/s:", timeout=120)

    # The plot moves while another cell keeps the kernel busy.
    page.run_cell(BUSY, wait=False)
    first = watermark(page)
    before = page.figure().screenshot()
    deadline = time.monotonic() + 30
    while watermark(page) <= first and time.monotonic() < deadline:
        time.sleep(0.2)
    assert watermark(page) > first
    assert page.figure().screenshot() != before
    page.wait_idle()

    # Let some days pass, then come closer: the level changes over to a finer one.
    page.wait_text("1 day / 1 hour (auto)", timeout=120)
    page.figure().evaluate("(element) => element.scrollIntoView({block: 'center'})")
    page.screenshot("quickstart")
    page.zoom_in_to("2 hours / 10 minutes (auto)")
    time.sleep(1)
    page.screenshot("quickstart-zoomed")  # the picture of the README
    page.zoom_in_to("15 minutes / 1 minute (auto)")

    # A slip of the pen is underlined, without a traceback.
    page.run_cell(TYPO)
    told = page.cell_output_text(TYPO)
    assert "did you mean `dep_delay`?" in told
    assert "^^^^^^^^^" in told
    assert "Traceback" not in told

    # Running the query's cell again replaces it; stop ends it.
    page.run_cell(QUERY)
    page.wait_text("rows/s:", timeout=120)
    page.run_cell(STOP)
    assert "delays: stopped" in page.cell_output_text(STOP)
    assert page.errors == []

    # Spark stopped under it: the picture stays and says why, and the cell run again starts another Spark.
    page.run_cell(QUERY)
    page.wait_text("1 day / 1 hour (auto)", timeout=120)
    execute(page, "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate().stop()")
    page.wait_text("Spark was stopped while the query ran", timeout=60)
    assert page.figure().is_visible()
    page.screenshot("spark-stopped")

    # A kernel restarted under a running query leaves no Java and no Python process behind.
    page.run_cell(QUERY)
    page.wait_text("1 day / 1 hour (auto)", timeout=120)
    names = [process.name() for process in ours()]
    assert "java" in names
    page.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_idle()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(p.name() == "java" for p in ours()):
        time.sleep(0.5)
    left = [process.cmdline() for process in ours()]
    assert len(left) == 1, f"only the new kernel should be left, not {left}"
