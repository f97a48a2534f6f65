"""What is shared: folds, partials and windows of a workload, in the plan's printed form."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from workbench.algebra import PARTIALS
from workbench.language import parse_queries
from workbench.logical import Call, Column, Literal, Numerics, Query, Store, Stream, Workload
from workbench.plan import compile_workload, explain
from workbench.plan.cost import BUILT_IN, over_slices
from workbench.plan.gag import Algorithm
from workbench.plan.rules import never_null
from workbench.time import DAY

SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("carrier", pa.string()),
        pa.field("dep_delay", pa.int64()),
        pa.field("air_time", pa.float64()),
    ]
)
FLIGHTS = Stream("flights", SCHEMA, "ts", DAY)
GOLDENS = sorted((Path(__file__).parent / "goldens").glob("*.test"))


def plan_text(sql: str) -> str:
    queries = parse_queries(sql, {"flights": FLIGHTS}, name="q")
    return explain(compile_workload(Workload(FLIGHTS, queries), costs=BUILT_IN))


@pytest.mark.parametrize("path", GOLDENS, ids=[path.stem for path in GOLDENS])
def test_plan_has_its_printed_form(path: Path) -> None:
    sql, expected = path.read_text().split("\n---\n")
    text = plan_text(sql)
    if os.environ.get("WINQUERY_UPDATE_GOLDENS"):
        path.write_text(f"{sql}\n---\n{text}\n")
        return
    assert text == expected.strip()


def test_there_are_goldens() -> None:
    assert len(GOLDENS) >= 4


DELAY = Column(pa.int64(), "dep_delay")
AIR = Column(pa.float64(), "air_time")
HAS_DELAY = Call(pa.bool_(), "is_not_null", (DELAY,))


def test_never_null_is_claimed_only_where_it_is_plain() -> None:
    assert never_null(DELAY, HAS_DELAY, SCHEMA)
    assert never_null(Column(SCHEMA.field("ts").type, "ts"), None, SCHEMA)
    assert never_null(Call(pa.int64(), "add", (DELAY, Literal(pa.int64(), 1))), HAS_DELAY, SCHEMA)
    assert not never_null(DELAY, None, SCHEMA)
    assert not never_null(AIR, HAS_DELAY, SCHEMA)
    assert not never_null(DELAY, Call(pa.bool_(), "or", (HAS_DELAY, HAS_DELAY)), SCHEMA)
    assert not never_null(DELAY, Call(pa.bool_(), "not", (HAS_DELAY,)), SCHEMA)


def test_the_order_of_statements_does_not_change_what_is_shared() -> None:
    one = "SELECT carrier, avg(dep_delay) AS a FROM flights GROUP BY carrier, window(ts, '1 hour')"
    two = "SELECT carrier, sum(dep_delay) AS s FROM flights GROUP BY carrier, window(ts, '1 hour')"
    queries = parse_queries(f"{one}; {two}", {"flights": FLIGHTS}, name="q")
    forward = compile_workload(Workload(FLIGHTS, queries))
    backward = compile_workload(Workload(FLIGHTS, queries[::-1]))
    assert forward.edges == backward.edges
    assert {frozenset(fold.partials) for fold in forward.folds} == {
        frozenset(fold.partials) for fold in backward.folds
    }
    assert len(forward.assemblies) == len(backward.assemblies) == 1


def test_a_forced_algorithm_is_used_where_it_can_be() -> None:
    """A maximum has no inverse: it keeps the choice of the costs, which is shown first."""
    sql = "SELECT max(dep_delay) AS worst, count(*) AS n FROM flights GROUP BY window(ts, '1 hour', '5 minutes')"
    workload = Workload(FLIGHTS, parse_queries(sql, {"flights": FLIGHTS}, name="q"))
    for forced in (Algorithm.TWO_STACKS, Algorithm.SLIDE_SIDE_INV):
        plan = compile_workload(workload, costs=BUILT_IN, algorithm=forced)
        chosen = {plan.folds[0].partials[method.partial].kind: method.algorithm for method in plan.methods}
        assert chosen["count"] is forced
        assert (chosen["max_int"] is forced) == (forced is Algorithm.TWO_STACKS)
        assert f"{forced.value} " in explain(plan)


def test_a_store_that_is_asked_for_is_used_by_all_partials_and_told() -> None:
    """The counts and the sum of the average would be differences of prefixes, the maximum overlaid stacks."""
    sql = (
        "SELECT max(dep_delay) AS worst, avg(dep_delay) AS mean FROM flights GROUP BY window(ts, '1 day', '1 minute')"
    )
    chosen = {}
    for store in Store:
        stream = replace(FLIGHTS, store=store)
        plan = compile_workload(Workload(stream, parse_queries(sql, {"flights": stream}, name="q")), costs=BUILT_IN)
        chosen[store] = {method.algorithm for method in plan.methods}, explain(plan)
    assert chosen[Store.AUTO][0] == {Algorithm.SLIDE_SIDE_INV, Algorithm.SLIDE_SIDE}
    assert chosen[Store.LAZY][0] == {Algorithm.TWO_STACKS}
    assert "  store   `lazy` was asked for: lazy (the slices alone) for f0.p0, f0.p1, f0.p2" in chosen[Store.LAZY][1]
    assert chosen[Store.EAGER][0] == {Algorithm.FLAT_FAT}
    told = "  store   `eager` was asked for: eager (a tree over the slices) for f0.p0, f0.p1, f0.p2"
    assert told in chosen[Store.EAGER][1]


def fast_text(sql: str, stream: Stream = FLIGHTS) -> str:
    queries = parse_queries(sql, {"flights": stream}, name="q")
    fast = tuple(replace(query, numerics=Numerics.FAST) for query in queries)
    return explain(compile_workload(Workload(stream, fast), costs=BUILT_IN))


def test_fast_numerics_take_differences_of_floats_and_say_what_that_costs() -> None:
    """For sums and averages of floats only; nothing else changes, and nothing does for those who do not ask."""
    sql = (
        "SELECT avg(air_time) AS a, max(air_time) AS b, sum(dep_delay) AS c, var_pop(air_time) AS d FROM flights "
        "GROUP BY window(ts, '1 hour', '1 minute')"
    )
    exact, fast = plan_text(sql), fast_text(sql)
    assert "fast" not in exact
    assert "    p1    sum_fast(air_time), with an inverse that rounds <- q.avg(air_time)\n" in fast
    assert "    f0.p1 SlideSide (invertible) 1.6 ns in chunks of 64; " in fast
    told = (
        "  fast    q: f0.p1 as differences of prefixes, begun anew every 64 slices: results are rounded as sums over "
        "all of those, and windows that begin behind a value of 1e90 are wrong until then, but not behind NaN and "
        "infinities\n"
    )
    assert told in fast
    changed = [line for line in fast.splitlines() if line not in exact.splitlines()]
    assert len(changed) == 4, changed


@pytest.mark.parametrize(
    ("form", "values", "store"),
    [
        ("window(ts, '1 hour', '1 minute')", "sum(dep_delay), max(air_time)", Store.AUTO),
        ("window(ts, '1 hour', '1 minute')", "sum(air_time)", Store.LAZY),
        ("session_window(ts, '1 hour')", "sum(air_time)", Store.AUTO),
    ],
)
def test_fast_numerics_that_change_nothing_are_told_to(form: str, values: str, store: Store) -> None:
    stream = replace(FLIGHTS, store=store)
    text = fast_text(f"SELECT {values} FROM flights GROUP BY {form}", stream)
    assert "  fast    q: asked for, and changes nothing: no aggregate of floats is put together from prefixes" in text


def test_exact_and_fast_queries_share_all_but_the_sums_of_floats() -> None:
    sql = "SELECT avg(air_time) AS a, avg(dep_delay) AS b FROM flights GROUP BY window(ts, '1 hour', '1 minute')"
    (exact,) = parse_queries(sql, {"flights": FLIGHTS}, name="q")
    fast = replace(exact, name="r", numerics=Numerics.FAST)
    (fold,) = compile_workload(Workload(FLIGHTS, (exact, fast)), costs=BUILT_IN).folds
    kinds = [partial.kind for partial in fold.partials]
    assert kinds == ["count", "sum_float", "count", "sum_int", "count", "sum_fast"]


def test_costs_choose_each_store_where_it_is_cheapest() -> None:
    """One new slice: a window of two is combined, one of a day by seconds, without an inverse, found in a tree."""

    def cheapest(kind: str, sizes: list[float]) -> Algorithm:
        return over_slices(PARTIALS[kind], sizes, BUILT_IN)[0].algorithm

    assert cheapest("max_float", [2]) is Algorithm.TWO_STACKS
    assert cheapest("max_float", [60, 1_440]) is Algorithm.SLIDE_SIDE
    assert cheapest("max_float", [86_400]) is Algorithm.FLAT_FAT
    assert cheapest("sum_int", [86_400]) is Algorithm.SLIDE_SIDE_INV


def test_a_thousand_aggregates_are_looked_at_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was compared with all others, and the query hashed for each: 15 seconds for a plan."""
    asked, hashed = [], []
    monkeypatch.setattr(
        "workbench.plan.sharing.over_slices", lambda *given: asked.append(given) or over_slices(*given)
    )
    items = ", ".join(f"sum(dep_delay + {i}) AS a{i}" for i in range(300))
    queries = parse_queries(
        f"SELECT {items} FROM flights GROUP BY window(ts, '1 hour')", {"flights": FLIGHTS}, name="q"
    )
    known = Query.__hash__
    monkeypatch.setattr(Query, "__hash__", lambda query: hashed.append(query) or known(query))
    plan = compile_workload(Workload(FLIGHTS, queries))
    assert len(plan.folds[0].partials) == 601
    assert [plan.folds[0].partials[n].kind for n in plan.queries[0].ingredients[299].partials] == ["sum_int", "count"]
    assert [given[0].name for given in asked] == ["count", "sum_int"]
    assert len(hashed) < 10
