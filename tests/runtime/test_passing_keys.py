"""Streams whose keys come and go: state has room for those that something refers to, and for few others.

::

    sessions   |--a--|    |--b--|       |--a--|          key a is forgotten in between, and comes again as a new one
    state      a  a  a    b  b  b        a  a
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from answers import check
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FLOATS, INTEGERS, SCHEMA, SECOND, TYPES, over_workloads, workloads

import workbench
from workbench.algebra import AGGREGATES
from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.runtime import BucketOperator
from workbench.runtime.branches.keytable import KeyTable
from workbench.runtime.engine import Engine

#: Windows over slices, sessions and rows; what comes behind ``--`` keeps something of every key for ever.
FORGETFUL = {
    "tumbling": "SELECT k, sum(x) AS t, count(*) AS n FROM s GROUP BY k, window(ts, '20 seconds')",
    "sliding": "SELECT k, max(x) AS t, avg(i) AS a FROM s "
    "GROUP BY k, zoom(ts, '30 seconds / 10 seconds', '1 minute / 10 seconds')",
    "session": "SELECT k, sum(x) AS t, count(*) AS n FROM s GROUP BY k, session_window(ts, '8 seconds')",
    "over": "SELECT ts, x, sum(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND "
    "CURRENT ROW) AS t FROM s",
    "ahead": "SELECT ts, x, max(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN CURRENT ROW AND "
    "INTERVAL '9' SECOND FOLLOWING) AS t FROM s",
    "ordered": "SELECT k, latest(x) AS t FROM s GROUP BY k, session_window(ts, '8 seconds'); "
    "SELECT k, latest(x) AS t FROM s GROUP BY k, window(ts, '20 seconds', '10 seconds')",
}
LASTING = {
    "count": "SELECT k, sum(x) AS t FROM s GROUP BY k, count_window(3, 2)",
    "last": "SELECT k, sum(x) AS t FROM s GROUP BY k, last(2, '10 seconds')",
    "marks": "SELECT k, count(*) AS n FROM s GROUP BY k, punctuation_window(b)",
    "lag": "SELECT ts, lag(x) OVER (PARTITION BY k ORDER BY ts) AS t FROM s",
    "filled": "SELECT k, sum(x) AS t FROM s WHERE x > 0 GROUP BY k, window(ts, '20 seconds') FILL PREVIOUS",
}


class Latest:
    """The value of the last row, which depends on their order: rows are kept until it is known."""

    fields = {"value": ("float64", 0.0), "rows": ("int64", 0)}  # noqa: RUF012
    result = "double"

    def lift(x: float) -> tuple[float, int]:
        return x, 1

    def combine(a: Any, b: Any) -> tuple[float, int]:
        return (b.value if b.rows else a.value), a.rows + b.rows

    def lower(state: Any) -> float:
        return float(state.value)


@pytest.fixture(autouse=True, scope="module")
def latest() -> Iterator[None]:
    workbench.aggregate("latest", Latest)
    yield
    del AGGREGATES._latest["latest"]


@pytest.fixture(autouse=True)
def let_go(monkeypatch: Any) -> Counter[str]:
    """How often keys were let go."""
    counted: Counter[str] = Counter()
    keep = KeyTable.keep

    def counting(table: KeyTable, kept: Any) -> None:
        counted["let go"] += 1
        keep(table, kept)

    monkeypatch.setattr(KeyTable, "keep", counting)
    return counted


class Kept:
    """What is written of the operators of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.blocks: list[dict[int, bytes]] = [{} for _ in engine.operators]
        self.metas: list[bytes] = [b""] * len(engine.operators)
        self.written = 0

    def write(self) -> None:
        self.written = 0
        for bucket, operator in enumerate(self.engine.operators):
            changes = operator.changes()
            for gone in changes.remove:
                del self.blocks[bucket][gone]  # a block that is gone was there
            self.blocks[bucket] |= changes.put
            self.metas[bucket] = changes.meta
            self.written += sum(map(len, changes.put.values()))

    def restart(self) -> None:
        for bucket, (meta, blocks) in enumerate(zip(self.metas, self.blocks, strict=True)):
            self.engine.operators[bucket] = BucketOperator(self.engine.plan)
            self.engine.operators[bucket].load(meta, blocks.values())

    @property
    def bytes(self) -> int:
        return sum(len(block) for blocks in self.blocks for block in blocks.values())

    @property
    def keys(self) -> int:
        """Keys of the branch that knows most."""
        return max(len(branch.table) for each in self.engine.operators for branch in each.state.branches)


def workload(*sql: str, delay: int = 4, lateness: int = 6) -> Workload:
    stream = Stream("s", SCHEMA, "ts", delay * SECOND, lateness * SECOND)
    queries = [
        query for place, text in enumerate(sql) for query in parse_queries(text, {"s": stream}, name=f"q{place}")
    ]
    return Workload(stream, tuple(queries))


def rows(times: Any, keys: list[str | None], values: Any, marks: Any) -> pa.Table:
    columns = {
        "ts": pa.array(np.asarray(times, np.int64)).cast(pa.timestamp("us", "UTC")),
        "k": pa.array(keys, pa.string()),
        "i": pa.array(np.asarray(values, np.int64)),
        "x": pa.array(np.asarray(values, np.float64) / 8),
        "b": pa.array(marks, pa.bool_()),
        "d": pa.nulls(len(keys), pa.date32()),
    }
    return pa.table(columns, schema=SCHEMA)


def passing(random: np.random.Generator, batches: int, new: int, back: float = 0.1) -> Iterator[pa.Table]:
    """Micro-batches of five seconds each, with rows up to nine seconds late: of keys of the last three micro-batches,
    and some of a share ``back`` of keys that were there long ago.
    """
    for number in range(batches):
        count = int(random.integers(0, 4 * new + 1))
        key = random.integers(max(0, number - 2) * new, (number + 1) * new, count)
        again = random.random(count) < back
        key[again] = random.integers(0, (number + 1) * new, int(again.sum()))
        times = number * 5 * SECOND + random.integers(-36, 20, count) * (SECOND // 4)
        yield rows(
            times, [f"key {each}" for each in key], random.integers(-80, 80, count), random.random(count) < 0.2
        )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kept", [False, True])
def test_all_window_types_by_passing_keys_equal_the_oracle(seed: int, kept: bool, let_go: Counter[str]) -> None:
    """With restarts in between, tasks that read parts of a micro-batch, and rows as late as allowed and later."""
    random = np.random.default_rng(seed)
    chosen = workload(*FORGETFUL.values(), *(LASTING.values() if kept else ()), lateness=6 * (seed % 2))
    batches = list(passing(random, 30, new=5))
    engine = Engine(compile_workload(chosen), buckets=1 + seed % 2)
    state = Kept(engine)
    for batch in batches:
        cut = int(random.integers(0, len(batch) + 1))
        engine.step([batch.slice(cut), batch.slice(0, cut)])
        state.write()
        if random.random() < 0.3:
            state.restart()
    engine.step([], finish=True)
    check(chosen, batches, engine)
    assert let_go["let go"] >= 15, "it is about keys that are let go"


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", FORGETFUL)
def test_state_does_not_grow_with_keys_that_are_gone(name: str, again: bool, let_go: Counter[str]) -> None:
    """Four times the micro-batches, and as many keys: what is kept, and what is written, stays as it is.

    Also where every micro-batch reads the state back: what is looked at now and then must not depend on memory.
    """
    engine = Engine(compile_workload(workload(FORGETFUL[name])))
    state, most = Kept(engine), Counter[str]()
    for number, batch in enumerate(passing(np.random.default_rng(1), 160, new=5, back=0.0)):
        engine.step([batch])
        state.write()
        if again:
            state.restart()
        phase = "first" if number < 40 else "later"
        for fact, value in {"keys": state.keys, "kept": state.bytes, "written": state.written}.items():
            most[f"{phase} {fact}"] = max(most[f"{phase} {fact}"], value)
    assert let_go["let go"] >= 5
    for fact in ("keys", "kept", "written"):
        assert most[f"later {fact}"] < 1.5 * most[f"first {fact}"], f"{fact}: {most}"


@pytest.mark.parametrize("name", LASTING)
def test_what_goes_on_for_ever_keeps_its_keys(name: str, let_go: Counter[str]) -> None:
    """A window over so many rows of a key goes on counting, however long the key was silent."""
    chosen = workload(LASTING[name])
    batches = list(passing(np.random.default_rng(2), 30, new=5))
    engine = Engine(compile_workload(chosen))
    engine.run(batches)
    check(chosen, batches, engine)
    assert not let_go


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_key_that_comes_back_is_as_one_that_never_was_there(name: str, let_go: Counter[str]) -> None:
    """Key a has two rows, is forgotten, and comes again: both times what it had by itself, neither result is lost."""
    times = [0, 1, 100, 200, 300, 301, 400]
    keys = ["a", "a", "b", "c", "a", "a", "d"]
    values = [8, 16, 1, 1, 24, 32, 1]
    chosen = workload(FORGETFUL[name])
    engine = Engine(compile_workload(chosen))
    batches = [
        rows([time * SECOND], [key], [value], [False]) for time, key, value in zip(times, keys, values, strict=True)
    ]
    for batch in batches:
        (report,) = engine.step([batch])
        if batch["k"][0].as_py() == "c":
            assert report.keys <= 1, "a and b are forgotten"
    engine.step([], finish=True)
    check(chosen, batches, engine)
    found = engine.results["q0"].table().to_pylist()
    own = [row["t"] for row in found if (row["k"] == "a" if "k" in row else row["x"] >= 1)]
    expected = {
        "tumbling": [3.0, 7.0],  # of 8 / 8 and 16 / 8, of 24 / 8 and 32 / 8
        "session": [3.0, 7.0],
        "sliding": [2.0] * 3 + [4.0] * 3 + [2.0] * 6 + [4.0] * 6,
        "ordered": [2.0, 4.0],
        "over": [1.0, 3.0, 3.0, 7.0],
        "ahead": [2.0, 2.0, 4.0, 4.0],
    }
    assert own == expected[name]


def test_numbers_of_rows_tell_those_of_a_key_apart_although_it_was_forgotten() -> None:
    """A sink knows a row of an OVER query by key and number."""
    engine = Engine(compile_workload(workload(FORGETFUL["over"], delay=0, lateness=0)))
    batches = list(passing(np.random.default_rng(3), 60, new=2, back=0.3))
    for batch in batches:
        engine.step([batch])
    engine.step([], finish=True)
    store = engine.results["q0"]
    table = store.table(numbered=True)
    assert len(table) == sum(map(len, batches)) - engine.late["q0"]


def test_keys_without_a_row_in_any_window_are_let_go(let_go: Counter[str]) -> None:
    """Rows that are all late leave nothing behind but their key."""
    engine = Engine(compile_workload(workload(FORGETFUL["tumbling"])))
    for number in range(20):
        engine.step([rows([(1_000 + 10 * number) * SECOND, 0], ["now", f"late {number}"], [1, 1], [False, False])])
    assert engine.late["q0"] == 19  # the first of them came before the watermark stood anywhere
    assert len(engine.operators[0].state.branches[0].table) <= 5
    assert let_go["let go"] > 2


def test_revisions_of_a_window_go_on_while_keys_before_it_are_let_go(let_go: Counter[str]) -> None:
    """A key every 20 seconds, and in the three micro-batches after its window was final a late row each::

    row       |0        |1        |2        |3        |4
    late                          |0        |0 1      |0 1 2
    key 0     open      final     revised   revised   revised, for the last time: 60 seconds late
    """
    engine = Engine(compile_workload(workload(FORGETFUL["tumbling"], delay=0, lateness=60)))
    for number in range(40):
        own = [number, *(number - late for late in (2, 3, 4) if number >= late)]
        times = [(20 * key + 1) * SECOND for key in own]
        engine.step([rows(times, [f"key {key}" for key in own], [8] * len(own), [False] * len(own))])
    found = {row["k"]: (row["t"], row["status"], row["revision"]) for row in engine.results["q0"].table().to_pylist()}
    assert {key: found[key] for key in list(found)[:36]} == {
        f"key {number}": (4.0, "revised", 3) for number in range(36)
    }
    assert not sum(engine.late.values())
    assert let_go["let go"] > 2


@st.composite
def short_lives(draw: st.DrawFn) -> list[pa.Table]:
    """Micro-batches in which old keys go and new ones come, and some come back; times as far apart as they like."""
    now, batches = 0, []
    for number in range(draw(st.integers(3, 14))):
        now += draw(st.sampled_from([0, 1, 5, 20, 60])) * SECOND
        row = st.fixed_dictionaries(
            {
                "ts": st.integers(-40, 8).map(lambda quarters, now=now: now + quarters * SECOND // 4),
                "k": st.one_of(st.integers(number, number + 2), st.integers(0, number)).map(lambda n: f"k{n}"),
                "i": INTEGERS,
                "x": FLOATS,
                "b": st.sampled_from([None, True, False]),
                "d": st.none(),
            }
        )
        batches.append(pa.Table.from_pylist(draw(st.lists(row, max_size=6)), SCHEMA))
    return batches


def restarted(chosen: Workload, batches: list[pa.Table], buckets: int, again: list[bool]) -> None:
    engine = Engine(compile_workload(chosen), buckets=buckets)
    state = Kept(engine)
    for number, batch in enumerate(batches):
        engine.step([batch])
        state.write()
        if again[number % len(again)]:
            state.restart()
    engine.step([], finish=True)
    check(chosen, batches, engine)


AGAIN = st.lists(st.booleans(), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(workloads(most=6, types=tuple(TYPES)), short_lives(), st.integers(1, 2), AGAIN)
def test_any_workload_by_short_lived_keys_equals_the_oracle(
    chosen: Workload, batches: list[pa.Table], buckets: int, again: list[bool]
) -> None:
    restarted(chosen, batches, buckets, again)


@settings(max_examples=40, deadline=None)
@given(over_workloads(most=2), short_lives(), st.integers(1, 2), AGAIN)
def test_any_over_query_by_short_lived_keys_equals_the_oracle(
    chosen: Workload, batches: list[pa.Table], buckets: int, again: list[bool]
) -> None:
    restarted(chosen, batches, buckets, again)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@settings(max_examples=200, deadline=None)
@given(st.one_of(workloads(most=6, types=tuple(TYPES)), over_workloads()), short_lives(), st.integers(1, 3), AGAIN)
def test_many_workloads_by_short_lived_keys_equal_the_oracle(
    chosen: Workload, batches: list[pa.Table], buckets: int, again: list[bool]
) -> None:
    restarted(chosen, batches, buckets, again)
