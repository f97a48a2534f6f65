"""Fragments of sessions: found by ranges of time they are what they are found row by row, whatever the order."""

from __future__ import annotations

import os
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime import fragmenting
from workbench.runtime.folding import Folder, cut_batch
from workbench.time import SECOND

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.int64())])
STREAM = Stream("s", SCHEMA, "ts", 0)
#: Half seconds, key, value.
EVENT = st.tuples(st.integers(-30, 60), st.sampled_from(["a", "b", None]), st.integers(-9, 9))
EVENTS = st.lists(EVENT, min_size=1, max_size=60)
#: On or beside a moment when rows begin to be late.
HORIZONS = st.builds(lambda half, more: half * SECOND // 2 + more, st.integers(-40, 80), st.sampled_from([0, 1]))


def folders(keyed: bool) -> tuple[Folder, object]:
    """A fold with two gaps, one of them Spark's, over slices of seven seconds."""
    by = "k, " if keyed else ""
    sql = f"""
    SELECT sum(x) AS t, max(x) AS m FROM s GROUP BY {by}session_window(ts, '3 seconds');
    SELECT sum(x) AS t FROM s GROUP BY {by}gap_window(ts, '5 seconds');
    SELECT sum(x) AS t FROM s GROUP BY {by}window(ts, '7 seconds')
    """
    plan = compile_workload(Workload(STREAM, parse_queries(sql, {"s": STREAM}, name="q")))
    assert len(plan.folds) == 1
    return Folder(plan.folds[0]), plan


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kernels", ["generic", "compiled"])
@given(EVENTS, HORIZONS)
def test_ranges_and_rows_give_the_same_fragments(
    keyed: bool, kernels: str, events: list[tuple[int, str | None, int]], horizon: int
) -> None:
    """Distances of exactly a gap occur, and rows on both sides of a horizon. None of the two is in one fragment."""
    folder, plan = folders(keyed)
    times, keys, values = zip(*events, strict=True)
    stamps = pa.array(np.array(times) * SECOND // 2).cast(SCHEMA.field("ts").type)
    batch = pa.record_batch([stamps, pa.array(keys, pa.string()), pa.array(values, pa.int64())], schema=SCHEMA)
    rows = folder.read(cut_batch(batch, plan))
    with (
        mock.patch.dict(os.environ, WINQUERY_KERNELS=kernels),
        mock.patch.object(fragmenting, "_ROWS", 0),
    ):
        by_ranges = fragmenting._by_ranges(folder, rows, horizon)
        by_rows = fragmenting._by_rows(folder, rows, horizon)
        one_by_one = fragmenting._by_rows(folder, rows, None)
    assert by_ranges is not None
    assert entries(by_ranges) == entries(by_rows)
    assert one_by_one.firsts.tolist() == (one_by_one.ends[1] - 5 * SECOND).tolist()
    for gap, reach in enumerate((3 * SECOND + 1, 5 * SECOND)):
        late = by_rows.firsts + reach <= horizon
        assert (late == (by_rows.ends[gap] <= horizon)).all()
        counts = [int(found.fields[0][found.firsts + reach <= horizon].sum()) for found in (by_rows, one_by_one)]
        assert counts == [sum(time * SECOND // 2 + reach <= horizon for time in times)] * 2


def entries(found: fragmenting.Fragments) -> list[tuple[int, ...]]:
    columns = [found.starts, found.codes, found.firsts, *found.ends, *found.fields]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_a_gap_that_is_short_against_the_distance_of_rows_takes_them_one_by_one() -> None:
    """Case: a row an hour and gaps of seconds: there would be more ranges than rows."""
    folder, plan = folders(keyed=False)
    stamps = pa.array(np.arange(10) * 3_600 * SECOND).cast(SCHEMA.field("ts").type)
    batch = pa.record_batch([stamps, pa.nulls(10, pa.string()), pa.array(range(10), pa.int64())], schema=SCHEMA)
    rows = folder.read(cut_batch(batch, plan))
    assert fragmenting._by_ranges(folder, rows, 0) is None
    found = fragmenting.fragments_of(folder, rows, 0)
    assert found.firsts.tolist() == (np.arange(10) * 3_600 * SECOND).tolist()
    assert [ends.tolist() for ends in found.ends] == [
        (found.firsts + reach).tolist() for reach in (3 * SECOND + 1, 5 * SECOND)
    ]
