"""Bytes that a micro-batch sends through the shuffle and writes as state, with 1, 10 and 100 times the rows a slice.

Counted where they are made, without Spark: the messages of two tasks to two buckets, and what the operators say is to
be written. They are a matter of slices and keys, so 100 times the rows must not make them larger.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from benchmarks import spark_lab
from benchmarks.spark_lab import SCHEMA
from benchmarks.workload import Bar, Figures, Workload
from workbench.plan import SharedPlan
from workbench.runtime import BucketOperator, Level1
from workbench.time import SECOND

KEYS, BATCHES, SECONDS, TASKS = 100, 12, 10, 2
LEVELS = ("10 seconds / 1 second", "1 minute / 1 second")


def measure(rows_per_slice_and_key: int) -> tuple[float, float]:
    """Bytes of shuffle and of state by micro-batch, once the longest window is full."""
    plan = spark_lab.plan(LEVELS)
    operators = [BucketOperator(plan) for _ in range(TASKS)]
    shuffle, state = [], []
    for batch in range(BATCHES):
        messages = [_level1(plan, batch, task, rows_per_slice_and_key) for task in range(TASKS)]
        shuffle.append(sum(len(payload) for task in messages for payload in task))
        written = 0
        for bucket, operator in enumerate(operators):
            operator.apply([task[bucket] for task in messages])
            changes = operator.changes()
            written += len(changes.meta) + sum(map(len, changes.put.values()))
        state.append(written)
    return float(np.mean(shuffle[BATCHES // 2 :])), float(np.mean(state[BATCHES // 2 :]))


def _level1(plan: SharedPlan, batch: int, task: int, repeats: int) -> list[bytes]:
    """A task's messages of its half of the rows: the same slices and keys whatever their number."""
    chance = np.random.default_rng(batch * TASKS + task)
    seconds, keys, _ = (part.ravel() for part in np.meshgrid(range(SECONDS), range(KEYS), range(repeats)))
    times = (batch * SECONDS + seconds) * SECOND + chance.integers(0, SECOND, len(seconds))
    columns = [
        pa.array(times).cast(SCHEMA.field("ts").type),
        pa.array(keys, pa.int32()),
        pa.array(chance.integers(0, 1_000, len(keys)).astype(np.float64)),
    ]
    level1 = Level1(plan, TASKS, int(time.time() * 1e6))
    level1.fold(pa.record_batch(columns, schema=SCHEMA))
    return level1.messages(finish=False)


def run(quick: bool) -> Figures:
    """By rows per slice and key: 1, 10 and 100."""
    one, ten, hundred = (measure(repeats) for repeats in (1, 10, 100))
    return {
        "shuffle_bytes": one[0],
        "state_bytes": one[1],
        "shuffle_10": ten[0] / one[0],
        "state_10": ten[1] / one[1],
        "shuffle_100": hundred[0] / one[0],
        "state_100": hundred[1] / one[1],
    }


WORKLOAD = Workload(
    name="spark-bytes",
    summary="bytes of shuffle and state a micro-batch with 1, 10 and 100 times the rows a slice",
    group="spark",
    run=run,
    repeats=1,
    bars=tuple(Bar(f"{what}_{times}", "<=", 1.05) for what in ("shuffle", "state") for times in (10, 100)),
)
