"""Pictures of every widget in both themes and two widths, to be looked at; those of the documentation are among them.

They end in ``artifacts/screenshots`` as ``WIDGET-THEME-WIDTH.png``. What the widgets do is for the other tests.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import choose, labels, press, theme, wait_calm, wait_until
from tests.browser.stage import FILL, FORM, SHOW

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: A still store, so that a page comes to rest; and later a dashboard that tells all a strip can tell.
STILL = "running = False\nwriter.join()"
ERROR = "state.update(error='`total` overflows', hint='use `try_sum`')"
FORMED = "form = dashboards.builder()\nform.by['zone'].value = True\nform"


def shoot(page: LabPage, name: str, cell: int) -> None:
    """The output of a cell in both themes and widths."""
    for ground in ("Light", "Dark"):
        theme(page, ground)
        for width in (1280, 800):
            page.page.set_viewport_size({"width": width, "height": 1150})
            page.scroll_to_output(cell)
            wait_calm(page)
            taken = page.screenshot(f"{name}-{ground.lower()}-{width}")
            assert taken.stat().st_size > 20_000, "an empty page"
    page.page.set_viewport_size({"width": 1280, "height": 1150})


def test_dashboards(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    page = lab(write_notebook(tmp_path / "shots.ipynb", [FILL.strip(), SHOW, STILL, ERROR]), height=1150)
    page.run_cell(0)
    page.run_cell(1)
    wait_until(page, lambda: len(labels(page)) == 6, "the lines")
    page.js("(panel) => { panel.content.widgets[1].inputHidden = true }")
    press(page, "Options")
    press(page, "UA")
    press(page, "AA")
    wait_until(page, lambda: labels(page) == ["UA", "AA"], "two keys")
    choose(page, "level: auto", "2 hours / 10 minutes")
    page.run_cell(2)
    shoot(page, "picked", 1)
    press(page, "unpick all")
    press(page, "Options")
    for view in ("Lines", "Multiples"):
        press(page, view)
        shoot(page, view.lower(), 1)
    page.run_cell(3)
    page.wait_text("overflows")
    for view in ("Table", "Code"):
        press(page, view)
        shoot(page, view.lower(), 1)
    assert page.errors == []


def test_form_and_plan(lab: Callable[..., LabPage], tmp_path: Path) -> None:
    cells = [FORM.strip(), FORMED, "session.queries()[0].plan()"]
    page = lab(write_notebook(tmp_path / "shots.ipynb", cells), height=1150)
    page.run_cell(0)
    page.run_cell(1)
    page.wait_text("shared plan")
    page.js("(panel) => { panel.content.widgets[1].inputHidden = true }")
    shoot(page, "form", 1)
    press(page, "Run")
    page.figure().wait_for(state="visible")
    page.run_cell(2)
    shoot(page, "plan", 2)
    assert page.errors == []
