"""Dashboards for scripts: a real server on the loopback, a real session, and files."""

from __future__ import annotations

import re
import threading
import urllib.request
from pathlib import Path

import pytest
from bokeh.models import RadioButtonGroup, Select, Toggle

from workbench.errors import EngineError, WorkbenchError
from workbench.results import QueryResults
from workbench.widgets import DashboardView, save, serve
from workbench.widgets.serve import allow_export


def test_every_session_gets_a_view_and_stop_ends_everything(results: QueryResults) -> None:
    before = set(threading.enumerate())
    views: list[DashboardView] = []

    def make() -> DashboardView:
        views.append(DashboardView(results, "delays"))
        return views[-1]

    handle = serve(make)
    try:
        assert handle.url.startswith("http://127.0.0.1:")
        for number in (1, 2):
            with urllib.request.urlopen(handle.url, timeout=30) as page:
                assert "delays" in page.read().decode()
            assert len(views) == number
        assert all(view.drawn for view in views)
    finally:
        handle.stop()
        handle.stop()
    assert set(threading.enumerate()) == before


def test_a_served_page_is_given_the_files_it_asks_for(results: QueryResults) -> None:
    view = DashboardView(results, "delays")
    document = view.document()
    allow_export(view)
    view.refresh()
    menu = view.controls.menu
    (file,) = menu.tags
    assert document.get_model_by_id(file.id) is file, "a page can only be told of models in its document"
    assert "CSV" in menu.options
    assert "PNG" not in menu.options
    for number in (0, 1):
        menu.set_from_json("value", "CSV", setter="page")
        assert file.data["number"] == [number], "the same file again is news too"
        assert file.data["name"] == ["delays.csv"]
        assert bytes(file.data["content"][0]) == view.export("CSV").content
        assert menu.value == "Export"
    menu.set_from_json("value", "SQL", setter="page")
    assert file.data["number"] == [1]
    assert "this query has no SQL" in view.controls.strip.text


def test_a_port_in_use_is_an_error_with_a_hint(results: QueryResults) -> None:
    handle = serve(lambda: DashboardView(results))
    try:
        port = int(handle.url.rstrip("/").rpartition(":")[2])
        with pytest.raises(EngineError, match=f"cannot serve the dashboard on `127.0.0.1:{port}`"):
            serve(lambda: DashboardView(results), port=port)
    finally:
        handle.stop()


def test_save_html_and_svg(results: QueryResults, tmp_path: Path) -> None:
    html = save(DashboardView(results, "delays"), tmp_path / "x.html").read_text(encoding="utf-8")
    assert "delays" in html
    assert not re.search(r"<(script|link)[^>]+(src|href)=", html)
    assert save(DashboardView(results), tmp_path / "x.svg").read_text(encoding="utf-8").startswith("<svg")
    with pytest.raises(WorkbenchError, match=r"\.html"):
        save(DashboardView(results), tmp_path / "x.pdf")
    with pytest.raises(WorkbenchError, match=r"cannot write `.*x\.svg`: No such file or directory"):
        save(DashboardView(results), tmp_path / "nowhere" / "x.svg")


def test_a_saved_page_has_no_buttons_that_would_do_nothing(results: QueryResults, tmp_path: Path) -> None:
    """Nobody is there to hear them; the title, the facts and the plots stay."""
    view = DashboardView(results, "delays")
    view.controls.offer("1 minute / 5 seconds")
    save(view, tmp_path / "x.html")
    standing = [model for model in view.root.references() if isinstance(model, RadioButtonGroup | Toggle | Select)]
    shown = [model for model in standing if model.visible]
    assert {*shown} <= {*view.controls.choices.references(), *view.multiples.root.references()}
    assert not view.controls.choices.visible
    assert not view.multiples.root.visible
    assert "delays" in view.controls.header.children[0].text
