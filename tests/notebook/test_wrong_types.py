"""What is given by mistake to the functions of a notebook is named, with what they expect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from inprocess import InProcessRunner

import workbench
from workbench.errors import QueryError, WorkbenchError
from workbench.language.builder import QueryBuilder
from workbench.notebook import api, dashboards
from workbench.session import Session

ROWS = pd.DataFrame({"ts": pd.to_datetime([0, 1], unit="s"), "k": ["a", "b"], "v": [1.0, 2.0]})
SQL = "SELECT count(*) AS n FROM events GROUP BY window(ts, '1 hour')"


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    made = Session(launch=InProcessRunner)
    made.source("events", ROWS, time="ts")
    monkeypatch.setattr(api, "default_session", lambda: made)
    return made


def built() -> QueryBuilder:
    return workbench.query("events").group_by("k").zoom("1 hour")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: workbench.run(None), "a query is SQL as text, or built by .*, got None"),
        (lambda: workbench.run(ROWS), "got a `DataFrame`\nhint: the rows it is about come from `workbench.source`"),
        (lambda: workbench.run([SQL]), "got a `list`"),
        (lambda: workbench.run(SQL.encode()), "got a `bytes`"),
        (lambda: workbench.run(SQL, history="yes"), "`history` is True, False or None, got 'yes'"),  # type: ignore[arg-type]
        (lambda: workbench.explain(5), "a query is SQL as text"),
        (lambda: dashboards.dashboard(5), "a query is SQL as text"),
        (lambda: workbench.run(SQL, name=5), "the name of a query is text, got 5"),
        (lambda: workbench.run(SQL, name=""), "the name of a query is text, got ''"),
        (lambda: workbench.run(SQL, source=5), "no source `5`"),
        (lambda: workbench.run(SQL, parameters=[("a", 1)]), "`parameters` is a dictionary .*, got a `list`"),
        (lambda: workbench.run(SQL, numerics=1), "no numerics `1`"),
        (lambda: workbench.query(ROWS), "expected a source or its name, got a `DataFrame`"),
        (lambda: dashboards.builder(5), "no source `5`"),
        (lambda: built().select(n=5), "expected an expression, or SQL as text, got 5"),
        (lambda: built().where(None), "expected an expression, or SQL as text, got None"),
        (lambda: built().group_by(1), "expected an expression, or SQL as text, got 1"),
        (lambda: workbench.aggregate(5), "an aggregate is a class, got 5"),
        (lambda: workbench.aggregate(type("a-b", (), {})), "`a-b` is no name for an aggregate"),
        (lambda: workbench.window_type(5), "a window type is a class, got 5"),
        (lambda: workbench.signals(a=workbench.signal("v").window("5 s")), "a window has many values"),
        (lambda: workbench.signals(a=workbench.signal("v")).run(ROWS, time="ts", by=5), "`by` is the name .*, got 5"),
        (lambda: workbench.signals(a=workbench.signal("v")).run(ROWS, time="ts", by=["k", 5]), "got 5"),
        (lambda: workbench.run(SQL).results(status=5), "no status `5`"),
        (lambda: workbench.run(SQL).add_level(5), "a level is text such as '1 hour / 5 minutes', got 5"),
    ],
)
def test_it_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(WorkbenchError, match=f"(?s){message}"):
        call()


def test_a_sink_is_a_place_or_a_function() -> None:
    from workbench.spark.sinks import SparkSink

    with pytest.raises(QueryError, match="a sink is a folder, a table's name or a function, got 5"):
        SparkSink(None, workbench.run(SQL).store, 5)  # type: ignore[arg-type]


def test_a_query_being_built_shows_its_sql() -> None:
    text = repr(built())
    assert text.startswith("QueryBuilder on `events`, which `workbench.run` starts:\n")
    assert "SELECT ...\nFROM events\nGROUP BY k, zoom(ts, '1 hour')" in text


def test_a_name_that_the_package_does_not_have_comes_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="no attribute `sorce`; did you mean `source`"):
        _ = workbench.sorce  # type: ignore[attr-defined]
    assert not hasattr(workbench, "_repr_html_")
