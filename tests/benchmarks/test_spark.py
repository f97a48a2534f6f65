"""Workloads on Spark that say something without a clock: bytes by rows, and a short soak."""

from __future__ import annotations

import pytest

from benchmarks.workloads import soak, spark_bytes
from benchmarks.workloads.soak import Sample


def test_bytes_do_not_grow_with_rows() -> None:
    """100 times the rows of each slice and key: the same shuffle and the same state, to 5%."""
    figures = spark_bytes.run(quick=True)
    assert figures["shuffle_bytes"] > 10_000
    assert figures["state_bytes"] > 10_000
    for what in ("shuffle", "state"):
        for times in (10, 100):
            assert 0.95 <= figures[f"{what}_{times}"] <= 1.05, figures


def test_growth_is_from_the_second_fifth_to_the_last() -> None:
    samples = [Sample(at, 100 + at, 50, 10, 20 + int(at > 80), 30) for at in range(100)]
    figures = soak._figures(samples)
    assert figures["driver_growth"] == pytest.approx(189.5 / 129.5 - 1)
    assert (figures["java_growth"], figures["threads_growth"], figures["files_growth"]) == (0, 1, 0)


@pytest.mark.slow
@pytest.mark.spark
def test_a_minute_of_soak() -> None:
    """A plan change every ten seconds: the results are right, and threads and open files do not grow."""
    figures = soak.soak_in_a_process(60, 10)
    assert figures["rows"] == 60 * soak.RATE
    assert figures["changes"] >= 4
    assert figures["threads_growth"] <= 4, figures
    assert figures["pools"] <= 200, figures
    assert figures["files_growth"] <= 8, figures
    for what in ("driver", "java", "workers"):
        assert figures[f"{what}_growth"] <= 0.25, figures
