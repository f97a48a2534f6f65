"""Figure 3 of *SlideSide* (EDBT 2020, §4): the algorithms of the literature and our block kernels, on one thread.

- ``a/WHO/N`` and ``b/WHO/N``: M results/s of N = 1 ... 65 windows of random sizes up to 32,768, sum and minimum;
- ``c/WHO/SIZE`` and ``d/WHO/SIZE``: M rows/s of one window of 1 ... 1,048,576 rows, sum and minimum;
- ``e/sum WHO/P`` and ``e/min WHO/P``: nanoseconds a row, one window of 32,768 rows, P a percentile or the mean, see
  ``benchmarks/latency.py``; ours with batches of one row, which it is not made for;
- ``b_random/...``, ``d_random/...``: the same as b and d on independent random values. Of the algorithms for sums
  none looks at the values, so a and c are measured once;
- ``a_blocks_by_best``, ``a_slideside_by_slickdeque``, ...: ratios at the largest number of windows or size.

The data are the power readings of the DEBS 2012 challenge (the paper has those of 2014), int64, over and over. Slide
1, every result stored. Clock: processor time; medians of 5 interleaved rounds. There are no bars: machines
differ.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import paper_figures, power
from benchmarks.workload import Figures, Workload

NUMBERS, QUICK_NUMBERS = (1, 2, 4, 8, 16, 32, 65), (1, 8)
MANY, ONE, LATENCY = 32_768, 1 << 20, 32_768
TITLES = {
    "a": "(a) sum, several windows",
    "b": "(b) minimum, several windows",
    "c": "(c) sum, one window",
    "d": "(d) minimum, one window",
    "e": "(e) latency, one window of 32 K rows",
}


def run(quick: bool) -> Figures:
    """All panels, then the ratios."""
    several = paper_figures.several(QUICK_NUMBERS if quick else NUMBERS, MANY)
    one = paper_figures.singles(64 if quick else ONE)
    figures: dict[str, float] = {}
    for panel, name, windows in (("a", "sum", several), ("b", "min", several), ("c", "sum", one), ("d", "min", one)):
        figures |= paper_figures.throughput(panel, name, windows, power.readings, quick)
        if name == "min":
            figures |= paper_figures.throughput(f"{panel}_random", name, windows, power.random, quick)
    figures |= paper_figures.latency("e", LATENCY, quick)
    for panel, windows in {"a": several, "b": several, "c": one, "d": one}.items():
        figures |= paper_figures.compared(figures, panel, max(windows))
    return figures


def draw(figures: Figures, folder: Path) -> list[Path]:
    """One picture of all panels."""
    from benchmarks import pictures

    panels = [pictures.lines(panel, TITLES[panel], panel in "ab") for panel in "abcd"]
    return [pictures.save([*panels, pictures.boxes("e", TITLES["e"])], figures, folder / "slideside-fig3.svg")]


WORKLOAD = Workload(
    name="slideside-fig3",
    summary="throughput and latency of the algorithms of the literature and our blocks, as in SlideSide's figure 3",
    group="papers",
    run=run,
    warm_up=paper_figures.warm_up,
    repeats=1,
    headline=tuple(f"{panel}_{what}" for panel in "abcd" for what in ("blocks_by_best", "slideside_by_slickdeque")),
    about=power.about,
    draw=draw,
)
