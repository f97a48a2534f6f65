"""What rows out of order make of slices and windows, counted: values found by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine
from workbench.time import HOUR, SECOND

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("mark", pa.bool_())])


def counts(window: str, *batches: list[tuple[float, str, bool]], delay: int = HOUR) -> list[tuple[int, int, int]]:
    """Merges, splits and recomputations of each micro-batch, whose rows are (seconds, key, mark)."""
    stream = Stream("s", SCHEMA, "ts", delay)
    queries = parse_queries(f"SELECT k, count(*) AS n FROM s GROUP BY k, {window}", {"s": stream}, name="q")
    engine = Engine(compile_workload(Workload(stream, queries)))
    found = []
    for batch in batches:
        times, keys, marks = zip(*batch, strict=True)
        ts = pa.array([round(time * SECOND) for time in times]).cast(SCHEMA.field("ts").type)
        table = pa.table({"ts": ts, "k": pa.array(keys), "mark": pa.array(marks)})
        (report,) = engine.step([table])
        found.append((report.merges, report.splits, report.recomputations))
    return found


def rows(*times: float, key: str = "a", marked: tuple[float, ...] = ()) -> list[tuple[float, str, bool]]:
    return [(time, key, time in marked) for time in times]


def test_a_row_between_two_sessions_merges_them() -> None:
    """::

    seconds   0         10        20
    before    [0-----10)     [15----25)     of `a`; `b` has one session
    then             [7----17)
    """
    before = rows(0, 15) + rows(0, key="b")
    assert counts("session_window(ts, '10 seconds')", before, rows(7), rows(8)) == [(0, 0, 0), (1, 0, 0), (0, 0, 0)]


def test_fragments_that_come_together_have_been_no_sessions() -> None:
    assert counts("session_window(ts, '10 seconds')", rows(0, 15, 7)) == [(0, 0, 0)]


def test_a_late_row_moves_the_edges_of_count_windows() -> None:
    """::

        before    10 20 30 | 40 50
        then    5 10 20 | 30 40 50      the edge has come to lie between 20 and 30; both windows are counted again

    The rows of another key do not move, and a row behind all others moves nothing.
    """
    before = rows(10, 20, 30, 40, 50) + rows(10, 20, 30, 40, key="b")
    assert counts("count_window(3)", before, rows(5), rows(60)) == [(0, 0, 0), (0, 1, 2), (0, 0, 0)]


def test_a_late_mark_splits_a_window() -> None:
    """::

    before    1* 2 3 4
    then      1* 2 | 2.5* 3 4       what was one window is two, and the first is told anew
    """
    before = rows(1, 2, 3, 4, marked=(1,))
    late = rows(2.5, marked=(2.5,))
    assert counts("punctuation_window(mark)", before, late) == [(0, 0, 0), (0, 1, 1)]


def test_a_late_row_without_a_mark_recomputes_its_window_only() -> None:
    before = rows(1, 2, 3, 4, marked=(1, 3))
    assert counts("punctuation_window(mark)", before, rows(1.5)) == [(0, 0, 0), (0, 0, 1)]


@pytest.mark.parametrize("window", ["count_window(2)", "punctuation_window(mark)", "last(2, '3 seconds')"])
def test_rows_in_order_split_and_recompute_nothing(window: str) -> None:
    batches = [rows(at, at + 1, at + 2, marked=(at + 1,)) for at in range(0, 30, 3)]
    assert counts(window, *batches, delay=0) == [(0, 0, 0)] * len(batches)


def test_a_late_row_moves_the_start_of_the_last_rows() -> None:
    """::

    before    1 2 3 4 |             the last two before 10: 3 and 4
    then      1 2 3 3.5 4 |         3.5 and 4, and the edge before them is where the new row is
    then      1 2 2.5 3 3.5 4 |     no other rows than before
    """
    assert counts("last(2, '10 seconds')", rows(1, 2, 3, 4), rows(3.5), rows(2.5)) == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 0),
    ]


def test_slices_of_context_free_windows_are_only_updated() -> None:
    assert counts("window(ts, '10 seconds')", rows(1, 12), rows(2)) == [(0, 0, 0), (0, 0, 0)]
