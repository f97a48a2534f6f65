"""Finding and ordering keys: right against a plain loop, bounded for many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.widgets.conftest import BEGAN
from workbench.results import Level, QueryResults, ResultBatch, Schema
from workbench.time import MINUTE
from workbench.widgets import DashboardView, picture
from workbench.widgets.keys import find_keys, key_label, rank_keys

MEANS = {"a": [5.0, 7.0], "b": [9.0, None], "c": [None, None], "d": [1.0, 2.0], "e": [8.0, 8.0]}


def store(slide: int) -> QueryResults:
    """Two windows of five keys with the values of MEANS; at a slide of 0 each key has windows of its own."""
    schema = Schema(
        "q", (Level("one", MINUTE, slide),), (("k", pa.string()),), (("v", pa.float64()), ("n", pa.int64()))
    )
    results = QueryResults(schema)
    for place, (key, values) in enumerate(MEANS.items()):
        starts = BEGAN + np.arange(2) * MINUTE
        columns = (pa.array(values, pa.float64()), pa.array([place, place]))
        own = {} if slide else {"ends": starts + MINUTE, "numbers": np.arange(2)}
        codes, revisions = np.full(2, 2, np.int8), np.zeros(2, np.int16)
        results.apply([ResultBatch.of(0, starts, (pa.array([key, key]),), columns, codes, revisions, **own)])
    return results


@pytest.mark.parametrize("slide", [MINUTE, 0])
def test_keys_by_the_mean_of_a_value(slide: int) -> None:
    results = store(slide)
    assert rank_keys(results, 2, by="v") == [("b",), ("e",)]
    assert rank_keys(results, 2, by="v", least=True) == [("a",), ("d",)]
    assert rank_keys(results, 4, by="v", least=True) == [("a",), ("b",), ("d",), ("e",)], "no value comes last"
    assert rank_keys(results, 2) == [("d",), ("e",)], "equal windows: the greater count"
    assert rank_keys(results, 9, by="v") == [(key,) for key in MEANS]


def test_search_prefers_beginnings_and_ignores_case() -> None:
    keys = [("Quebec",), ("québec", 3), ("BEC",), (None,)]
    assert find_keys(keys, "bec", 5) == [("BEC",), ("Quebec",), ("québec", 3)]
    assert find_keys(keys, " null", 5) == [(None,)]
    assert find_keys(keys, "", 2) == keys[:2]
    assert find_keys(keys, "zz", 2) == []


@pytest.mark.parametrize(
    "values",
    [
        [1e300, -1e300, 1.7e308],
        [np.nan, np.nan, np.nan],
        [np.inf, -np.inf, 0.0],
        [None, None, None],
        [5e-324, 0.0, -0.0],
    ],
)
def test_any_value_can_be_drawn_ranked_shown_and_saved(values: list[float | None]) -> None:
    schema = Schema("q", (Level("one", MINUTE, MINUTE),), (("k", pa.string()),), (("v", pa.float64()),))
    results = QueryResults(schema)
    starts = BEGAN + np.arange(3) * MINUTE
    for key in ("a", "b"):
        columns = (pa.array(values, pa.float64(), from_pandas=False),)
        codes, revisions = np.full(3, 2, np.int8), np.zeros(3, np.int16)
        results.apply([ResultBatch.of(0, starts, (pa.array([key] * 3),), columns, codes, revisions)])
    view = DashboardView(results, top=5)
    for active in (0, 1, 2):
        view.controls.views.active = active
        view.refresh()
    assert len(rank_keys(results, 1, by="v")) == 1
    assert view.controls.table.text.count("<tr><td") == 6
    assert "nan" not in picture(results)
    assert len(view.export("CSV").content.splitlines()) == 7


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ((), "all"),
        ((None, 5), "NULL, 5"),
        (("a\nb",), "a b"),
        (("",), "''"),
        ((" ", "x"), "' ', x"),
        (("\n",), r"'\n'"),
    ],
)
def test_a_key_is_written_on_one_line_and_can_be_seen(key: tuple[Any, ...], label: str) -> None:
    assert key_label(key) == label
