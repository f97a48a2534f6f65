"""From the result store to the screen, in JupyterLab and Chromium: updates, zooms, and other cells meanwhile.

``update`` is from a result's arrival in the store until the frame that draws it has been painted, ``zoom`` from a
changed range until the new level's data and label are painted, ``cell`` the round trip of another cell's execution.
All on one machine: kernel, server, browser (which draws without a graphics card) and the load share its cores, so the
processor time of a refresh says more than milliseconds where others work too. It holds the load and the watching.
"""

from __future__ import annotations

import numpy as np

from benchmarks.live_lab import CELL, ZOOM, loaded_dashboard, processor_seconds
from benchmarks.workload import Bar, Figures, Workload


def run(quick: bool) -> Figures:
    """Twenty seconds of updates (a minute unless quick), then zooms to and fro."""
    with loaded_dashboard() as (page, _, kernel):
        page.page.evaluate("() => { probe.seen.length = 0 }")
        before = processor_seconds(kernel)
        page.page.wait_for_timeout(20_000 if quick else 60_000)
        updates = page.page.evaluate("() => probe.seen")
        spent = np.subtract(processor_seconds(kernel), before)
        cells = [page.js(CELL) for _ in range(10 if quick else 50)]
        zooms = []
        for number in range(10 if quick else 40):
            near, text = (120, "10 seconds / 1 second") if number % 2 else (7_200, "5 minutes / 1 minute")
            zooms.append(page.js(ZOOM, [near, text]))
            page.page.wait_for_timeout(700)
    if not updates:
        raise RuntimeError("the page has drawn nothing")
    return {
        "update_p50_ms": float(np.percentile(updates, 50)),
        "update_p99_ms": float(np.percentile(updates, 99)),
        "updates": float(len(updates)),
        "kernel_cpu_ms": 1_000 * float(spent[0]) / len(updates),
        "browser_cpu_ms": 1_000 * float(spent[1]) / len(updates),
        "zoom_p50_ms": float(np.percentile(zooms, 50)),
        "zoom_p95_ms": float(np.percentile(zooms, 95)),
        "cell_p95_ms": float(np.percentile(cells, 95)),
    }


WORKLOAD = Workload(
    name="live-latency",
    summary="store to screen of a dashboard with 4 plots x 20 keys x 5 updates a second, and zoom to the new level",
    run=run,
    repeats=1,
    bars=(Bar("update_p50_ms", "<=", 200), Bar("update_p99_ms", "<=", 500), Bar("zoom_p95_ms", "<=", 300)),
)
