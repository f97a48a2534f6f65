"""Pictures of figures named ``PANEL/WHO/X``, as SVG (``pip install winquery[bench]``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Figures = Mapping[str, float]
#: Draws one panel onto axes of matplotlib.
Panel = Callable[[Any, Figures], None]
Curves = dict[str, dict[str, float]]

COLORS = {
    "SoE": "#7f7f7f",
    "TwoStacks": "#2ca02c",
    "TwoStacks Lite": "#17becf",
    "DABA Lite": "#8c564b",
    "SlickDeque": "#ff7f0e",
    "SlideSide": "#1f77b4",
    "FlatFAT": "#9467bd",
    "winquery blocks": "#d62728",
    "timer": "#000000",
}
BOX = ("min", "p25", "p50", "p75", "p99", "max", "mean")


def curves(figures: Figures, panel: str) -> Curves:
    """``{who: {x: value}}`` of one panel, in the order they were measured."""
    found: Curves = defaultdict(dict)
    for name, value in figures.items():
        letter, *rest = name.split("/")
        if letter == panel and len(rest) == 2:
            found[rest[0]][rest[1]] = value
    return dict(found)


def lines(panel: str, title: str, many: bool) -> Panel:
    """Throughput over sizes or numbers of windows; thin and dotted on random values."""

    def draw(axes: Any, figures: Figures) -> None:
        for suffix, style in (("", {"marker": "o", "lw": 1.3}), ("_random", {"ls": ":", "lw": 1.0})):
            for who, points in curves(figures, panel + suffix).items():
                label = None if suffix else who
                axes.plot(
                    list(map(int, points)), list(points.values()), ms=3, color=COLORS[who], label=label, **style
                )
        axes.set(title=title, xscale="log", yscale="log")
        axes.set(xlabel="windows" if many else "rows in the window", ylabel="M results/s" if many else "M rows/s")

    return draw


def counts(panel: str, title: str) -> Panel:
    """Partials over numbers of windows; minima dashed."""

    def draw(axes: Any, figures: Figures) -> None:
        for who, points in curves(figures, panel).items():
            function, label = who.split(" ", 1)
            style = "-" if function == "sum" else "--"
            axes.plot(list(map(int, points)), list(points.values()), style, lw=1.3, color=COLORS[label])
        axes.set(title=title, xscale="log", yscale="log", xlabel="windows", ylabel="partials")

    return draw


def boxes(panel: str, title: str) -> Panel:
    """Latency: quartiles as a box, a dot for the mean, a line from minimum to p99, a cross for the maximum."""

    def draw(axes: Any, figures: Figures) -> None:
        found = {who: p for who, p in curves(figures, panel).items() if who != "min timer"}
        for place, points in enumerate(found.values()):
            low, p25, p50, p75, p99, high, mean = (points[name] for name in BOX)
            color = COLORS[list(found)[place].split(" ", 1)[1]]
            axes.vlines(place, low, p99, color=color, lw=1)
            axes.bar(place, max(p75 - p25, 0.04 * p25), bottom=p25, width=0.6, color=color, alpha=0.6)
            axes.plot([place], [p50], "_", color="white", ms=8)
            axes.plot([place], [mean], "o", color=color, ms=4)
            axes.plot([place], [high], "x", color=color, ms=5)
        axes.set_xticks(range(len(found)), [who.replace("winquery ", "") for who in found], rotation=60, ha="right")
        axes.set(title=title, yscale="log", ylabel="ns a row", ylim=(5, None))

    return draw


def save(panels: Sequence[Panel], figures: Figures, path: Path) -> Path:
    """All panels in one file, with one legend; the same figures give the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": path.stem, "font.size": 8})
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(-(-len(panels) // 3), 3, figsize=(11, 6.4), layout="constrained")
    for axes, panel in zip(grid.flat, panels, strict=False):
        panel(axes, figures)
        axes.grid(alpha=0.3)
        axes.minorticks_off()
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    shown = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=len(shown), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return path
