"""Compiled and plain Python are the same functions: same results, same state, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from window_algorithms import CASES

from workbench.kernels.fifo.catalogue import ALGORITHMS
from workbench.kernels.fifo.interface import drive


def arrays(state: Any) -> list[Any]:
    return [state] if isinstance(state, np.ndarray) else [array for part in state for array in arrays(part)]


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [
        ("two_stacks_lite", "sum_float"),
        ("daba_lite", "moments"),
        ("slide_side_non_inv", "min_int"),
        ("slick_deque_non_inv", "min_int"),
        ("slide_side_inv", "sum_int"),
    ],
)
def test_compiled_equals_python(algorithm: str, name: str) -> None:
    case, sizes = CASES[name], (3, 4, 16, 33)
    rng = np.random.default_rng(11)
    values = rng.integers(-(2**40), 2**40, 300) if CASES[name].monoid.dtypes[-1] == "int64" else rng.normal(size=300)
    lifted = [case.lift(value) for value in values.tolist()]
    make = ALGORITHMS[algorithm].make
    slow, fast = make(case.monoid, sizes), make(case.monoid, sizes)
    found = drive(fast, list(zip(*lifted, strict=True)))
    with np.errstate(all="ignore"):
        for n, partial in enumerate(lifted):
            slow.insert(slow.state, partial)
            for w in range(len(sizes)):
                expected = slow.answer(slow.state, w)
                assert [field[w, n].tobytes() for field in found] == [np.asarray(x).tobytes() for x in expected], n
    for llvm in fast.functions.loop.inspect_llvm().values():
        assert "NRT_incref" not in llvm  # counting references to arrays would make it many times slower
    for one, other in zip(arrays(slow.state), arrays(fast.state), strict=True):
        assert one.tobytes() == other.tobytes()
