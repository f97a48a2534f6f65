"""Partials of every shape cross from tasks to state and back: numbers, texts, runs, sketches, a user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

import workbench
from tests.spark.events import STREAM, make_plan
from workbench.feeds import ReplayOptions
from workbench.logical import Workload
from workbench.results import QueryResults
from workbench.runtime.engine import Engine
from workbench.runtime.lowering import result_schema
from workbench.runtime.reference import reference
from workbench.runtime.wire import Report
from workbench.spark.runner import StreamRunner

pytestmark = pytest.mark.spark

NAMES = {"of": max}


class Widest:
    """The widest step between neighbours: order matters, and the dictionary keeps numba away."""

    fields = {"rows": ("int64", 0), "first": ("float64", 0.0), "last": ("float64", 0.0), "step": ("float64", 0.0)}  # noqa: RUF012

    def lift(x: float) -> tuple[Any, ...]:
        return 1, x, x, 0.0

    def combine(a: Any, b: Any) -> tuple[Any, ...]:
        if not a.rows or not b.rows:
            one = a if a.rows else b
            return one.rows, one.first, one.last, one.step
        return a.rows + b.rows, a.first, b.last, NAMES["of"](a.step, b.step, abs(b.first - a.last))

    def lower(state: Any) -> float:
        return float(state.step)


SQL = """
SELECT key, skewness(value) AS s, m4(value) AS m, first(key) AS f, median(value) AS q, mode(key) AS o,
       count(DISTINCT value) AS d, approx_quantile(value, array(0.5, 1)) AS a, approx_count_distinct(key) AS c,
       histogram(value, 0, 2, 2) AS h, widest(value) AS w
FROM events GROUP BY key, zoom(ts, '1 minute', '10 minutes / 5 minutes')
"""


def test_all_shapes_of_partials_equal_the_oracle(spark: Any, recording: Callable[..., str]) -> None:
    workbench.aggregate("widest", Widest)
    plan, path = make_plan(SQL), recording(1_000)
    store = QueryResults(result_schema(plan.queries[0]))

    def take(reports: list[Report]) -> None:
        for report in reports:
            store.apply([batch for _, batch in report.results])

    runner = StreamRunner(spark, plan, ReplayOptions((path,), max_rows=500), take)
    runner.start()
    assert runner.wait(180)
    assert runner.progress().state == "finished", runner.progress().details
    table = pq.read_table(path)
    inside = Engine(plan).run([table])["q"].table()
    order = [("level", "ascending"), ("window_start", "ascending"), ("key", "ascending")]
    assert store.table().sort_by(order).to_pylist() == inside.sort_by(order).to_pylist()
    answers, _ = reference(Workload(STREAM, (plan.queries[0].query,)), [table])
    assert len(answers["q"]) == len(store.table()) > 50
