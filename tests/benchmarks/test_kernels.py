"""What the kernel workloads check and hand to the kernels, on small columns."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.row_streams import AGGREGATES, FAST, Aggregate, Stream, check
from benchmarks.workloads import kernels_keys, kernels_multi
from benchmarks.workloads.kernels_growth import spread


def test_recalculation_takes_what_there_is() -> None:
    column = np.array([3, 1, 2, 5])
    ends = np.array([0, 2, 3])
    assert peers.recalculated("sum", column, 3, ends).tolist() == [3, 6, 8]
    assert peers.recalculated("min", column, 2, ends).tolist() == [3, 1, 2]


def test_the_sample_looks_at_both_ends_and_where_a_window_becomes_full() -> None:
    found = peers.sample(100, [7])
    assert {0, 5, 6, 7, 99} <= set(found.tolist())
    assert found.max() < 100
    assert set(peers.sample(3, [50]).tolist()) <= {0, 1, 2}


def test_a_wrong_answer_is_loud() -> None:
    peers.same("x", np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-12]))
    with pytest.raises(peers.Mismatch, match="x: 3 at sample 1, expected 2"):
        peers.same("x", np.array([1, 3]), np.array([1, 2]))


@pytest.mark.parametrize("aggregate", [*AGGREGATES, FAST], ids=lambda aggregate: aggregate.name)
def test_streams_give_every_window_in_any_batches(aggregate: Aggregate) -> None:
    column = aggregate.column(3000)
    for batch in (999, 4096):
        check(aggregate, column, [2000, 3, 1500], batch)


def test_a_stream_keeps_all_results_in_one_large_array() -> None:
    aggregate = AGGREGATES[0]
    column = aggregate.column(1000)
    stream = Stream(aggregate, column, [5, 700], 300)
    stream.large()
    kept = np.concatenate(stream._large, axis=1)
    assert (kept == stream.results()).all()


def test_a_window_sum_of_a_million_fits_into_32_bits() -> None:
    assert int(np.abs(AGGREGATES[0].column(10_000)).max()) * (1 << 20) < 2**31


def test_fewer_windows_are_a_part_of_more() -> None:
    assert kernels_multi.sizes(100)[:10] == kernels_multi.sizes(10)
    assert all(1 <= size <= kernels_multi.LARGEST for size in kernels_multi.sizes(100))
    assert min(kernels_multi.sizes(100, kernels_multi.LONG)) >= kernels_multi.LONG


def test_keys_are_checked_against_numpy() -> None:
    partials = kernels_keys.matrices(3)
    windows = kernels_keys.assemble_all(kernels_keys._kernels(), partials)
    kernels_keys.check(partials, windows)
    inputs, outputs = 119 * 3 * 4 * 8, 10 * 60 * 3 * 4 * 8
    assert kernels_keys.moved(partials, windows) == inputs + outputs
    windows[2][0][4 * 60 + 7, 1] -= 1
    with pytest.raises(peers.Mismatch, match="min_float, window of 8"):
        kernels_keys.check(partials, windows)


def test_spread() -> None:
    assert spread([2.0, 3.0, 2.5]) == 1.5


def test_peers_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "bottleneck", None)
    with pytest.raises(ImportError, match=r"bottleneck.*winquery\[bench\]"):
        peers.rolling("sum", np.zeros(3))
