"""A recording that breaks while it is read, at any moment: one clear error, and with it mended all results, once."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.faults import ROWS, Finals, assert_readable, counted, run
from workbench.runtime.wire import Report

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("seed", range(20 if "WINQUERY_NIGHTLY" in os.environ else 1)),
]

#: Micro-batches of the recording: ten, and the one that closes the last windows.
BATCHES = 10


def vanish(path: Path, moment: random.Random) -> None:
    path.unlink()


def truncate(path: Path, moment: random.Random) -> None:
    os.truncate(path, moment.randrange(path.stat().st_size))


def change_type(path: Path, moment: random.Random) -> None:
    table = pq.read_table(path)
    pq.write_table(table.set_column(2, "value", table["value"].cast(pa.string())), path)


def drop_column(path: Path, moment: random.Random) -> None:
    pq.write_table(pq.read_table(path).drop_columns([moment.choice(["ts", "key", "value"])]), path)


@pytest.mark.parametrize("harm", [vanish, truncate, change_type, drop_column])
def test_a_file_that_breaks(
    spark: Any,
    recording: Callable[..., str],
    tmp_path: Path,
    harm: Callable[[Path, random.Random], None],
    seed: int,
) -> None:
    got, moment, path = Finals(), random.Random(seed), Path(recording())
    whole, batch = path.read_bytes(), moment.randrange(1, BATCHES)

    def broken(reports: list[Report]) -> None:
        got(reports)
        if len(got.rows) == batch:
            harm(path, moment)

    progress = run(spark, str(path), tmp_path / "checkpoint", broken)
    assert_readable(progress)
    assert str(path) in str(progress.error)
    assert sum(got.rows) < ROWS
    path.write_bytes(whole)
    progress = run(spark, str(path), tmp_path / "checkpoint", got)
    assert (progress.state, progress.rows) == ("finished", ROWS), progress.details
    assert got.found == counted()
