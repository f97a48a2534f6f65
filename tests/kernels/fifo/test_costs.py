"""What the algorithms promise to spend: combines (and inverts) counted, partials kept. See docs/algorithms.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_algorithms import CASES

from workbench.kernels.fifo.catalogue import ALGORITHMS
from workbench.kernels.fifo.interface import Algorithm, partials
from workbench.kernels.fifo.monoids import Group, Monoid, Partial
from workbench.kernels.fifo.slick_deque import entries, slick_deque_non_inv


class Meter:
    """Counts the calls of a monoid's functions."""

    def __init__(self, name: str) -> None:
        self.calls = 0
        monoid: Monoid = CASES[name].monoid
        changes: dict[str, Any] = {"combine": self.counted(monoid.combine)}
        if isinstance(monoid, Group):
            changes["invert"] = self.counted(monoid.invert)
        self.monoid = replace(monoid, **changes)

    def counted(self, function: Callable[[Partial, Partial], Partial]) -> Callable[[Partial, Partial], Partial]:
        def count_and_call(a: Partial, b: Partial) -> Partial:
            self.calls += 1
            return function(a, b)

        return count_and_call

    def of(self, function: Callable[..., Any], *arguments: Any) -> int:
        before = self.calls
        function(*arguments)
        return self.calls - before


def slide(meter: Meter, algorithm: Algorithm, values: list[int]) -> tuple[list[int], list[int]]:
    """Insert each value and ask every window; the costs of each insertion and of each round of questions."""
    state, inserts, queries = algorithm.state, [], []
    for value in values:
        inserts.append(meter.of(algorithm.insert, state, (np.int64(value),)))
        queries.append(sum(meter.of(algorithm.query, state, size) for size in algorithm.sizes))
    return inserts, queries


def random_values(count: int) -> list[int]:
    return list(np.random.default_rng(5).integers(0, 10**9, count).tolist())


@pytest.mark.parametrize("size", [1, 2, 3, 8, 31])
@settings(max_examples=15, deadline=None)
@given(evictions=st.lists(st.integers(0, 40), max_size=8))
def test_daba_lite_never_exceeds_its_constant(size: int, evictions: list[int]) -> None:
    meter = Meter("min_int")
    algorithm = ALGORITHMS["daba_lite"].make(meter.monoid, (size,))
    state, present = algorithm.state, 0
    for wanted in [*evictions, 0]:
        for value in range(2 * size + 1):
            assert meter.of(algorithm.insert, state, (value,)) <= (3 if present < size else 5)
            present = min(present + 1, size)
            assert meter.of(algorithm.query, state, size) <= 1
        for _ in range(min(wanted, present)):
            assert meter.of(algorithm.evict, state) <= 2
            present -= 1
            assert meter.of(algorithm.query, state, size) <= 1


@pytest.mark.parametrize("name", ["two_stacks", "two_stacks_lite", "slide_side_non_inv", "slide_side_inv"])
def test_two_stacks_and_its_kin_take_three_on_average(name: str) -> None:
    size = 50
    meter = Meter("count" if name == "slide_side_inv" else "min_int")
    inserts, queries = slide(meter, ALGORITHMS[name].make(meter.monoid, (size,)), random_values(20 * size))
    slid = [a + b for a, b in zip(inserts[size:], queries[size:], strict=True)]
    assert 2.5 < sum(slid) / len(slid) <= 3  # never so good that something must be missing
    assert size <= max(slid) <= size + 2
    assert max(queries) == 1


@pytest.mark.parametrize(
    ("name", "average", "worst"),
    [
        ("two_stacks", 3 * 3, 7 + 20 + 50 + 2 * 3),
        ("two_stacks_lite", 3 * 3, 7 + 20 + 50 + 2 * 3),
        ("daba_lite", 6 * 3, 6 * 3),
    ],
)
def test_copies_for_three_windows(name: str, average: int, worst: int) -> None:
    sizes = (7, 20, 50)
    meter = Meter("min_int")
    inserts, queries = slide(meter, ALGORITHMS[name].make(meter.monoid, sizes), random_values(1000))
    slid = [a + b for a, b in zip(inserts[50:], queries[50:], strict=True)]
    assert average / 2 < sum(slid) / len(slid) <= average
    assert max(slid) <= worst


def test_slide_side_for_groups() -> None:
    size = 50
    for sizes in ((size,), (1, 10, 11, 49, size)):
        meter, q = Meter("count"), len(sizes)
        inserts, queries = slide(
            meter, ALGORITHMS["slide_side_inv"].make(meter.monoid, sizes), random_values(20 * size)
        )
        assert sum(inserts) / len(inserts) == 2  # one for the prefix, a scan of n every n
        assert max(inserts) == size + 1
        assert max(queries) <= q


def test_slide_side_for_several_minima_stops_scanning_early() -> None:
    """A scan goes as far as the new minimum reaches: s (1 + ln(1 + n / s)) steps over values in random order."""
    sizes = (20, 100, 400, 1000)
    meter = Meter("min_int")
    algorithm = ALGORITHMS["slide_side_non_inv"].make(meter.monoid, sizes)
    inserts, queries = slide(meter, algorithm, random_values(5000))
    assert max(queries) <= len(sizes)
    settled = inserts[1000:]
    assert sum(settled) / len(settled) == pytest.approx(1 + 1 + math.log(1 + 1000 / 20), rel=0.1)
    descending = slide(meter, algorithm, list(range(0, -2000, -1)))[0][1000:]
    assert max(descending) == 1000
    assert sum(descending) / len(descending) >= 1000 / 20  # each new minimum changes every suffix


def test_slide_side_for_several_sums_pays_for_its_smallest_window() -> None:
    sizes = (20, 400)
    meter = Meter("count")
    inserts, queries = slide(meter, ALGORITHMS["slide_side_non_inv"].make(meter.monoid, sizes), [1] * 2000)
    settled = inserts[400:]
    assert sum(settled) / len(settled) == pytest.approx(1 + 400 / 20, rel=0.01)
    assert max(settled) == 400
    assert max(queries) <= len(sizes)


@pytest.mark.parametrize("name", ["subtract_on_evict", "slick_deque_inv"])
def test_totals_take_two_for_each_window(name: str) -> None:
    sizes = (1, 10, 30)
    meter = Meter("count")
    inserts, queries = slide(meter, ALGORITHMS[name].make(meter.monoid, sizes), [1] * 100)
    assert set(inserts[30:]) == {2 * len(sizes)}
    assert set(queries) == {0}


@pytest.mark.parametrize("values", [random_values(2000), list(range(2000)), list(range(2000, 0, -1)), [7] * 2000])
def test_slick_deque_takes_less_than_two_for_any_number_of_windows(values: list[int]) -> None:
    meter = Meter("min_int")
    inserts, queries = slide(meter, slick_deque_non_inv(meter.monoid, (10, 50, 300)), values)
    assert sum(inserts) / len(inserts) < 2
    assert set(queries) == {0}


def test_slick_deque_at_its_worst() -> None:
    """Ascending values are all kept for a minimum; one that is less than all drops them all."""
    meter = Meter("min_int")
    algorithm = slick_deque_non_inv(meter.monoid, (64,))
    slide(meter, algorithm, list(range(200)))
    assert entries(algorithm.state) == 64
    assert slide(meter, algorithm, [-1])[0] == [63]
    assert entries(algorithm.state) == 1


@pytest.mark.parametrize(("size", "height"), [(1, 0), (2, 1), (5, 3), (64, 6), (65, 7)])
def test_flat_fat_takes_the_height_of_its_tree(size: int, height: int) -> None:
    meter = Meter("min_int")
    inserts, queries = slide(meter, ALGORITHMS["flat_fat"].make(meter.monoid, (size,)), random_values(300))
    assert set(inserts) == {height}
    assert max(queries) <= 2 * height + 3


def test_recalculation_takes_every_element() -> None:
    meter = Meter("count")
    inserts, queries = slide(meter, ALGORITHMS["recalculate"].make(meter.monoid, (3, 8)), [1] * 30)
    assert set(inserts) == {0}
    assert set(queries[8:]) == {3 + 8}


KEPT = {
    "recalculate": 8,
    "subtract_on_evict": (3 + 1) + (8 + 1),
    "two_stacks": 2 * 3 + 2 * 8,
    "two_stacks_lite": (3 + 1) + (8 + 1),
    "daba_lite": (3 + 2) + (8 + 2) + 2,  # and a spare slot each
    "flat_fat": 2 * 8,
    "slick_deque_inv": 8 + 2,
    "slick_deque_non_inv": 8,
    "slide_side_inv": 3 * 8 + 2,
    "slide_side_non_inv": 2 * 8 + 1,
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_partials_kept_for_windows_of_3_and_8(algorithm: str) -> None:
    make, needs = ALGORITHMS[algorithm]
    name = next(name for name in ("min_int", "count") if isinstance(CASES[name].monoid, needs))
    assert partials(make(CASES[name].monoid, (3, 8)).state) == KEPT[algorithm]
