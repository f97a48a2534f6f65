"""The entry in JupyterLab's launcher: from a file in a folder to its notebook, as a newcomer would go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import NOW, ask_for_dashboard, wait_until

pytestmark = pytest.mark.browser


def sources(page: LabPage) -> list[str]:
    """The sources of the cells of the notebook in front."""
    found: list[str] = page.js("(panel) => panel.content.widgets.map((cell) => cell.model.sharedModel.source)")
    return found


def test_a_file_gets_its_notebook(lab: Callable[..., LabPage], jupyter: tuple[str, Path], tmp_path: Path) -> None:
    _, root = jupyter
    folder = root / "shop"
    folder.mkdir()
    rows = [f"2024-03-01 10:{minute:02}:00,{'north' if minute % 2 else 'south'},{minute}" for minute in range(60)]
    (folder / "sales.csv").write_text("\n".join(["when,shop,amount", *rows]) + "\n")
    (folder / "notes.csv").write_text("title,text\na,b\n")
    (folder / "trips.csv").write_text("at;km\n3/4/2024;1,5\n3/5/2024;2\n")
    page = lab(write_notebook(tmp_path / "empty.ipynb", ["1"]))

    # The launcher: of the files that can be shown one is chosen, and its notebook comes in place of the launcher.
    page.page.evaluate("() => window.jupyterapp.commands.execute('launcher:create', {cwd: 'shop'})")
    page.page.locator(".jp-LauncherCard", has_text="Dashboard of a file").first.click()
    dialog = page.page.locator(".jp-Dialog")
    dialog.locator("select").wait_for(state="visible")
    assert dialog.locator("option").all_inner_texts() == ["notes.csv", "sales.csv", "trips.csv"]
    page.screenshot("launcher-choice")
    dialog.locator("select").select_option("sales.csv")
    dialog.get_by_role("button", name="Open").click()
    wait_until(page, lambda: page.page.evaluate(NOW) == "shop/sales.ipynb", "the notebook of the sales")
    wait_until(page, lambda: len(sources(page)) > 4, "its cells")
    assert "workbench.source('sales', 'sales.csv', time='when')" in sources(page)[1]
    assert "GROUP BY shop" in sources(page)[2]
    page.screenshot("launcher-notebook")

    # The list of files: a file without times is refused with the reason.
    ask_for_dashboard(page, "shop", "notes.csv")
    dialog.wait_for(state="visible")
    page.screenshot("launcher-refused")
    assert "No dashboard of notes.csv" in dialog.inner_text()
    assert "no column of `notes.csv` holds times: `title`, `text`" in dialog.inner_text()
    assert "others need their `time_format`" in dialog.inner_text(), "the hint"
    dialog.get_by_role("button", name="Close").click()

    # What can be read in two ways is asked, and the answer stands in the notebook.
    ask_for_dashboard(page, "shop", "trips.csv")
    dialog.locator("select").wait_for(state="visible")
    page.screenshot("launcher-question")
    assert "Times like `3/4/2024` of the column `at` of" in dialog.inner_text()
    answers = ["3 April 2024 (time_format: dd/MM/yyyy)", "4 March 2024 (time_format: MM/dd/yyyy)"]
    assert dialog.locator("option").all_inner_texts() == answers
    dialog.locator("select").select_option(answers[1])
    dialog.get_by_role("button", name="Go on").click()
    wait_until(page, lambda: page.page.evaluate(NOW) == "shop/trips.ipynb", "the notebook of the trips")
    wait_until(page, lambda: len(sources(page)) > 4, "the cells of the trips")
    assert "time='at', sep=';', decimal=',', time_format='MM/dd/yyyy')" in sources(page)[1]

    page.page.locator(".jp-DirListing-item", has_text="sales.ipynb").click(button="right")
    page.page.locator(".lm-Menu-itemLabel", has_text="Rename").wait_for(state="visible")
    assert not page.page.locator(".lm-Menu-itemLabel", has_text="Live Dashboard").is_visible()
    assert page.errors == []
