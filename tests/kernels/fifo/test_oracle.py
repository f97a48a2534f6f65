"""Every algorithm with every monoid it admits, against recalculation from the raw values of each window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_algorithms import CASES, MATRIX, Case, differs

from workbench.kernels.fifo.catalogue import ALGORITHMS
from workbench.kernels.fifo.interface import Algorithm, copy, drive

EVICT, RESTORE = "evict", "restore"

#: 1, powers of two and their neighbours, larger than most streams; equal sizes may come up.
SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 90]), min_size=1, max_size=4).map(sorted)


def runs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Values as they come, ascending, descending, or the same again and again."""
    some = st.lists(values, min_size=1, max_size=9)
    return st.one_of(
        some,
        some.map(sorted),
        some.map(lambda found: sorted(found, reverse=True)),
        st.tuples(values, st.integers(1, 12)).map(lambda found: [found[0]] * found[1]),
    )


@st.composite
def operations(draw: st.DrawFn, case: Case) -> list[tuple[str, Any]]:
    """Runs of insertions, between them evictions and restarts from a snapshot."""
    found: list[tuple[str, Any]] = []
    for run in draw(st.lists(runs(case.values), min_size=1, max_size=5)):
        found += [("insert", value) for value in run]
        found += [(EVICT, None)] * draw(st.sampled_from([0, 0, 1, 2, 10]))
        found += [(RESTORE, None)] * draw(st.integers(0, 1))
    return found


def spoil(state: Any) -> None:
    """Write over a state that nobody should be looking at any more."""
    for part in state:
        part.fill(77) if isinstance(part, np.ndarray) else spoil(part)


def check(case: Case, algorithm: Algorithm, script: list[tuple[str, Any]]) -> None:
    """Follow the script; after every step compare every window."""
    state, present, capacity = algorithm.state, [], algorithm.sizes[-1]
    for step, (what, value) in enumerate(script):
        if what == RESTORE:
            kept = copy(state)
            spoil(state)
            state = kept
        elif what == EVICT and present:
            algorithm.evict(state)
            present = present[1:]
        elif what == EVICT:
            with pytest.raises(IndexError, match="empty window"):
                algorithm.evict(state)
        else:
            algorithm.insert(state, case.lift(value))
            present = [*present, value][-capacity:]
        for size in algorithm.sizes:
            expected = case.expected(present[-size:])
            found = algorithm.query(state, size)
            assert not differs(case, found, expected), (step, size, found, expected)


@pytest.mark.parametrize(("algorithm", "name"), MATRIX)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_any_sequence_of_operations(algorithm: str, name: str, data: st.DataObject) -> None:
    case = CASES[name]
    script = data.draw(operations(case))
    with np.errstate(all="ignore"):
        check(case, ALGORITHMS[algorithm].make(case.monoid, data.draw(SIZES)), script)


@pytest.mark.parametrize(("algorithm", "name"), MATRIX)
@settings(max_examples=3, deadline=None)
@given(data=st.data(), size=st.sampled_from([1, 2, 3, 8, 9]))
def test_one_window_of_fixed_size(algorithm: str, name: str, data: st.DataObject, size: int) -> None:
    """Long enough for the window to slide over its buffer several times."""
    case = CASES[name]
    script = [
        ("insert", value) for value in data.draw(st.lists(case.values, min_size=3 * size, max_size=3 * size + 4))
    ]
    with np.errstate(all="ignore"):
        check(case, ALGORITHMS[algorithm].make(case.monoid, (size,)), script)


#: Compiling a pair takes a second, so a few stand for all: each algorithm, each number of fields, both dtypes mixed.
COMPILED = [
    *(
        (algorithm, "min_int")
        for algorithm, (_, needs) in ALGORITHMS.items()
        if isinstance(CASES["min_int"].monoid, needs)
    ),
    *((algorithm, "sum_int") for algorithm in ("subtract_on_evict", "slick_deque_inv", "slide_side_inv")),
    ("daba_lite", "moments"),
    ("flat_fat", "matrices"),
    ("slide_side_non_inv", "maps"),
]
MANY = (3, 7, 7, 20, 64, 100, 257)


def random_values(name: str, rng: np.random.Generator, size: int) -> list[Any]:
    if name == "moments":
        values = rng.integers(-80, 80, size) / 8
        values[rng.integers(0, size, size // 500)] = np.nan
        return list(values.tolist())
    if name in ("matrices", "maps"):
        return [tuple(row) for row in rng.integers(1, 97, (size, 4 if name == "matrices" else 2)).tolist()]
    return (
        list(rng.integers(-(2**62), 2**62, size).tolist())
        if name == "sum_int"
        else list(rng.integers(0, 999, size).tolist())
    )


@pytest.mark.parametrize(("algorithm", "name"), COMPILED)
@pytest.mark.parametrize("sizes", [(64,), MANY], ids=["one", "many"])
def test_long_streams_compiled(algorithm: str, name: str, sizes: tuple[int, ...]) -> None:
    """Random values in random batches: where a scan that stops early without right answers with wrong minima."""
    case, rng = CASES[name], np.random.default_rng([len(algorithm), len(name), len(sizes)])
    values = random_values(name, rng, 3000 if name == "min_int" else 400)
    made = ALGORITHMS[algorithm].make(case.monoid, sizes)
    lifted = [case.lift(value) for value in values]
    at, results = 0, []
    while at < len(values):
        end = at + int(rng.integers(1, 400))
        results.append(drive(made, list(zip(*lifted[at:end], strict=True))))
        at = end
    found = [np.concatenate(columns, axis=1) for columns in zip(*results, strict=True)]
    for n in range(len(values)):
        for w, size in enumerate(sizes):
            expected = case.expected(values[max(0, n + 1 - size) : n + 1])
            assert not differs(case, tuple(field[w, n] for field in found), expected), (n, size)
