"""Window types of a user's against the built-in ones and the oracle, in any order, split and after any restart."""

from __future__ import annotations

import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import user_windows
from answers import answer_of, assert_same, check
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SCHEMA, SECOND, streams
from user_streams import rows, workload

import workbench
from workbench.errors import QueryError
from workbench.language import parse_queries, query, sql_of
from workbench.language.builder import count
from workbench.logical import Stream, Workload
from workbench.plan import SharedPlan, compile_workload, explain
from workbench.runtime import BucketOperator
from workbench.runtime.engine import Engine
from workbench.runtime.reference import reference

#: A built-in form and the same of a user's.
PAIRS = [
    ("window(ts, '5 seconds')", "u_tumbling(INTERVAL '5' SECOND)"),
    ("window(ts, '7 seconds', '3 seconds', '1 second')", "u_tumbling(7000000, 3000000, 1000000)"),
    ("gap_window(ts, '2 seconds')", "u_visits(INTERVAL '2 seconds')"),
    ("punctuation_window(b)", "u_marks(b)"),
    ("punctuation_window(x > 25)", "u_marks(x > 25.0)"),
    ("last(3, '4 seconds')", "u_last(3, INTERVAL '4' SECOND)"),
]


pytestmark = pytest.mark.usefixtures("own_window_types")


def alone(batches: list[pa.Table]) -> list[pa.Table]:
    """The rows with times of their own, a microsecond or more apart."""
    total = 0
    found = []
    for batch in batches:
        shifts = pa.array(range(total, total + len(batch)), pa.duration("us"))
        found.append(batch.set_column(0, SCHEMA[0], pc.add(batch.column("ts"), shifts)))
        total += len(batch)
    return found


def restarted(plan: SharedPlan, batches: list[pa.Table], when: list[bool], buckets: int) -> Engine:
    """An engine that has run all batches, its operators made anew from what was written where ``when`` says so."""
    engine = Engine(plan, buckets=buckets)
    written: list[tuple[bytes | None, dict[int, bytes]]] = [(None, {})] * buckets
    for batch, again in zip([*batches, None], when, strict=True):
        engine.step([] if batch is None else [batch], finish=batch is None)
        for bucket, operator in enumerate(engine.operators):
            changes = operator.changes()
            kept = {key: value for key, value in written[bucket][1].items() if key not in changes.remove}
            written[bucket] = (changes.meta, kept | changes.put)
            if again:
                engine.operators[bucket] = BucketOperator(plan)
                engine.operators[bucket].load(changes.meta, written[bucket][1].values())
    return engine


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(PAIRS), min_size=1, max_size=3, unique=True),
    streams(),
    st.integers(0, 12),
    st.sampled_from([0, 0, 5, 20]),
    st.booleans(),
    st.data(),
)
def test_equal_to_the_built_in_ones_and_the_oracle(
    pairs: list[tuple[str, str]],
    batches: list[pa.Table],
    delay: int,
    lateness: int,
    keyed: bool,
    data: st.DataObject,
) -> None:
    batches = alone(batches)
    asked = workload([form for pair in pairs for form in pair], delay, lateness, keyed)
    when = data.draw(st.lists(st.booleans(), min_size=len(batches) + 1, max_size=len(batches) + 1))
    engine = restarted(compile_workload(asked), batches, when, data.draw(st.integers(1, 2)))
    expected, late = reference(asked, batches)
    names = [each.name for each in asked.queries]
    for (builtin, own), pair in zip(zip(names[::2], names[1::2], strict=True), pairs, strict=True):
        assert_same(answer_of(engine.results[own]), expected[own])
        found = answer_of(engine.results[own])
        if pair[0].startswith("gap_window"):
            # A late row of a session that is open is in time; here rows behind the watermark are late altogether.
            if late[own] == late[builtin]:
                assert_same(found, expected[builtin])
        else:
            assert_same(found, expected[builtin])
    assert engine.late == late


@pytest.mark.parametrize(
    "form", ["u_moved(x, 1.5)", "u_moved(x, 30.0)", "u_visits(1500000)", "u_pauses(1500000)", "u_before(b, 3)"]
)
@settings(max_examples=120, deadline=None)
@given(streams(), st.sampled_from([0, 0, 1, 12]), st.sampled_from([0, 0, 5]), st.booleans(), st.data())
def test_windows_that_are_not_built_in_equal_the_oracle(
    form: str, batches: list[pa.Table], delay: int, lateness: int, keyed: bool, data: st.DataObject
) -> None:
    """Some end where a row says so, at the watermark or behind it."""
    asked = workload([form], delay, lateness, keyed)
    when = data.draw(st.lists(st.booleans(), min_size=len(batches) + 1, max_size=len(batches) + 1))
    check(asked, batches, restarted(compile_workload(asked), batches, when, buckets=2))


def told(engine: Engine) -> list[tuple[float, float, int, str, int]]:
    found = engine.results["q"].table().to_pylist()
    return [
        (r["window_start"].timestamp(), r["window_end"].timestamp(), r["n"], r["status"], r["revision"])
        for r in found
    ]


def test_windows_by_distance_by_hand() -> None:
    """::

    time   1    2    3    5    8
    x     10   14   15   16   21     step 5: 15 and 21 begin windows
          [---------)[---------)
    """
    engine = Engine(compile_workload(workload(["u_moved(x, 5.0)"], delay=2)))
    engine.step([rows((1, 10.0), (3, 15.0), (2, 14.0))])
    engine.step([rows((8, 21.0), (5, 16.0))])
    assert told(engine) == [(1, 3, 2, "final", 0), (3, 8, 2, "provisional", 0), (8, 8.000001, 1, "provisional", 0)]
    engine.step([], finish=True)
    assert [row[3] for row in told(engine)] == ["final"] * 3


def test_a_late_row_moves_edges_and_results_are_revised() -> None:
    engine = Engine(compile_workload(workload(["u_moved(x, 5.0)"], lateness=60)))
    engine.step([rows((1, 10.0), (4, 12.0), (6, 16.0), (9, 30.0))])
    assert told(engine)[:2] == [(1, 6, 2, "final", 0), (6, 9, 1, "final", 0)]
    engine.step([rows((3, 15.0))])
    assert told(engine)[:2] == [(1, 3, 1, "revised", 1), (3, 9, 3, "revised", 1)]


def marked(*given: tuple[float, bool]) -> pa.Table:
    """Rows of (time in seconds, b), key a."""
    table = rows(*((time, 1.0) for time, _ in given))
    place = SCHEMA.get_field_index("b")
    return table.set_column(place, SCHEMA[place], pa.array([mark for _, mark in given]))


@pytest.mark.parametrize("form", ["u_marks(b)", "punctuation_window(b)"])
def test_a_row_at_the_watermark_may_end_a_window_there(form: str) -> None:
    """The mark is in time, as the watermark has its very time; it is final then, and told once."""
    engine = Engine(compile_workload(workload([form])))
    engine.step([marked((0, False), (0.25, False))])
    assert told(engine) == [(0, 0.250001, 2, "provisional", 0)]
    for more in (1, 2):
        engine.step([marked((0.25, more == 1))])
        assert told(engine) == [(0, 0.25, 1, "final", 0), (0.25, 0.250001, 1 + more, "provisional", 0)]
    engine.step([marked((1, True))])
    engine.step([], finish=True)
    assert told(engine) == [(0, 0.25, 1, "final", 0), (0.25, 1, 3, "final", 0), (1, 1.000001, 1, "final", 0)]


def test_a_window_may_end_in_hindsight_behind_the_watermark() -> None:
    """Key a is silent from 1 to 9 s, which ends its window at 5 s, when another key has long moved time to 8."""
    other = rows((8, 1.0))
    other = other.set_column(1, SCHEMA[1], pa.array(["b"]))
    engine = Engine(compile_workload(workload(["u_pauses(4000000)"])))
    engine.step([rows((0, 1.0), (1, 1.0))])
    engine.step([other])
    engine.step([rows((9, 1.0))])
    expected = [(0, 5, 2, "provisional", 0), (5, 9.000001, 1, "provisional", 0), (8, 8.000001, 1, "provisional", 0)]
    assert told(engine) == expected
    for time in (9.5, 9.75):
        engine.step([rows((time, 1.0))])
        assert told(engine)[0] == (0, 5, 2, "final", 0)


def test_a_window_that_ends_in_hindsight_waits_for_rows_that_may_end_it_elsewhere() -> None:
    """The row at 12 tells that the first one has ended at 6, behind the watermark; that at 9, in time, says 4.5."""
    engine = Engine(compile_workload(workload(["u_pauses(4000000)"], delay=4)))
    engine.step([rows((0, 1.0))])
    engine.step([rows((12, 1.0))])
    assert told(engine) == [(0, 6, 1, "provisional", 0), (6, 12.000001, 1, "provisional", 0)]
    engine.step([rows((9, 1.0))])
    assert told(engine) == [(0, 4.5, 1, "provisional", 0), (4.5, 12.000001, 2, "provisional", 0)]
    engine.step([rows((13.5, 1.0))])
    assert told(engine) == [(0, 4.5, 1, "final", 0), (4.5, 13.500001, 3, "provisional", 0)]


def test_slices_are_shared_and_rows_kept_only_where_figure_4_says_so() -> None:
    forms = ["window(ts, '1 second')", "u_tumbling(3000000, 2000000)", "u_marks(b)"]
    text = explain(compile_workload(workload(forms)))
    assert "slices  cut at every 1 second, the edges of u_tumbling(3000000, 2000000)" in text
    assert (
        "q_2: user-defined context free windows, measure time, commutative functions, rows in order: rows are" in text
    )
    assert "folded at once, as slices never split" in text
    assert "q_3: user-defined forward context free windows" in text
    assert "rows are kept, because an earlier row can be a new edge; slices split" in text
    plan = compile_workload(workload(forms[:2]))
    assert len(plan.folds) == 1
    engine = Engine(plan)
    (report,) = engine.step([rows((0.5, 1.0), (1.5, 2.0), (2.5, 3.0))])
    assert (report.tuples, report.slices) == (0, 3)


def test_settled_rows_become_one_slice_a_window() -> None:
    engine = Engine(compile_workload(workload(["u_visits(2000000)"])))
    engine.step([rows(*((second / 2, 1.0) for second in range(100)))])
    (report,) = engine.step([rows((49.75, 1.0))])
    assert (report.tuples, report.slices) == (1, 1)


def test_the_builder_and_printed_sql() -> None:
    stream = Stream("s", SCHEMA, "ts", 0)
    built = query(stream).group_by("k").form("u_moved", "x + 1", 2.5).select(n=count()).build("q")
    (spoken,) = parse_queries("SELECT count(*) AS n FROM s GROUP BY k, u_moved(x + 1, 2.5)", {"s": stream}, name="q")
    assert built == spoken
    assert built.windows[0].label == "u_moved(x + 1.0, 2.5)"
    text = "SELECT count(*) AS n FROM s GROUP BY u_visits(INTERVAL '90' SECOND)"
    (timed,) = parse_queries(text, {"s": stream}, name="q")
    for each in (built, timed):
        assert parse_queries(sql_of(each), {"s": stream}, name="q") == (each,)


def test_a_plan_carries_its_window_types_to_processes_that_do_not_know_them(tmp_path: Path) -> None:
    plan = compile_workload(workload(["u_tumbling(5000000)", "u_visits(2000000)", "u_last(2, 4000000)"]))
    (tmp_path / "plan").write_bytes(pickle.dumps(plan))
    code = (
        "import pickle, sys; from pathlib import Path\n"
        "plan = pickle.loads(Path(sys.argv[1]).read_bytes())\n"
        "assert 'user_windows' not in sys.modules\n"
        "from workbench.runtime.engine import Engine\n"
        "import pyarrow as pa\n"
        "schema = plan.stream.schema\n"
        "times = pa.array([0, 3_000_000, 4_000_000], schema[0].type)\n"
        "table = pa.table([times] + [pa.nulls(3, field.type) for field in list(schema)[1:]], schema=schema)\n"
        "print([sorted(r['n'] for r in s.table().to_pylist()) for s in Engine(plan).run([table]).values()])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "plan")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "[[3], [1, 2], [2, 2]]\n", done.stderr


def test_numbers_of_numpy_are_as_good_as_python_s() -> None:
    """They were told to be no later times."""

    class Seconds:
        def next_edge(self, time: int) -> Any:
            return np.int64(time // SECOND * SECOND + SECOND)

        def trigger(self, after: int, until: int) -> list[Any]:
            return [(end - SECOND, end) for end in np.arange(self.next_edge(after), until + 1, SECOND)]

    class Stops:
        def notify_context(self, context: Any, time: int) -> None:
            context.add(np.int64(time), np.float64(time + 1))

        def earliest(self, context: Any) -> Any:
            return np.max(context.rows)

    workbench.window_type("seconds", Seconds)
    workbench.window_type("stops", Stops)
    for form, second in (("seconds()", 1), ("stops()", 1e-6)):
        engine = Engine(compile_workload(workload([form])))
        engine.run([rows((1, 1.0), (3, 2.0)), rows((5, 3.0))])
        assert [row[:3] for row in told(engine)] == [(1, 1 + second, 1), (3, 3 + second, 1), (5, 5 + second, 1)]


def test_edges_that_end_and_rows_beyond_them() -> None:
    """Two shifts and nothing after: rows before, between and behind are in no window."""

    class Shifts:
        edges = (10 * SECOND, 20 * SECOND, 30 * SECOND, 40 * SECOND)

        def next_edge(self, time: int) -> int | None:
            return next((edge for edge in self.edges if edge > time), None)

        def trigger(self, after: int, until: int) -> list[tuple[int, int]]:
            return [(a, b) for a, b in pairwise(self.edges) if after < b <= until and a != 20 * SECOND]

    workbench.window_type("shifts", Shifts)
    asked = workload(["shifts()", "window(ts, '10 seconds')"], delay=5)
    batches = [rows((25, 1.0), (12, 2.0), (3, 9.0)), rows((38, 3.0), (20, 1.0), (19.5, 2.0)), rows((90, 1.0))]
    engine = Engine(compile_workload(asked))
    engine.run(batches)
    check(asked, batches, engine)
    assert [row[:3] for row in told(engine)] == [(10, 20, 1), (30, 40, 1)]


def test_a_query_with_rows_kept_cannot_begin_in_the_middle_and_a_context_free_one_can() -> None:
    one, two, three = workload(["window(ts, '1 second')", "u_tumbling(2000000)", "u_visits(1)"]).queries
    engine = Engine(compile_workload(Workload(one.stream, (one,))))
    engine.step([rows((1, 1.0))])
    with pytest.raises(QueryError, match="what earlier rows mean to them is not known"):
        engine.change(compile_workload(Workload(one.stream, (one, three)), running=engine.plan))
    engine.change(compile_workload(Workload(one.stream, (one, two)), running=engine.plan))
    engine.step([rows((1.5, 1.0), (2, 1.0), (3, 1.0))])
    engine.step([], finish=True)
    starts = [row["window_start"].timestamp() for row in engine.results[two.name].table().to_pylist()]
    assert starts == [2.0]


def test_a_new_definition_is_for_queries_to_come() -> None:
    workbench.window_type("odd", user_windows.Marks)
    (old,) = workload(["odd(b)"]).queries
    workbench.window_type("odd", user_windows.Tumbling)
    (new,) = workload(["odd(5000000)"]).queries
    assert old.windows[0] != new.windows[0]
    assert old.windows[0].label == "odd(b)"
