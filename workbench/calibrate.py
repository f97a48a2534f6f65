"""``python -m workbench calibrate``: measure the constants of the cost model on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from workbench.algebra import PARTIALS, PartialKind
from workbench.codegen.row_windows import Doubling, Overlaid, RowKernel
from workbench.plan.cost import PIECE, Constants, keep

_ROWS, _BATCH, _REPEATS = 1 << 17, 1 << 14, 9
_SHORT = 64


def measure() -> Iterator[tuple[str, float, float, float]]:
    """Name, combine, scan and loop start in nanoseconds of every kind of partial that compiles, one by one.

    Three runs on arrays in cache are set against what :mod:`workbench.plan.cost` says they are made of: doubling for
    a window of 64 (a combine for each of 6 levels and one more), overlaid stacks with long chunks (two scans and two
    combines), and with chunks of 64 (the same and a loop's start every 32 rows).
    """
    for kind in (kind for kind in PARTIALS.values() if kind.compiled):
        dtypes = [field.dtype for field in kind.fields]
        levels = _SHORT.bit_length() - 1
        passes = levels * (1 + _SHORT / PIECE) + 1
        combine = _nanoseconds(kind, Doubling(kind, [_SHORT], dtypes)) / passes
        long = _nanoseconds(kind, Overlaid(kind, [4 * PIECE], dtypes, chunk=PIECE))
        short = _nanoseconds(kind, Overlaid(kind, [4 * PIECE], dtypes, chunk=_SHORT))
        yield kind.name, combine, max(long / 2 - combine, 0.0), max((short - long) * _SHORT / 2, 0.0)


def collect(measured: list[tuple[str, float, float, float]]) -> Constants:
    """The constants from all measurements; the start of a loop is the median over the kinds."""
    return Constants(
        {name: combine for name, combine, _, _ in measured},
        {name: scan for name, _, scan, _ in measured},
        statistics.median(loop for *_, loop in measured),
        "measured on this machine",
    )


def _nanoseconds(kind: PartialKind, kernel: RowKernel) -> float:
    """Median time for one row."""
    fields = tuple(np.ones(_BATCH, field.dtype) for field in kind.fields)
    out = tuple(np.empty((1, _BATCH), field.dtype) for field in kind.fields)
    kernel.push(fields, out)  # compiles
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        for _ in range(_ROWS // _BATCH):
            kernel.push(fields, out)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / _ROWS * 1e9


def run() -> int:
    """Measure, print and keep the constants; returns the exit status."""
    print(f"{'partial':<14}{'combine':>10}{'scan':>10}   nanoseconds for an element")
    measured = []
    for name, combine, scan, loop in measure():
        print(f"{name:<14}{combine:>10.2f}{scan:>10.2f}")
        measured.append((name, combine, scan, loop))
    constants = collect(measured)
    print(f"{'a chunk':<14}{constants.loop:>10.1f}   nanoseconds for its loops to start")
    if not keep(constants):
        print("there is no cache folder to keep them in: the built-in constants stay in use")
        return 1
    return 0
