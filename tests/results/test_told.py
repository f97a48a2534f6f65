"""Results are taken back only where they have been told, by sinks that are told of final ones or of all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from workbench.results import Level, Schema
from workbench.results.rows import columns_of
from workbench.results.told import Told
from workbench.time import SECOND

SCHEMA = Schema("q", (Level("10 seconds", 10 * SECOND, 10 * SECOND),), (("k", pa.float64()),), ())
NAN = float("nan")
FINAL, ALL = ("final", "revised"), ("provisional", "final", "revised")


def rows(*given: tuple[float | None, int, str]) -> pa.Table:
    """Rows of (key, start in seconds, status)."""
    kind = SCHEMA.levels[0].bound_type
    keys, starts, status = zip(*given, strict=True)
    bounds = [pa.array([(start + more) * SECOND for start in starts]).cast(kind) for more in (0, 10)]
    size = len(given)
    columns = [pa.array(["10 seconds"] * size), pa.array(keys, pa.float64()), *bounds]
    return pa.table([*columns, pa.array(status), pa.array([0] * size, pa.int16())], schema=columns_of(SCHEMA))


def told(found: pa.Table) -> list[tuple[int, str]]:
    return [(row["window_start"].second, row["status"]) for row in found.to_pylist()]


@pytest.mark.parametrize("key", [1.0, NAN, None])
def test_what_never_was_there_is_not_taken_back(key: float | None) -> None:
    memory = Told(SCHEMA, ALL, 0)
    assert told(memory.fitting(rows((key, 0, "absent"), (key, 10, "provisional")), 0)) == [(10, "provisional")]
    assert told(memory.fitting(rows((key, 0, "final"), (key, 10, "absent")), 1)) == [(0, "final"), (10, "absent")]
    assert told(memory.fitting(rows((key, 10, "absent"), (key, 20, "absent")), 2)) == []


def test_a_micro_batch_that_comes_again_is_told_again() -> None:
    memory = Told(SCHEMA, FINAL, 60 * SECOND)
    memory.fitting(rows((1.0, 0, "final")), 0)
    for _ in range(2):
        assert told(memory.fitting(rows((1.0, 0, "absent"), (1.0, 10, "final")), 1)) == [(0, "absent"), (10, "final")]
    assert told(memory.fitting(rows((1.0, 0, "absent"), (1.0, 10, "absent")), 2)) == [(10, "absent")]


def test_of_final_results_alone_provisional_ones_are_not_taken_back() -> None:
    """The session at 0 was final, a late row opened it again, and then HAVING turned it down."""
    memory = Told(SCHEMA, FINAL, 20 * SECOND)
    assert told(memory.fitting(rows((1.0, 0, "final"), (2.0, 0, "provisional")), 0)) == [(0, "final")]
    assert told(memory.fitting(rows((1.0, 0, "provisional"), (2.0, 0, "absent")), 1)) == []
    memory.fitting(rows((3.0, 40, "final")), 2)
    assert told(memory.fitting(rows((1.0, 0, "absent")), 3)) == [(0, "absent")]


def test_what_is_settled_is_forgotten() -> None:
    memory = Told(SCHEMA, FINAL, 20 * SECOND)
    for number in range(6):
        memory.fitting(rows((1.0, 10 * number, "final")), number)
    assert sorted(start for _, _, start in (name for name in memory._out)) == [
        row["window_start"] for row in rows((0, 30, ""), (0, 40, ""), (0, 50, "")).to_pylist()
    ]
