"""Results in the oracle's form, and when two answers are the same."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
from strategies import SECOND

from workbench.logical import CountWindow, Workload
from workbench.results import QueryResults, Unit
from workbench.runtime.engine import Engine
from workbench.runtime.reference import Answer, gone_back, reference


def answer_of(results: QueryResults, unfilled: bool = False, so_far: bool = False) -> Answer:
    """The final results that a store holds, in the oracle's form; ``so_far``: all results.

    Only a count window that never filled up may have stayed provisional (``unfilled``).
    """
    found: Answer = {}
    seen: Counter[Any] = Counter()
    labels = [level.label for level in results.schema.levels]
    keys = [name for name, _ in results.schema.keys]
    values = [name for name, _ in results.schema.values]
    for row in results.table().to_pylist():
        if unfilled and row["status"] == "provisional":
            continue
        assert so_far or row["status"] in ("final", "revised")
        unit = results.schema.levels[0].unit
        start, end = (units_of(row[side], unit) for side in ("window_start", "window_end"))
        key = tuple(math.nan if row[name] != row[name] else row[name] for name in keys)
        place = labels.index(row["level"]), key, start, end
        found[*place, seen[place]] = tuple(row[name] for name in values)
        seen[place] += 1
    return found


def units_of(bound: Any, unit: Unit | None) -> int:
    """A bound as the oracle has it: microseconds, or units of a measure."""
    return round(bound.timestamp() * SECOND) if unit is None else round(bound * 10**unit.digits)


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
    for query in workload.queries:
        unfilled = any(isinstance(window, CountWindow) for window in query.windows)
        assert_same(answer_of(engine.results[query.name], unfilled), expected[query.name])
    assert engine.late == late
    assert {name: count for name, (count, _) in engine.backward.items()} == gone_back(workload, batches)
