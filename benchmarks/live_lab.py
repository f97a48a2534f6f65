"""A dashboard under a steady load in a real JupyterLab: four plots, twenty keys, five updates a second."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.lab import LabPage, end_kernels, find_chromium, open_chromium, open_jupyter, write_notebook

#: Fills a store: windows of a second at the fine level, the newest one of which holds the wall clock as its value.
FILL = """
import os, threading, time
import numpy as np, pyarrow as pa
from workbench.results import Level, QueryResults, ResultBatch, Schema
from workbench.time import MINUTE, SECOND
from workbench.widgets import DashboardView, LiveDashboard

levels = (Level("10 seconds / 1 second", 10 * SECOND, SECOND), Level("5 minutes / 1 minute", 5 * MINUTE, MINUTE))
results = QueryResults(Schema("load", levels, (("key", pa.string()),), tuple((n, pa.float64()) for n in "abcd")))
names, began = [f"key {n:02}" for n in range(20)], 1_356_998_400 * SECOND

def put(first, last):
    batches = []
    for number, level in enumerate(levels):
        starts = np.arange(max(began, first - level.size) // level.slide * level.slide, last, level.slide)
        keys = pa.array(np.repeat(names, len(starts)))
        at = np.tile(starts, len(names))
        slot = np.repeat(np.arange(len(names)), len(starts))
        columns = [np.sin(at / (3e7 * level.size / SECOND) + slot + n) for n in range(4)]
        columns[0] = np.where(at == starts[-1], time.time(), columns[0] + time.time())
        status = np.where(at + level.size > last, 1, 2).astype(np.int8)
        batches.append(ResultBatch.of(number, at, (keys,), tuple(map(pa.array, columns)), status,
                                   np.zeros(len(at), np.int16)))
    results.apply(batches)

def fill():
    last = began + 15 * MINUTE
    put(began, last)
    while running:
        time.sleep(0.2)
        last += SECOND
        put(last - SECOND, last)

running = True
writer = threading.Thread(target=fill, daemon=True)
writer.start()
print(os.getpid())
"""
SHOW = 'live = LiveDashboard.show("load", DashboardView(results, "load", top=20))'
#: Keeps what the page shows in ``window.seen``: the clock of the newest window, and when it was on the screen.
WATCH = """() => {
  const doc = () => Bokeh.documents.at(-1)
  const models = () => [...doc()._all_models.values()]
  window.probe = {
    seen: [],
    source: models().find((m) => m.type === "ColumnDataSource" && "first" in m.data && m.data.ys.length === 40
                          && Math.abs(m.data.ys[20].at(-1) * 1000 - Date.now()) < 60_000),
    range: models().find((m) => m.type === "Range1d"),
    strip: models().find((m) => m.type === "Div" && m.text.includes("level:")),
  }
  let last = 0
  const look = () => {
    const value = (probe.source.data.ys[20]?.at(-1) ?? 0) * 1000
    if (value > last) {
      last = value
      requestAnimationFrame(() => setTimeout(() => probe.seen.push(Date.now() - value)))
    }
    requestAnimationFrame(look)
  }
  look()
}"""
#: Shows another range as a mouse wheel would; resolves to the milliseconds until its level is on the screen.
ZOOM = """(_, [near, text]) => new Promise((resolve) => {
  const {range, strip} = window.probe
  const end = range.end, begin = performance.now()
  range.setv({start: end - near * 1000, end: end})
  const look = () => {
    if (strip.text.includes(text)) setTimeout(() => resolve(performance.now() - begin))
    else if (performance.now() - begin > 10_000) resolve(NaN)
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
})"""
#: Runs code in the kernel; resolves to the milliseconds until its reply.
CELL = """async (panel) => {
  const begin = performance.now()
  await panel.sessionContext.session.kernel.requestExecute({code: "1 + 1"}).done
  return performance.now() - begin
}"""


def processor_seconds(kernel: int) -> tuple[float, float]:
    """Processor time so far of the kernel, and of all processes of the browser that this process has started."""
    browser = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "chrom" in process.name():
                browser += sum(process.cpu_times()[:2])
    return sum(psutil.Process(kernel).cpu_times()[:2]), browser


@contextmanager
def loaded_dashboard() -> Iterator[tuple[LabPage, Any, int]]:
    """The page, Playwright's session of it, and the kernel's process id, once the dashboard moves."""
    path = find_chromium()
    if path is None:
        raise RuntimeError("no Chromium on this machine")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        open_jupyter(Path(folder)) as (url, root),
        open_chromium(path) as browser,
    ):
        notebook = write_notebook(root / "load.ipynb", [FILL.strip(), SHOW])
        context = browser.new_context(viewport={"width": 1280, "height": 1100})
        page = LabPage(context.new_page(), f"{url}/lab/tree/{notebook.name}?reset", Path(folder))
        page.open()
        page.run_cell(0)
        page.run_cell(1)
        page.wait_text("(auto)")
        page.figure().wait_for(state="visible")
        page.page.wait_for_timeout(2_000)
        page.page.evaluate(WATCH)
        yield page, context.new_cdp_session(page.page), int(page.cell_output_text(0))
        end_kernels(url)
