"""Plans that change while a stream runs on Spark: what goes on, what begins, and the same again after a crash."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.events import SECOND, SQL, STREAM, make_plan, wait_for
from workbench.feeds import ReplayOptions
from workbench.language import parse_queries
from workbench.logical import Workload
from workbench.plan import SharedPlan, compile_workload
from workbench.results import Status
from workbench.runtime.wire import Report
from workbench.spark.runner import StreamRunner

pytestmark = pytest.mark.spark

LONG = 180.0
ADDED = "SELECT key, sum(value) AS total, max(value) AS top FROM events GROUP BY key, zoom(ts, '30 seconds')"


def with_another(plan: SharedPlan) -> SharedPlan:
    """The plan and a second query, on slices of half the width."""
    (query,) = parse_queries(ADDED, {"events": STREAM}, name="r")
    return compile_workload(Workload(STREAM, (*(entry.query for entry in plan.queries), query)), running=plan)


def finals(batches: list[list[Report]], query: str) -> dict[tuple[str, int], tuple[Any, ...]]:
    """(key, window start in seconds) -> values. A micro-batch that comes again after a crash must say the same."""
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    for report in (report for reports in batches for report in reports):
        for name, batch in report.results:
            own = batch.own()
            values = zip(*(column.to_pylist() for column in own.values), strict=True)
            for key, start, status, row in zip(own.keys[0].to_pylist(), own.starts, own.status, values, strict=True):
                if name == query and status == Status.FINAL:
                    assert found.setdefault((key, start // SECOND), row) == row
    return found


def counted(rows: int, size: int, since: int) -> dict[tuple[str, int], int]:
    """Rows by key and window of ``recording``, of the windows that start at ``since`` or later."""
    counts: dict[tuple[str, int], int] = {}
    for row in range(rows):
        place = "abc"[row % 3], row // size * size
        if place[1] >= since:
            counts[place] = counts.get(place, 0) + 1
    return counts


def latest(batches: list[list[Report]], version: int) -> int:
    """The latest event time in seconds that a version of the plan has seen."""
    seen = [report.max_event for reports in batches for report in reports if report.plan == version]
    return max(time for time in seen if time is not None) // SECOND


def test_a_query_joins_the_running_plan(spark: Any, recording: Callable[..., str]) -> None:
    batches: list[list[Report]] = []
    changed = threading.Event()

    def keep(reports: list[Report]) -> None:
        batches.append(reports)
        assert len(batches) < 3 or changed.wait(LONG)

    plan = make_plan()
    runner = StreamRunner(spark, plan, ReplayOptions((recording(1_000),), max_rows=100), keep)
    runner.start()
    wait_for(lambda: len(batches) >= 3, LONG, "some batches")
    version = runner.change(with_another(plan))
    assert not runner.wait_for(version, 0.1), "the batch that runs is one of the old plan"
    changed.set()
    assert runner.wait_for(version, LONG)
    assert runner.wait(LONG)
    assert runner.progress().state == "finished", runner.progress().details
    assert finals(batches, "q") == {place: (n, n) for place, n in counted(1_000, 60, 0).items()}
    since = latest(batches, 1) + 1
    assert 0 < since < 1_000
    assert finals(batches, "r") == {place: (n, 1) for place, n in counted(1_000, 30, since).items()}


def test_a_change_needs_no_rows_and_a_crash_repeats_it(
    spark: Any, recording: Callable[..., str], tmp_path: Path
) -> None:
    """The first run stands still at its clock; the second one, on its checkpoint, reads the rest."""
    batches: list[list[Report]] = []
    plan, path, checkpoint = make_plan(), recording(1_000), tmp_path / "checkpoint"
    still = ReplayOptions((path,), speed=1.0, resume_clock=500 * SECOND)
    runner = StreamRunner(spark, plan, still, batches.append, checkpoint=checkpoint)
    runner.start()
    wait_for(lambda: bool(batches), LONG, "the first batch")
    changed = with_another(plan)
    assert runner.wait_for(runner.change(changed), LONG)
    assert batches[-1][0].rows == 0
    assert runner.stop()
    # The crash: Spark knows of the micro-batch with the change, but not that it is done.
    for folder in ("commits", "state/0"):
        assert (checkpoint / folder).is_dir()
    newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    again = StreamRunner(spark, changed, ReplayOptions((path,), max_rows=200), batches.append, checkpoint=checkpoint)
    again.start()
    assert again.wait(LONG)
    assert again.progress().state == "finished", again.progress().details
    assert finals(batches, "q") == {place: (n, n) for place, n in counted(1_000, 60, 0).items()}
    assert finals(batches, "r") == {place: (n, 1) for place, n in counted(1_000, 30, 501).items()}


def test_another_plan_on_an_old_checkpoint_is_a_change(
    spark: Any, recording: Callable[..., str], tmp_path: Path
) -> None:
    batches: list[list[Report]] = []
    plan, path, checkpoint = make_plan(), recording(1_000), tmp_path / "checkpoint"
    still = ReplayOptions((path,), speed=1.0, resume_clock=500 * SECOND)
    runner = StreamRunner(spark, plan, still, batches.append, checkpoint=checkpoint)
    runner.start()
    wait_for(lambda: bool(batches), LONG, "the first batch")
    assert runner.stop()
    queries = parse_queries(SQL, {"events": STREAM}, name="q") + parse_queries(ADDED, {"events": STREAM}, name="r")
    fresh = compile_workload(Workload(STREAM, queries))
    again = StreamRunner(spark, fresh, ReplayOptions((path,)), batches.append, checkpoint=checkpoint)
    again.start()
    assert again.wait(LONG)
    assert finals(batches, "q") == {place: (n, n) for place, n in counted(1_000, 60, 0).items()}
    assert finals(batches, "r") == {place: (n, 1) for place, n in counted(1_000, 30, 501).items()}
