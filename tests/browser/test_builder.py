"""The form in JupyterLab: its controls, the SQL and the plan that follow, the dashboard and the cell it makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import press, wait_until
from tests.browser.stage import BUSY, FORM

pytestmark = pytest.mark.browser

BUILD = "form = dashboards.builder(); form"
PLAN = "session.queries()[0].plan()"


def sql(page: LabPage) -> str:
    """The SQL that the form shows."""
    return str(page.page.locator("pre", has_text="SELECT").first.inner_text())


def cells(page: LabPage) -> list[str]:
    """The sources of the notebook's cells."""
    found: list[str] = page.js("(panel) => panel.content.widgets.map((cell) => cell.model.sharedModel.source)")
    return found


def test_a_query_is_put_together_run_and_made_a_cell(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    page = lab(write_notebook(tmp_path / "form.ipynb", [FORM.strip(), BUILD, PLAN, BUSY]), height=1150)
    page.run_cell(0)
    page.run_cell(1)
    page.wait_text("shared plan")
    form = page.page.locator(".jp-OutputArea-output", has=page.page.get_by_text("shared plan"))

    # Source, keys, aggregates, levels: SQL and plan follow.
    wait_until(page, lambda: "FROM rides" in sql(page), "the first source")
    press(page, "zone")
    wait_until(page, lambda: "GROUP BY zone" in sql(page), "the key")
    form.locator("select").nth(3).select_option("median")
    form.locator("select").nth(4).select_option("distance")
    wait_until(page, lambda: "median(distance) AS median_distance" in sql(page), "the other aggregate")
    press(page, "+ aggregate")
    wait_until(page, lambda: "avg(fare)" in sql(page), "one more aggregate")
    handle = form.locator(".noUi-handle-lower").first
    handle.focus()
    handle.press("ArrowLeft")
    wait_until(page, lambda: "'15 minutes / 30 seconds'" in sql(page), "the level of the slider")
    page.wait_text("15 minutes / 30 seconds")
    press(page, "+ level")
    wait_until(page, lambda: "'1 week / 1 day'" in sql(page), "one more level")
    page.wait_text("ns a slice")

    # A mistake is told in its place, and makes neither a cell nor a picture.
    where = form.get_by_placeholder("such as dep_delay > 0")
    where.fill("far > 3")
    where.press("Enter")
    page.wait_text("unknown column `far`")
    assert page.page.get_by_role("button", name="Create cell").is_disabled()
    where.fill("fare > 3")
    where.press("Enter")
    wait_until(page, lambda: "WHERE fare > 3" in sql(page), "the condition")

    # The dashboard comes below, the plan's picture in the cell that asks for it.
    press(page, "Run")
    page.wait_text("finished")
    page.figure().wait_for(state="visible")
    page.run_cell(2)
    assert "<svg" in "".join(page.cell_outputs(2)[0]["data"]["text/html"])
    assert page.cell_output_text(2).startswith("SharedPlan of `rides`")

    # The cell comes at once, below the form, though the kernel is busy.
    page.run_cell(3, wait=False)
    press(page, "Create cell")
    wait_until(page, lambda: len(cells(page)) == 5, "one more cell")
    assert "done" not in page.cell_output_text(4), "the cell came only when the kernel was free again"
    made = cells(page)[2]
    assert made.startswith("%%winquery query --source rides --live\nSELECT zone, count(*) AS n, median(distance)")
    assert made.split("\n", 1)[1] == sql(page)
    page.wait_text("the cell stands below")
    assert page.errors == []
