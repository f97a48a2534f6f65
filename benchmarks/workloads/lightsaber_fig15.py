"""Figure 15 of *LightSaber* (SIGMOD 2020, §7.7): the algorithms of the literature and our blocks, on one thread.

- ``a/WHO/SIZE`` and ``b/WHO/SIZE``: M rows/s of one window of 1 ... 4,194,304 rows, sum and minimum;
- ``c/sum WHO/P`` and ``c/min WHO/P``: nanoseconds a row, one window of 16,384 rows, P a percentile or the mean, see
  ``benchmarks/latency.py``; ours with batches of one row, which it is not made for;
- ``d/WHO/N`` and ``e/WHO/N``: M results/s of N = 1 ... 100 windows of random sizes up to 131,072, sum and minimum;
- ``f/sum WHO/N`` and ``f/min WHO/N``: partials kept for N windows (room for them; blocks keep rows as partials);
- ``b_random/...``, ``e_random/...``: the same as b and e on independent random values. Of the algorithms for sums
  none looks at the values, so a and d are measured once;
- ``a_blocks_by_best``, ``a_slideside_by_slickdeque``, ...: ratios at the largest number of windows or size.

The data are the paper's, the power readings of the DEBS 2012 challenge, int64, over and over. Slide 1, every result
stored. Clock: processor time; medians of 5 interleaved rounds. There are no bars: the machines differ.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import paper_figures, power
from benchmarks.workload import Figures, Workload

NUMBERS, QUICK_NUMBERS = (1, 2, 5, 10, 20, 50, 100), (1, 10)
MANY, ONE, LATENCY = 131_072, 1 << 22, 16_384
TITLES = {
    "a": "(a) sum, one window",
    "b": "(b) minimum, one window",
    "c": "(c) latency, one window of 16 K rows",
    "d": "(d) sum, several windows",
    "e": "(e) minimum, several windows",
    "f": "(f) partials kept (dashed: minimum)",
}


def run(quick: bool) -> Figures:
    """All panels, then the ratios."""
    several = paper_figures.several(QUICK_NUMBERS if quick else NUMBERS, MANY)
    one = paper_figures.singles(64 if quick else ONE)
    figures: dict[str, float] = {}
    for panel, name, windows in (("a", "sum", one), ("b", "min", one), ("d", "sum", several), ("e", "min", several)):
        figures |= paper_figures.throughput(panel, name, windows, power.readings, quick)
        if name == "min":
            figures |= paper_figures.throughput(f"{panel}_random", name, windows, power.random, quick)
    figures |= paper_figures.latency("c", LATENCY, quick)
    figures |= paper_figures.kept("f", several)
    for panel, windows in {"a": one, "b": one, "d": several, "e": several}.items():
        figures |= paper_figures.compared(figures, panel, max(windows))
    return figures


def draw(figures: Figures, folder: Path) -> list[Path]:
    """One picture of all panels."""
    from benchmarks import pictures

    panels = {panel: pictures.lines(panel, TITLES[panel], panel in "de") for panel in "abde"}
    panels["c"] = pictures.boxes("c", TITLES["c"])
    panels["f"] = pictures.counts("f", TITLES["f"])
    return [pictures.save([panels[panel] for panel in "abcdef"], figures, folder / "lightsaber-fig15.svg")]


WORKLOAD = Workload(
    name="lightsaber-fig15",
    summary="throughput, latency and partials kept of the algorithms and our blocks, as in LightSaber's figure 15",
    group="papers",
    run=run,
    warm_up=paper_figures.warm_up,
    repeats=1,
    headline=tuple(f"{panel}_{what}" for panel in "abde" for what in ("blocks_by_best", "slideside_by_slickdeque")),
    about=power.about,
    draw=draw,
)
