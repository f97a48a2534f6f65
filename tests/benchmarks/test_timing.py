"""Interleaving, with a clock that is told what to say."""

from __future__ import annotations

import gc

import pytest

from benchmarks.timing import batches, interleaved, rate, speedup


def test_cases_take_turns_and_neither_the_first_round_nor_a_first_call_counts() -> None:
    calls: list[str] = []
    now = 0.0

    def case(name: str, seconds: float) -> None:
        nonlocal now
        calls.append(name)
        first = len(calls) <= 4 or calls[-2:] != [name, name]
        now += 100.0 if first else seconds

    times = interleaved({"a": lambda: case("a", 1.0), "b": lambda: case("b", 3.0)}, 2, lambda: now)
    assert calls == ["a", "a", "b", "b"] * 3
    assert times == {"a": [1.0, 1.0], "b": [3.0, 3.0]}
    assert speedup(times, "a", "b") == 3.0
    assert rate(12.0, times["b"]) == 4.0


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    """A round in which everything took ten times as long changes nothing."""
    assert speedup({"a": [1.0, 10.0, 1.0], "b": [2.0, 20.0, 2.0]}, "a", "b") == 2.0


def test_the_garbage_collector_comes_back_after_a_failure() -> None:
    def fail() -> None:
        assert not gc.isenabled()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interleaved({"a": fail}, 1)
    assert gc.isenabled()


def test_batches_hold_every_row_once() -> None:
    assert batches(10, 4) == [slice(0, 4), slice(4, 8), slice(8, 10)]
    assert batches(3, 8) == [slice(0, 3)]
