"""From the store to points: the right values at the right times, gaps, joins, a bounded number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tests.widgets.conftest import BEGAN, LEVELS
from workbench.results import QueryResults, ResultBatch, Schema, Series, Status
from workbench.time import DAY, HOUR, MINUTE
from workbench.widgets.keys import key_label, rank_keys
from workbench.widgets.reading import MARGIN, gridded, read_points

AA, B6 = ("AA",), ("B6",)


def test_a_window_is_drawn_at_its_end(results: QueryResults) -> None:
    points = read_points(results, 0, BEGAN, BEGAN + 12 * HOUR, 1_000, [AA, B6])["mean"]
    starts = (points.x - LEVELS[0].size - BEGAN) / HOUR
    assert np.array_equal(points.y, starts + np.array([0, 100]))
    assert (np.diff(points.x[:, 0]) == MINUTE).all()


def test_only_the_range_and_its_margin_are_read(results: QueryResults) -> None:
    start, end = BEGAN + 4 * HOUR, BEGAN + 8 * HOUR
    x = read_points(results, 0, start, end, 1_000, [AA])["mean"].x
    margin = MARGIN * 4 * HOUR + MINUTE
    assert x.min() == start - margin
    assert x.max() == end + margin


def test_keys_come_in_the_order_asked_for_and_unknown_ones_are_gaps(results: QueryResults) -> None:
    points = read_points(results, 0, BEGAN, BEGAN + HOUR, 500, [("ZZ",), B6, AA])["mean"]
    assert np.isnan(points.y[:, 0]).all()
    assert np.array_equal(points.y[:, 1], points.y[:, 2] + 100)


def test_provisional_points_are_apart_and_joined(results: QueryResults) -> None:
    points = read_points(results, 0, BEGAN, BEGAN + 13 * HOUR, 1_000, [AA, B6])["mean"]
    final = points.final()
    x, y = final.x, final.y
    assert x[~np.isnan(y[:, 0]), 0].max() == BEGAN + 12 * HOUR
    open_ = points.provisional()
    x, y = open_.x, open_.y
    assert x[0, 0] == BEGAN + 12 * HOUR, "the last final point joins the lines"
    assert not np.isnan(y).any()
    assert x[-1, 0] == BEGAN + 12 * HOUR + 14 * MINUTE


def test_absent_windows_are_gaps_and_lone_values_dots(
    schema: Callable[..., Schema], fill: Callable[..., None]
) -> None:
    results = QueryResults(schema())
    fill(results, (0, 1), ["AA"])
    fill(results, (2, 2.001), ["AA"])
    points = read_points(results, 0, BEGAN, BEGAN + 4 * HOUR, 1_000, [AA])["mean"]
    present = ~np.isnan(points.y[:, 0])
    assert present.sum() == 61
    x, y, keys = points.dots()
    assert (x.tolist(), y.tolist(), keys.tolist()) == ([BEGAN + 2 * HOUR + 15 * MINUTE], [2.0], [0])


@pytest.mark.parametrize("width", [1, 7, 100])
def test_at_most_four_points_per_pixel_and_key(
    schema: Callable[..., Schema], fill: Callable[..., None], width: int
) -> None:
    results = QueryResults(schema())
    fill(results, (0, 96), ["AA", "B6"])
    start, end = BEGAN, BEGAN + 4 * DAY
    points = read_points(results, 0, start, end, width, [AA, B6])["mean"]
    columns = points.x // ((end - start) // width)
    for key in range(2):
        assert np.bincount(columns[:, key] - columns.min()).max() <= 4
    # The reduced line has the whole's extremes, and every point is one of the store.
    assert points.y[:, 0].min() == 0
    assert np.array_equal(points.y, (points.x - LEVELS[0].size - BEGAN) / HOUR + np.array([0, 100]))


def test_a_moving_range_picks_the_same_points(schema: Callable[..., Schema], fill: Callable[..., None]) -> None:
    results = QueryResults(schema())
    fill(results, (0, 96), ["AA"])
    seen = [
        set(read_points(results, 0, BEGAN + shift, BEGAN + 2 * DAY + shift, 100, [AA])["mean"].x[:, 0].tolist())
        for shift in (6 * HOUR, 6 * HOUR + 7 * MINUTE)
    ]
    inner = range(BEGAN + 12 * HOUR, BEGAN + 2 * DAY, MINUTE)
    assert seen[0] & set(inner) == seen[1] & set(inner)


def test_an_empty_store_gives_no_points(schema: Callable[..., Schema]) -> None:
    results = QueryResults(schema())
    points = read_points(results, 0, BEGAN, BEGAN + HOUR, 100, [])
    assert points["mean"].y.shape == (0, 0)
    assert points["mean"].provisional().x.shape == (0, 0)
    assert rank_keys(results, 5) == []


def test_keys_are_ranked_by_windows_then_by_count(schema: Callable[..., Schema], fill: Callable[..., None]) -> None:
    results = QueryResults(schema())
    fill(results, (0, 48), ["few", "some", "many"])
    fill(results, (48, 96), ["few"])
    assert rank_keys(results, 5) == [("few",), ("some",), ("many",)]
    assert rank_keys(results, 2) == [("few",), ("many",)]


def test_null_values_are_gaps_and_null_keys_have_a_name(schema: Callable[..., Schema]) -> None:
    results = QueryResults(schema())
    batch = ResultBatch.of(
        0,
        np.array([BEGAN, BEGAN + MINUTE]),
        (pa.array([None, None], pa.string()),),
        (pa.array([None, 2.0]), pa.array([1, 1])),
        np.full(2, Status.REVISED, np.int8),
        np.ones(2, np.int16),
    )
    results.apply([batch])
    keys = rank_keys(results, 5)
    assert [key_label(key) for key in keys] == ["NULL"]
    y = read_points(results, 0, BEGAN, BEGAN + HOUR, 100, keys)["mean"].final().y
    assert np.isnan(y[0, 0])
    assert y[1, 0] == 2
    assert key_label(()) == "all"
    assert key_label(("AA", 3)) == "AA, 3"


def test_starts_that_the_store_leaves_out_are_gaps(schema: Callable[..., Schema]) -> None:
    minutes = [0, 1, 2, 30, 31]
    starts = BEGAN + np.array(minutes) * MINUTE
    columns = {"mean": np.arange(10.0).reshape(5, 2), "n": np.ones((5, 2))}
    kept = Series(0, starts, (starts + MINUTE)[:, None], (AA, B6), columns, np.full((5, 2), 2, np.int8))
    whole = gridded(kept, MINUTE)
    assert len(whole.starts) == 32
    assert np.array_equal(whole.values["mean"][minutes], columns["mean"])
    assert np.isnan(whole.values["mean"][3:30]).all()
    assert (whole.status[3:30] == Status.ABSENT).all()
    assert gridded(whole, MINUTE) is whole


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1.7e308, -8e307])
def test_what_no_axis_can_hold_is_a_gap_and_hides_nothing(
    schema: Callable[..., Schema], fill: Callable[..., None], value: float
) -> None:
    """One infinite value in the lines, and the page's value axis ends at infinity: nothing is drawn any more."""
    results = QueryResults(schema())
    fill(results, (0, 24), ["AA"], levels=[0])
    starts = np.array([BEGAN + 7 * MINUTE])
    values, one = (pa.array([value]), pa.array([1])), np.ones(1, np.int16)
    results.apply([ResultBatch.of(0, starts, (pa.array(["AA"]),), values, np.full(1, 2, np.int8), one - 1)])
    end = BEGAN + 7 * MINUTE + 15 * MINUTE
    for until, width in ((BEGAN + HOUR, 1_000), (BEGAN + DAY, 100)):  # every window, and M4 of fourteen a pixel
        points = read_points(results, 0, BEGAN, until, width, [AA])["mean"]
        assert np.nanmax(np.abs(points.y)) <= 24
        assert np.isnan(points.y[points.x == end]).all()
    assert value in results.table("15 minutes / 1 minute")["mean"].to_pylist(), "results are what they are"
