"""A newcomer's walk: a file of one's own, as a German office writes it, to a live dashboard, and nothing typed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import NOW, ask_for_dashboard, labels, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOPS = ("Köln", "Ulm", "Kiel")
CELLS = "(panel) => panel.content.widgets.length"
#: What is run before that JupyterLab may drop.
READY = """({sessionContext: {session}}) =>
  session?.kernel?.connectionStatus === 'connected' && session.kernel.status === 'idle'"""
#: All that the first figure of the newest dashboard draws of one key.
DRAWN = """(key) => Bokeh.documents.flatMap((document) => [...document._all_models.values()])
  .filter((model) => model.type === "ColumnDataSource" && "first" in model.data)
  .flatMap(({data}) => [...data.label].map((label, n) => [label, [...data.ys[n]]]))
  .find(([label]) => label === key)?.[1] ?? []"""


def test_from_a_file_to_its_dashboard(lab: Callable[..., LabPage], jupyter: tuple[str, Path], tmp_path: Path) -> None:
    """A row a minute for three days, of one shop after the other: means of 10, 20 and 30 at any level."""
    _, root = jupyter
    (root / "walk").mkdir()
    rows = [
        f"{1 + n // 1440:02}.03.2024 {n // 60 % 24:02}:{n % 60:02};{SHOPS[n % 3]};{10 + 10 * (n % 3)},5"
        for n in range(4320)
    ]
    text = "\r\n".join(["Zeitpunkt;Filiale;Betrag (EUR)", *rows, ""])
    (root / "walk" / "umsatz.csv").write_bytes(text.encode("cp1252"))
    page = lab(write_notebook(tmp_path / "empty.ipynb", ["1"]))

    ask_for_dashboard(page, "walk", "umsatz.csv")
    wait_until(page, lambda: page.page.evaluate(NOW) == "walk/umsatz.ipynb", "the notebook of the file")
    wait_until(page, lambda: page.js(CELLS) > 4 and page.js(READY), "its cells and its kernel")
    page.page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    wait_until(page, lambda: sorted(labels(page)) == sorted(SHOPS), "a line of every shop", seconds=180)
    for number, shop in enumerate(SHOPS):
        values = [value for value in page.page.evaluate(DRAWN, shop) if value is not None]
        assert values, shop
        assert set(values) == {10.5 + 10 * number}
    page.screenshot("newcomer")
    assert page.errors == []
