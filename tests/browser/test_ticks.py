"""How numbers are written at a value axis, worked out by hand; ``~`` stands for a minus sign."""

from __future__ import annotations

from typing import Any

import pytest
from bokeh.models import LinearAxis

from workbench.widgets.values import Kind, measure

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([-10, 0, 10], ["~10", "0", "10"]),
        ([0, 0.5, 1], ["0.0", "0.5", "1.0"]),
        ([0.25, 0.3, 0.35], ["0.25", "0.30", "0.35"]),
        ([0, 20_000, 40_000], ["0", "20,000", "40,000"]),
        ([0, 2_000_000, 4_000_000], ["0", "2,000,000", "4,000,000"]),
        ([-5e9, 0, 5e9, 1e10], ["~5e9", "0", "5e9", "1.0e10"]),
        ([0, 5e-6, 1e-5], ["0", "5e~6", "1.0e~5"]),
        ([1e9 - 0.005, 1e9, 1e9 + 0.005], ["999,999,999.995", "1,000,000,000.000", "1,000,000,000.005"]),
        ([1e300, 1.5e300], ["1.0e300", "1.5e300"]),
        ([7], ["7"]),
        ([0], ["0"]),
    ],
)
def test_numbers_are_short_and_of_one_form(chromium: Any, ticks: list[float], texts: list[str]) -> None:
    axis = LinearAxis()
    measure(axis, Kind.NUMBER)
    write = "({code, ticks}) => ticks.map((tick, at) => Function('tick', 'index', 'ticks', code)(tick, at, ticks))"
    page = chromium.new_page()
    try:
        written = page.evaluate(write, {"code": axis.formatter.code, "ticks": ticks})
    finally:
        page.close()
    assert written == [text.replace("~", "\u2212") for text in texts]
