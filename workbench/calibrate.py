"""``python -m workbench calibrate``: measure the constants of the cost model on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from workbench.algebra import PARTIALS, PartialKind
from workbench.codegen.assembly import AssembleKernel, Scans
from workbench.codegen.row_windows import Doubling, Overlaid, RowKernel
from workbench.plan.cost import PIECE, Constants, keep
from workbench.plan.gag import Algorithm

_ROWS, _BATCH, _REPEATS = 1 << 17, 1 << 14, 9
_SHORT = 64
#: A tree: slices, keys, windows of so many slices that end at so many slices at a time.
_SLICES, _KEYS, _WINDOW, _NEW = 512, 1_000, 256, 64

Measured = tuple[str, float, float, float, float]


def measure() -> Iterator[Measured]:
    """Of every kind of partial that compiles, one by one: name, then in nanoseconds combine, scan and loop start, and
    what a combine costs in a tree by one elsewhere.

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
        scan, loop = max(long / 2 - combine, 0.0), max((short - long) * _SHORT / 2, 0.0)
        yield kind.name, combine, scan, loop, _in_tree(kind) / combine


def collect(measured: list[Measured]) -> Constants:
    """The constants from all measurements; what is not by kind is the median over the kinds."""
    return Constants(
        {name: combine for name, combine, *_ in measured},
        {name: scan for name, _, scan, *_ in measured},
        statistics.median(loop for *_, loop, _ in measured),
        "measured on this machine",
        statistics.median(apart for *_, apart in measured),
    )


def _in_tree(kind: PartialKind) -> float:
    """Median nanoseconds for a combine in a tree, as the cost model counts them: a node on every level above a slice
    that changes, and two on every level of a window.
    """
    kernel, leaves, scans = AssembleKernel(kind, Algorithm.FLAT_FAT), kind.blank((_SLICES, _KEYS)), Scans()
    last = np.arange(_SLICES - _NEW, _SLICES) + 1
    height = _WINDOW.bit_length() - 1
    renewed = sum(max(1, _NEW >> level) for level in range(1, _SLICES.bit_length()))
    combines = (renewed + _NEW * (2 * height + 1)) * _KEYS
    times = []
    for _ in range(_REPEATS + 1):  # the first one compiles
        scans.touch(last - 1)
        begin = time.perf_counter()
        kernel(last - _WINDOW, last, np.array([0, _NEW]), leaves, scans, keys=_KEYS, end=_SLICES, compiled=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:]) / combines * 1e9


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
    for each in measure():
        name, combine, scan, *_ = each
        print(f"{name:<14}{combine:>10.2f}{scan:>10.2f}")
        measured.append(each)
    constants = collect(measured)
    print(f"{'in a tree':<14}{constants.apart:>10.2f}   times as much for a combine")
    print(f"{'a chunk':<14}{constants.loop:>10.1f}   nanoseconds for its loops to start")
    if not keep(constants):
        print("there is no cache folder to keep them in: the built-in constants stay in use")
        return 1
    return 0
