"""Results in the oracle's form, and when two answers are the same."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from strategies import SECOND

from workbench.logical import Workload
from workbench.results import QueryResults
from workbench.runtime.engine import Engine
from workbench.runtime.reference import Answer, reference


def answer_of(results: QueryResults) -> Answer:
    """What a store holds, in the oracle's form."""
    found: Answer = {}
    labels = [level.label for level in results.schema.levels]
    keys = [name for name, _ in results.schema.keys]
    values = [name for name, _ in results.schema.values]
    for row in results.table().to_pylist():
        assert row["status"] == "final"
        start = round(row["window_start"].timestamp() * SECOND)
        key = tuple(math.nan if row[name] != row[name] else row[name] for name in keys)
        place = (labels.index(row["level"]), key, start)
        found[place] = tuple(row[value] for value in values)
    return found


def same(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return bool(left == right)


def assert_same(found: Answer, expected: Answer) -> None:
    assert found.keys() == expected.keys()
    for place, values in expected.items():
        assert all(map(same, found[place], values)), f"{place}: {found[place]} instead of {values}"


def check(workload: Workload, batches: list[pa.Table], engine: Engine) -> None:
    expected, late = reference(workload, batches)
    for name, answer in expected.items():
        assert_same(answer_of(engine.results[name]), answer)
    assert engine.late == late
