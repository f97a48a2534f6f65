"""Merged runs are the run of both sets of rows: counting is the definition."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.algebra.runs import combine_numbers, fold, merge
from workbench.kernels.jit import jit
from workbench.kernels.later import Later
from workbench.kernels.runs import merge_sorted

VALUES = st.lists(st.sampled_from([-math.inf, -2.5, 0.0, -0.0, 1.0, 7.0, math.inf, math.nan]), max_size=12)
COMPILED = jit(merge_sorted)


def run_of(values: list[float]) -> Any:
    _, (cells,) = fold(np.zeros(len(values) + 1, np.int64), np.array([*values, 3.0]))
    return cells[0]


def counted(values: list[float]) -> list[tuple[str, int]]:
    """Values as text, NaN last and both zeros alike, with their counts."""
    counts = Counter(str(value + 0.0) for value in values)
    return sorted(counts.items(), key=lambda entry: (entry[0] == "nan", float(entry[0])))


def told(values: Any, counts: Any) -> list[tuple[str, int]]:
    return [(str(value), int(count)) for value, count in zip(values.tolist(), counts.tolist(), strict=True)]


@pytest.mark.parametrize("variant", [merge_sorted, COMPILED])
@settings(max_examples=60, deadline=None)
@given(left=VALUES, right=VALUES)
def test_merging_counts_both(variant: Any, left: list[float], right: list[float]) -> None:
    a, b = run_of(left), run_of(right)
    wanted = counted([*left, 3.0, *right, 3.0])
    assert told(*variant(a.values, a.counts, b.values, b.counts)) == wanted
    merged = merge(a, b)
    assert told(merged.values, merged.counts) == wanted


@pytest.mark.parametrize("kernels", ["generic", "compiled"])
def test_cells_are_merged_one_by_one(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_KERNELS", kernels)
    _, (cells,) = fold(np.array([0, 1, 1]), np.array([5, 5, 4]))
    (merged,) = combine_numbers(cells, cells[::-1])
    assert [told(run.values, run.counts) for run in merged] == [[("4", 1), ("5", 2)]] * 2


def test_later_answers_when_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later(merge_sorted, [])
    monkeypatch.setenv("WINQUERY_KERNELS", "generic")
    assert later.ready() is None
    monkeypatch.setenv("WINQUERY_KERNELS", "compiled")
    assert later.ready() is not None
