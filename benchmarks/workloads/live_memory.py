"""Memory of browser and kernel under the load of ``live-latency``: after a fifth of the time, and at the end.

The browser's heap is taken after a forced collection, the kernel's as its resident size.
"""

from __future__ import annotations

import psutil

from benchmarks.live_lab import loaded_dashboard
from benchmarks.workload import Bar, Figures, Workload


def run(quick: bool) -> Figures:
    """Three minutes if quick, else ten; growth is from the end of the first fifth to the end."""
    seconds = 180 if quick else 600
    with loaded_dashboard() as (page, session, kernel):
        session.send("Performance.enable")
        process = psutil.Process(kernel)

        def sizes() -> tuple[float, float]:
            session.send("HeapProfiler.collectGarbage")
            metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
            return metrics["JSHeapUsedSize"] / 1e6, process.memory_info().rss / 1e6

        page.page.wait_for_timeout(seconds * 200)
        heap, resident = sizes()
        page.page.wait_for_timeout(seconds * 800)
        heap_end, resident_end = sizes()
        updates = page.page.evaluate("() => probe.seen.length")
    return {
        "heap_mb": heap_end,
        "heap_growth": heap_end / heap - 1,
        "kernel_mb": resident_end,
        "kernel_growth": resident_end / resident - 1,
        "updates": float(updates),
    }


WORKLOAD = Workload(
    name="live-memory",
    summary="growth of the browser's heap and the kernel's memory over ten minutes of a live dashboard",
    run=run,
    repeats=1,
    bars=(Bar("heap_growth", "<=", 0.1), Bar("kernel_growth", "<=", 0.1)),
)
