"""A dashboard on a page of its own, in a real browser: it draws, and gives files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pytest

from tests.widgets.conftest import make_schema, put
from workbench.results import QueryResults
from workbench.widgets import DashboardView, serve

pytestmark = pytest.mark.browser


def test_a_served_page_draws_and_saves_a_file(chromium: Any, tmp_path: Path, screenshots: Path) -> None:
    results = QueryResults(make_schema())
    put(results, (0, 12), open_from=12)
    handle = serve(lambda: DashboardView(results, "delays"))
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    try:
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(handle.url)
        page.get_by_text("(auto)").wait_for(state="visible")
        page.wait_for_function(
            """() => [...Bokeh.documents[0]._all_models.values()].some(
                ({type, data}) => type === "ColumnDataSource" && data.first?.length && data.ys[0].length > 10)"""
        )
        page.screenshot(path=screenshots / "served.png")
        with page.expect_download() as waiting:
            page.locator("select", has=page.locator("option", has_text="Parquet")).select_option("CSV")
        waiting.value.save_as(tmp_path / "x.csv")
        assert waiting.value.suggested_filename == "delays.csv"
        assert set(pa_csv.read_csv(tmp_path / "x.csv")["carrier"].to_pylist()) == {"AA", "B6"}
        assert errors == []
    finally:
        context.close()
        handle.stop()
