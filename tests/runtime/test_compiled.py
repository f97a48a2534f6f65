"""The shared plan on compiled kernels against the oracle, by every algorithm that puts windows together.

Of the many kinds of partials only a few are compiled here; rows are folded by array code, which the kernels do not
depend on. ``tests/codegen`` has every kind.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from answers import check
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TYPES, streams, workloads

from workbench.codegen import assembly
from workbench.logical import Numerics, Workload
from workbench.plan import compile_workload
from workbench.plan.gag import Algorithm
from workbench.runtime.engine import Engine

NAMES = ("count(*)", "count", "avg", "min", "max", "sum", "try_sum", "bool_and", "var_pop")


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows over slices by compiled kernels, whatever the environment says."""
    monkeypatch.setattr(assembly, "choice", lambda compiled: "compiled")


@pytest.mark.parametrize("algorithm", [None, *assembly._SOURCES])
@settings(max_examples=40, deadline=None)
@given(workloads(names=NAMES), streams(), st.integers(1, 2))
def test_any_workload_equals_the_oracle(
    algorithm: Algorithm | None, workload: Workload, batches: list[pa.Table], buckets: int
) -> None:
    """Rows come in any order, so slices change behind the scans that are kept beside them."""
    engine = Engine(compile_workload(workload, algorithm=algorithm), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)


@settings(max_examples=60, deadline=None)
@given(workloads(names=NAMES, types=tuple(TYPES)), streams(), st.integers(1, 2))
def test_fast_numerics_equal_the_oracle_on_well_behaved_values(
    workload: Workload, batches: list[pa.Table], buckets: int
) -> None:
    """Up to 1e-9: multiples of 1/8 below 100, beside which NaN and infinities, that leave nothing behind."""
    workload = replace(workload, queries=tuple(replace(query, numerics=Numerics.FAST) for query in workload.queries))
    engine = Engine(compile_workload(workload, algorithm=Algorithm.SLIDE_SIDE_INV), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)
