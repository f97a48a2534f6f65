"""Bucket keys spread exactly, and by Spark's own hash."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.spark.buckets import bucket_keys, murmur3


@pytest.mark.parametrize("buckets", [1, 2, 3, 8, 200])
def test_every_shuffle_partition_gets_exactly_one_bucket(buckets: int) -> None:
    keys = bucket_keys(buckets)
    assert [murmur3(key) % buckets for key in keys] == list(range(buckets))
    assert len(set(keys)) == buckets


def test_known_hashes() -> None:
    # As printed by Spark: SELECT hash(0), hash(1), hash(-1)
    assert [murmur3(value) for value in (0, 1, -1)] == [933211791, -559580957, -1604776387]


@pytest.mark.spark
def test_the_hash_is_sparks(spark: Any) -> None:
    values = [0, 1, 2, -1, 42, 1_000_003, 2**31 - 1, -(2**31)]
    table = ", ".join(f"(CAST({value} AS INT))" for value in values)
    rows = spark.sql(f"SELECT hash(v) FROM VALUES {table} AS t(v)").collect()
    assert [row[0] for row in rows] == [murmur3(value) for value in values]
