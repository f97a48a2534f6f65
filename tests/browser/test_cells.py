"""Cells of `%%winquery` in JupyterLab: a mistake underlined, completion, help. No Spark: nothing is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.lab import LabPage, write_notebook

pytestmark = pytest.mark.browser

DEFINE = """
%load_ext workbench
import pyarrow as pa, workbench
rides = pa.table({"ts": pa.array([0, 1_000_000], pa.timestamp("us", "UTC")), "fare": [1.0, 2.0]})
workbench.source("rides", rides, time="ts")
"""
WRONG = "%%winquery q --source rides\nSELECT avg(fair) AS mean FROM rides GROUP BY zoom(ts, '1 minute')"
DRY = "%%winquery q --dry-run\nSELECT avg(fare) AS mean FROM rides GROUP BY zoom(ts, '1 minute')"
BEGUN = "%%winquery q --source rides\nSELECT avg(fa"


def test_mistakes_help_and_completion(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    """Cases E1 and M4 as they look: the place, the nearest name, no trace of ours."""
    cells = [DEFINE.strip(), WRONG, DRY, "%winquery lists", "%winquery help", "%winquery?", BEGUN]
    page = lab(write_notebook(tmp_path / "cells.ipynb", cells))
    for number in range(6):
        page.run_cell(number)
    told = page.cell_output_text(1)
    source, marks = told.splitlines()[1:3]
    assert "unknown column `fair`" in told.splitlines()[0]
    assert source.index("fair") == marks.index("^")
    assert marks.count("^") == len("fair")
    assert "did you mean `fare`?" in told
    assert "SharedPlan of `rides`" in page.cell_output_text(2)
    assert "did you mean `list`?" in page.cell_output_text(3)
    for word in ("list", "status", "stop", "explain", "levels", "results", "logs", "snippets"):
        assert f"%winquery {word}" in page.cell_output_text(4)
    for number in (1, 3):
        assert "Traceback" not in page.cell_output_text(number)
    page.wait_text("Running the cell again replaces its queries")

    # The tab key behind the first letters of a column.
    page.js("(panel) => { panel.content.activeCellIndex = 6; panel.content.mode = 'edit' }")
    page.page.keyboard.press("Control+End")
    page.page.keyboard.press("Tab")
    page.page.locator(".jp-Completer-item", has_text="fare").wait_for(state="visible")
    assert page.errors == []
