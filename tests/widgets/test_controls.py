"""Every control of a dashboard, without a page: what its models hold after the page has set a property."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from tests.widgets.conftest import BEGAN, LEVELS
from workbench.errors import QueryError
from workbench.results import Level, QueryResults, ResultBatch, Schema, Status
from workbench.time import HOUR, MINUTE, SECOND
from workbench.widgets import Backing, DashboardView, Roles
from workbench.widgets.controls import Shown
from workbench.widgets.theme import DARK, LIGHT

VALUES = (("low", pa.float64()), ("mean", pa.float64()), ("high", pa.float64()), ("n", pa.int64()))
ROLES = Roles({"mean": ("low", "high")}, "n")


def banded(carriers: int = 2, status: int = Status.FINAL) -> QueryResults:
    """Sixty windows of a minute's slide; ``low``, ``mean``, ``high`` are 0, 1, 2 plus ten times the key's place."""
    results = QueryResults(Schema("delays", LEVELS[:1], (("carrier", pa.string()),), VALUES))
    starts = np.arange(BEGAN, BEGAN + HOUR, MINUTE)
    for place in range(carriers):
        columns = [pa.array(np.full(60, value + 10.0 * place)) for value in (0, 1, 2)]
        results.apply(
            [
                ResultBatch.of(
                    0, starts, (pa.array([f"C{place}"] * 60),), (*columns, pa.array(np.full(60, place + 1))),
                    np.full(60, status, np.int8), np.zeros(60, np.int16),
                )
            ]
        )  # fmt: skip
    return results


def page(model: Any, attr: str, value: Any) -> None:
    """What a page does."""
    model.set_from_json(attr, value, setter="page")


def names(view: DashboardView) -> list[str]:
    return [item.label["value"] for item in view._legend.model.items if item.visible]


def test_a_band_stands_behind_few_keys_and_can_be_forced() -> None:
    view = DashboardView(banded(2), backing=Backing(roles=ROLES))
    view.refresh()
    bands = view.panels[1].bands
    assert list(bands.data["key"]) == [0, 1]
    assert (min(bands.data["ys"][1]), max(bands.data["ys"][1])) == (10, 12)
    assert len(bands.data["xs"][0]) == 120, "along the high side and back along the low one"
    assert all(len(view.panels[other].bands.data["xs"]) == 0 for other in (0, 2, 3))
    page(view.controls.bands, "value", "band: off")
    view.refresh()
    assert len(bands.data["xs"]) == 0
    many = DashboardView(banded(5), backing=Backing(roles=ROLES))
    many.refresh()
    assert len(many.panels[1].bands.data["xs"]) == 0
    page(many.controls.bands, "value", "band: on")
    many.refresh()
    assert len(many.panels[1].bands.data["xs"]) == 5


def test_revised_windows_are_marked_and_told() -> None:
    results = banded(1)
    one = np.ones(1, np.int16)
    columns = tuple(pa.array([value]) for value in (0.0, 5.0, 9.0, 4))
    at = np.array([BEGAN + 10 * MINUTE])
    results.apply([ResultBatch.of(0, at, (pa.array(["C0"]),), columns, np.full(1, Status.REVISED, np.int8), one)])
    view = DashboardView(results, backing=Backing(roles=ROLES))
    view.refresh()
    marks = view.panels[1].revised.data
    assert marks["x"].tolist() == [(BEGAN + 25 * MINUTE) / 1_000]
    assert marks["y"].tolist() == [5.0]
    final = view.panels[1].final.data
    assert final["s"].tolist().count(Status.REVISED) == 1
    assert final["n"][10] == 4
    assert view.panels[1].hover.tooltips.count("state") == 1


def test_final_points_do_not_carry_a_status_when_there_is_nothing_to_tell() -> None:
    view = DashboardView(banded(1), backing=Backing(roles=ROLES))
    view.refresh()
    assert set(view.panels[0].final.data) == {"x", "y", "n"}


def test_keys_are_found_picked_and_given_back(schema: Callable[..., Schema], fill: Callable[..., None]) -> None:
    results = QueryResults(schema())
    fill(results, (0, 30), ["AA", "B6", "UA", "WN"])
    view = DashboardView(results)
    view.refresh()
    assert view.picker.chips.labels == ["AA", "B6", "UA", "WN"]
    page(view.picker.search, "value_input", "a")
    assert view.picker.chips.labels == ["AA", "UA"]
    page(view.picker.chips, "active", [1])
    view.refresh()
    assert names(view) == ["UA"]
    page(view.picker.search, "value_input", "w")
    assert view.picker.chips.labels == ["UA", "WN"], "what is picked stays in sight"
    page(view.picker.chips, "active", [0, 1])
    view.refresh()
    assert names(view) == ["UA", "WN"]
    assert "2 of 4 keys on show, picked" in view.picker.told.text
    page(view.picker.chips, "active", [0, 5])
    assert view.picker.chips.active == [0, 1], "a press on a list that is no longer there picks nothing"
    page(view.picker.clear, "active", [0])
    view.refresh()
    assert names(view) == ["AA", "B6", "UA", "WN"]
    assert view.picker.clear.active == []


def test_the_first_keys_by_a_value(schema: Callable[..., Schema], fill: Callable[..., None]) -> None:
    results = QueryResults(schema())
    fill(results, (0, 30), [f"K{place}" for place in range(9)])
    view = DashboardView(results, top=5)
    page(view.picker.order, "value", "lowest mean")
    view.refresh()
    assert names(view) == ["K0", "K1", "K2", "K3", "K4"]
    page(view.picker.order, "value", "highest mean")
    view.refresh()
    assert names(view) == ["K4", "K5", "K6", "K7", "K8"]
    page(view.picker.number, "value", "10")
    view.refresh()
    assert len(names(view)) == 9


def test_a_pause_keeps_the_picture_and_a_zoom_still_draws(results: QueryResults, fill: Callable[..., None]) -> None:
    states: list[str] = ["running"]
    view = DashboardView(results, backing=Backing(lambda: {"state": states[0]}))
    view.refresh()
    view.pause()
    before = dict(view.panels[0].final.data)
    fill(results, (12, 14), open_from=14)
    states[0] = "finished"
    view.refresh()
    assert all(np.array_equal(before[name], view.panels[0].final.data[name], equal_nan=True) for name in before)
    assert "finished" in view.controls.strip.text
    assert "paused" in view.controls.strip.text
    view.show(BEGAN, BEGAN + HOUR)
    view.refresh()
    assert view.panels[0].final.data["x"][-1] <= (BEGAN + 2 * HOUR) / 1_000
    view.pause(False)
    view.follow(0)
    view.refresh()
    assert view.panels[0].final.data["x"][-1] == (BEGAN + 14 * HOUR) / 1_000


def test_small_multiples_have_a_figure_for_each_key_on_the_same_axes() -> None:
    view = DashboardView(banded(3), backing=Backing(roles=ROLES))
    page(view.controls.views, "active", Shown.MULTIPLES)
    page(view.multiples.value, "value", "mean")
    view.refresh()
    assert not view.plots[0].visible
    assert view.plots[1].visible
    shown = view.multiples._figures.children
    assert [figure.title.text.text for figure in shown] == ["C0", "C1", "C2"]
    assert len({figure.y_range.id for figure in shown}) == len({figure.x_range.id for figure in shown}) == 1
    assert [np.nanmax(panel.final.data["y"]) for panel in view.multiples.panels] == [1, 11, 21]
    assert [keys.data["key"] for keys in view.multiples.keys] == [[0], [1], [2]]
    assert [keys.data["label"] for keys in view.multiples.keys] == [["C0"], ["C1"], ["C2"]]
    assert view.width == 270
    page(view.controls.views, "active", Shown.LINES)
    assert view.width == 1_000


def test_the_table_shows_the_newest_windows_first(results: QueryResults) -> None:
    view = DashboardView(results)
    page(view.controls.views, "active", Shown.TABLE)
    view.refresh()
    html = view.controls.table.text
    assert html.index("12:14") < html.index("12:13")
    assert html.count("<tr><td") == 100
    assert "provisional" in html
    assert "earlier rows" in html


def test_plan_and_code_come_from_the_backing(results: QueryResults) -> None:
    view = DashboardView(results, backing=Backing(texts=lambda: {"SQL": "SELECT <1>"}, plan=lambda: "<svg/>"))
    page(view.controls.views, "active", Shown.PLAN)
    view.refresh()
    assert view.controls.plan.text == "<svg/>"
    page(view.controls.views, "active", Shown.CODE)
    view.refresh()
    assert "SELECT &lt;1&gt;" in view.controls.code.text


def test_files_hold_what_is_on_show(results: QueryResults) -> None:
    view = DashboardView(results, "Delays, all", Backing(texts=lambda: {"SQL": "SELECT 1"}))
    view.show(BEGAN + HOUR, BEGAN + 2 * HOUR)
    view.picker.pick(("B6",))
    view.refresh()
    file = view.export("Parquet")
    assert file.name == "delays-all.parquet"
    table = pq.read_table(io.BytesIO(file.content))
    assert set(table["carrier"].to_pylist()) == {"B6"}
    assert len(table) == 61, "the windows that end from 1:00 to 2:00, a minute apart"
    assert len(pa_csv.read_csv(io.BytesIO(view.export("CSV").content))) == 61
    assert view.export("SQL").content == b"SELECT 1\n"
    assert view.export("SVG").content.startswith(b"<svg")
    with pytest.raises(QueryError, match="has no Python"):
        view.export("Python")


def test_themes_colour_lines_texts_and_ground(results: QueryResults) -> None:
    view = DashboardView(results)
    view.refresh()
    assert view.theme is LIGHT
    view.page_theme("dark")
    colours = view.panels[0].colours
    assert colours.palette[view.keys.data["key"][1]] == DARK.colour(1)
    assert view.root.styles["background-color"] == DARK.paper
    assert view.root.styles["--bk-major-label-text-color"] == DARK.muted
    assert view._legend.model.label_text_color == DARK.ink
    page(view.controls.theme, "value", "light")
    assert view.theme is LIGHT
    assert colours.palette[view.keys.data["key"][1]] == LIGHT.colour(1)


def test_a_finer_level_is_offered_added_and_kept_on_show(results: QueryResults, fill: Callable[..., None]) -> None:
    def add(label: str) -> None:
        added.append(label)
        results.add_level(Level(label, 15 * SECOND, SECOND), 0)

    added: list[str] = []
    view = DashboardView(results, backing=Backing(add_level=add))
    view.show(BEGAN + 6 * HOUR, BEGAN + 9 * HOUR)
    view.refresh()
    assert not view.controls.finer.visible, "180 windows on 1,000 pixels are fine enough"
    view.show(BEGAN + 6 * HOUR, BEGAN + 6 * HOUR + 4 * MINUTE)
    view.refresh()
    assert view.controls.finer.label == "+ 15 seconds / 1 second"
    page(view.controls.finer, "active", True)
    assert added == ["15 seconds / 1 second"]
    assert not view.controls.finer.active
    view.refresh()
    assert results.schema.levels[view.level].label == "15 minutes / 1 minute", "until the new one has results"
    assert ("15 seconds / 1 second", "15 seconds / 1 second") in view.controls.level.options
    starts = np.arange(BEGAN + 6 * HOUR, BEGAN + 6 * HOUR + 5 * MINUTE, SECOND)
    values = (pa.array(np.zeros(300)), pa.array(np.zeros(300, np.int64)))
    batch = ResultBatch.of(
        0, starts, (pa.array(["AA"] * 300),), values, np.full(300, 2, np.int8), np.zeros(300, np.int16)
    )
    results.apply([batch])
    view.refresh()
    assert view.level == 0
    fill_before = results.table("15 minutes / 1 minute")
    assert len(fill_before) > 0, "the other levels keep their results"


def test_a_level_that_cannot_be_added_says_why(results: QueryResults) -> None:
    def refuse(label: str) -> None:
        raise QueryError("the query `delays` does not run", hint="run its cell again")

    view = DashboardView(results, backing=Backing(add_level=refuse))
    view.show(BEGAN + 6 * HOUR, BEGAN + 6 * HOUR + 4 * MINUTE)
    view.refresh()
    page(view.controls.finer, "active", True)
    assert "does not run" in view.controls.strip.text
