"""Windows with bounds of their own: segments where they lie apart, lines where they overlap, each key by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workbench.results import Level, QueryResults, ResultBatch, Schema, Status
from workbench.time import HOUR, MINUTE
from workbench.widgets import DashboardView, Roles, picture
from workbench.widgets.reading import read_points

SCHEMA = Schema(
    "q", (Level("session 5 minutes", 0, 0),), (("k", pa.string()),), (("v", pa.float64()), ("n", pa.int64()))
)


def store(windows: list[tuple[str, int, int, float, int]]) -> QueryResults:
    """Final windows (key, start minute, end minute, value, number within the key), the last of a key provisional."""
    results = QueryResults(SCHEMA)
    last = {key: number for key, *_, number in windows}
    keys, starts, ends, values, numbers = zip(*windows, strict=True)
    status = [1 if last[key] == number else 2 for key, number in zip(keys, numbers, strict=True)]
    results.apply(
        [
            ResultBatch.of(
                0, np.array(starts) * MINUTE, (pa.array(keys),), (pa.array(values), pa.array([3] * len(keys))),
                np.array(status, np.int8), np.zeros(len(keys), np.int16), np.array(ends) * MINUTE, np.array(numbers),
            )
        ]
    )  # fmt: skip
    return results


SESSIONS = [
    ("a", 0, 10, 1.0, 0),
    ("b", 2, 40, 5.0, 0),
    ("a", 20, 31, 2.0, 1),
    ("b", 50, 55, 6.0, 1),
    ("a", 45, 47, 3.0, 2),
]


def test_a_session_is_a_segment_from_start_to_end() -> None:
    points = read_points(store(SESSIONS), 0, 0, HOUR, 1_000, [("a",), ("b",)], Roles(count="n"))["v"]
    x, y = points.x[:, 0] // MINUTE, points.y[:, 0]
    assert x.tolist() == [0, 10, 10, 20, 31, 31, 45, 47, 47]
    np.testing.assert_array_equal(y, [1, 1, np.nan, 2, 2, np.nan, 3, 3, np.nan])
    assert points.x[:6, 1].tolist() == [minute * MINUTE for minute in (2, 40, 40, 50, 55, 55)]
    assert np.isnan(points.y[6:, 1]).all(), "the shorter key is filled up with gaps"
    assert points.count is not None
    assert points.count[0, 0] == 3
    open_ = points.provisional()
    assert open_.y[-3:, 0].tolist()[:2] == [3, 3]
    assert not (points.final().y[:, 0] == 3).any()


def test_windows_that_overlap_are_a_line_through_their_ends_that_no_other_key_breaks() -> None:
    counted = [("a", n, n + 10, float(n), n) for n in range(0, 30, 2)] + [
        ("b", n, n + 7, -1.0, n) for n in range(1, 30, 5)
    ]
    points = read_points(store(counted), 0, 0, HOUR, 1_000, [("a",), ("b",)])["v"]
    assert (points.x[:, 0] // MINUTE).tolist() == list(range(10, 40, 2))
    assert points.y[:, 0].tolist() == [float(n) for n in range(0, 30, 2)]
    assert not points.alone.any()
    assert points.starts is not None
    assert (points.starts[:, 0] // MINUTE).tolist() == list(range(0, 30, 2))


def test_very_many_windows_are_reduced_and_keep_their_extremes() -> None:
    many = [("a", n, n + 3, float(np.sin(n / 50)), n) for n in range(4_000)]
    points = read_points(store(many), 0, 0, 4_003 * MINUTE, 100, [("a",)])["v"]
    assert len(points.y) <= 4 * 102
    values = [value for *_, value, _ in many]
    assert (np.nanmin(points.y), np.nanmax(points.y)) == (min(values), max(values))
    assert points.ends is not None
    np.testing.assert_array_equal(points.ends[:, 0], points.x[:, 0])


def test_a_dashboard_of_sessions_shows_bounds_and_a_picture() -> None:
    results = store(SESSIONS)
    view = DashboardView(results)
    view.refresh()
    final = view.panels[0].final.data
    assert final["w"][0] == 0
    assert final["e"][0] == 10 * MINUTE / 1_000
    assert view.panels[-1].figure.xaxis[0].axis_label == "time (UTC)"
    assert view.visible[0] <= 0
    assert picture(results).count("M84.0") >= 1, "a's first session begins at the left edge"


def test_a_key_without_windows_and_an_empty_level_draw_nothing() -> None:
    points = read_points(store(SESSIONS), 0, 0, HOUR, 1_000, [("z",), ("a",)])["v"]
    assert np.isnan(points.y[:, 0]).all()
    assert np.nanmax(points.y[:, 1]) == 3
    view = DashboardView(QueryResults(SCHEMA))
    view.refresh()
    assert view.drawn
    assert Status.ABSENT == 0
