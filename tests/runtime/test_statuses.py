"""What is shown between micro-batches: every window that there is, with what is known of it, and each result once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from answers import answer_of, same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SCHEMA, SECOND, streams

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine
from workbench.runtime.reference import reference

#: Forms of which all windows that have rows are shown, not only the next to end.
FORMS = [
    "window(ts, '5 seconds')", "calendar_window(ts, 'day')", "session_window(ts, '2 seconds')",
    "gap_window(ts, '1.5 seconds')", "punctuation_window(b)", "last(3, '4 seconds')",
    "measure_window(unix_seconds(ts), 5, 'drop')", "u_visits(2000000)", "u_marks(b)", "u_moved(x, 1.5)",
    "u_pauses(1500000)", "u_before(b, 3)",
]  # fmt: skip


pytestmark = pytest.mark.usefixtures("own_window_types")


def start(*forms: str, delay: float = 0, lateness: float = 0) -> tuple[Workload, Engine]:
    stream = Stream("s", SCHEMA, "ts", round(delay * SECOND), round(lateness * SECOND))
    text = ";".join(f"SELECT k, count(*) AS n FROM s GROUP BY k, {form}" for form in forms)
    asked = Workload(stream, parse_queries(text, {"s": stream}, name="q"))
    return asked, Engine(compile_workload(asked))


def rows(*given: tuple[float, int | None, bool | None]) -> pa.Table:
    """Rows of (time in seconds, i, b), key a."""
    size = len(given)
    times = pa.array([round(row[0] * SECOND) for row in given], pa.int64()).cast(SCHEMA[0].type)
    values, marks = (pa.array([row[side] for row in given], SCHEMA.types[2 * side]) for side in (1, 2))
    return pa.table(
        [times, ["a"] * size, values, pa.nulls(size, pa.float64()), marks, pa.nulls(size, pa.date32())], schema=SCHEMA
    )


def told(engine: Engine, name: str = "q") -> list[tuple[float, float, int, str, int]]:
    found = engine.results[name].table().to_pylist()
    return [
        (r["window_start"].timestamp(), r["window_end"].timestamp(), r["n"], r["status"], r["revision"])
        for r in found
    ]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None)
@given(streams(), st.sampled_from([0, 1, 12]), st.sampled_from([0, 5]))
def test_all_windows_that_there_are_are_shown(form: str, batches: list[pa.Table], delay: int, lateness: int) -> None:
    """After every micro-batch a store holds what the oracle says of the rows so far."""
    asked, engine = start(form, delay=delay, lateness=lateness)
    for number, batch in enumerate(batches):
        engine.step([batch])
        expected, late = reference(asked, batches[: number + 1])
        found = answer_of(engine.results["q"], so_far=True)
        assert found.keys() == expected["q"].keys()
        assert all(same(found[place], values) for place, values in expected["q"].items())
        assert engine.late == late


def test_a_window_that_is_added_over_earlier_rows_is_provisional_at_once() -> None:
    """The mark is not in the window that it ends, so no row of its micro-batch is."""
    _, engine = start("u_before(b, 2)", delay=5)
    engine.step([rows((0, 1, False), (1, 2, False))])
    assert told(engine) == []
    engine.step([rows((2, 3, True))])
    assert told(engine) == [(0, 2, 2, "provisional", 0)]
    engine.step([rows((8, 4, False))])
    assert told(engine) == [(0, 2, 2, "final", 0)]


def test_rows_stay_in_sight_where_a_late_one_moves_the_start_of_their_window() -> None:
    """A pause ends in its middle: the row at 0 moves the start from 8 s to 4."""
    _, engine = start("u_pauses(3000000)", delay=0, lateness=60)
    engine.step([rows((8, 1, None), (9, 2, None))])
    assert told(engine) == [(8, 9.000001, 2, "provisional", 0)]
    engine.step([rows((0, 3, None))])
    assert told(engine) == [(0, 4, 1, "revised", 1), (4, 9.000001, 2, "provisional", 0)]


def test_results_are_revised_as_often_as_they_change_whoever_fills_the_same_windows() -> None:
    """::

    time       0    1    2    3    4   5         windows of a second; the rows 1 and 2 come late
    rows       3         2    1        .
    PREVIOUS   3    3    2    1    1   .         so that 4 has been filled with 3, 2 and 1
    """
    text = ["", " FILL NULL", " FILL ZERO", " FILL PREVIOUS"]
    _, engine = start(*(f"window(ts, '1 second'){fill}" for fill in text), lateness=60)
    for row in ((0, 3, None), (5, 4, None)), ((2, 2, None),), ((3, 1, None),):
        engine.step([rows(*row)])
    found = {
        fill: [row[4] for row in told(engine, name)]
        for fill, name in zip(text, ("q", "q_2", "q_3", "q_4"), strict=True)
    }
    assert found == {
        "": [0, 1, 1, 0],
        " FILL NULL": [0, 0, 1, 1, 0, 0],
        " FILL ZERO": [0, 0, 1, 1, 0, 0],
        " FILL PREVIOUS": [0, 0, 1, 2, 2, 0],
    }
