"""Late rows and sessions: what is settled stays as it was told, and a row is late whatever comes along with it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from answers import check
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SCHEMA, SECOND

from workbench.errors import EngineError
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.results import Status
from workbench.runtime import BucketOperator, Level1, Report, decode_report
from workbench.runtime.engine import Engine

GAP, SPARK, OWN = (
    "gap_window(ts, '3 seconds')",
    "session_window(ts, '3 seconds')",
    "session_window(ts, CASE WHEN b THEN '20 seconds' ELSE '3 seconds' END)",
)
#: Half seconds, key, whether the gap is long.
ROWS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("ab"), st.booleans()), max_size=12)


def workload(*forms: str, delay: float = 0, lateness: float = 0) -> Workload:
    stream = Stream("s", SCHEMA, "ts", round(delay * SECOND), round(lateness * SECOND))
    text = ";".join(f"SELECT k, count(*) AS n FROM s GROUP BY k, {form}" for form in forms)
    return Workload(stream, parse_queries(text, {"s": stream}, name="q"))


def table(rows: list[tuple[int, str, bool]]) -> pa.Table:
    stamps = pa.array([half * SECOND // 2 for half, _, _ in rows], pa.int64()).cast(SCHEMA[0].type)
    keys, marks = pa.array([key for _, key, _ in rows], pa.string()), pa.array([b for *_, b in rows], pa.bool_())
    blank = [pa.nulls(len(rows), SCHEMA.types[place]) for place in (2, 3, 5)]
    return pa.table([stamps, keys, *blank[:2], marks, blank[2]], schema=SCHEMA)


def seconds(*times: float, long: bool = False) -> pa.Table:
    return table([(round(2 * time), "a", long) for time in times])


def told(engine: Engine, name: str = "q") -> list[tuple[float, float, int, str]]:
    found = engine.results[name].table().to_pylist()
    return [(r["window_start"].timestamp(), r["window_end"].timestamp(), r["n"], r["status"]) for r in found]


@pytest.mark.parametrize("tasks", [[seconds(0, 2, 4)], [seconds(4), seconds(2, 0)], [seconds(4, 0), seconds(2)]])
def test_late_rows_do_not_take_the_place_of_a_settled_session(tasks: list[pa.Table]) -> None:
    """Spark 4.3, streaming, says the same of these rows: 0 and 2 are dropped, 4 joins 6."""
    engine = Engine(compile_workload(workload(GAP)))
    engine.step([seconds(0, 2)])
    engine.step([seconds(6)])
    assert told(engine) == [(0, 5, 2, "final"), (6, 9, 1, "provisional")]
    engine.step(tasks)
    assert told(engine) == [(0, 5, 2, "final"), (4, 9, 2, "provisional")]
    assert engine.late == {"q": 2}


@pytest.mark.parametrize(("form", "late"), [(GAP, 1), (SPARK, 0)])
def test_a_row_is_in_time_for_as_long_as_a_session_of_its_own(form: str, late: int) -> None:
    """With the watermark at 6 s a half-open session [3, 6) is settled; one that a row at 6 still joins is not."""
    engine = Engine(compile_workload(workload(form)))
    engine.step([seconds(6)])
    engine.step([seconds(3)])
    assert engine.late == {"q": late}


def test_a_long_gap_of_its_own_does_not_let_a_row_begin_where_a_settled_session_does() -> None:
    """In Spark it does: two sessions begin at 0, told one after the other."""
    engine = Engine(compile_workload(workload(OWN)))
    engine.step([seconds(0, 2)])
    engine.step([seconds(6)])
    engine.step([seconds(0, long=True)])
    engine.step([seconds(6, long=True)])
    assert told(engine) == [(0, 5, 2, "final"), (6, 26, 2, "provisional")]
    assert engine.late == {"q": 1}


def test_a_late_row_within_the_allowed_lateness_unites_final_sessions() -> None:
    """Case S3: [0, 3) and [4, 7) are final, [10, 13) is open; then what united them all is settled in its turn."""
    engine = Engine(compile_workload(workload(GAP, lateness=8)))
    for rows in [0], [4], [10], [2]:
        engine.step([seconds(*rows)])
    assert told(engine) == [(0, 7, 3, "revised"), (10, 13, 1, "provisional")]
    engine.step([seconds(0.5, 6.5, 9)])
    assert told(engine) == [(0, 13, 7, "provisional")]
    engine.step([seconds(25)])
    assert told(engine) == [(0, 13, 7, "revised"), (25, 28, 1, "provisional")]
    engine.step([seconds(12, 14, 14.5)])  # all that ended by 17 is settled
    assert told(engine) == [(0, 13, 7, "revised"), (14.5, 17.5, 1, "revised"), (25, 28, 1, "provisional")]
    assert engine.late == {"q": 2}


def test_rows_that_were_cut_at_another_horizon_are_refused() -> None:
    plan = compile_workload(workload(GAP))
    level1 = Level1(plan, 1, horizon=5 * SECOND)
    (message,) = level1.messages()
    with pytest.raises(EngineError, match="late rows were cut off at 5000000, where the operator is at -"):
        BucketOperator(plan).apply([message])


class Watch:
    """Sees every result as it is told, and that none is told once its session is settled.

    ``joins`` is how much later than it ends a session is settled, by query.
    """

    def __init__(self, lateness: int, joins: dict[str, int]) -> None:
        self.lateness, self.joins = lateness, joins
        self.ends: dict[Any, int] = {}
        self.watermark: int | None = None

    def see(self, reports: list[Report]) -> None:
        """Results of one micro-batch, by whatever buckets."""
        for report in reports:
            for name, batch in report.results:
                own = batch.own()
                if name not in self.joins or own.ends is None:
                    continue
                entries = zip(
                    own.keys[0].to_pylist(), own.starts.tolist(), own.ends.tolist(), own.status, strict=True
                )
                for key, start, end, status in entries:
                    before = self.ends.get((name, key, start))
                    if before is not None and self.watermark is not None:
                        assert before + self.joins[name] + self.lateness > self.watermark
                    assert status != Status.ABSENT or before is not None
                    if status == Status.ABSENT:
                        del self.ends[name, key, start]
                    else:
                        self.ends[name, key, start] = end
        self.watermark = reports[0].watermark


@settings(max_examples=100, deadline=None)
@given(
    st.lists(ROWS, min_size=2, max_size=8),
    st.sampled_from([0, 1, 4]),
    st.sampled_from([0, 0, 3, 20]),
    st.data(),
)
def test_settled_sessions_stay_and_splits_and_restarts_change_nothing(
    batches: list[list[tuple[int, str, bool]]], delay: int, lateness: int, data: st.DataObject
) -> None:
    """Any order within a micro-batch, any tasks, each told of the horizon or not, and restarts between."""
    asked = workload(GAP, SPARK, OWN, "window(ts, '7 seconds')", delay=delay, lateness=lateness)
    plan = compile_workload(asked)
    engine = Engine(plan, buckets=2)
    watch = Watch(lateness * SECOND, {"q": 0, "q_2": 1, "q_3": 1})
    written: list[dict[int, bytes]] = [{}, {}]
    for rows in [*batches, None]:
        messages = []
        order = data.draw(st.permutations(rows or []))
        cut = data.draw(st.integers(0, len(order)))
        for part in (order[:cut], order[cut:]):
            horizon = data.draw(st.sampled_from([None, engine.operators[0].horizon]))
            level1 = Level1(plan, 2, horizon=horizon)
            for batch in table(part).to_batches():
                level1.fold(batch)
            messages.append(level1.messages(finish=rows is None))
        reports = [
            decode_report(operator.apply([message[bucket] for message in messages]))
            for bucket, operator in enumerate(engine.operators)
        ]
        engine._take(reports)
        watch.see(reports)
        if data.draw(st.booleans()):
            for bucket, operator in enumerate(engine.operators):
                changes = operator.changes()
                written[bucket] = {k: v for k, v in written[bucket].items() if k not in changes.remove} | changes.put
                engine.operators[bucket] = BucketOperator(plan)
                engine.operators[bucket].load(changes.meta, written[bucket].values())
    check(asked, [table(rows) for rows in batches], engine)
