"""Boundary resolution against what the paper and a pencil say."""

from __future__ import annotations

import pickle

import pytest

from workbench.errors import QueryError
from workbench.temporal import Expression, Reach, program, resolve, signal

SECOND = 1_000_000
x = signal("x")


def reach(expression: Expression) -> Reach:
    return resolve([expression.node]).sources["rows"]


def test_the_trend_of_the_paper_needs_twenty_seconds_before() -> None:
    """*TiLT* Fig. 3b: ~filter[Ts : Te] from ~stock[Ts - 20 : Te]."""
    join = x.window("10 s").mean() - x.window("20 s").mean()
    assert reach(join.where(join > 0)) == Reach(back=20 * SECOND)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (x, Reach(before=1)),
        (x + 1, Reach(before=1)),
        (x.previous(2), Reach(before=3)),
        (x.following(), Reach(before=1, after=1)),
        (x.shift("5 s"), Reach(back=5 * SECOND, before=1)),
        (x.ahead("5 s"), Reach(ahead=5 * SECOND, before=1)),
        (x.window("3 s").max().shift("2 s"), Reach(back=5 * SECOND)),
        (x.tumbling("10 s").mean(), Reach(back=10 * SECOND, ahead=10 * SECOND)),
        (signal("x", hold="4 s").shift("1 s"), Reach(back=5 * SECOND)),
        # Windows of windows: the outer one begins where its first point's inner one begins.
        (x.window("10 s").mean().abs(), Reach(back=10 * SECOND)),
    ],
)
def test_reaches(expression: Expression, expected: Reach) -> None:
    assert reach(expression) == expected


def test_windows_of_windows_add_up() -> None:
    inner = x.window("10 s").mean() - x.shift("3 s")
    found = resolve([inner.window("1 minute").mean().node])
    assert found.sources["rows"] == Reach(back=70 * SECOND, before=1)
    assert found.points == 60 * SECOND


def test_equal_windows_are_computed_once() -> None:
    mean, deviation = x.window("10 s").mean(), x.window("10 s").std()
    made = program({"z": (x - mean) / deviation, "low": mean - 2 * deviation, "n": x.window("10 s").count()})
    (stage,) = made.stages
    assert [sorted(kinds) for kinds in stage.slides.values()] == [["count", "moments", "sum_float"]]
    assert len(stage.pointers) == 2


def test_a_window_of_a_window_is_a_stage_of_its_own() -> None:
    spread = (x - x.window("10 s").mean()).abs()
    made = program({"spread": spread.window("1 minute").mean(), "again": spread.window("1 minute").max()})
    first, second = made.stages
    assert len(first.values) == 1
    assert [sorted(kinds) for kinds in second.slides.values()] == [["count", "max_float", "sum_float"]]


def test_the_printed_form() -> None:
    fast, slow = x.window("10 s").mean(), x.window("20 s").mean()
    made = program({"trend": (fast - slow).where(fast > slow), "all": (fast - slow).abs().window("1 minute").max()})
    assert str(made).splitlines() == [
        "t = at every row of `rows`",
        "w1 = ⊕(mean, ~x[t - 10 seconds : t])",
        "w2 = ⊕(mean, ~x[t - 20 seconds : t])",
        "a1 = (w1 - w2)",
        "w3 = ⊕(max, abs(a1)[t - 1 minute : t])",
        "~trend[t] = ((w1 > w2) ? a1 : φ)",
        "~all[t] = w3",
        "values in (begin : end] need ~rows(begin - 1 minute 20 seconds : end]",
        "one loop, stage 1: 3 pointers, 2 windows of count, sum_float",
        "one loop, stage 2: 2 pointers, 1 window of count, max_float",
    ]


def test_what_is_used_twice_at_every_step_is_computed_once() -> None:
    """Each step uses the one before it three times: as a tree that would be 3**40 operations."""
    step = x
    for number in range(40):
        step = (step * step).where(step > number).shift("1 s")
    made = program({"last": step, "count": step.window("1 s").count()})
    again = pickle.loads(pickle.dumps(made))
    # Of each step a product, a comparison and a choice, with the column, its numbers and the count.
    assert len(list(made.nodes())) == len(list(again.nodes())) == 3 * 40 + 1 + 40 + 1
    assert str(again) == str(made)
    assert made.boundaries.sources["rows"] == Reach(back=41 * SECOND, before=1)
    assert len(repr(step)) < 10_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: x.window("0 s"), "longer than 0"),
        (lambda: x.window("-1 s"), "longer than 0"),
        (lambda: x.window(5), "is a duration such as"),
        (lambda: x.shift("2 parsecs"), "unknown unit"),
        (lambda: signal(""), "named by its column"),
        (lambda: x + "text", "expected a signal or a number"),
        (lambda: bool(x > 1), "neither true nor false"),
        (lambda: (x + 1).previous(), "those of a column"),
        (lambda: x.previous(0), "whole number from 1"),
        (lambda: x.previous(1.5), "whole number from 1"),  # type: ignore[arg-type]
        (lambda: x.window("1 s").mean().tumbling("1 s"), "holds values of rows"),
        (lambda: program({}), "nothing to compute"),
        (lambda: program({"n": signal("x").window("1 s").mean().window("2 s").mean().ahead("1 s")}), "still to come"),
    ],
)
def test_what_makes_no_sense_says_so(make: object, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()  # type: ignore[operator]
