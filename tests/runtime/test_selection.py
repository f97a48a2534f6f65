"""WHERE in any order: the rows of the written order, its errors, and an order that follows what rows pass."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import DataError
from workbench.language import parse_queries
from workbench.logical import Expression, Stream
from workbench.runtime.expressions import evaluate_filter
from workbench.runtime.predicates import Order, Sampling
from workbench.runtime.selection import Filter
from workbench.runtime.total import never_raises

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("a", pa.int64()),
        ("b", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("f", pa.bool_()),
    ]
)
STREAM = Stream("t", SCHEMA, "ts", 0)
#: Conditions that have a value for every row, and conditions that raise for some.
TOTAL = ("a < 3", "x > 0.5", "s LIKE '%b%'", "f", "b IS NULL", "a = b", "x <= x * 2", "upper(s) <> 'AB'", "x <> 1")
RAISING = ("a / b > 1", "a + 9223372036854775800 > 0", "CAST(s AS int) = 1", "b % a = 0", "CAST(x AS int) > 0")
#: A clock without costs and calls that are free, so that rows are taken out of the way whenever any has failed.
ALWAYS = Sampling(least=1, call=0.0, move=0.0, once=0.0)


def where(text: str) -> Expression:
    (query,) = parse_queries(
        f"SELECT count(*) AS n FROM t WHERE {text} GROUP BY window(ts, '1 s')", {"t": STREAM}, name="q"
    )
    assert query.where is not None
    return query.where


def batch(rows: list[tuple[int | None, int | None, float | None, str | None, bool | None]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * 5
    arrays = [pa.array(column, field.type) for column, field in zip(columns, list(SCHEMA)[1:], strict=True)]
    return pa.record_batch([pa.array(range(len(rows)), SCHEMA.field("ts").type), *arrays], schema=SCHEMA)


def outcome(found: object) -> object:
    """The mask, or that there is an error instead."""
    try:
        return list(found())  # type: ignore[operator]
    except DataError:
        return "error"


ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 2, 7, 2**63 - 1]),
        st.sampled_from([None, 0, 1, 2]),
        st.sampled_from([None, 0.0, 0.5, 1.0, 3.5, float("nan"), 1e300]),
        st.sampled_from([None, "", "1", "ab", "b", "x"]),
        st.sampled_from([None, True, False]),
    ),
    min_size=1,
    max_size=30,
)
CONDITIONS = st.lists(st.sampled_from(TOTAL + RAISING), min_size=1, max_size=6)


def test_which_conditions_may_move() -> None:
    assert [never_raises(where(text), SCHEMA) for text in TOTAL] == [True] * len(TOTAL)
    assert [never_raises(where(text), SCHEMA) for text in RAISING] == [False] * len(RAISING)
    stored = pa.schema([("x", pa.timestamp("ns", "UTC"))])
    assert not never_raises(where("ts > TIMESTAMP '2020-01-01 00:00:00'"), stored), "nanoseconds may not fit"


@settings(max_examples=200, deadline=None)
@given(CONDITIONS, st.lists(ROWS, min_size=1, max_size=4), st.integers(0, 2**32))
def test_any_order_keeps_the_rows_and_the_errors_of_the_written_one(
    texts: list[str], batches: list[list[tuple[object, ...]]], luck: int
) -> None:
    """Costs are drawn by lot, so that every order comes up, and changes between batches."""
    condition, lot = where(" AND ".join(texts)), random.Random(luck)
    made = Filter(condition, sampling=replace(ALWAYS, every=1, gain=0.0, clock=lambda: lot.randrange(10**6)))
    for rows in batches:
        given_rows = batch(rows)  # type: ignore[arg-type]
        expected = outcome(lambda b=given_rows: evaluate_filter(condition, b).to_pylist())
        assert outcome(lambda b=given_rows: made.mask(b)) == expected
        order = made.profile.order.order
        assert sorted(order) == list(range(len(texts)))
        raising = [number for number, text in enumerate(texts) if text in RAISING]
        for number in raising:
            assert set(order[: order.index(number)]) == set(range(number)), "what stands before it stays before it"


@pytest.mark.parametrize("text", ["b <> 0 AND a / b > 1", "a / b > 1 AND b <> 0", "f AND b <> 0 AND a / b > 1 AND f"])
def test_a_condition_that_raises_is_asked_about_the_rows_it_always_was(text: str) -> None:
    """A guard guards, a guard that is written too late does not, and NULL before it does not guard either."""
    condition = where(text)
    rows = batch([(4, 2, 0.0, "", True), (4, 0, 0.0, "", False), (4, None, 0.0, "", None)])
    free = Filter(condition, sampling=ALWAYS)
    found = outcome(lambda: free.mask(rows))
    assert found == ("error" if text.startswith("a / b") else [True, False, False])
    unknown = batch([(4, 0, 0.0, "", None)])
    guarded = Filter(where("f AND a / b > 1"), sampling=ALWAYS)
    assert outcome(lambda: guarded.mask(unknown)) == "error", "NULL AND an error is an error"


def numbers(low: list[float], rows: int = 4_096) -> pa.RecordBatch:
    """Rows of which ``low[i]`` have a value below 0.5 in column ``i`` of a, b and x."""
    random_ = np.random.default_rng(3)
    columns = [np.where(random_.random(rows) < share, 0, 1) for share in low]
    fields = [pa.array(column).cast(SCHEMA.field(name).type) for column, name in zip(columns, "abx", strict=True)]
    rest = [pa.array(["b"] * rows), pa.array([True] * rows)]
    return pa.record_batch([pa.array(range(rows), SCHEMA.field("ts").type), *fields, *rest], schema=SCHEMA)


def test_the_order_follows_the_shares_that_pass() -> None:
    """By rows that were asked about: with equal costs the least passing condition stands first, then the others."""
    ticks = iter(range(10**9))
    sampling = replace(ALWAYS, rows=1_024, every=1_000, clock=lambda: 1_000 * next(ticks))
    made = Filter(where("a = 0 AND b = 0 AND x = 0"), sampling=sampling)

    def asked() -> list[int]:
        return [predicate.rows for predicate in made.profile.predicates]

    before = numbers([0.9, 0.5, 0.1])
    made.mask(before)
    assert made.profile.order.order == (2, 1, 0)
    passed = int((before["x"].to_numpy() == 0).sum())
    assert asked()[2] == 4_096
    assert asked()[1] == passed
    both = (before["x"].to_numpy() == 0) & (before["b"].to_numpy() == 0)
    assert asked()[0] == int(both.sum())
    after = numbers([0.1, 0.5, 0.9])
    made.mask(after)  # sees that another share passes, which is what the next batch is sampled for
    assert (made.profile.drifted, made.profile.reordered) == (1, 1)
    old = asked()
    made.mask(after)
    assert made.profile.order.order == (0, 1, 2)
    assert made.profile.reordered == 2
    assert asked()[0] - old[0] == 4_096
    assert sum(asked()) - sum(old) < 4_096 * 1.2, "a tenth passes the first, so few are asked about the others"
    for _ in range(50):
        made.mask(after)
    assert (made.profile.drifted, made.profile.reordered) == (1, 2), "what stays as it is changes nothing"


def test_shares_that_waver_do_not_change_the_order_again_and_again() -> None:
    """Two conditions of about equal worth: the order that is there stays until another is a tenth cheaper."""
    ticks = iter(range(10**9))
    made = Filter(where("a = 0 AND b = 0"), sampling=replace(ALWAYS, every=1, clock=lambda: 1_000 * next(ticks)))
    for turn in range(30):
        made.mask(numbers([0.50 + 0.01 * (turn % 2), 0.51 - 0.01 * (turn % 2), 1.0]))
    assert made.profile.reordered <= 1


def test_cheap_conditions_are_asked_about_all_rows() -> None:
    """To move columns together costs more than a comparison: nothing is taken out of the way."""
    order = Order((0, 1), (1.0, 0.5), (9.0, 6.0))
    assert not order.narrows(1, 1_000_000, 10, 5e4)
    dear = Order((0, 1), (101.0, 100.0), (9.0, 6.0))
    assert dear.narrows(1, 1_000_000, 10, 5e4)
    assert not dear.narrows(1, 1_000_000, 990_000, 5e4), "few rows have failed"
    assert not dear.narrows(1, 100, 1, 5e4), "a call is dearer than all the rows"


def test_only_columns_that_are_read_later_are_moved() -> None:
    made = Filter(where("s LIKE 'b%' AND a = 0"), frozenset({"x"}))
    rows, mask = made(numbers([0.5, 0.5, 0.5]))
    assert rows.schema.names == ["x"]
    assert len(rows) == int(mask.sum())
    nothing, mask = Filter(where("a = 0"), frozenset())(numbers([0.5, 0.5, 0.5]))
    assert len(nothing) == int(mask.sum()), "a count needs no column, but it needs the rows"


def test_conditions_on_all_constants() -> None:
    rows = numbers([0.5, 0.5, 0.5])
    for text in ("TRUE AND a = 0", "a = 0 AND FALSE", "1 = 1 AND 2 > 1"):
        condition = where(text)
        assert Filter(condition, sampling=ALWAYS).mask(rows).tolist() == evaluate_filter(condition, rows).to_pylist()
