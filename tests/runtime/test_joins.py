"""Rows joined with static tables: every way of running gives what the oracle's nested loops give."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from answers import answer_of, assert_same, check
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SCHEMA, SECOND, streams

from workbench.errors import SourceError
from workbench.language import Catalog, parse_queries
from workbench.logical import Stream, Workload
from workbench.logical import joins as static
from workbench.logical.joins import StaticTable
from workbench.plan import SharedPlan, compile_workload
from workbench.results import batches_of
from workbench.runtime.engine import Engine
from workbench.runtime.reference import reference
from workbench.runtime.table import TableRunner

NAN = float("nan")
COLUMNS = {"k": pa.string(), "i": pa.int64(), "x": pa.float64(), "b": pa.bool_(), "d": pa.date32()}


def tables() -> st.SearchStrategy[pa.Table]:
    """Tables whose keys come from the same few values as those of the streams, many of them twice, and NULL."""
    row = st.fixed_dictionaries(
        {
            "k": st.sampled_from([None, "a", "b", "c", "", "zz"]),
            "i": st.sampled_from([None, 0, 1, -1, 2**62]),
            "x": st.sampled_from([None, 0.0, -0.0, NAN, 1.5, float("inf")]),
            "b": st.sampled_from([None, True, False]),
            "d": st.none(),
            "label": st.sampled_from([None, "one", "two"]),
            "weight": st.one_of(st.none(), st.integers(-5, 5)),
        }
    )
    schema = pa.schema([*COLUMNS.items(), ("label", pa.string()), ("weight", pa.int32())])
    return st.lists(row, max_size=8).map(lambda rows: pa.Table.from_pylist(rows, schema))


def compiled(sql: str, table: pa.Table, schema: pa.Schema = SCHEMA) -> tuple[Workload, SharedPlan]:
    stream = Stream("s", schema, "ts", 5 * SECOND)
    catalog = Catalog({"s": stream}, {"t": StaticTable.of("t", table)})
    workload = Workload(stream, parse_queries(sql, catalog, name="q"))
    return workload, compile_workload(workload)


QUERIES = """
SELECT t.label, count(*) AS n, sum(weight) AS w, max(s.x + weight) AS m FROM s JOIN t USING (k)
    WHERE label IS NOT NULL GROUP BY t.label, window(ts, '10 seconds', '4 seconds');
SELECT t.label, s.k, count(weight) AS n FROM s LEFT JOIN t ON s.{key} = t.{key}
    WHERE s.b IS NOT FALSE GROUP BY t.label, s.k, zoom(ts, '5 seconds', '20 seconds / 10 seconds');
SELECT count(*) AS n FROM s JOIN t ON s.{key} = t.{key} AND t.k = s.k JOIN t AS u ON u.i = t.weight
    WHERE s.x > 0 OR u.label = 'one' GROUP BY window(ts, '7 seconds') HAVING n > 1
"""


@settings(max_examples=60, deadline=None)
@given(streams(), tables(), st.sampled_from(sorted(COLUMNS)))
def test_same_as_nested_loops(batches: list[pa.Table], table: pa.Table, key: str) -> None:
    workload, plan = compiled(QUERIES.replace("{key}", key), table)
    engine = Engine(plan, buckets=2)
    engine.run(batches)
    check(workload, batches, engine)
    whole = pa.concat_tables(batches)
    expected, _ = reference(workload, [whole])
    engine = Engine(plan)
    for query, batch in batches_of(TableRunner(plan, 2).run(whole)):
        engine.results[query].apply([batch])
    for name, answer in expected.items():
        assert_same(answer_of(engine.results[name]), answer)


FORMS = """
SELECT t.label, count(*) AS n, sum(weight) AS w FROM s JOIN t USING (k)
    WHERE label IS NOT NULL GROUP BY t.label, session_window(ts, '3 seconds');
SELECT t.label, count(*) AS n, max(weight) AS w FROM s LEFT JOIN t USING (k)
    GROUP BY t.label, session_window(ts, CASE WHEN weight > 0 THEN '1 second' ELSE '5 seconds' END);
SELECT count(weight) AS n FROM s LEFT JOIN t USING (k) GROUP BY count_window(3);
SELECT t.label, count(*) AS n, sum(weight) AS w FROM s JOIN t USING (k)
    GROUP BY t.label, punctuation_window(weight = 2)
"""


@settings(max_examples=30, deadline=None)
@given(streams(), tables())
def test_in_windows_with_bounds_of_their_own(batches: list[pa.Table], table: pa.Table) -> None:
    workload, plan = compiled(FORMS, table)
    engine = Engine(plan, buckets=2)
    engine.run(batches)
    check(workload, batches, engine)


def rows(plan: SharedPlan, table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Engine(plan).run([table])["q"].table().to_pylist()
    return found


EVENTS = pa.table(
    {
        "ts": pa.array([0, 1, 2, 3, 4], pa.timestamp("s", "UTC")),
        "k": ["a", "b", "c", None, "a"],
        "v": [1, 2, 4, 8, 16],
    }
)
NAMES = pa.table({"k": ["a", "a", "b", None], "name": ["A", "AA", "B", "nobody"]})


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        # Both rows of `a` stand beside both of the table's; `c` and NULL have no partner.
        ("JOIN", {"A": 17, "AA": 17, "B": 2}),
        ("LEFT JOIN", {"A": 17, "AA": 17, "B": 2, None: 12}),
    ],
)
def test_by_hand(kind: str, wanted: dict[str | None, int]) -> None:
    sql = f"SELECT name, sum(v) AS total FROM s {kind} t USING (k) GROUP BY name, window(ts, '1 minute')"
    _, plan = compiled(sql, NAMES, EVENTS.schema)
    assert {row["name"]: row["total"] for row in rows(plan, EVENTS)} == wanted


def test_a_table_without_rows() -> None:
    for kind, wanted in (("JOIN", []), ("LEFT JOIN", [5])):
        sql = f"SELECT count(*) AS n FROM s {kind} t USING (k) GROUP BY window(ts, '1 minute')"
        _, plan = compiled(sql, NAMES.slice(0, 0), EVENTS.schema)
        assert [row["n"] for row in rows(plan, EVENTS)] == wanted


def test_conditions_on_the_stream_are_asked_before_the_join_and_guard_what_follows() -> None:
    """A row that the filter drops is never looked up; a condition behind one about the table is asked after it."""
    sql = """SELECT count(*) AS n FROM s JOIN t ON s.v / (s.v - 8) = t.weight
        WHERE v <> 8 AND t.weight > 0 AND 1 / t.weight > 0 GROUP BY window(ts, '1 minute')"""
    table = pa.table({"weight": [2.0, 0.0, -0.3333333333333333]})
    _, plan = compiled(sql, table, EVENTS.schema)
    assert [row["n"] for row in rows(plan, EVENTS)] == [1]  # 16 / 8 = 2


def test_queries_with_the_same_join_share_one_fold() -> None:
    sql = "SELECT name, {} AS x FROM s JOIN t USING (k) GROUP BY name, window(ts, '1 minute')"
    _, plan = compiled(f"{sql.format('sum(v)')}; {sql.format('max(v)')}", NAMES, EVENTS.schema)
    assert len(plan.folds) == 1
    assert "[JOIN t ON k = t.k]" in str(plan.folds[0].where)


def test_a_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "MOST_BYTES", 10)
    with pytest.raises(SourceError, match=r"the table `t` has \d+ bytes; a static table may have 10"):
        StaticTable.of("t", NAMES)
