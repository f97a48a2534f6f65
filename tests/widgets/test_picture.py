"""Still pictures: valid SVG, the right points, any values."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.widgets.conftest import BEGAN
from workbench.results import QueryResults, ResultBatch, Schema
from workbench.time import HOUR, MINUTE
from workbench.widgets import picture, save_svg

SVG = "{http://www.w3.org/2000/svg}"


def paths(svg: str) -> list[str]:
    return [
        path.get("d", "") for path in ET.fromstring(svg).iter(f"{SVG}path") if path.get("stroke-dasharray") is None
    ]


def test_a_picture_names_what_it_shows(results: QueryResults) -> None:
    svg = picture(results, "Delays <live>")
    root = ET.fromstring(svg)
    texts = [element.text for element in root.iter(f"{SVG}text")]
    for text in ("Delays <live>", "AA", "B6", "mean", "n", "window end (UTC)", "level: 15 minutes / 1 minute"):
        assert text in texts
    assert "2013-01-01" in texts


def test_the_dashes_are_the_open_windows(results: QueryResults) -> None:
    root = ET.fromstring(picture(results))
    dashed = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("stroke-dasharray")]
    assert len(dashed) == 4
    assert {len(re.findall("[ML]", path)) for path in dashed} == {15}


def test_a_range_and_a_level_can_be_chosen(results: QueryResults) -> None:
    svg = picture(results, visible=(BEGAN + 2 * HOUR, BEGAN + 10 * HOUR), level=1)
    assert "level: 2 hours / 10 minutes" in svg


def test_an_empty_store_says_so(schema: Callable[..., Schema]) -> None:
    svg = picture(QueryResults(schema()))
    ET.fromstring(svg)
    assert "no window yet" in svg


@pytest.mark.parametrize(
    "values", [[1e300, -1e308], [1.7e308, -1.7e308], [np.nan, np.nan], [np.inf, 1.0], [0.0, 0.0], [5e-324, 0.0]]
)
def test_any_value_gives_finite_coordinates(schema: Callable[..., Schema], values: list[float]) -> None:
    results = QueryResults(schema(keyed=False))
    status, revisions = np.full(2, 2, np.int8), np.zeros(2, np.int16)
    starts = np.array([BEGAN, BEGAN + MINUTE])
    results.apply([ResultBatch.of(0, starts, (), (pa.array(values), pa.array([1, 2])), status, revisions)])
    svg = picture(results)
    assert all("nan" not in path and "inf" not in path for path in paths(svg))
    ET.fromstring(svg)


def test_save_svg_writes_the_picture(results: QueryResults, tmp_path: Path) -> None:
    path = save_svg(results, tmp_path / "x.svg", "Title")
    assert path.read_text(encoding="utf-8") == picture(results, "Title")
