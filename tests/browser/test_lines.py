"""What the page draws of a dashboard's lines: cut from flat columns, muted by the legend, told by the hover."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime

import pytest

from benchmarks.lab import LabPage, write_notebook
from tests.browser.acts import LINES, settled
from tests.browser.stage import FILL, SHOW

pytestmark = pytest.mark.browser

#: Left and right end of the frame of each figure.
FRAMES = """() => {
  const frames = []
  const look = (view) => {
    if (view.model.type === "Figure") frames.push([view.frame.bbox.left, view.frame.bbox.right])
    for (const child of view.child_views ?? []) look(child)
  }
  look(Bokeh.documents.at(-1).views_manager.roots[0])
  return frames.filter(([left, right]) => right > left)
}"""
#: Numbers of seven digits at the value axis of the last figure.
LONG = """() => {
  const range = Bokeh.documents.at(-1).roots()[0].children[3].children.at(-1)[0].y_range
  range.setv({start: -1_234_567, end: 1_234_567})
}"""
CARRIERS = ["AA", "B6", "DL", "EV", "UA", "WN"]


def mean(carrier: str, start: float) -> float:
    """What the stage fills in for ``mean_delay`` of the window that starts at ``start``, seconds since 1970."""
    number, hours = CARRIERS.index(carrier), start / 3_600
    return 14 + 9 * math.sin(hours / 3.1 + number) + 3 * math.sin(hours * 2.3 + 5 * number)


@pytest.fixture(scope="module")
def sheet(module_lab: Callable[..., LabPage], tmp_path_factory: pytest.TempPathFactory) -> LabPage:
    """A store that does not change any more, in a page for all tests."""
    cells = [FILL.strip(), "running = False\nwriter.join()", SHOW]
    page = module_lab(write_notebook(tmp_path_factory.mktemp("sheet") / "lines.ipynb", cells))
    page.run_cell(0)
    page.run_cell(1)
    return page


@pytest.fixture
def page(sheet: LabPage) -> LabPage:
    """A fresh dashboard, at two hours by ten minutes."""
    sheet.errors.clear()
    sheet.run_cell(2)
    sheet.wait_text("2 hours / 10 minutes (auto)")
    sheet.page.wait_for_function(f"() => ({LINES})().figures[0]?.some(({{y}}) => y.length > 100)")
    return sheet


def test_lines_hold_the_visible_windows_of_each_key(page: LabPage) -> None:
    page.wheel(-300)
    page.wait_text("15 minutes / 1 minute (auto)")
    seen = settled(page, lambda: page.page.evaluate(LINES), "the lines")
    assert len(seen["figures"]) == 4
    final, open_ = seen["figures"][0][:6], seen["figures"][0][6:]
    assert [line["label"] for line in final] == [line["label"] for line in open_] == CARRIERS
    assert [line["dash"] for line in (*final, *open_)] == [0] * 6 + [2] * 6
    for line in final:
        assert len(line["x"]) > 20
        inner = [at for at in line["x"] if seen["start"] <= at <= seen["end"]]
        assert len(inner) >= len(line["x"]) - 2, "one point beyond either edge at most"
        for at, value in zip(line["x"], line["y"], strict=True):
            if value is not None:
                assert value == pytest.approx(mean(line["label"], at / 1_000 - 15 * 60))


def test_plots_below_each_other_line_up(page: LabPage) -> None:
    """Whatever numbers stand at their value axes; the last one is given numbers that are much longer."""
    page.page.evaluate(LONG)
    frames = settled(page, lambda: page.page.evaluate(FRAMES), "the frames")
    assert len(frames) == 4
    assert len({tuple(frame) for frame in frames}) == 1, frames


def test_a_press_on_the_legend_mutes_a_key_in_all_plots(page: LabPage) -> None:
    page.page.locator(".bk-item", has_text="DL").click()
    muted = f"() => ({LINES})().figures.map((lines) => lines.filter(({{alpha}}) => alpha < 0.5).map((l) => l.label))"
    page.page.wait_for_function(f"() => ({muted})()[0].length === 2")
    assert page.page.evaluate(muted) == [["DL", "DL"]] * 4
    page.screenshot("lines-muted")
    page.page.locator(".bk-item", has_text="DL").click()
    page.page.wait_for_function(f"() => ({muted})()[0].length === 0")


def test_the_mouse_over_a_line_tells_its_window(page: LabPage) -> None:
    page.figure().evaluate("(element) => element.scrollIntoView({block: 'center'})")
    box = page.figure().bounding_box()
    tooltip = page.page.locator(".bk-Tooltip", has_text="mean_delay")
    for y in range(int(box["y"]) + 60, int(box["y"] + box["height"]) - 10, 2):
        page.page.mouse.move(box["x"] + box["width"] / 2, y)
        page.page.wait_for_timeout(30)
        if tooltip.count() and tooltip.first.is_visible():
            break
    told = tooltip.first.evaluate(
        "({shadowRoot}) => [...shadowRoot.querySelectorAll('div')].map((each) => each.innerText).join(' ')"
    )
    page.screenshot("lines-hover")
    found = re.search(r"(\w\w)\s+mean_delay\s+([-\d.]+)\s+(\S+ \S+) . (\S+) UTC\s+final, (\d+) rows", told)
    assert found, told
    carrier, value, start, end, count = found.groups()
    began = datetime.fromisoformat(f"{start}+00:00").timestamp()
    assert float(value) == pytest.approx(mean(carrier, began), rel=1e-4)
    ended = datetime.fromisoformat(f"{start[:10]} {end}+00:00").timestamp()
    assert (ended - began) % 86_400 == 2 * 3_600
    number = CARRIERS.index(carrier)
    assert int(count) == round(40 + 25 * math.sin(began / 3_600 / 4 + number) ** 2)
    assert page.errors == []
