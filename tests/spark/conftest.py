"""Recordings for the tests of the adapters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SECOND


@pytest.fixture
def recording(tmp_path: Path) -> Callable[..., str]:
    """Writes ``rows`` events, one a second, keys a, b, c in turn, values 1, and gives the path."""

    def write(rows: int = 1_000, value: int = 1, name: str = "events.parquet") -> str:
        table = pa.table(
            {
                "ts": pa.array(np.arange(rows) * SECOND).cast(SCHEMA.field("ts").type),
                "key": pa.array(np.array(["a", "b", "c"], object)[np.arange(rows) % 3], pa.string()),
                "value": pa.array(np.full(rows, value), pa.int64()),
            }
        )
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, path)
        return str(path)

    return write
