"""Windows without rows: what stands in them was worked out by hand. Times are seconds.

::

    0    1    2    3    4    5    6          windows of a second
    a         .              .               rows of key a; of b there is one, at 2
    told      |    -    -    |    -          filled from the first window on
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from answers import answer_of, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SCHEMA, SECOND, fills, streams, workloads

from workbench.errors import QueryError
from workbench.language import parse_queries
from workbench.logical import AggregateCall, Call, Fill, Literal, Stream, Workload
from workbench.plan import compile_workload, explain
from workbench.runtime import BucketOperator
from workbench.runtime.engine import Engine
from workbench.runtime.reference import reference

FREE = ("sliding", "cumulating", "band", "calendar")
Row = tuple[float, str | None, float | None]
Told = tuple[str | None, float, int, float | None, str, int]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([{"ts": round(t * SECOND), "k": k, "x": x} for t, k, x in rows], SCHEMA)


def start(fill: str, *, having: str = "", lateness: float = 0, form: str = "window(ts, '1 second')") -> Engine:
    stream = Stream("s", SCHEMA, "ts", 0, round(lateness * SECOND))
    sql = f"SELECT k, count(*) AS n, sum(x) AS t FROM s WHERE x > 0 OR x IS NULL GROUP BY k, {form} {having} {fill}"
    return Engine(compile_workload(Workload(stream, parse_queries(sql, {"s": stream}, name="q"))))


def told(engine: Engine) -> list[Told]:
    rows = engine.results["q"].table().to_pylist()
    found = [(r["k"], r["window_start"].timestamp(), r["n"], r["t"], r["status"], r["revision"]) for r in rows]
    return sorted(found, key=lambda row: (str(row[0]), row[1]))


def finals(fill: str, *batches: list[Row], having: str = "") -> list[tuple[str | None, float, int, float | None]]:
    engine = start(fill, having=having)
    engine.run(list(map(table, batches)))
    assert {row[4] for row in told(engine)} == {"final"}
    return [row[:4] for row in told(engine)]


ROWS: list[Row] = [(1.5, "a", 4.0), (2.0, "b", None), (4.0, "a", 6.0), (5.9, "c", -1.0)]


@pytest.mark.parametrize(
    ("fill", "gap", "empty"), [("NULL", None, None), ("ZERO", 0.0, 0.0), ("PREVIOUS", 4.0, None)]
)
@pytest.mark.parametrize("batches", [[ROWS], [ROWS[:2], ROWS[2:]], [[row] for row in ROWS]])
def test_t7_a_key_is_filled_from_its_first_window_to_the_latest_event_time(
    fill: str, gap: float | None, empty: float | None, batches: list[list[Row]]
) -> None:
    """[kapacitor, influxdb] counts are 0, sums what was asked for. The last row is filtered away, yet time is 5.9.

    b's first window has a row and a sum of NULL: it is not filled, and `PREVIOUS` takes over its NULL.
    """
    last = 6.0 if fill == "PREVIOUS" else empty
    assert finals(f"FILL {fill}", *batches) == [
        ("a", 1.0, 1, 4.0),
        ("a", 2.0, 0, gap),
        ("a", 3.0, 0, gap),
        ("a", 4.0, 1, 6.0),
        ("a", 5.0, 0, last),
        ("b", 2.0, 1, None),
        *[("b", t, 0, empty) for t in (3.0, 4.0, 5.0)],
    ]


def test_t7_without_filling_they_are_not_there() -> None:
    assert finals("", ROWS) == [("a", 1.0, 1, 4.0), ("a", 4.0, 1, 6.0), ("b", 2.0, 1, None)]


def test_having_is_asked_over_no_rows_and_previous_looks_behind_it() -> None:
    having = "HAVING count(*) = 0"
    assert finals("FILL PREVIOUS", ROWS, having=having)[:3] == [
        ("a", 2.0, 0, 4.0),
        ("a", 3.0, 0, 4.0),
        ("a", 5.0, 0, 6.0),
    ]
    assert finals("FILL ZERO", ROWS, having="HAVING n > 0") == finals("", ROWS)


def test_a_late_row_replaces_what_was_filled_and_what_was_taken_from_it() -> None:
    """The row at 1.5 comes late: it begins the key earlier, and `PREVIOUS` of window 2 is its value from then on."""
    engine = start("FILL PREVIOUS", lateness=10)
    engine.step([table([(3.0, "a", 1.0)])])
    engine.step([table([(6.0, "a", 2.0)])])
    assert told(engine) == [
        ("a", 3.0, 1, 1.0, "final", 0),
        ("a", 4.0, 0, 1.0, "final", 0),
        ("a", 5.0, 0, 1.0, "final", 0),
        ("a", 6.0, 1, 2.0, "provisional", 0),
    ]
    engine.step([table([(1.5, "a", 9.0), (4.5, "a", 7.0)])])
    assert told(engine) == [
        ("a", 1.0, 1, 9.0, "revised", 1),
        ("a", 2.0, 0, 9.0, "revised", 1),
        ("a", 3.0, 1, 1.0, "final", 0),
        ("a", 4.0, 1, 7.0, "revised", 1),
        ("a", 5.0, 0, 7.0, "revised", 1),
        ("a", 6.0, 1, 2.0, "provisional", 0),
    ]


def test_in_a_silence_filling_goes_on_with_event_time_and_leaves_no_hole() -> None:
    """One row at 0.5, four seconds of silence, one at 7.5: the windows that ended in the silence had no result.

    The row of 4.2 falls into the window that is open then.
    """
    engine = start("FILL PREVIOUS")
    engine.step([table([(0.5, "a", 4.0)])])
    engine.step([], passed=4 * SECOND)
    assert [row[1:] for row in told(engine)] == [(0.0, 1, 4.0, "final", 0), *_empty(1, 2, 3)]
    engine.step([table([(4.2, "a", 1.0)])])
    assert [row[1:] for row in told(engine)[4:]] == [(4.0, 1, 1.0, "provisional", 0)]
    engine.step([table([(7.5, "a", 2.0)])])
    engine.step([], passed=round(1.6 * SECOND), finish=True)
    assert [row[:4] for row in told(engine)[4:]] == [
        ("a", 4.0, 1, 1.0),
        ("a", 5.0, 0, 1.0),
        ("a", 6.0, 0, 1.0),
        ("a", 7.0, 1, 2.0),
        ("a", 8.0, 0, 2.0),
        ("a", 9.0, 0, 2.0),
    ]


def _empty(*starts: float) -> list[tuple[float, int, float, str, int]]:
    return [(time, 0, 4.0, "final", 0) for time in starts]


def test_a_silence_that_would_take_too_many_results_is_an_error() -> None:
    engine = start("FILL NULL")
    with pytest.raises(QueryError, match=r"filling the windows of `q` would take 1,000,000,000 results at once"):
        engine.run([table([(0.0, "a", 1.0), (1e9, "a", 1.0)])])


def test_the_plan_says_so() -> None:
    assert "  fill    q: zero, from a key's first window to the latest event time" in explain(start("FILL ZERO").plan)


@settings(max_examples=100, deadline=None)
@given(workloads(types=FREE), streams(), st.data())
def test_filled_windows_equal_the_oracle_through_restarts(
    workload: Workload, batches: list[pa.Table], data: st.DataObject
) -> None:
    """With HAVING, which the other property tests leave out."""
    count = AggregateCall(pa.int64(), "count", ())
    havings = [None, *(Call(pa.bool_(), name, (count, Literal(pa.int32(), 1))) for name in ("less", "greater"))]
    workload = replace(
        workload,
        queries=tuple(
            replace(
                query,
                having=data.draw(st.sampled_from(havings)),
                fill=data.draw(fills(query.windows[0], query.values).filter(bool)),
            )
            for query in workload.queries
        ),
    )
    plan = compile_workload(workload)
    engine = Engine(plan, buckets=2)
    written: list[tuple[bytes | None, dict[int, bytes]]] = [(None, {}), (None, {})]
    for batch in [*batches, None]:
        engine.step([] if batch is None else [batch], finish=batch is None)
        for bucket, operator in enumerate(engine.operators):
            changes = operator.changes()
            kept = {key: value for key, value in written[bucket][1].items() if key not in changes.remove}
            written[bucket] = (changes.meta, kept | changes.put)
            if data.draw(st.booleans()):
                engine.operators[bucket] = BucketOperator(plan)
                engine.operators[bucket].load(changes.meta, list(written[bucket][1].values()))
    expected, late = reference(workload, batches)
    for query in workload.queries:
        assert_same(answer_of(engine.results[query.name]), expected[query.name])
    assert engine.late == late


def test_a_filled_query_goes_on_through_a_change_and_does_not_begin_with_one() -> None:
    """What `PREVIOUS` has in mind is carried over, and written and read back."""
    engine = start("FILL PREVIOUS")
    running = engine.plan.queries[0].query
    engine.step([table([(0.0, "a", 4.0), (3.0, "b", None)])])
    more = replace(running, name="r", fill=None, where=None)
    workload = Workload(running.stream, (running, more))
    engine.change(compile_workload(workload, running=engine.plan))
    engine.step([table([(5.0, "b", 2.0)])])
    assert [row[1:5] for row in told(engine) if row[0] == "a"] == [
        (0.0, 1, 4.0, "final"),
        *[(t, 0, 4.0, "final") for t in (1.0, 2.0, 3.0, 4.0)],
    ]
    filled = replace(more, fill=Fill.NULL)
    with pytest.raises(QueryError, match="the query `r` with FILL cannot begin while the stream runs"):
        engine.change(compile_workload(Workload(running.stream, (running, filled)), running=engine.plan))
