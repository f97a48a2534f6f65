"""Ten windows over slices of 1,000 keys, four partials each: bytes in and out, beside one addition of as many bytes.

A batch of 60 new slices brings 60 results of each of ten windows of 1 to 60 slices, sliding by one slice, for count,
sum, minimum and maximum of floats; ``[slice, key]`` matrices in (the 60 new slices and the 59 before them that the
longest window reaches back to), ``[window, key]`` matrices out.

- ``gb_s``: GB/s, each input byte counted once and each output byte once;
- ``add_gb_s``: GB/s of ``np.add(a, b, out=c)`` on three arrays of together as many bytes, and ``share`` of it (bar);
- ``results_m_s``: M window results (of one partial and key) a second.

Clock: processor time; medians of 15 interleaved rounds of 3 batches. One batch is compared with NumPy first.
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

KEYS, QUICK_KEYS, SLICES = 1000, 50, 60
SIZES = (1, 2, 3, 5, 8, 12, 20, 30, 45, 60)
KINDS = {"count": "sum", "sum_float": "sum", "min_float": "min", "max_float": "max"}
ROUNDS, QUICK_ROUNDS, TIMES = 15, 2, 3


def assemble_all(kernel: Any, sizes: tuple[int, ...], partials: list[Fields]) -> list[list[Fields]]:
    """The last ``SLICES`` windows of each size: for each size the partials in the order of the kernel's kinds.

    The one place that knows how the kernel is called; today it is once per window.
    """
    slices = len(partials[0][0])
    last = np.arange(slices - SLICES + 1, slices + 1)
    return [kernel(last - size, last, partials, compiled=True) for size in sizes]


def matrices(keys: int) -> list[Fields]:
    """Partials of all slices and keys, random; integers in floats, so that sums are exact in any order."""
    random = np.random.default_rng(17)
    shape = (SLICES + max(SIZES) - 1, keys)
    counts = random.integers(1, 100, shape)
    return [(counts,), *((random.integers(-1000, 1000, shape).astype(float),) for _ in range(3))]


def moved(partials: list[Fields], windows: list[list[Fields]]) -> int:
    """Bytes of all inputs and all outputs."""
    parts = [partials, *windows]
    return sum(field.nbytes for part in parts for fields in part for field in fields)


def check(partials: list[Fields], windows: list[list[Fields]]) -> None:
    """Every window of every size against NumPy on its slices."""
    slices = len(partials[0][0])
    for size, found in zip(SIZES, windows, strict=True):
        for (kind, function), fields, rows in zip(KINDS.items(), found, partials, strict=True):
            last = range(slices - SLICES + 1, slices + 1)
            expected = np.array([getattr(np, function)(rows[0][end - size : end], axis=0) for end in last])
            peers.same(f"{kind}, window of {size}", fields[0].ravel(), expected.ravel())


def run(quick: bool) -> Figures:
    """Measure the kernel and the addition in turn."""
    kernel, partials = _kernel(), matrices(QUICK_KEYS if quick else KEYS)
    total = moved(partials, assemble_all(kernel, SIZES, partials))
    a, b, c = (np.ones(total // 24) for _ in range(3))

    def ours() -> None:
        for _ in range(TIMES):
            assemble_all(kernel, SIZES, partials)

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
    """Compile the kernel and compare it with NumPy."""
    partials = matrices(QUICK_KEYS)
    check(partials, assemble_all(_kernel(), SIZES, partials))


def _kernel() -> Any:
    from workbench.codegen import AssembleKernel

    return AssembleKernel(list(KINDS))


WORKLOAD = Workload(
    name="kernels-keys",
    summary="1,000 keys x 60 slices x 4 partials x 10 windows: bytes/s as a share of numpy add on as many bytes",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=(Bar("share", ">=", 0.4),),
    repeats=1,
)
