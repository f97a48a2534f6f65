"""The form without a page: every control, the SQL that follows, errors in their place."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ipywidgets as ipw
import pyarrow as pa
import pytest

from workbench.language import parse_queries
from workbench.logical import Column, Stream, Workload
from workbench.plan import compile_workload
from workbench.plan.drawing import draw
from workbench.time import DAY, HOUR, MINUTE, SECOND
from workbench.widgets import QueryForm
from workbench.widgets.draft import FUNCTIONS, Draft, Value, columns_for, likely_keys

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("carrier", pa.string()),
        ("delay", pa.float64()),
        ("the gate", pa.int32()),
        ("tags", pa.list_(pa.string())),
    ]
)
STREAMS = {name: Stream(name, SCHEMA, "ts", 0) for name in ("flights", "others")}


class Stage:
    """A form whose cells and runs end in lists."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.runs: list[tuple[str, str]] = []
        self.form = QueryForm(STREAMS, plan=self.plan, create=self.create, run=self.run)

    def plan(self, sql: str, name: str) -> str:
        queries = parse_queries(sql, STREAMS, name=name)
        return draw(compile_workload(Workload(queries[0].stream, queries)))

    def create(self, cell: str) -> str:
        self.cells.append(cell)
        return "there it is"

    def run(self, sql: str, name: str) -> ipw.Widget:
        self.runs.append((sql, name))
        return ipw.HTML("live")


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_it_begins_with_something_that_runs(stage: Stage) -> None:
    assert "count(*) AS n" in stage.form.sql.value
    assert "<svg" in stage.form.picture.value
    assert stage.form.said.value == ""
    assert list(stage.form.by) == ["carrier", "the gate"]


def test_the_sql_follows_every_control(stage: Stage) -> None:
    form = stage.form
    form.by["carrier"].value = True
    form.by["the gate"].value = True
    form.values[1][0].value = "p90"
    form.where.value = "delay > 0"
    form.levels[0].value = (10 * SECOND, 30 * SECOND)
    form.levels[1].value = (HOUR, HOUR)
    assert form.create_cell.cell == (
        "%%winquery query --source flights --live\n"
        "SELECT carrier, `the gate`, count(*) AS n, quantile(delay, 0.9) AS p90_delay\n"
        "FROM flights\nWHERE delay > 0\n"
        "GROUP BY carrier, `the gate`, zoom(ts, '30 seconds / 10 seconds', '1 hour', '1 day / 1 hour')"
    )


@pytest.mark.parametrize("done", [True, False])
def test_the_kernel_hands_a_cell_over_where_the_page_could_not_put_it(stage: Stage, done: bool) -> None:
    form = stage.form
    assert form.create_cell.shown_in == form.model_id
    form.create_cell._received(None, {"type": "pressed", "done": done}, [])
    assert stage.cells == ([] if done else [form.draft.cell("query")])
    assert form.said.value == ("the cell stands below" if done else "there it is")


@pytest.mark.parametrize("name", ["", "two words", "1st", "a.b", "class"])
def test_a_name_that_cannot_be_a_variable_is_refused(stage: Stage, name: str) -> None:
    """The cell would be `%%winquery two words`: words that mean something else."""
    stage.form.name.value = name
    assert f"`{name}` cannot name a query" in stage.form.said.value
    assert stage.form.create_cell.cell == stage.form.picture.value == ""
    stage.form.name.value = "fine"
    assert stage.form.said.value == ""
    assert stage.form.create_cell.cell.startswith("%%winquery fine ")


def test_aggregates_and_levels_come_and_go(stage: Stage) -> None:
    form = stage.form
    form.add_value.click()
    form.values[2][0].value = "max"
    assert "max(delay)" in form.sql.value
    form.values[2][1].value = "delay"
    assert "max(delay) AS max_delay" in form.sql.value
    for row in list(form._value_box.children):
        row.children[2].click()
    assert form.values == []
    assert "there is no aggregate" in form.said.value
    form.add_value.click()
    form.add_level.click()
    form.add_level.click()
    assert len(form.levels) == 4
    assert form.add_level.disabled
    slider, told, away = form._level_box.children[1].children
    slider.value = (HOUR, HOUR)
    assert told.value == "1 hour"
    away.click()
    assert slider not in form.levels
    assert not form.add_level.disabled
    assert "'1 hour'" not in form.sql.value
    for row in list(form._level_box.children):
        row.children[2].click()
    assert "there is no level" in form.said.value
    form.add_level.click()
    assert form.said.value == ""
    assert form.create_cell.cell.count("zoom(") == 1


def test_two_equal_levels_and_values_are_one(stage: Stage) -> None:
    form = stage.form
    form.levels[0].value = form.levels[1].value = form.levels[2].value = (MINUTE, HOUR)
    form.add_value.click()
    assert form.draft.sql().count("1 hour") == 1
    assert form.draft.sql().count("avg(") == 1


def test_what_cannot_run_says_why_and_takes_the_plan_away(stage: Stage) -> None:
    form = stage.form
    form.where.value = "delai > 0"
    assert "unknown column `delai`" in form.said.value
    assert "did you mean" in form.said.value
    assert form.picture.value == form.create_cell.cell == ""
    form.where.value = "delay > 0"
    assert form.said.value == ""
    assert "<svg" in form.picture.value


def test_run_shows_the_dashboard_in_its_place(stage: Stage) -> None:
    stage.form.name.value = "mine"
    stage.form.run_query.click()
    assert stage.runs == [(stage.form.draft.sql(), "mine")]
    assert [type(child) for child in stage.form.place.children] == [ipw.HTML]


def test_another_source_begins_anew(stage: Stage) -> None:
    stage.form.by["carrier"].value = True
    stage.form.source.value = "others"
    assert "FROM others" in stage.form.draft.sql()
    assert stage.form.draft.keys == ()
    assert len(stage.form.levels) == 3


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_aggregate_on_offer_binds_on_every_column_on_offer(function: str) -> None:
    stream = STREAMS["flights"]
    columns = columns_for(function, stream)
    assert columns
    for column in columns:
        draft = Draft(stream, ("carrier",), (Value(function, column),), ((MINUTE, DAY),))
        assert parse_queries(draft.sql(), STREAMS, name="q")


def test_values_from_outside_are_escaped(stage: Stage) -> None:
    stage.form.where.value = "carrier = '<img>'"
    assert "<img>" not in stage.form.sql.value
    assert "&lt;img&gt;" in stage.form.sql.value


def test_a_stream_without_numbers_has_a_form_as_well() -> None:
    stream = Stream("bare", pa.schema([("ts", pa.timestamp("us", "UTC"))]), "ts", 0)
    calls: list[Any] = []
    form = QueryForm(
        {"bare": stream}, plan=lambda sql, name: calls.append(sql) or "", create=str, run=lambda *_: None
    )
    assert "count(*)" in calls[-1]
    assert form.by == {}


def test_columns_named_by_words_of_sql(stage: Stage) -> None:
    schema = pa.schema([("when", pa.timestamp("us", "UTC")), ("from", pa.string()), ("amount", pa.float64())])
    draft = Draft(Stream("sales", schema, "when", 0), ("from",), (Value("avg", "amount"),))
    assert parse_queries(draft.sql(), {"sales": draft.stream}, name="q")


def test_the_import_alone_makes_no_widget() -> None:
    """A layout at the top of a module would be a comm of its own in every kernel."""
    code = "import workbench.widgets, ipywidgets; print(len(ipywidgets.widgets.widget._instances))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "0"


@pytest.mark.parametrize(
    "names",
    [
        ("level", "status"),  # columns that every result has
        ("n", "v"),
        ("Query", "revision"),
        ("k", "V", "v"),  # names that differ in their case alone
    ],
)
def test_columns_whose_names_are_taken_in_results_get_others(names: tuple[str, ...]) -> None:
    """A notebook about a log with the columns `level` and `status` must run."""
    key, *measured = names
    schema = pa.schema([("ts", pa.timestamp("us")), (key, pa.string()), *((name, pa.float64()) for name in measured)])
    stream = Stream("log", schema, "ts", 0)
    values = (*(Value("avg", name) for name in measured), *(Value("max", name) for name in measured))
    draft = Draft(stream, (key,), (*values, Value("count", "")))
    (bound,) = parse_queries(draft.sql(), {"log": stream}, name="q")
    assert [named.expression for named in bound.keys] == [Column(pa.string(), key)]
    assert len(bound.values) == 2 * len(measured) + 1


def test_columns_are_on_offer_by_their_type_in_the_language() -> None:
    """Text in any layout is worth grouping by; what no aggregate takes is not offered."""
    kinds = {
        "view": pa.string_view(), "byte": pa.uint8(), "huge": pa.uint64(), "half": pa.float16(),
        "bytes": pa.binary(), "money": pa.decimal128(9, 2), "clock": pa.time32("s"), "span": pa.duration("us"),
    }  # fmt: skip
    stream = Stream("rows", pa.schema([("ts", pa.timestamp("us")), *kinds.items()]), "ts", 0)
    assert likely_keys(stream) == ["view", "byte", "huge"]
    assert columns_for("avg", stream) == ["half", "money", "byte"]
    assert columns_for("max", stream) == ["half", "money", "view", "byte", "ts"]
    for function in FUNCTIONS:
        for column in columns_for(function, stream):
            draft = Draft(stream, ("view",), (Value(function, column),))
            assert parse_queries(draft.sql(), {"rows": stream}, name="q")
