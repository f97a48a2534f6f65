"""What browser tests do to a dashboard or a form, and what they read off it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.lab import PATIENCE, LabPage

#: Grounds of the two themes, as the browser writes colours.
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(17, 20, 24)"

#: Lets anywidget lose its patience at once, as in a browser that takes more than two seconds to load a module. A
#: microtask comes before any module can; a timer of no time is at times overtaken by a quick one. ``givenUp`` counts
#: the times: whether the page is told of an error depends on who waits for the module by then.
HASTY = """
window.givenUp = 0
const timeout = AbortSignal.timeout.bind(AbortSignal)
AbortSignal.timeout = (milliseconds) => {
  if (milliseconds !== 2_000) return timeout(milliseconds)
  const patience = new AbortController()
  queueMicrotask(() => {
    patience.abort()
    window.givenUp += 1
  })
  return patience.signal
}
"""
#: The path of what is in front.
NOW = "() => window.jupyterapp.shell.currentWidget?.context?.path"
#: Lines and range of each figure on show in the newest dashboard: per line its key, form and points.
LINES = """() => {
  const models = [...(window.Bokeh?.documents.at(-1)?._all_models.values() ?? [])]
  if (models.length === 0) return {figures: []}
  const {start, end} = models.find((model) => model.type === "Range1d")
  const figures = models.filter((model) => model.type === "ColumnDataSource" && "first" in model.data)
  return {start, end, figures: figures.map(({data}) => data.label.map((label, line) => ({
    label, alpha: data.alpha[line], dash: data.dash[line].length,
    x: Array.from(data.xs[line]), y: Array.from(data.ys[line]),
  })))}
}"""


def press(page: LabPage, text: str) -> None:
    """Press the first button of that very text."""
    page.page.get_by_role("button", name=text, exact=True).first.click()


def choose(page: LabPage, offered: str, text: str) -> None:
    """Take the option of that text in the first select box that offers ``offered``."""
    option = page.page.locator(f'option:text-is("{offered}")')
    page.page.locator("select:visible", has=option).first.select_option(label=text)


def theme(page: LabPage, name: str) -> None:
    """Change JupyterLab's theme to ``'Light'`` or ``'Dark'``; a dashboard, if there is one, has followed then."""
    page.page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", f"JupyterLab {name}"
    )
    wait_until(page, lambda: ground(page) in (None, {"Light": LIGHT, "Dark": DARK}[name]), f"the ground to be {name}")


def ground(page: LabPage) -> str | None:
    """The colour behind the first dashboard, None without one."""
    found: str | None = page.page.evaluate(
        "() => { const each = document.querySelector('.bk-Column'); "
        "return each && getComputedStyle(each).backgroundColor }"
    )
    return found


def span(page: LabPage) -> tuple[float, float]:
    """The visible range of the newest dashboard, in milliseconds since 1970."""
    seen = page.page.evaluate(LINES)
    return seen["start"], seen["end"]


def labels(page: LabPage) -> list[str]:
    """The keys that the first figure of the newest dashboard draws, in their order."""
    found: list[str] = page.page.evaluate(f"() => [...new Set((({LINES})().figures[0] ?? []).map((l) => l.label))]")
    return found


def ask_for_dashboard(page: LabPage, folder: str, name: str) -> None:
    """*Live Dashboard* of a file in the list of files."""
    page.page.evaluate(
        """async (path) => {
          await window.jupyterapp.commands.execute("filebrowser:go-to-path", {path, dontShowBrowser: false})
          await window.jupyterapp.commands.execute("filebrowser:activate")
        }""",
        folder,
    )
    page.page.locator(".jp-DirListing-item", has_text=name).click(button="right")
    page.page.locator(".lm-Menu-itemLabel", has_text="Live Dashboard").click()


def wait_until(page: LabPage, condition: Any, what: str, seconds: float = PATIENCE / 1_000) -> None:
    """Wait until ``condition()`` holds; else :meth:`.LabPage.fail`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            page.fail(what)
        page.page.wait_for_timeout(100)  # and not a plain sleep: only here is Playwright told what the page says


def settled(page: LabPage, read: Callable[[], Any], what: str) -> Any:
    """What ``read()`` gives once it has given the same twice, 0.4 s apart: longer than a page tells of a move."""
    seen = [read()]

    def same() -> bool:
        time.sleep(0.4)
        seen.append(read())
        return bool(seen[-1] == seen[-2])

    wait_until(page, same, f"{what} to settle")
    return seen[-1]


def wait_calm(page: LabPage) -> None:
    """Wait until two screenshots of the page in a row are the same, or four seconds for one that moves."""
    before, deadline = b"", time.monotonic() + 4
    while time.monotonic() < deadline:
        now = page.page.screenshot()
        if now == before:
            return
        before = now
        time.sleep(0.3)


def drag(page: LabPage, distance: int, index: int = 0) -> None:
    """Drag the middle of a figure by so many pixels to the right."""
    page.figure(index).evaluate("(element) => element.scrollIntoView({block: 'center'})")
    box = page.figure(index).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + distance / 2, y, steps=4)
    page.page.mouse.move(x + distance, y, steps=4)
    page.page.mouse.up()
