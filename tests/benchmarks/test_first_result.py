"""What the processes of `kernels-first-result` make of their batches."""

from __future__ import annotations

import pytest

from benchmarks.workloads import kernels_first_result


def test_the_clock_stops_when_a_batch_has_been_answered_by_compiled_kernels() -> None:
    steps = [(False, 0.0, 0.25), (False, 0.25, 0.5), (True, 2.0, 3.5), (True, 3.5, 3.75)]
    assert kernels_first_result.summarise(steps) == {
        "answer_s": 0.25,
        "compiled_s": 3.5,
        "swap_s": 1.5,
        "step_s": 0.25,
    }


def test_a_lost_row_is_loud() -> None:
    rows = [{"level": "1 minute", "n": kernels_first_result.ROWS - 1}, {"level": "1 hour", "n": 7}]
    with pytest.raises(AssertionError, match="count 19999 rows, expected 20000"):
        kernels_first_result.check(rows)
