"""The result store: idempotent, bounded, thread-safe."""

from __future__ import annotations

import threading
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import QueryError
from workbench.results import Level, QueryResults, ResultBatch, Schema, Status, encode_keys

SCHEMA = Schema(
    "q",
    (Level("10 s", 10, 10), Level("30 s / 5 s", 30, 5, 2)),
    (("k", pa.string()),),
    (("v", pa.float64()), ("n", pa.int64())),
)


def batch(rows: list[tuple[int, Any, Any, Any]], level: int = 0, status: Status = Status.FINAL) -> ResultBatch:
    """Rows of (start, key, v, n)."""
    starts, keys, values, counts = zip(*rows, strict=True)
    return ResultBatch.of(
        level,
        np.array(starts, np.int64),
        (pa.array(keys, pa.string()),),
        (pa.array(values, pa.float64()), pa.array(counts, pa.int64())),
        np.full(len(rows), status, np.int8),
        np.zeros(len(rows), np.int16),
    )


def content(results: QueryResults, level: int = 0) -> dict[tuple[int, Any], tuple[Any, Any, str]]:
    """What the table says, by (start, key)."""
    table = results.table(level)
    starts = table.column("window_start").cast(pa.int64()).to_pylist()
    rows = table.select(["k", "v", "n", "status"]).to_pylist()
    return {(start, row["k"]): (row["v"], row["n"], row["status"]) for start, row in zip(starts, rows, strict=True)}


ROWS = st.lists(
    st.tuples(
        st.integers(-20, 60).map(lambda n: n * 10),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([None, 1.5, -2.0]),
        st.sampled_from([None, 2**62, -1]),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row[:2],
)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(ROWS, st.sampled_from([Status.PROVISIONAL, Status.FINAL, Status.ABSENT])), max_size=6))
def test_the_newest_result_stands(batches: list[tuple[list[Any], Status]]) -> None:
    results, expected = QueryResults(SCHEMA), {}
    for rows, status in batches:
        results.apply([batch(rows, status=status)])
        results.apply([batch(rows, status=status)])  # twice changes nothing
        for start, key, value, count in rows:
            expected[start, key] = (value, count, status.name.lower())
    assert content(results) == {place: row for place, row in expected.items() if row[2] != "absent"}


def test_the_oldest_windows_leave_first() -> None:
    results = QueryResults(SCHEMA, budget=0)  # at least 1,000 windows are kept
    for start in range(0, 50_000, 10):
        results.apply([batch([(start, "a", 1.0, start)])])
    found = content(results)
    assert 750 <= len(found) <= 1_000
    assert max(found) == (49_990, "a")
    assert min(found)[0] == 50_000 - 10 * len(found)
    results.apply([batch([(0, "a", 9.0, 9)])])
    assert (0, "a") not in content(results), "a window older than the ring is not kept"


def test_a_jump_in_time_does_not_fill_the_memory() -> None:
    results = QueryResults(SCHEMA, budget=0)
    results.apply([batch([(0, "a", 1.0, 1)])])
    results.apply([batch([(10**15, "a", 2.0, 2)])])
    assert content(results) == {(0, "a"): (1.0, 1, "final"), (10**15, "a"): (2.0, 2, "final")}


def test_series_is_a_matrix_of_a_range() -> None:
    results = QueryResults(SCHEMA)
    results.apply([batch([(2, "a", 1.0, 1), (12, "a", None, 3), (7, "b", 4.0, 4)], level=1)])
    series = results.series(1, 0, 13)
    assert series.starts.tolist() == [2, 7, 12]
    assert series.keys == (("a",), ("b",))
    np.testing.assert_array_equal(series.values["v"], [[1.0, np.nan], [np.nan, 4.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(series.status, [[2, 0], [0, 2], [2, 0]])
    assert results.series(1, 3, 12).starts.tolist() == [7]
    assert results.series(1, 100, 50).starts.tolist() == []
    assert results.extent(1) == (2, 42)
    assert results.extent(0) is None


def test_no_keys_is_one_key() -> None:
    schema = Schema("q", (Level("10 s", 10, 10),), (), (("v", pa.float64()),))
    results = QueryResults(schema)
    one = ResultBatch.of(0, np.array([10]), (), (pa.array([1.0]),), np.array([2], np.int8), np.zeros(1, np.int16))
    results.apply([one])
    assert results.keys(0) == [()]
    assert results.table().column("v").to_pylist() == [1.0]


def test_listeners_hear_of_changes_until_they_cancel() -> None:
    results, heard = QueryResults(SCHEMA), []
    cancel = results.subscribe(lambda: heard.append(results.version))
    results.apply([batch([(0, "a", 1.0, 1)])])
    cancel()
    cancel()
    results.apply([batch([(0, "a", 1.0, 1)])])
    assert heard == [1]
    assert results.version == 2


def test_an_unknown_level_is_refused_with_the_nearest() -> None:
    with pytest.raises(QueryError, match="did you mean `30 s / 5 s`"):
        QueryResults(SCHEMA).table("30 s / 6 s")


def test_a_level_may_be_named_in_other_units() -> None:
    assert QueryResults(SCHEMA).level_index("0.5 min / 5000ms") == 1


def test_readers_and_writer_do_not_disturb_each_other() -> None:
    results, stop, faults = QueryResults(SCHEMA), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            series = results.series(0)
            filled = series.status == Status.FINAL
            if not (series.values["v"][filled] == series.values["n"][filled]).all():
                faults.append(series)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for start in range(0, 3_000, 10):
        results.apply([batch([(start, key, float(start), start) for key in ("a", "b")])])
    stop.set()
    for reader in readers:
        reader.join()
    assert not faults


def test_null_nan_and_both_zeros_are_one_key_each() -> None:
    codes, distinct = encode_keys([pa.array([0.0, -0.0, float("nan"), None, float("nan"), None])])
    assert codes.tolist() == [0, 0, 1, 2, 1, 2]
    assert str(distinct) == "[(0.0,), (nan,), (None,)]"


def test_structs_lists_texts_and_dates_come_out_as_they_went_in() -> None:
    """They are kept as objects, the plots leave them out, and a budget counts with them."""
    columns = {
        "m": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int8())])),
        "l": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
        "s": pa.array(["x", None, ""]),
        "d": pa.array([None, date(1969, 12, 31), date(2024, 2, 29)]),
        "t": pa.array([0, None, 5], pa.timestamp("us", "UTC")),
    }
    kinds = tuple((name, column.type) for name, column in columns.items())
    schema = Schema("q", (Level("1 second", 1_000_000, 1_000_000),), (), kinds)
    results = QueryResults(schema)
    batch = ResultBatch.of(
        0,
        np.arange(3) * 1_000_000,
        (),
        tuple(columns.values()),
        np.full(3, Status.FINAL, np.int8),
        np.zeros(3, np.int16),
    )
    results.apply([batch])
    table = results.table()
    for name, column in columns.items():
        assert table.schema.field(name).type == column.type
        assert table.column(name).to_pylist() == column.to_pylist()
    assert schema.numeric == ("d", "t")
    assert list(results.series(0).values) == ["d", "t"]
