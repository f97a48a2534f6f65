"""Ranges of keys that are assumed: every batch as without, whenever one gives an assumption up."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from answers import check
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine
from workbench.runtime.keyrange import KeyProfile
from workbench.runtime.level1 import key_buckets
from workbench.time import SECOND

BUCKETS = 5


def keys(*columns: list[int]) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(column, pa.int64()) for column in columns], names=[*map(str, range(len(columns)))]
    )


class Counted:
    """The generic way, with a count of the keys that went it."""

    def __init__(self) -> None:
        self.keys = 0

    def __call__(self, table: pa.RecordBatch) -> Any:
        self.keys += len(table)
        return key_buckets(table, BUCKETS)


def test_keys_in_the_range_of_the_batch_before_are_not_hashed_again() -> None:
    profile, hashed = KeyProfile(), Counted()
    for low in (0, 10, 20):
        table = keys([*range(low, 100)])
        assert (profile.buckets(table, BUCKETS, hashed) == key_buckets(table, BUCKETS)).all()
    assert hashed.keys == 100
    assert profile.assumed == [(0, 99)]
    assert (profile.generic, profile.held, profile.violations) == (1, 2, 0)


def test_keys_that_only_the_range_has_are_hashed_when_they_come() -> None:
    profile, hashed = KeyProfile(), Counted()
    for values in ([0, 9], [0, 5], [5, 9]):
        profile.buckets(keys(values), BUCKETS, hashed)
    assert hashed.keys == 3


def test_a_key_outside_gives_the_range_up_and_the_next_has_room_above() -> None:
    profile, hashed = KeyProfile(), Counted()
    batches = [[0, 99], [0, 100], [0, 50], [0, 50], [0, 120]]
    ranges = []
    for values in batches:
        table = keys(values)
        assert (profile.buckets(table, BUCKETS, hashed) == key_buckets(table, BUCKETS)).all()
        ranges.append(profile.assumed)
    # The first violation came soon, so two batches are looked at before the range is assumed again.
    assert ranges == [[(0, 99)], None, [(0, 150)], [(0, 150)], [(0, 150)]]
    assert (profile.generic, profile.held, profile.violations) == (3, 2, 1)


def test_keys_that_only_grow_soon_stay_generic() -> None:
    profile, hashed = KeyProfile(), Counted()
    for step in range(1_000):
        profile.buckets(keys([1000 * step, 1000 * step + 999]), BUCKETS, hashed)
    assert profile.violations <= 40, "each violation doubles the wait, up to 64 batches"


def test_a_lasting_range_is_renewed_at_once() -> None:
    profile, hashed = KeyProfile(), Counted()
    for _ in range(100):
        profile.buckets(keys([0, 9]), BUCKETS, hashed)
    for _ in range(100):
        profile.buckets(keys([0, 99]), BUCKETS, hashed)
    assert (profile.violations, profile.generic) == (1, 2)


def test_texts_and_missing_keys_are_left_to_the_hash() -> None:
    profile, hashed = KeyProfile(), Counted()
    for column in (pa.array(["a", "b"]), pa.array([1, None]), pa.array([2**64 - 1, 0], pa.uint64())):
        table = pa.record_batch([column], names=["0"])
        for _ in range(3):
            profile.buckets(table, BUCKETS, hashed)
    assert profile.assumed is None
    assert hashed.keys == 18


def test_another_number_of_buckets_is_another_assumption() -> None:
    profile, table = KeyProfile(), keys([*range(50)])
    for buckets in (2, 7, 2):
        found = profile.buckets(table, buckets, partial(key_buckets, buckets=buckets))
        assert (found == key_buckets(table, buckets)).all()


RANGES = st.sampled_from([(0, 5), (0, 40), (-(2**62), 2**62), (1000, 1010), (-(2**63), -(2**63) + 3), (0, 1 << 21)])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(RANGES, RANGES, st.integers(1, 4)), min_size=1, max_size=12), st.integers(0, 2**32))
def test_any_moment_of_giving_up_gives_the_buckets_of_the_hash(
    steps: list[tuple[tuple[int, int], tuple[int, int], int]], luck: int
) -> None:
    random, profile = np.random.default_rng(luck), KeyProfile()
    for first, second, again in steps:
        for _ in range(again):
            columns = [random.integers(low, high, 20, endpoint=True).tolist() for low, high in (first, second)]
            table = keys(*columns)
            found = profile.buckets(table, BUCKETS, lambda some: key_buckets(some, BUCKETS))
            assert (found == key_buckets(table, BUCKETS)).all()


SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("j", pa.int32()), ("v", pa.int64())])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(RANGES, st.integers(0, 40), st.booleans()), min_size=1, max_size=8), st.integers(0, 2**32))
@pytest.mark.parametrize("by", ["k", "k, j"])
def test_streams_whose_keys_move_equal_the_oracle(
    by: str, steps: list[tuple[tuple[int, int], int, bool]], luck: int
) -> None:
    """Ranges of keys grow, shrink and jump between micro-batches; some keys are missing."""
    random, stream = np.random.default_rng(luck), Stream("s", SCHEMA, "ts", SECOND)
    batches = []
    for number, ((low, high), rows, missing) in enumerate(steps):
        ids = random.integers(low, high, rows, endpoint=True)
        table = {
            "ts": pa.array(np.sort(random.integers(0, SECOND, rows)) + number * SECOND).cast(SCHEMA.field("ts").type),
            "k": pa.array(ids, mask=random.random(rows) < 0.2 if missing else None),
            "j": pa.array(random.integers(0, 3 + number, rows), pa.int32()),
            "v": pa.array(random.integers(-50, 50, rows)),
        }
        batches.append(pa.table(table, schema=SCHEMA))
    where = "v > -40 AND v <> 7"
    sql = f"SELECT {by}, count(*) AS n, sum(v) AS total FROM s WHERE {where} GROUP BY {by}, window(ts, '2 s')"
    workload = Workload(stream, parse_queries(sql, {"s": stream}, name="q"))
    engine = Engine(compile_workload(workload), buckets=3)
    engine.run(batches)
    check(workload, batches, engine)
