"""Aggregates that a user defines: checked when defined, shared and run like all others, in any process."""

from __future__ import annotations

import math
import pickle
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from answers import check
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TYPES, X, streams, workloads

import workbench
from workbench.algebra import AGGREGATES, PARTIALS
from workbench.algebra.user import telling
from workbench.errors import DataError, QueryError
from workbench.language import parse_queries, query
from workbench.language.builder import agg
from workbench.logical import AggregateCall, Named, Numerics, Query, Stream, Workload
from workbench.plan import compile_workload, explain
from workbench.runtime.engine import Engine
from workbench.runtime.reference import reference

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.float64()), ("n", pa.int64())])
STREAM = Stream("s", SCHEMA, "ts", 1_000_000_000)
SECOND = 1_000_000


class RMS:
    """Root mean square."""

    fields = {"n": ("int64", 0), "squares": ("float64", 0.0)}  # noqa: RUF012

    def lift(x: float) -> tuple[int, float]:
        return 1, x * x

    def combine(a: Any, b: Any) -> tuple[int, float]:
        return a.n + b.n, a.squares + b.squares

    def lower(state: Any) -> float:
        return math.sqrt(state.squares / state.n)


class WeightedMean:
    """Two arguments, one of them an integer, and a static method."""

    fields = {"weight": ("int64", 0), "total": ("float64", 0.0)}  # noqa: RUF012
    inputs = ("float64", "int64")
    commutative = True

    @staticmethod
    def lift(x: float, weight: int) -> tuple[int, float]:
        return weight, x * weight

    @staticmethod
    def combine(a: Any, b: Any) -> tuple[int, float]:
        return a.weight + b.weight, a.total + b.total

    @staticmethod
    def lower(state: Any) -> float | None:
        return state.total / state.weight if state.weight else None


class Longest:
    """The longest run of positive values: not commutative. ``MOST`` keeps it from being compiled."""

    fields = {"head": ("int64", 0), "best": ("int64", 0), "tail": ("int64", 0), "rows": ("int64", 0)}  # noqa: RUF012
    result = "bigint"

    def lift(x: float) -> tuple[int, ...]:
        one = int(x > 0)
        return one, one, one, 1

    def combine(a: Any, b: Any) -> tuple[int, ...]:
        head = a.head + b.head if a.head == a.rows else a.head
        tail = b.tail + a.tail if b.tail == b.rows else b.tail
        return head, MOST["of"](a.best, b.best, a.tail + b.head), tail, a.rows + b.rows

    def lower(state: Any) -> int:
        return int(state.best)


MOST: dict[str, Callable[..., int]] = {"of": max}


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """The names that a test defines are gone after it."""
    yield
    for name in set(AGGREGATES) - set(AGGREGATES.builtin):
        del AGGREGATES._latest[name]


def rows(count: int = 60) -> pa.Table:
    chance = random.Random(5)
    return pa.Table.from_pylist(
        [
            {
                "ts": second * SECOND,
                "k": chance.choice("ab"),
                "x": chance.choice([None, -2.5, 0.0, 1.0, 3.25]),
                "n": chance.choice([None, 1, 2, 7]),
            }
            for second in range(count)
        ],
        SCHEMA,
    )


def bound(select: str) -> tuple[Query, ...]:
    text = f"SELECT k, {select} FROM s GROUP BY k, zoom(ts, '10 seconds / 3 seconds', '30 seconds')"
    return parse_queries(text, {"s": STREAM}, name="q")


def results(engine: Engine, table: pa.Table) -> list[dict[str, Any]]:
    engine.run([table.slice(0, 25), table.slice(25, 1), table.slice(26)])
    found: list[dict[str, Any]] = engine.results["q"].table().to_pylist()
    return found


@pytest.mark.parametrize("kernels", ["generic", "compiled"])
def test_equal_to_recomputation(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_KERNELS", kernels)
    workbench.aggregate(RMS)
    workbench.aggregate("weighted", WeightedMean)
    workbench.aggregate("Longest")(Longest)
    workload = Workload(STREAM, bound("RMS(x) AS r, weighted(x, n) AS w, longest(x) AS l, avg(x) AS a, rms(n) AS i"))
    engine = Engine(compile_workload(workload), buckets=2)
    found = results(engine, rows())
    expected, _ = reference(workload, [rows()])
    levels = [level.label for level in engine.results["q"].schema.levels]
    assert len(found) == len(expected["q"]) > 20
    for row in found:
        bounds = (round(row[side].timestamp()) * SECOND for side in ("window_start", "window_end"))
        wanted = expected["q"][levels.index(row["level"]), (row["k"],), *bounds, 0]
        assert [row[name] for name in "rwlai"] == pytest.approx(list(wanted))


def test_by_hand() -> None:
    """sqrt((9 + 16) / 2), and the run 1, 2 of three positive values in a row; NULL is left out."""
    workbench.aggregate(RMS)
    workbench.aggregate("longest", Longest)
    built = query(STREAM).window("1 day").select(r=agg("rms", "x"), l=agg("longest", "x"), e=agg("rms", "n"))
    engine = Engine(compile_workload(Workload(STREAM, (built.build("q"),))))
    values = [3.0, None, -4.0]
    table = pa.table([pa.array(range(3), SCHEMA[0].type), ["a"] * 3, values, pa.nulls(3, pa.int64())], schema=SCHEMA)
    (row,) = results(engine, table)
    assert row["r"] == pytest.approx(math.sqrt(12.5))
    assert row["l"] == 1
    assert row["e"] is None, "a window without a value is NULL"


@settings(max_examples=100, deadline=None)
@given(workloads(most=2, types=tuple(TYPES)), streams(), st.integers(1, 2))
def test_an_aggregate_that_does_not_commute_sees_rows_in_order_of_time(
    workload: Workload, batches: list[pa.Table], buckets: int
) -> None:
    """Over every window type, in any order of arrival: its rows are kept (*General Stream Slicing*, Figure 4)."""
    workbench.aggregate("longest", Longest)
    call = AggregateCall(pa.int64(), AGGREGATES["longest"].name, (X,))
    # Empty windows are not filled where rows are kept.
    queries = tuple(replace(query, values=(Named("l", call),), fill=None) for query in workload.queries)
    workload = replace(workload, queries=queries)
    engine = Engine(compile_workload(workload), buckets=buckets)
    engine.run(batches)
    check(workload, batches, engine)


def test_explain_says_what_runs_in_python_and_why() -> None:
    workbench.aggregate(RMS)
    workbench.aggregate("longest", Longest)
    text = explain(compile_workload(Workload(STREAM, bound("rms(x) AS r, longest(x) AS l, avg(x) AS a"))))
    assert "    p1    rms(x) <- q.rms(x)\n" in text
    assert "    p2    count(x) <- shared by q.rms(x), q.longest(x), q.avg(x)\n" in text
    assert "    p3    longest(x), in order of time, in Python: Untyped global name 'MOST'" in text, text
    assert "value   q.l = longest(x)" in text
    assert "#" not in text


def test_messages_of_the_compiler_are_told_without_colours() -> None:
    """Where colorama is installed, numba colours its messages."""
    coloured = (
        "\x1b[1m\x1b[1mFailed in nopython mode pipeline (step: frontend)\n\x1b[1mUntyped global name 'x':\x1b[0m\n"
    )
    assert telling(coloured) == "Untyped global name 'x'"
    assert telling("\x1b[1mFailed in nopython mode") == "Failed in nopython mode"
    assert telling("") == ""


def test_two_queries_share_one_partial() -> None:
    workbench.aggregate(RMS)
    (fold,) = compile_workload(Workload(STREAM, bound("rms(x) AS r, rms(x) + 1 AS s"))).folds
    assert len(fold.partials) == 3


def test_a_new_definition_replaces_the_old_one_for_queries_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_KERNELS", "generic")
    workbench.aggregate(RMS)
    old = compile_workload(Workload(STREAM, bound("rms(x) AS r")))
    workbench.aggregate("rms", type("Doubled", (RMS,), {"lower": lambda state: 2 * RMS.lower(state)}))
    new = compile_workload(Workload(STREAM, bound("rms(x) AS r")))
    assert old != new
    before, after = (results(Engine(plan), rows()) for plan in (old, new))
    for one, other in zip(before, after, strict=True):
        assert other["r"] == (None if one["r"] is None else pytest.approx(2 * one["r"]))


PROGRAM = textwrap.dedent(
    """
    import pickle, sys
    import pyarrow as pa
    from workbench.algebra import AGGREGATES
    plan = pickle.loads(sys.stdin.buffer.read())
    from workbench.runtime.engine import Engine
    stamps = pa.array([0, 1, 2], pa.timestamp("us", "UTC"))
    table = pa.table([stamps, ["a"] * 3, [3.0, None, -4.0], [1, 1, 1]], schema=plan.stream.schema)
    results = Engine(plan).run([table])
    rows = results["q"].table("30 seconds").to_pylist()
    print([(round(row["r"] ** 2, 9), row["l"]) for row in rows], set(AGGREGATES) - set(AGGREGATES.builtin))
    """
)


def test_a_plan_takes_its_definitions_to_another_process() -> None:
    """This module does not exist there."""
    workbench.aggregate(RMS)
    workbench.aggregate("longest", Longest)
    plan = compile_workload(Workload(STREAM, bound("rms(x) AS r, longest(x) AS l")))
    assert pickle.loads(pickle.dumps(plan)) == plan
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=pickle.dumps(plan), capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().strip() == "[(12.5, 1)] set()"


def variant(**parts: Any) -> type:
    """An aggregate of one field, the sum, with other parts."""
    base = {
        "fields": {"s": ("float64", 0.0)},
        "lift": lambda x: (x,),
        "combine": lambda a, b: (a.s + b.s,),
        "lower": lambda state: state.s,
    }
    return type("Sum", (), base | parts)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"lift": lambda x: (abs(x),), "combine": lambda a, b: (abs(a.s - b.s),)},
            r"not associative: combine\(combine\(a, b\), c\) = .* but combine\(a, combine\(b, c\)\) = .* with a = ",
        ),
        ({"combine": lambda a, b: (a.s - b.s,)}, r"combine\(identity, p\) = \(-1.0\) but p = \(1.0\)"),
        ({"combine": lambda a, b: ((a.s + b.s) / 2,)}, "not neutral towards its identity"),
        (
            {"fields": {"s": ("float64", 0.0)}, "combine": lambda a, b: (max(a.s, b.s),)},
            r"combine\(identity, p\) = \(0.0\) but p = \(-1.0\)",
        ),
        (
            {"combine": lambda a, b: (b.s if a.s == 0 else a.s,), "commutative": True},
            r"not commutative, as it claims: combine\(a, b\) = \(1.0\) but combine\(b, a\) = \(-1.0\)",
        ),
        ({"idempotent": True}, r"not idempotent, as it claims: combine\(p, p\) = \(2.0\) but p = \(1.0\)"),
        ({"invert": lambda total, prefix: (total.s - prefix.s,)}, "not undone by its `invert`"),
        ({"lift": lambda x: x}, r"`lift` must give a tuple of 1 \(s\), got `0.0`"),
        ({"combine": lambda a, b: (1.0, 2.0)}, r"`combine` must give a tuple of 1 \(s\)"),
        ({"fields": {"s": ("int64", 0)}}, "`lift` gave 2.5 for `s`, an `int64`"),
        ({"combine": None}, "the class has no function `combine`"),
        ({"lower": 3}, "`lower` must be a plain function, got `int`"),
        ({"fields": {}}, "`fields` must name the fields"),
        ({"fields": {"s": ("object", 0)}}, "field `s` must be a type and its identity"),
        ({"fields": {"s": ("int64", "x")}}, "the identity `x` of field `s` is no `int64`"),
        ({"fields": {"a b": ("int64", 0)}}, "`a b` is no name for a field"),
        ({"inputs": ("float64", "float64")}, "`lift` takes 1 values"),
        ({"result": "decimal"}, "unknown result type `decimal`"),
        ({"examples": [(1.0, 2.0)]}, "each of `examples` must have 1 values"),
        ({"examples": [3.0], "lift": lambda x: (1 / (x - 3),)}, "fails on a test value: ZeroDivisionError"),
        ({"lift": lambda x: (math.sqrt(-1 - x * x),)}, "`lift` fails for every test value"),
    ],
)
def test_refused_with_the_counterexample(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=f"aggregate `odd`.*{message}"):
        workbench.aggregate("odd", variant(**parts))
    assert "odd" not in AGGREGATES


def test_laws_hold_up_to_rounding_and_an_exact_inverse_is_taken() -> None:
    workbench.aggregate("total", variant(commutative=True))
    integers = {"fields": {"s": ("int64", 0)}, "inputs": ("int64",), "result": "bigint"}
    workbench.aggregate("whole", variant(**integers, invert=lambda total, prefix: (total.s - prefix.s,)))
    assert PARTIALS[AGGREGATES["whole"].name].invert is not None
    assert PARTIALS[AGGREGATES["whole"].name].compiled
    assert PARTIALS[AGGREGATES["whole"].name].commutative, "found by trial"


ROUNDING = {"commutative": True, "rounding": True, "invert": lambda total, prefix: (total.s - prefix.s,)}


def test_an_inverse_that_rounds_is_for_those_who_ask_for_it() -> None:
    """By default it is not used; under fast numerics windows are differences, in another process too."""
    workbench.aggregate("total", variant(**ROUNDING))
    name = AGGREGATES["total"].name
    assert not PARTIALS[name].differences
    (query_,) = bound("total(x) AS t")
    fast = replace(query_, numerics=Numerics.FAST)
    exact_plan, fast_plan = (compile_workload(Workload(STREAM, (each,))) for each in (query_, fast))
    assert "  fast " not in explain(exact_plan)
    assert "    p1    total(x), with an inverse that rounds <- q.total(x)" in explain(fast_plan)
    assert "are wrong until then, behind NaN and infinities too" in explain(fast_plan)
    assert pickle.loads(pickle.dumps(fast_plan)) == fast_plan
    found, expected = (results(Engine(plan), rows()) for plan in (fast_plan, exact_plan))
    assert len(found) > 20
    for one, other in zip(found, expected, strict=True):
        assert one["t"] == (None if other["t"] is None else pytest.approx(other["t"], rel=1e-9, abs=1e-9))


def test_a_rounding_inverse_is_tried_as_well() -> None:
    with pytest.raises(QueryError, match="not undone by its `invert`"):
        workbench.aggregate("odd", variant(rounding=True, invert=lambda total, prefix: (total.s + prefix.s,)))
    with pytest.raises(QueryError, match="`rounding` is said of its `invert`, and the class has none"):
        workbench.aggregate("odd", variant(rounding=True))


@pytest.mark.parametrize("name", ["sum", "MEAN", "upper", "zoom", "first"])
def test_a_built_in_name_is_refused(name: str) -> None:
    with pytest.raises(QueryError, match=f"`{name.casefold()}` is built in"):
        workbench.aggregate(name, RMS)


def test_errors_in_sql() -> None:
    workbench.aggregate("rootmean", RMS)
    workbench.aggregate("weighted", WeightedMean)
    for text, message in [
        ("rotmean(x)", "did you mean `rootmean`"),
        ("rootmean(k)", r"expected a number, but `k` is `string`"),
        ("rootmean(x, x)", "`rootmean` takes 1 argument, got 2"),
        ("weighted(x, x)", "expected an integer, but `x` is `double`"),
    ]:
        with pytest.raises(QueryError) as caught:
            bound(f"{text} AS r")
        assert message in str(caught.value)


def test_a_fault_of_the_users_code_is_an_error_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_KERNELS", "generic")
    workbench.aggregate("fragile", variant(lower=lambda state: 1 / (state.s - 3)))
    table = pa.table([pa.array([0], SCHEMA[0].type), ["a"], [3.0], [1]], schema=SCHEMA)
    with pytest.raises(DataError, match="aggregate `fragile` failed: ZeroDivisionError"):
        Engine(compile_workload(Workload(STREAM, bound("fragile(x) AS r")))).run([table])


def test_results_of_other_types() -> None:
    workbench.aggregate("up", variant(result="boolean", lower=lambda state: state.s > 0))
    workbench.aggregate("word", variant(result="string", lower=lambda state: "up" if state.s > 0 else None))
    table = pa.table([pa.array([0], SCHEMA[0].type), ["a"], [3.0], [1]], schema=SCHEMA)
    found = results(
        Engine(compile_workload(Workload(STREAM, bound("up(x) AS u, word(x) AS w, word(-x) AS v")))), table
    )
    assert [(row["u"], row["w"], row["v"]) for row in found[-1:]] == [(True, "up", None)]


def test_windows_without_rows_are_not_filled_where_rows_are_kept() -> None:
    workbench.aggregate("longest", Longest)
    text = "SELECT k, longest(x) AS r FROM s GROUP BY k, window(ts, '10 seconds')"
    for fill in ("FILL NULL", "FILL PREVIOUS"):
        queries = parse_queries(f"{text} {fill}", {"s": STREAM}, name="q")
        with pytest.raises(QueryError, match="FILL is not there for `q`: its rows are kept, as an aggregate is not"):
            compile_workload(Workload(STREAM, queries))
    assert compile_workload(Workload(STREAM, parse_queries(text, {"s": STREAM}, name="q")))
