"""Faults that users of comparable systems met with windows, time and order (groups T, O and S), and revised results.

Values were worked out by hand; the system where the fault was seen stands in brackets. Times are seconds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime import BucketOperator
from workbench.runtime.branches import revisions
from workbench.runtime.branches.revisions import Revisions
from workbench.runtime.engine import Engine

SECOND = 1_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64()), ("b", pa.bool_())])
Row = tuple[float, int]


def table(rows: list[Row]) -> pa.Table:
    """Rows of (time, v), all of key a; v = 0 is a mark."""
    times = pa.array([round(t * SECOND) for t, _ in rows], pa.int64()).cast(SCHEMA[0].type)
    return pa.table([times, ["a"] * len(rows), [v for _, v in rows], [v == 0 for _, v in rows]], schema=SCHEMA)


def start(form: str, *, delay: float = 0, lateness: float = 0) -> Engine:
    stream = Stream("s", SCHEMA, "ts", round(delay * SECOND), round(lateness * SECOND))
    sql = f"SELECT k, count(*) AS n, sum(v) AS t FROM s GROUP BY k, {form}"
    return Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))


def told(engine: Engine) -> list[tuple[float, float, int, int, str, int]]:
    """What the store holds: start, end, n, t, status, revision."""
    rows = engine.results["q"].table().to_pylist()
    return [
        (r["window_start"].timestamp(), r["window_end"].timestamp(), r["n"], r["t"], r["status"], r["revision"])
        for r in rows
    ]


def finals(form: str, *batches: list[Row], **options: float) -> list[tuple[float, float, int, int]]:
    """Start, end, n and t of all windows after the end of the stream."""
    engine = start(form, **options)
    engine.run([table(batch) for batch in batches])
    return [row[:4] for row in told(engine)]


@pytest.mark.parametrize("batches", [[[(1, 5), (3, 7)]], [[(1, 5)], [(3, 7)]], [[(3, 7), (1, 5)]]])
@pytest.mark.parametrize("delay", [0, 10])
def test_s1_a_row_at_the_end_of_a_session(batches: list[list[Row]], delay: float) -> None:
    """[hazelcast] half-open: two sessions, whatever the watermark did. Spark's form joins it, whatever it did.

    ::

        1   2   3   4   5
        x       x
        [-------)               gap_window
                [-------)
        [---------------)       session_window
    """
    assert finals("gap_window(ts, '2 seconds')", *batches, delay=delay) == [(1, 3, 1, 5), (3, 5, 1, 7)]
    assert finals("session_window(ts, '2 seconds')", *batches, delay=delay) == [(1, 5, 2, 12)]


def test_s2_the_order_of_rows_does_not_change_sessions() -> None:
    """[bytewax] equal and mixed times."""
    rows = [(0, 1), (0, 2), (5, 3), (1.5, 4), (5, 5), (3, 6)]
    expected = [(0, 5, 4, 13), (5, 7, 2, 8)]
    assert finals("gap_window(ts, '2 seconds')", rows) == expected
    assert finals("gap_window(ts, '2 seconds')", rows[::-1], delay=9) == expected
    assert finals("gap_window(ts, '2 seconds')", *[[row] for row in rows], delay=9) == expected


def test_s3_a_late_row_joins_two_sessions_and_both_results_are_withdrawn() -> None:
    """[beam] within the allowed lateness."""
    engine = start("gap_window(ts, '2 seconds')", lateness=60)
    engine.step([table([(0, 1), (3, 2), (20, 3)])])
    assert told(engine) == [(0, 2, 1, 1, "final", 0), (3, 5, 1, 2, "final", 0), (20, 22, 1, 3, "provisional", 0)]
    engine.step([table([(1.5, 4)])])
    assert told(engine) == [(0, 5, 3, 7, "revised", 1), (20, 22, 1, 3, "provisional", 0)]
    assert engine.late == {"q": 0}


def test_o6_late_rows_of_sessions_are_counted() -> None:
    """[Spark] per query, like all others."""
    engine = start("gap_window(ts, '2 seconds')")
    engine.step([table([(0, 1), (20, 3)])])
    engine.step([table([(1, 4), (18.5, 5)])])
    engine.step([], finish=True)
    assert engine.late == {"q": 1}, "the row at 18.5 belongs to the session that is open"
    assert told(engine) == [(0, 2, 1, 1, "final", 0), (18.5, 22, 2, 8, "final", 0)]


def test_a_late_row_revises_a_window_and_then_is_too_late() -> None:
    engine = start("window(ts, '10 seconds')", lateness=5)
    engine.step([table([(1, 1), (11, 2)])])
    assert told(engine) == [(0, 10, 1, 1, "final", 0), (10, 20, 1, 2, "provisional", 0)]
    engine.step([table([(2, 3)])])
    engine.step([table([(3, 4), (14, 5)])])
    assert told(engine) == [(0, 10, 3, 8, "revised", 2), (10, 20, 2, 7, "provisional", 0)]
    engine.step([table([(15, 6)])])
    engine.step([table([(4, 9)])])
    assert engine.late == {"q": 1}, "the watermark is 15: windows that ended by 10 are settled"
    assert told(engine)[0] == (0, 10, 3, 8, "revised", 2)


def test_a_late_row_shifts_the_rows_of_count_windows() -> None:
    """*General Stream Slicing* §5.2: it moves the last row of every slice behind it one slice further."""
    engine = start("count_window(2)", lateness=60)
    engine.step([table([(1, 1), (2, 2), (3, 4), (4, 8), (9, 16)])])
    assert [row[2:] for row in told(engine)] == [
        (2, 3, "final", 0), (2, 12, "final", 0), (1, 16, "provisional", 0),
    ]  # fmt: skip
    engine.step([table([(1.5, 32)])])
    engine.step([], finish=True)
    assert [row[2:] for row in told(engine)] == [
        (2, 33, "revised", 1), (2, 6, "revised", 1), (2, 24, "final", 0),
    ]  # fmt: skip


def test_a_late_mark_splits_a_window() -> None:
    """*General Stream Slicing* §5.2: split, which is why rows are kept."""
    engine = start("punctuation_window(b)", lateness=60)
    engine.step([table([(0, 0), (1, 1), (5, 2), (8, 0), (9, 4)])])
    assert told(engine)[0][:5] == (0, 8, 3, 3, "final")
    engine.step([table([(4, 0)])])
    # The second half has not been told before, but its end is behind the watermark: what comes late is a revision.
    assert told(engine)[:2] == [(0, 4, 2, 1, "revised", 1), (4, 8, 2, 2, "revised", 1)]


@pytest.mark.parametrize("value", ["12 / count(*)", "12 % count(v)"])
def test_a_withdrawn_window_needs_no_value(value: str) -> None:
    """The row at 3 begins the first window earlier, so the one from 5 on is gone: there was division by zero."""
    stream = Stream("s", SCHEMA, "ts", 100 * SECOND)
    sql = f"SELECT {value} AS n, histogram(v, 0, 10, 1) AS t FROM s GROUP BY punctuation_window(b)"
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    engine.run([table([(5, 1), (9, 0)]), table([(3, 1)])])
    assert [row[:4] for row in told(engine)] == [
        (3, 9, 6 if "/" in value else 0, [0, 2, 0]),
        (9, 9.000001, 12 if "/" in value else 0, [0, 1, 0]),
    ]


def test_rows_before_the_first_mark_are_a_window_too() -> None:
    rows = [(1, 5), (2, 6), (3, 0), (3, 7), (6, 0)]
    assert finals("punctuation_window(b)", rows) == [(1, 3, 2, 11), (3, 6, 2, 7), (6, 6.000001, 1, 0)]


def test_the_last_rows_at_every_edge_with_something_new() -> None:
    """last(3, '10 seconds'): nothing new came between 20 and 30, so there is no window at 30."""
    rows = [(1, 1), (2, 2), (3, 4), (4, 8), (15, 16), (31, 32)]
    assert finals("last(3, '10 seconds')", rows) == [(2, 10, 3, 14), (3, 20, 3, 28), (4, 40, 3, 56)]


@pytest.mark.parametrize(
    ("form", "rows", "silence", "window"),
    [
        ("last(2, '6 seconds')", [(1, 5)], (6, 19), (1, 6, 1, 5, "final", 0)),
        ("punctuation_window(b)", [(0, 5), (2, 0)], (2, 3), (0, 2, 1, 5, "final", 0)),
    ],
)
def test_what_time_alone_has_settled_stays_so_after_a_restart(
    form: str, rows: list[Row], silence: tuple[int, int], window: tuple[Any, ...]
) -> None:
    """In the first silence the row is settled, in the second its window, of which nothing was written.

    After a restart the window seemed to have lost its row, and its final result was withdrawn.
    """
    engine = start(form, lateness=3)
    engine.step([table(rows)])
    kept: dict[int, bytes] = {}
    for passed in silence:
        engine.step([], passed=passed * SECOND)
        changes = engine.operators[0].changes()
        kept |= changes.put
    engine.operators[0] = BucketOperator(engine.plan)
    engine.operators[0].load(changes.meta, kept.values())
    engine.step([table([(30, 9)])])
    assert told(engine)[0] == window


def test_a_count_window_that_never_fills_up_is_never_final() -> None:
    engine = start("count_window(3, 2)")
    engine.run([table([(1, 1), (2, 2), (3, 4), (4, 8)])])
    assert told(engine) == [(1, 3.000001, 3, 7, "final", 0), (3, 4.000001, 2, 12, "provisional", 0)]


def test_cumulating_windows_share_a_start() -> None:
    rows = [(0, 1), (3, 2), (7, 4), (11, 8)]
    assert finals("cumulate_window(ts, '10 seconds', '5 seconds')", rows) == [
        (0, 5, 2, 3), (0, 10, 3, 7), (10, 15, 1, 8), (10, 20, 1, 8),
    ]  # fmt: skip


def test_a_band_is_one_window_and_rows_outside_are_not_late() -> None:
    engine = start("band_window(ts, '1970-01-01 00:00:05', '1970-01-01 00:00:10')")
    engine.run([table([(4.999999, 1), (5, 2), (9.999999, 4), (10, 8)]), table([(20, 16)])])
    assert told(engine) == [(5, 10, 2, 6, "final", 0)]
    assert engine.late == {"q": 0}


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 10, 23), (11, 3, 25), (7, 4, 24)])
def test_t6_days_where_the_clock_changes(month: int, day: int, hours: int) -> None:
    """[polars] New York, 2024: no 02:00 on March 10, two 01:00 on November 3; no shift on the day after."""
    noon = datetime(2024, month, day, 16, tzinfo=UTC).timestamp()
    found = finals("calendar_window(ts, 'day', 'America/New_York')", [(noon, 1), (noon + 86_400, 2)])
    assert [(end - start) / 3_600 for start, end, *_ in found] == [hours, 24]
    assert found[0][1] == found[1][0]


def test_t5_weeks_of_windows_begin_on_thursdays_and_of_calendars_on_mondays() -> None:
    """[ksql] `window` is aligned to the epoch, a Thursday."""
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()  # a Wednesday

    def weekday(form: str) -> str:
        return f"{datetime.fromtimestamp(finals(form, [(moment, 1)])[0][0], UTC):%A}"

    assert weekday("window(ts, '7 days')") == "Thursday"
    assert weekday("window(ts, '7 days', '7 days', '4 days')") == "Monday"
    assert weekday("calendar_window(ts, 'week')") == "Monday"


def test_months_quarters_and_years() -> None:
    moment = datetime(2024, 2, 29, 12, tzinfo=UTC).timestamp()

    def bounds(unit: str) -> list[str]:
        start, end, *_ = finals(f"calendar_window(ts, '{unit}')", [(moment, 1)])[0]
        return [f"{datetime.fromtimestamp(side, UTC):%Y-%m-%d}" for side in (start, end)]

    assert bounds("month") == ["2024-02-01", "2024-03-01"]
    assert bounds("2 months") == ["2024-01-01", "2024-03-01"]
    assert bounds("quarter") == ["2024-01-01", "2024-04-01"]
    assert bounds("year") == ["2024-01-01", "2025-01-01"]


def test_o1_the_last_window_closes_with_the_stream() -> None:
    """[ksql, tremor, Quix] rows at 1 and 2, then silence: provisional until the end."""
    engine = start("window(ts, '10 seconds')")
    engine.step([table([(1, 1), (2, 2)])])
    engine.step([table([])])
    assert told(engine) == [(0, 10, 2, 3, "provisional", 0)]
    engine.step([], finish=True)
    assert told(engine) == [(0, 10, 2, 3, "final", 0)]


def test_o3_a_silent_task_does_not_block_the_others() -> None:
    """[arroyo, numaflow, risingwave] tasks without rows have no say in the watermark."""
    engine = start("window(ts, '10 seconds')")
    engine.step([table([(1, 1)]), table([])])
    engine.step([table([]), table([(12, 2)])])
    assert told(engine)[0] == (0, 10, 1, 1, "final", 0)


def test_o4_final_in_the_micro_batch_whose_watermark_passes_the_end() -> None:
    """[Spark] not one later."""
    engine = start("window(ts, '10 seconds')", delay=5)
    engine.step([table([(1, 1), (14.999999, 2)])])
    assert told(engine)[0][4] == "provisional"
    engine.step([table([(15, 4)])])
    assert told(engine)[0] == (0, 10, 1, 1, "final", 0)


def test_o7_two_sizes_in_one_stream_out_of_order() -> None:
    """[Spark] 1-minute and 5-minute windows: a row that is late for the one still counts in the other."""
    stream = Stream("s", SCHEMA, "ts", 0)
    sql = "SELECT count(*) AS n FROM s GROUP BY zoom(ts, '1 minute', '5 minutes')"
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    engine.run([table([(10, 1), (130, 1)]), table([(20, 1), (140, 1)])])
    found = {(r["level"], r["window_start"].timestamp()): r["n"] for r in engine.results["q"].table().to_pylist()}
    assert found == {("1 minute", 0): 1, ("1 minute", 120): 2, ("5 minutes", 0): 4}
    assert engine.late == {"q": 1}


def test_o10_a_slide_that_does_not_divide_the_size() -> None:
    """[arroyo] 10 minutes by 3: the row at 12:00 is in the windows that begin at 3, 6, 9 and 12 minutes."""
    found: list[Any] = finals("window(ts, '10 minutes', '3 minutes')", [(720, 1)])
    assert [row[0] for row in found] == [180, 360, 540, 720]


def test_a_clock_that_runs_ahead_does_not_close_everything() -> None:
    """A row from the year 2099 counts in its own window and moves nothing; rows of today are not late."""
    stream = Stream("s", SCHEMA, "ts", 0, future=60 * SECOND)
    sql = "SELECT count(*) AS n FROM s GROUP BY window(ts, '10 seconds')"
    engine = Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))
    far = datetime(2099, 1, 1, tzinfo=UTC).timestamp()
    (report,) = engine.step([table([(1, 1), (far, 1), (12, 1)])], now=15 * SECOND)
    assert (report.ahead, report.max_event) == (1, 12 * SECOND)
    engine.step([table([(13, 1)]), table([(far, 1)])], now=15 * SECOND)
    engine.step([], finish=True)
    rows = engine.results["q"].table().to_pylist()
    assert [(r["window_start"].timestamp(), r["n"], r["status"]) for r in rows] == [
        (0, 1, "final"), (10, 2, "final"), (far, 2, "final"),
    ]  # fmt: skip
    assert engine.late == {"q": 0}


def test_o1_time_goes_on_while_a_stream_is_idle() -> None:
    """[ksql, tremor, Quix] t = 1, 2, then silence: the window is provisional until 8 s have passed behind the 2.

    A row that comes after all, at 9, is late for it and counted; one at 11 begins the next window.
    """
    engine = start("window(ts, '10 seconds')")
    engine.step([], passed=100 * SECOND)  # before the first row there is no time to go on from
    engine.step([table([(1, 1), (2, 1)])])
    engine.step([], passed=round(7.9 * SECOND))
    assert told(engine) == [(0, 10, 2, 2, "provisional", 0)]
    engine.step([], passed=8 * SECOND)
    assert told(engine) == [(0, 10, 2, 2, "final", 0)]
    engine.step([table([(9, 5), (11, 3)])])
    assert engine.late == {"q": 1}
    assert told(engine) == [(0, 10, 2, 2, "final", 0), (10, 20, 1, 3, "provisional", 0)]


def test_the_number_of_a_revision_does_not_wrap() -> None:
    """A window of a day with a late row in each micro-batch of half a second is revised 172,800 times."""
    changed, numbers = np.array([[True, False]]), Revisions()
    for _ in range(40_000):
        found = numbers.next(0, np.array([10]), changed)
    assert found.tolist() == [[32_767, 0]]


@pytest.mark.parametrize("form", ["window(ts, '10 seconds')", "session_window(ts, '2 seconds')", "count_window(3)"])
def test_a_window_that_is_revised_again_and_again_stays_revised(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the last number there is, here 2; what it tells is still what there is now."""
    monkeypatch.setattr(revisions, "MOST", 2)
    engine = start(form, lateness=60)
    engine.step([table([(3, 1), (3.5, 1), (4, 1), (30, 0)])])
    assert told(engine)[0][2:] == (3, 3, "final", 0)
    for late in range(1, 5):
        engine.step([table([(3 - late / 4, 1 + late)])])
        assert told(engine)[0][4:] == ("revised", min(late, 2))
    whole = (3, 12) if form.startswith("count") else (7, 17)
    assert told(engine)[0][2:4] == whole


@pytest.mark.parametrize("days", [3_000_000, 10_000_000, 50_000_000])
def test_windows_of_many_thousand_years(days: int) -> None:
    """Blocks of state that are many windows long went beyond int64."""
    engine = start(f"window(ts, '{days} days')")
    found = engine.run([table([(5, 1), (7, 2)])])["q"].table()
    end = found["window_end"].cast(pa.int64())[0].as_py()
    assert (end, found["n"].to_pylist(), found["t"].to_pylist()) == (days * 86_400 * SECOND, [2], [3])
