"""A result store filled by hand: three levels, any keys, any statuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bokeh.models import ColumnDataSource

from workbench.results import Level, QueryResults, ResultBatch, Schema
from workbench.time import DAY, HOUR, MINUTE, SECOND

BEGAN = 1_356_998_400 * SECOND  # 2013-01-01 00:00
LEVELS = (
    Level("15 minutes / 1 minute", 15 * MINUTE, MINUTE),
    Level("2 hours / 10 minutes", 2 * HOUR, 10 * MINUTE),
    Level("1 day / 1 hour", DAY, HOUR),
)


def make_schema(keyed: bool = True) -> Schema:
    """Columns ``mean`` and ``n``, by ``carrier`` or without a key."""
    keys = (("carrier", pa.string()),) if keyed else ()
    return Schema("delays", LEVELS, keys, (("mean", pa.float64()), ("n", pa.int64())))


def put(
    results: QueryResults,
    hours: tuple[float, float],
    carriers: Sequence[str | None] = ("AA", "B6"),
    open_from: float | None = None,
    levels: Sequence[int] = (0, 1, 2),
) -> None:
    """Windows that start in ``hours`` after BEGAN; ``mean`` is the start in hours plus 100 times the key's position.

    Those that end after ``open_from`` are provisional.
    """
    for level in levels:
        shape = LEVELS[level]
        start, end = (BEGAN + int(hour * HOUR) for hour in hours)
        starts = np.arange(start, end, shape.slide, dtype=np.int64)
        limit = np.inf if open_from is None else BEGAN + open_from * HOUR
        status = np.where(starts + shape.size > limit, 1, 2).astype(np.int8)
        for position, carrier in enumerate(carriers):
            keys = (pa.array([carrier] * len(starts), pa.string()),) if results.schema.keys else ()
            mean = (starts - BEGAN) / HOUR + 100 * position
            counts = np.full(len(starts), position + 1)
            values = (pa.array(mean), pa.array(counts))
            results.apply([ResultBatch.of(level, starts, keys, values, status, np.zeros(len(starts), np.int16))])


def columns(source: ColumnDataSource, keys: int) -> dict[str, Any]:
    """The flat columns of a panel's source key by key: ``x0`` and ``y0`` of the first key and so on."""
    found = {}
    for name, column in source.data.items():
        matrix = np.asarray(column).reshape(-1, keys)
        found |= {f"{name}{slot}": matrix[:, slot] for slot in range(keys)}
    return found


@pytest.fixture
def results() -> QueryResults:
    """Twelve hours of two carriers, the last half hour's windows open."""
    store = QueryResults(make_schema())
    put(store, (0, 12), open_from=12)
    return store


@pytest.fixture
def fill() -> Callable[..., None]:
    """The function ``put``."""
    return put


@pytest.fixture
def schema() -> Callable[..., Schema]:
    """The function ``make_schema``."""
    return make_schema
