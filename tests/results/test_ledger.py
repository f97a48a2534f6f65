"""Irregular levels: windows with bounds of their own, each known by its number within its key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from workbench.results import Level, QueryResults, ResultBatch, Schema, Status

S = 1_000_000
SCHEMA = Schema("q", (Level("session", 0, 0),), (("k", pa.string()),), (("n", pa.int64()), ("t", pa.string())))


def batch(*rows: tuple[str, int, int, int, int | None, Status, int]) -> ResultBatch:
    """Windows as (key, number, start in s, end in s, n, status, revision)."""
    keys, numbers, starts, ends, n, status, revisions = zip(*rows, strict=True)
    return ResultBatch.of(
        0,
        np.array(starts) * S,
        (pa.array(keys),),
        (pa.array(n, pa.int64()), pa.array([None if v is None else f"t{v}" for v in n], pa.string())),
        np.array(status, np.int8),
        np.array(revisions, np.int16),
        np.array(ends) * S,
        np.array(numbers, np.int64),
    )


def rows(results: QueryResults) -> list[tuple[object, ...]]:
    names = ("k", "window_start", "window_end", "n", "t", "status", "revision")
    found = [tuple(row[name] for name in names) for row in results.table().to_pylist()]
    return [(k, start.timestamp(), end.timestamp(), *rest) for k, start, end, *rest in found]


@pytest.mark.parametrize("read_between", [False, True])
def test_the_newest_word_on_a_window_stands_and_absent_withdraws_it(read_between: bool) -> None:
    results = QueryResults(SCHEMA)
    results.apply([batch(("a", 5, 5, 7, 1, Status.PROVISIONAL, 0), ("b", 5, 5, 9, 2, Status.FINAL, 0))])
    if read_between:
        results.table()
    results.apply([batch(("a", 5, 5, 7, None, Status.ABSENT, 0), ("a", 2, 2, 7, 4, Status.FINAL, 0))])
    results.apply([batch(("b", 5, 5, 11, None, Status.REVISED, 1))])
    assert rows(results) == [
        ("a", 2, 7, 4, "t4", "final", 0),
        ("b", 5, 11, None, None, "revised", 1),
    ]
    assert results.extent(0) == (2 * S, 11 * S)
    assert results.counts(0) == {Status.PROVISIONAL: 0, Status.FINAL: 1, Status.REVISED: 1}


def test_a_series_has_a_row_for_every_start_and_one_more_for_each_that_a_key_has_again() -> None:
    results = QueryResults(SCHEMA)
    results.apply(
        [
            batch(
                ("a", 0, 1, 3, 10, Status.FINAL, 0),
                ("a", 1, 1, 4, 11, Status.FINAL, 0),
                ("b", 7, 1, 2, 20, Status.FINAL, 0),
                ("b", 8, 6, 8, None, Status.FINAL, 0),
            )
        ]
    )
    series = results.series(0)
    assert series.starts.tolist() == [S, S, 6 * S]
    assert series.keys == (("a",), ("b",))
    np.testing.assert_array_equal(series.values["n"], [[10, 20], [11, np.nan], [np.nan, np.nan]])
    assert series.status.tolist() == [[2, 2], [2, 0], [0, 2]]
    assert (series.ends[0].tolist(), series.ends[1, 0], series.ends[2, 1]) == ([3 * S, 2 * S], 4 * S, 8 * S)
    only = results.series(0, start=2 * S, keys=[("b",)])
    assert only.starts.tolist() == [6 * S]
    assert results.series(0, end=S).starts.tolist() == []


def test_the_oldest_windows_leave_when_the_budget_is_used_up() -> None:
    results = QueryResults(SCHEMA, budget=1)
    for first in range(0, 12_000, 3_000):
        results.apply([batch(*(("a", k, k, k + 1, k, Status.FINAL, 0) for k in range(first, first + 3_000)))])
    kept = [r[3] for r in rows(results)]
    assert kept == list(range(11_000, 12_000))


def test_a_window_without_an_end_is_refused() -> None:
    results, complete = QueryResults(SCHEMA), batch(("a", 0, 1, 3, 10, Status.FINAL, 0))
    results.apply([replace(complete, columns=replace(complete.columns, ends=None))])
    with pytest.raises(TypeError, match="an end and a number"):
        results.counts(0)


def test_a_window_far_ahead_does_not_push_out_the_others() -> None:
    """Of a regular level with room for 1,000 windows: two that are 10,000 apart become columns, and all stay."""
    schema = Schema("q", (Level("1 second", S, S),), SCHEMA.keys, SCHEMA.values)
    results = QueryResults(schema, budget=1)
    near = [("a", k, k, k + 1, k, Status.FINAL, 0) for k in range(10)]
    for rows_ in (near, [("b", 10_000, 10_000, 10_001, 7, Status.FINAL, 0)], [("a", 3, 3, 4, 5, Status.REVISED, 1)]):
        own = batch(*rows_)
        results.apply([replace(own, columns=replace(own.columns, ends=None, numbers=None))])
    found = {(row[0], row[1]): row[3:4] + row[5:] for row in rows(results)}
    assert len(found) == 11
    assert found["b", 10_000] == (7, "final", 0)
    assert found["a", 3] == (5, "revised", 1)
    assert results.extent(0) == (0, 10_001 * S)
