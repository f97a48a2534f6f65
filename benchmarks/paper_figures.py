"""What the figures of *SlideSide* and *LightSaber* have in common: throughput, latency, number of partials.

A figure's name is ``PANEL/ALGORITHM/X``: the panel's letter in the paper (``_random`` for random values), who, and
the size of the window, the number of windows, or a percentile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import power
from benchmarks.row_streams import BLOCKS
from benchmarks.timing import interleaved, rate

# Compiled code is imported where it is used, so that `python -m benchmarks list` answers at once.
if TYPE_CHECKING:
    from benchmarks.contestants import Contestant

Windows = Mapping[int, Sequence[int]]

#: Seconds of one measured call, about: long enough to forget the call itself.
SECONDS, QUICK_SECONDS = 0.02, 0.002
ROUNDS, QUICK_ROUNDS = 5, 1
#: Rows of one pass over the column: four batches of ``benchmarks/contestants.py``.
PASS = 4 * 4091


def singles(largest: int) -> Windows:
    """One window of 1, 4, 16, ... rows up to ``largest``, by its size."""
    return {size: [size] for size in (4**power for power in range(20)) if size <= largest}


def several(numbers: Sequence[int], largest: int) -> Windows:
    """Windows of uniformly random sizes by their number, fewer being a part of more."""
    drawn = np.random.default_rng(3).integers(1, largest + 1, max(numbers))
    return {number: [int(size) for size in drawn[:number]] for number in numbers}


def throughput(
    panel: str, name: str, windows: Windows, values: Callable[[int], power.Array], quick: bool
) -> dict[str, float]:
    """M results/s of everyone: rows times windows."""
    from benchmarks.contestants import contestants

    column = values(PASS)
    figures: dict[str, float] = {}
    for x, sizes in windows.items():
        entrants = contestants(name, column, sizes)
        passes = {label: _full(entrant, max(sizes), quick) for label, entrant in entrants.items()}
        cases = {label: _repeat(entrants[label], passes[label]) for label in entrants}
        times = interleaved(cases, QUICK_ROUNDS if quick else ROUNDS)
        for label, seconds in times.items():
            figures[f"{panel}/{label}/{x}"] = rate(passes[label] * PASS * len(sizes), seconds) / 1e6
    return figures


def _full(entrant: Contestant, largest: int, quick: bool) -> int:
    """Fill the windows; returns how many passes take about ``SECONDS``."""
    entrant.run()  # compiles
    begin = time.process_time()
    filling = math.ceil(largest / PASS)
    for _ in range(filling):
        entrant.run()
    each = (time.process_time() - begin) / filling
    return max(1, round((QUICK_SECONDS if quick else SECONDS) / max(each, 1e-6)))


def _repeat(entrant: Contestant, passes: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(passes):
            entrant.run()

    return run


def latency(panel: str, size: int, quick: bool) -> dict[str, float]:
    """Nanoseconds a row of one window of ``size`` rows: ``PANEL/sum SoE/p25``."""
    from benchmarks.latency import latencies

    column = power.readings(size + size // 4)
    return {
        f"{panel}/{name} {label}/{figure}": value
        for name in ("sum", "min")
        for label, found in latencies(name, column, size, 1 if quick else 15).items()
        for figure, value in found.items()
    }


def kept(panel: str, windows: Windows) -> dict[str, float]:
    """How many partials there is room for: ``PANEL/sum SoE/10``."""
    from benchmarks.contestants import contestants

    column = power.readings(2)
    return {
        f"{panel}/{name} {label}/{x}": float(entrant.partials)
        for name in ("sum", "min")
        for x, sizes in windows.items()
        for label, entrant in contestants(name, column, sizes).items()
    }


def warm_up(quick: bool) -> None:
    """Compile everything and compare everyone's windows with their recalculation, on both kinds of values."""
    from benchmarks.contestants import check

    for name in ("sum", "min"):
        for values in (power.readings, power.random):
            check(name, values(3000), [1, 2, 300, 1024])


def ratio(figures: Mapping[str, float], panel: str, label: str, x: int, others: Sequence[str] = ()) -> float:
    """``label``'s figure by the best of ``others`` (by default of all others)."""
    found = {
        key.split("/")[1]: value
        for key, value in figures.items()
        if key.startswith(f"{panel}/") and key.endswith(f"/{x}")
    }
    mine = found.pop(label)
    return mine / max(found[other] for other in others or found)


def compared(figures: Mapping[str, float], panel: str, x: int) -> dict[str, float]:
    """Who wins at ``x``: ours by the best algorithm, and SlideSide by SlickDeque, which the papers compare."""
    return {
        f"{panel}_blocks_by_best": ratio(figures, panel, BLOCKS, x),
        f"{panel}_slideside_by_slickdeque": ratio(figures, panel, "SlideSide", x, ["SlickDeque"]),
    }
