"""The view without a page: what its models hold after a refresh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bokeh.document.events import DocumentPatchedEvent
from bokeh.models import ColumnDataSource

from tests.widgets.conftest import BEGAN, LEVELS, columns
from workbench.errors import QueryError
from workbench.results import QueryResults, ResultBatch, Schema
from workbench.time import DAY, HOUR, MINUTE, SECOND
from workbench.widgets import ALL, FOLLOW, HOLD, Backing, DashboardView
from workbench.widgets.figures import _extend as extend
from workbench.widgets.strip import strip_html


def data(view: DashboardView, panel: int, part: str) -> dict[str, Any]:
    return columns(getattr(view.panels[panel], part), len(view.keys.data["label"]))


def page_sets(view: DashboardView, **values: float) -> None:
    """What a page does that zooms."""
    for attr, value in values.items():
        view.axis.range.set_from_json(attr, value, setter="page")


def test_points_stand_at_window_ends_in_milliseconds(results: QueryResults) -> None:
    view = DashboardView(results)
    view.show(BEGAN, BEGAN + 12 * HOUR)
    view.refresh()
    final = data(view, 0, "final")
    at = np.flatnonzero(final["x0"] == (BEGAN + 3 * HOUR) / 1_000)
    assert final["y0"][at] == 2.75  # the window [2:45, 3:00)
    assert final["y1"][at] == 102.75
    counts = data(view, 1, "final")
    assert np.nanmax(counts["y1"]) == 2
    open_ = data(view, 0, "open")
    assert open_["x0"][0] == (BEGAN + 12 * HOUR) / 1_000


def test_the_level_follows_the_range_and_can_be_pinned(results: QueryResults) -> None:
    view = DashboardView(results)
    view.show(BEGAN, BEGAN + 6 * HOUR)
    view.refresh()
    assert view.level == 0
    assert "15 minutes / 1 minute (auto)" in view.controls.strip.text
    page_sets(view, start=BEGAN / 1_000, end=(BEGAN + 4 * DAY) / 1_000)
    view.refresh()
    assert view.level == 1
    view.pin("1 day / 1 hour")
    view.refresh()
    assert view.level == 2
    assert "1 day / 1 hour (pinned)" in view.controls.strip.text
    assert np.diff(data(view, 0, "open")["x0"])[0] * 1_000 == HOUR
    view.pin(None)
    view.refresh()
    assert view.level == 1
    with pytest.raises(QueryError, match="no level `x`"):
        view.pin("x")


def test_a_narrow_page_gets_a_coarser_level(results: QueryResults) -> None:
    view = DashboardView(results)
    view.show(BEGAN, BEGAN + 12 * HOUR)
    view.refresh()
    assert view.level == 0
    view.panels[0].figure.set_from_json("inner_width", 200, setter="page")
    view.refresh()
    assert view.width == 200
    assert view.level == 1


def test_a_range_that_the_fine_level_has_forgotten_shows_a_coarser_one(
    schema: Callable[..., Schema], fill: Callable[..., None]
) -> None:
    results = QueryResults(schema())
    fill(results, (0, 48), levels=(1, 2))
    fill(results, (40, 48), levels=(0,))
    view = DashboardView(results)
    view.show(BEGAN + 4 * HOUR, BEGAN + 8 * HOUR)
    view.refresh()
    assert view.level == 1


def test_all_follow_and_hold(results: QueryResults, fill: Callable[..., None]) -> None:
    view = DashboardView(results)
    view.refresh()
    assert view.mode == ALL
    first, newest = BEGAN + LEVELS[0].size, BEGAN + 12 * HOUR + 14 * MINUTE
    assert view.visible == pytest.approx((first - MINUTE, newest + (newest - first) // 50), abs=2)

    # A zoom in the page holds.
    page_sets(view, start=(BEGAN + 10 * HOUR) / 1_000, end=(BEGAN + 12 * HOUR) / 1_000)
    assert view.mode == HOLD
    fill(results, (12, 13), open_from=13)
    view.refresh()
    assert view.visible == (BEGAN + 10 * HOUR, BEGAN + 12 * HOUR)

    # Follow keeps the width and moves with the newest window.
    view.follow()
    view.refresh()
    assert view.mode == FOLLOW
    before = view.visible
    assert before[1] - before[0] == pytest.approx(2 * HOUR, abs=2)
    fill(results, (13, 14), open_from=14)
    view.refresh()
    assert view.visible[0] - before[0] == pytest.approx(HOUR, abs=2)
    assert view.mode == FOLLOW


def test_a_refresh_without_change_changes_nothing(results: QueryResults) -> None:
    view = DashboardView(results)
    document = view.document()
    view.refresh()
    events: list[DocumentPatchedEvent] = []
    document.on_change(events.append)
    view.refresh()
    assert events == []


def test_final_data_that_did_not_change_is_not_sent_again(results: QueryResults, fill: Callable[..., None]) -> None:
    view = DashboardView(results)
    view.show(BEGAN, BEGAN + 13 * HOUR)
    document = view.document()
    view.refresh()
    events: list[Any] = []
    document.on_change(events.append)
    fill(results, (11.75, 12 + 1 / 60), open_from=12)
    view.refresh()
    changed = {event.model.id for event in events if getattr(event, "attr", None) == "data"}
    assert changed == {panel.open.id for panel in view.panels}


def test_new_keys_get_lines_and_beyond_the_limit_the_best_stay(
    schema: Callable[..., Schema], fill: Callable[..., None]
) -> None:
    results = QueryResults(schema())
    view = DashboardView(results, top=3)
    view.refresh()
    assert view.keys.data["label"] == []
    fill(results, (0, 30), ["A"])
    view.refresh()
    assert [item.label["value"] for item in view._legend.model.items] == ["A"]
    fill(results, (0, 30), ["A", "B", "C", "D", "E"])
    view.refresh()
    assert [item.label["value"] for item in view._legend.model.items] == ["C", "D", "E"]
    assert view.keys.data["label"] == ["C", "D", "E"]
    assert np.nanmin(data(view, 0, "final")["y0"]) >= 200


def test_a_query_without_keys_has_one_line_and_no_legend(
    schema: Callable[..., Schema], fill: Callable[..., None]
) -> None:
    results = QueryResults(schema(keyed=False))
    fill(results, (0, 4), ["x"])
    view = DashboardView(results)
    view.refresh()
    assert view.keys.data["label"] == ["all"]
    assert not view._legend.model.visible


def test_ten_thousand_keys_draw_the_top_only(schema: Callable[..., Schema]) -> None:

    results = QueryResults(schema())
    names = pa.array([f"k{number}" for number in range(10_000)])
    count = len(names)
    values = (pa.array(np.zeros(count)), pa.array(np.arange(count)))
    for level in range(3):
        status = np.full(count, 2, np.int8)
        batch = ResultBatch.of(level, np.full(count, BEGAN), (names,), values, status, np.zeros(count, np.int16))
        results.apply([batch])
    view = DashboardView(results)
    view.refresh()
    assert len(view.keys.data["label"]) == 20
    assert view._legend.model.items[-1].label["value"] == "k9999"


def test_the_strip_shows_facts_and_escapes() -> None:
    status = {"state": "running", "rows_per_second": 1234.5, "watermark": BEGAN + SECOND, "late_rows": 7}
    html = strip_html(status, "1 day <b>", "bad & <worse>")
    for text in ("running", "1,234", "2013-01-01 00:00:01", "7", "1 day &lt;b&gt;", "bad &amp; &lt;worse&gt;"):
        assert text in html
    assert "alert" not in strip_html({}, "x")


def test_the_strip_tells_what_rows_out_of_order_have_led_to() -> None:
    html = strip_html({"kept_rows": 1_200, "reworked": {"merges": 3_000, "splits": 0, "recomputations": 2}}, "x")
    assert "rows kept:</span> 1,200" in html
    assert "out of order:</span> 3,000 merges, 2 recomputations" in html


def test_an_error_is_shown_until_taken_away(results: QueryResults) -> None:
    view = DashboardView(results, backing=Backing(lambda: {"error": "from the query"}))
    view.refresh()
    assert "from the query" in view.controls.strip.text
    view.fail("from the plot")
    assert "from the plot" in view.controls.strip.text
    view.fail(None)
    assert "from the query" in view.controls.strip.text


def test_minutes_survive_the_way_through_milliseconds() -> None:
    assert round(((BEGAN + 7 * MINUTE + 1) / 1_000) * 1_000) == BEGAN + 7 * MINUTE + 1


def test_columns_without_numbers_have_no_figure() -> None:
    kinds = (("line", pa.float64()), ("bars", pa.list_(pa.int64())), ("name", pa.string()))
    view = DashboardView(QueryResults(Schema("q", LEVELS, (), kinds)))
    view.refresh()
    assert [panel.figure.title.text.text for panel in view.panels] == ["line: no value in this range"]
    with pytest.raises(QueryError, match="nothing to plot: `bars`, `name`"):
        DashboardView(QueryResults(Schema("q", LEVELS, (), kinds[1:])))


def test_windows_that_become_final_are_sent_alone(results: QueryResults, fill: Callable[..., None]) -> None:
    view = DashboardView(results)
    view.show(BEGAN + 11 * HOUR, BEGAN + 13 * HOUR)
    document = view.document()
    view.refresh()
    events: list[Any] = []
    document.on_change(events.append)
    fill(results, (11.75, 12.2), open_from=12.2)
    view.refresh()
    streamed = [event for event in events if type(event).__name__ == "ColumnsStreamedEvent"]
    assert {event.model.id for event in streamed} == {panel.final.id for panel in view.panels}
    assert {len(event.data["x"]) for event in streamed} == {2 * 12}, "the windows that ended from 12:01 to 12:12"
    fresh = DashboardView(results)
    fresh.show(BEGAN + 11 * HOUR, BEGAN + 13 * HOUR)
    fresh.refresh()
    for panel, other in zip(view.panels, fresh.panels, strict=True):
        assert panel.final.data.keys() == other.final.data.keys()
        assert all(np.array_equal(panel.final.data[n], other.final.data[n], equal_nan=True) for n in other.final.data)


def test_a_revised_window_and_the_new_ones_are_sent_alone(results: QueryResults, fill: Callable[..., None]) -> None:
    view = DashboardView(results)
    view.show(BEGAN + 11 * HOUR, BEGAN + 13 * HOUR)
    document = view.document()
    view.refresh()
    events: list[Any] = []
    document.on_change(events.append)
    at, one = np.array([BEGAN + 11 * HOUR]), np.ones(1, np.int16)
    revised = (pa.array([-7.0]), pa.array([9]))
    results.apply([ResultBatch.of(0, at, (pa.array(["B6"]),), revised, np.full(1, 2, np.int8), one)])
    fill(results, (11.75, 12.2), open_from=12.2)
    view.refresh()
    finals = {panel.final.id for panel in view.panels}
    patched = [event for event in events if type(event).__name__ == "ColumnsPatchedEvent"]
    assert {event.model.id for event in patched} == finals
    assert {event.model.id for event in events if type(event).__name__ == "ColumnsStreamedEvent"} == finals
    whole = [event for event in events if type(event).__name__ == "ModelChangedEvent" and event.attr == "data"]
    assert finals.isdisjoint(event.model.id for event in whole)
    for event in patched:
        for patches in event.patches.values():
            assert sum(len(values) for _, values in patches) == 1, "one window of one key"
    fresh = DashboardView(results)
    fresh.show(BEGAN + 11 * HOUR, BEGAN + 13 * HOUR)
    fresh.refresh()
    for panel, other in zip(view.panels, fresh.panels, strict=True):
        assert all(np.array_equal(panel.final.data[n], other.final.data[n], equal_nan=True) for n in other.final.data)
    assert -7.0 in view.panels[0].final.data["y"]


def test_a_range_that_moves_on_drops_what_it_leaves(results: QueryResults, fill: Callable[..., None]) -> None:
    view = DashboardView(results)
    view.show(BEGAN + 10 * HOUR, BEGAN + 12 * HOUR)
    view.follow()
    view.refresh()
    for step in range(4):
        hour = 12 + step / 10
        fill(results, (hour - 0.25, hour + 0.1), open_from=hour + 0.1)
        view.refresh()
        fresh = DashboardView(results)
        fresh.show(*view.visible)
        fresh.refresh()
        own, other = view.panels[0].final.data, fresh.panels[0].final.data
        assert all(np.array_equal(own[name], other[name], equal_nan=True) for name in other)


@pytest.mark.parametrize(("dropped", "added"), [(0, 3), (3, 3), (5, 3), (3, 0), (9, 1), (10, 4)])
def test_points_that_come_and_go(dropped: int, added: int) -> None:
    """Case B1: the rollover is larger than what was there, equal to it, below it."""
    made = np.repeat(np.arange(14.0), 2)  # two keys
    source = ColumnDataSource({"x": made[:20], "y": made[:20] ** 2})
    columns = {"x": made[2 * dropped : 20 + 2 * added], "y": made[2 * dropped : 20 + 2 * added] ** 2}
    columns["y"][0] = np.nan
    extend(source, columns, 2)
    for name, column in columns.items():
        assert np.array_equal(np.asarray(source.data[name]), column, equal_nan=True)


def test_a_level_can_be_named_in_other_units(results: QueryResults) -> None:
    assert results.level_index("900 seconds / 1 min") == 0
    assert results.level_index("24 hours / 60 minutes") == 2
    view = DashboardView(results)
    view.pin("120 minutes / 10 minutes")
    assert view.pinned == 1
    for wrong in ("24 hours", "1 day / 2 hours", "a day / an hour"):
        with pytest.raises(QueryError, match=f"no level `{wrong}`"):
            results.level_index(wrong)


def test_a_store_without_windows_is_told_of(schema: Callable[..., Schema], fill: Callable[..., None]) -> None:
    """Nothing is drawn while the first result is awaited: the strip says that this is no fault."""
    results = QueryResults(schema())
    view = DashboardView(results, backing=Backing(lambda: {"state": "running"}))
    view.refresh()
    assert "(auto), no window yet" in view.controls.strip.text
    fill(results, (0, 1))
    view.refresh()
    assert "no window yet" not in view.controls.strip.text
