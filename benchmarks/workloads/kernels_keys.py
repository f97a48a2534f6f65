"""Ten windows over slices of 1,000 keys, four partials each: bytes in and out, beside one addition of as many bytes.

A batch of 60 new slices brings 60 results of each of ten windows of 1 to 60 slices, sliding by one slice, for count,
sum, minimum and maximum of floats; ``[slice, key]`` matrices in (the 60 new slices and the 59 before them that the
longest window reaches back to), ``[window, key]`` matrices out.

- ``gb_s``: GB/s, each input byte counted once and each output byte once;
- ``add_gb_s``: GB/s of ``np.add(a, b, out=c)`` on three arrays of together as many bytes, and ``share`` of it (bar);
- ``results_m_s``: M window results (of one partial and key) a second.

The scans of the 59 old slices are there already, as they are in a running query, and results are written to memory
that was there before. Clock: processor time; medians of 15 interleaved rounds of 3 batches. One batch is compared
with NumPy first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import peers
from benchmarks.timing import interleaved, rate, speedup
from benchmarks.workload import Bar, Figures, Workload

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]
#: A kernel of each partial and the scans it keeps.
Kernels = list[tuple[Any, Any]]

KEYS, QUICK_KEYS, SLICES = 1000, 50, 60
SIZES = (1, 2, 3, 5, 8, 12, 20, 30, 45, 60)
KINDS = {"count": "sum", "sum_float": "sum", "min_float": "min", "max_float": "max"}
ROUNDS, QUICK_ROUNDS, TIMES = 15, 2, 3


def assemble_all(kernels: Kernels, partials: list[Fields], begin: int = 0) -> list[Fields]:
    """The last ``SLICES`` windows of every size, one size after the other: one call for each partial.

    The kernels' scans hold up to slice ``begin``, as they do when a batch brings the slices after it.
    """
    slices, keys = partials[0][0].shape
    last = np.tile(np.arange(slices - SLICES + 1, slices + 1), len(SIZES))
    first = last - np.repeat(SIZES, SLICES)
    bounds = np.arange(len(SIZES) + 1) * SLICES
    found = []
    for (kernel, scans), leaves in zip(kernels, partials, strict=True):
        scans.touch(np.arange(begin, slices))
        found.append(kernel(first, last, bounds, leaves, scans, keys=keys, end=slices, compiled=True))
    return found


def matrices(keys: int) -> list[Fields]:
    """Partials of all slices and keys, random; integers in floats, so that sums are exact in any order."""
    random = np.random.default_rng(17)
    shape = (SLICES + max(SIZES) - 1, keys)
    counts = random.integers(1, 100, shape)
    return [(counts,), *((random.integers(-1000, 1000, shape).astype(float),) for _ in range(3))]


def moved(partials: list[Fields], windows: list[Fields]) -> int:
    """Bytes of all inputs and all outputs."""
    return sum(field.nbytes for part in (partials, windows) for fields in part for field in fields)


def check(partials: list[Fields], windows: list[Fields]) -> None:
    """Every window of every size against NumPy on its slices."""
    slices = len(partials[0][0])
    for (kind, function), (found,), (rows,) in zip(KINDS.items(), windows, partials, strict=True):
        for size, part in zip(SIZES, np.split(found, len(SIZES)), strict=True):
            last = range(slices - SLICES + 1, slices + 1)
            expected = np.array([getattr(np, function)(rows[end - size : end], axis=0) for end in last])
            peers.same(f"{kind}, window of {size}", part.ravel(), expected.ravel())


def run(quick: bool) -> Figures:
    """Measure the kernels and the addition in turn."""
    partials = matrices(QUICK_KEYS if quick else KEYS)
    kernels, begin = _kernels(), max(SIZES) - 1
    total = moved(partials, assemble_all(kernels, partials))
    a, b, c = (np.ones(total // 24) for _ in range(3))

    def ours() -> None:
        for _ in range(TIMES):
            assemble_all(kernels, partials, begin)

    def add() -> None:
        for _ in range(TIMES):
            np.add(a, b, out=c)

    times = interleaved({"ours": ours, "add": add}, QUICK_ROUNDS if quick else ROUNDS)
    results = len(SIZES) * SLICES * len(KINDS) * partials[0][0].shape[1] * TIMES
    return {
        "gb_s": rate(total * TIMES, times["ours"]) / 1e9,
        "add_gb_s": rate(total * TIMES, times["add"]) / 1e9,
        "share": speedup(times, "ours", "add"),
        "results_m_s": rate(results, times["ours"]) / 1e6,
    }


def warm_up(quick: bool) -> None:
    """Compile the kernels and compare them with NumPy, with scans made anew and with scans kept."""
    partials, kernels = matrices(QUICK_KEYS), _kernels()
    check(partials, assemble_all(kernels, partials))
    check(partials, assemble_all(kernels, partials, max(SIZES) - 1))


def _kernels() -> Kernels:
    """A kernel for each partial, by the algorithm that the cost model chooses for these windows."""
    from workbench.algebra import PARTIALS
    from workbench.codegen import AssembleKernel, Scans
    from workbench.plan.cost import BUILT_IN, over_slices

    found = []
    for name in KINDS:
        best = over_slices(PARTIALS[name], SIZES, BUILT_IN)[0]
        found.append((AssembleKernel(name, best.algorithm, best.chunk), Scans()))
    return found


WORKLOAD = Workload(
    name="kernels-keys",
    summary="1,000 keys x 60 slices x 4 partials x 10 windows: bytes/s as a share of numpy add on as many bytes",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=(Bar("share", ">=", 0.4),),
    repeats=1,
)
