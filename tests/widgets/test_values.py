"""Values of every type at an axis, in a table and in a picture; texts are never formulas or markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from html import unescape
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bokeh.models import BasicTicker, DatetimeTicker, Div, FixedTicker, PlainText

from workbench.results import Level, QueryResults, ResultBatch, Schema
from workbench.time import HOUR, MINUTE
from workbench.widgets import DashboardView
from workbench.widgets.controls import Shown
from workbench.widgets.keys import short_label
from workbench.widgets.picture import picture

LEVEL = Level("1 minute", MINUTE, MINUTE)
FORMULA = r"$$x^2$$ \(y\)"
WHEN = datetime(2024, 3, 1, 12, 30, tzinfo=UTC)


def shown(*columns: tuple[str, pa.Array], key: str = "a", windows: int = 2) -> DashboardView:
    """A view over windows of a minute from 1970 on."""
    values = tuple((name, array.type) for name, array in columns)
    results = QueryResults(Schema("q", (LEVEL,), (("k", pa.string()),), values))
    codes, revisions = np.full(windows, 2, np.int8), np.zeros(windows, np.int16)
    arrays = tuple(array for _, array in columns)
    starts = np.arange(windows) * MINUTE
    results.apply([ResultBatch.of(0, starts, (pa.array([key] * windows),), arrays, codes, revisions)])
    view = DashboardView(results)
    view.refresh()
    return view


def table_of(view: DashboardView) -> list[list[str]]:
    """The texts of the table on show, head first."""
    view.controls.views.active = Shown.TABLE
    view.refresh()
    html = view.controls.table.text.replace("&ndash;", "-")
    rows = [re.findall(r"<t[hd].*?</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in row] for row in rows]


def test_the_table_has_every_column_as_it_is() -> None:
    """Integers to the last digit, times as times, truths, texts, lists: also those that no line can show."""
    big = 9_007_199_254_740_993  # 2^53 + 1: no float
    view = shown(
        ("total", pa.array([1, big])),
        ("latest", pa.array([WHEN, WHEN], pa.timestamp("us", "UTC"))),
        ("any", pa.array([True, False])),
        ("usual", pa.array(["<b>", None])),
        ("both", pa.array([[1], [1, 2]])),
        ("mean", pa.array([0.25, float("nan")])),
    )
    assert table_of(view) == [
        ["window (UTC)", "k", "total", "latest", "any", "usual", "both", "mean", "status"],
        ["1970-01-01 00:01 - 00:02", "a", "9,007,199,254,740,993", "2024-03-01 12:30:00", "false", "-", "[1, 2]",
         "-", "final"],
        ["1970-01-01 00:00 - 00:01", "a", "1", "2024-03-01 12:30:00", "true", "<b>", "[1]", "0.25", "final"],
    ]  # fmt: skip


def test_decimals_are_drawn_and_written_to_the_last_digit() -> None:
    prices = pa.array([Decimal("1234567890123456.10"), None, Decimal("0.00")], pa.decimal128(18, 2))
    view = shown(("price", prices), windows=3)
    assert [row[2] for row in table_of(view)] == ["price", "0.00", "-", "1,234,567,890,123,456.10"]
    view.controls.views.active = Shown.LINES
    view.refresh()
    np.testing.assert_array_equal(view.panels[0].final.data["y"], [1234567890123456.1, np.nan, 0.0])


def test_each_kind_of_value_has_ticks_of_its_own() -> None:
    view = shown(
        ("mean", pa.array([0.25, 0.5])),
        ("n", pa.array([1, 2])),
        ("any", pa.array([True, False])),
        ("latest", pa.array([WHEN, WHEN], pa.timestamp("us", "UTC"))),
        ("day", pa.array([WHEN.date(), WHEN.date()])),
    )
    tickers = [panel.figure.yaxis[0].ticker for panel in view.panels]
    kinds = [BasicTicker, BasicTicker, FixedTicker, DatetimeTicker, DatetimeTicker]
    assert [type(ticker) for ticker in tickers] == kinds
    assert [ticker.min_interval for ticker in tickers[:2]] == [0, 1], "no half a row"
    assert tickers[2].ticks == [0, 1]
    latest, day = (panel.final.data["y"][0] for panel in view.panels[3:])
    assert latest == WHEN.timestamp() * 1_000
    assert day == WHEN.replace(hour=0, minute=0).timestamp() * 1_000
    svg = picture(view.results)
    assert ">03-01 12:30<" in svg
    assert ">true<" in svg
    assert not re.search(r">[\d,]*1\.5<", svg), "whole numbers have whole ticks"


def test_small_multiples_follow_the_kind_of_the_column() -> None:
    view = shown(("mean", pa.array([0.25, 0.5])), ("any", pa.array([True, False])))
    view.controls.views.active = Shown.MULTIPLES
    for name, kind in (("mean", BasicTicker), ("any", FixedTicker), ("mean", BasicTicker)):
        view.multiples.value.value = name
        view.refresh()
        assert isinstance(view.multiples.panels[0].figure.yaxis[0].ticker, kind)


def test_texts_are_never_formulas() -> None:
    """BokehJS reads `$$...$$` and `\\(...\\)` as TeX wherever nobody says that a text is plain."""
    view = shown((FORMULA, pa.array([1, 2])), key=FORMULA)
    view.controls.views.active = Shown.MULTIPLES
    view.refresh()
    titles = [panel.figure.title.text for panel in (*view.panels, *view.multiples.panels)]
    assert [(type(title), title.text) for title in titles] == [(PlainText, FORMULA)] * 2
    assert all(div.disable_math for div in view.root.select({"type": Div}))


def test_names_are_no_placeholders_of_the_hover() -> None:
    """BokehJS would write values, or `???`, in the place of these."""
    view = shown(("price@home in US$total", pa.array([1, 2])))
    told = view.panels[0].hover.tooltips
    assert not re.search("[@$](home|total)", told)
    assert "price@home in US$total" in unescape(told)


def test_a_figure_has_a_name_to_be_read_aloud() -> None:
    view = shown(("mean", pa.array([1.0, 2.0])), key="north")
    assert "plot of mean;" in view.panels[0].figure.html_attributes["aria-label"]
    view.controls.views.active = Shown.MULTIPLES
    view.refresh()
    assert "plot of north;" in view.multiples.panels[0].figure.html_attributes["aria-label"]


def test_a_figure_without_values_says_so() -> None:
    view = shown(("v", pa.array([None, None], pa.float64())), ("n", pa.array([1, 2])))
    assert [panel.figure.title.text.text for panel in view.panels] == ["v: no value in this range", "n"]


@pytest.mark.parametrize(("windows", "start", "end"), [(1, 0, 2), (101, 0, 103)])
def test_all_shows_what_is_there_with_a_border(windows: int, start: float, end: float) -> None:
    """In minutes: a slide before the first end, so a window alone in the middle; behind the last a fiftieth."""
    view = shown(("n", pa.array(np.arange(windows))), windows=windows)
    assert np.array(view.visible) / MINUTE == pytest.approx([start, end])


def test_the_view_of_milliseconds_is_no_wider_than_they_are() -> None:
    level = Level("1 ms", 1_000, 1_000)
    results = QueryResults(Schema("q", (level,), (), (("n", pa.int64()),)))
    codes, revisions = np.full(11, 2, np.int8), np.zeros(11, np.int16)
    results.apply([ResultBatch.of(0, np.arange(11) * 1_000, (), (pa.array(range(11)),), codes, revisions)])
    view = DashboardView(results)
    view.refresh()
    assert view.visible == (0, 11_200)


def test_long_labels_keep_both_ends() -> None:
    names = [f"a station in the middle of nowhere, number {n}" for n in (1, 2)]
    assert [short_label(name) for name in names] == ["a station in t…ere, number 1", "a station in t…ere, number 2"]
    assert short_label("x" * 28) == "x" * 28


@pytest.mark.parametrize("keys", [None, [("b",)], [("c",)]])
@pytest.mark.parametrize(("start", "end"), [(None, None), (HOUR, 2 * HOUR), (10 * HOUR, None)])
@pytest.mark.parametrize("regular", [True, False])
def test_a_table_of_a_range_is_that_part_of_the_whole(
    regular: bool, start: int | None, end: int | None, keys: list[Any] | None
) -> None:
    level = LEVEL if regular else Level("session", 0, 0)
    results = QueryResults(Schema("q", (level,), (("k", pa.string()),), (("n", pa.int64()),)))
    starts = np.arange(300) * MINUTE
    bounds = {} if regular else {"ends": starts + HOUR, "numbers": starts}
    for key in "ab":
        columns = (
            (pa.array([key] * 300),),
            (pa.array(range(300)),),
            np.full(300, 2, np.int8),
            np.zeros(300, np.int16),
        )
        results.apply([ResultBatch.of(0, starts, *columns, **bounds)])
    whole = results.table(0).to_pandas()
    at = whole["window_start"].astype("int64")
    at = at // (1_000 if at.max() > 10**12 else 1)
    wanted = whole[(at >= (start or 0)) & (at < (end or 10**18))]
    wanted = wanted if keys is None else wanted[wanted["k"].isin([key for (key,) in keys])]
    part = results.table(0, start=start, end=end, keys=keys).to_pandas()
    assert part[["k", "n"]].to_numpy().tolist() == wanted[["k", "n"]].to_numpy().tolist()
