"""Nanoseconds from the arrival of one row until its window's result is there, row by row.

Measured inside compiled code with the processor's cycle counter. It does not wait for what is still in the pipeline,
and reading it takes time itself (``timer`` below), so small numbers are to be compared, not believed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from benchmarks.contestants import FUNCTIONS, Array
from benchmarks.row_streams import BLOCKS
from workbench.codegen.row_windows import RowWindows
from workbench.kernels.jit import assemble

PERCENTILES = {"min": 0, "p25": 25, "p50": 50, "p75": 75, "p99": 99, "max": 100}


@intrinsic  # type: ignore[untyped-decorator]
def _cycles(context: Any) -> Any:
    """The processor's cycle counter, as far as LLVM knows one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        read = builder.module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(ir.IntType(64), ()))
        return builder.call(read, ())

    return types.int64(), generate


def latencies(name: str, column: Array, size: int, passes: int) -> dict[str, dict[str, float]]:
    """Nanoseconds by name of the figure, for everyone and for reading the counter alone (``timer``).

    Each figure is the median of that figure over ``passes`` over ``column`` with the window full; of the maxima it is
    the least: what an algorithm does it does in every pass, what another program does only in some.
    """
    function = FUNCTIONS[name]
    loops: dict[str, tuple[Callable[..., Any], Any]] = {"timer": (_idle(), (np.zeros(1, np.int64),))}
    for label, make in function.algorithms.items():
        algorithm = make(function.monoid, [size])
        loops[label] = (_one_by_one(algorithm.insert, algorithm.answer), algorithm.state)
    loops[BLOCKS] = _blocks(RowWindows(function.aggregate.kind, [size]))
    scale = nanoseconds_per_cycle()
    spent, kept = np.zeros(len(column), np.int64), np.zeros(len(column), np.int64)
    found: dict[str, list[dict[str, float]]] = {label: [] for label in loops}
    for number in range(-1, passes):  # the first pass compiles and fills the windows
        for label, (loop, state) in loops.items():
            loop(state, column, spent, kept)
            if number >= 0:
                found[label].append(percentiles(spent * scale))
    return {
        label: {
            figure: (min if figure == "max" else statistics.median)([one[figure] for one in many])
            for figure in many[0]
        }
        for label, many in found.items()
    }


def percentiles(spent: Array) -> dict[str, float]:
    """The figures of *SlideSide* Fig. 3e and *LightSaber* Fig. 15c, and the 99th percentile."""
    found = {name: float(np.percentile(spent, at)) for name, at in PERCENTILES.items()}
    return {**found, "mean": float(spent.mean())}


def nanoseconds_per_cycle() -> float:
    """From the counter and a clock, over a tenth of a second."""
    cycles = numba.njit(lambda: _cycles())
    cycles()
    begin, clock = cycles(), time.perf_counter_ns()
    time.sleep(0.1)
    return float((time.perf_counter_ns() - clock) / (cycles() - begin))


def _idle() -> Callable[..., Any]:
    def loop(state: Any, column: Any, spent: Any, kept: Any) -> None:
        for n in range(len(column)):
            begin = _cycles()
            spent[n] = _cycles() - begin

    return assemble(loop)


def _one_by_one(insert: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    def loop(state: Any, column: Any, spent: Any, kept: Any) -> None:
        for n in range(len(column)):
            begin = _cycles()
            insert(state, (column[n],))
            kept[n] = answer(state, 0)[0]
            spent[n] = _cycles() - begin

    return assemble(loop)


def _blocks(windows: RowWindows) -> tuple[Callable[..., Any], Any]:
    """The block kernel with a batch of one row, called from compiled code as a host in C would."""
    (kernel,) = windows.kernels
    push = kernel.compiled
    rest = (*kernel.state, np.zeros((1, 1), np.int64))

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def loop(rest: Any, column: Any, spent: Any, kept: Any) -> None:
        for n in range(len(column)):
            begin = _cycles()
            push(column[n : n + 1], *rest)
            kept[n] = rest[-1][0, 0]
            spent[n] = _cycles() - begin

    return loop, rest
