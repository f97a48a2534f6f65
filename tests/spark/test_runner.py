"""A shared plan on Spark: from recorded rows to reports, and every way in which a stream can end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SECOND, make_plan, wait_for
from workbench.errors import EngineError
from workbench.feeds import ReplayOptions
from workbench.results import Status
from workbench.runtime.wire import Report
from workbench.spark.runner import StreamRunner

pytestmark = pytest.mark.spark

#: Patience with a loaded machine; nothing here is a measurement.
LONG = 180.0


class Collector:
    """Keeps the reports of all micro-batches; may be told to block inside the callback."""

    def __init__(self) -> None:
        self.batches: list[list[Report]] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, reports: list[Report]) -> None:
        self.gate.wait(LONG)
        self.batches.append(reports)

    def finals(self, *, again: bool = False) -> dict[tuple[str, int], tuple[int, int]]:
        """(key, window start in seconds) -> (total, n) of the final results; each window is final once.

        With ``again`` it may be told once more, the same: by a micro-batch that ran again as it had been stopped
        before Spark took note of its end.
        """
        found: dict[tuple[str, int], tuple[int, int]] = {}
        for reports in self.batches:
            for _, batch in (result for report in reports for result in report.results):
                own = batch.own()
                rows = zip(
                    own.keys[0].to_pylist(),
                    own.starts,
                    own.status,
                    *(v.to_pylist() for v in own.values),
                    strict=True,
                )
                for key, start, status, total, n in rows:
                    if status == Status.FINAL:
                        place = key, start // SECOND
                        assert place not in found or (again and found[place] == (total, n)), place
                        found[place] = total, n
        return found


def expected(rows: int, value: int = 1) -> dict[tuple[str, int], tuple[int, int]]:
    """The windows of one minute that ``recording`` holds, counted one by one."""
    counts: dict[tuple[str, int], int] = {}
    for row in range(rows):
        place = "abc"[row % 3], row // 60 * 60
        counts[place] = counts.get(place, 0) + 1
    return {place: (n * value, n) for place, n in counts.items()}


def test_from_rows_to_final_windows(spark: Any, recording: Callable[..., str]) -> None:
    got = Collector()
    runner = StreamRunner(spark, make_plan(), ReplayOptions((recording(1_000),), max_rows=300), got)
    assert runner.progress().state == "starting"
    runner.start()
    assert runner.wait(LONG)
    progress = runner.progress()
    assert (progress.state, progress.rows, progress.batches) == ("finished", 1_000, 4), progress.details
    assert progress.max_event == 999 * SECOND
    assert progress.late == {}
    assert got.finals() == expected(1_000)
    assert all(len(reports) == 2 for reports in got.batches), "one report per bucket and micro-batch"


def test_many_tasks_give_what_one_gives(spark: Any, recording: Callable[..., str]) -> None:
    got = Collector()
    runner = StreamRunner(spark, make_plan(), ReplayOptions((recording(130_000),), max_rows=130_000, tasks=2), got)
    runner.start()
    assert runner.wait(LONG)
    assert got.finals() == expected(130_000)


def test_no_rows_at_all(spark: Any, recording: Callable[..., str]) -> None:
    got = Collector()
    runner = StreamRunner(spark, make_plan(), ReplayOptions((recording(0),)), got)
    runner.start()
    assert runner.wait(LONG)
    assert (runner.progress().state, runner.progress().rows, got.finals()) == ("finished", 0, {})


def test_nothing_is_left_of_an_ended_stream(spark: Any, recording: Callable[..., str]) -> None:
    scratch = Path(spark.sparkContext._temp_dir)
    threads, folders = set(threading.enumerate()), set(scratch.glob("winquery-*"))
    runner = StreamRunner(spark, make_plan(), ReplayOptions((recording(10),)), Collector())
    runner.start()
    assert set(scratch.glob("winquery-*")) - folders
    assert runner.wait(LONG)
    assert not set(scratch.glob("winquery-*")) - folders
    assert not spark.streams.active
    ours = [thread for thread in set(threading.enumerate()) - threads if thread.name.startswith("winquery")]
    wait_for(lambda: not any(thread.is_alive() for thread in ours), 5, "the watcher's end")


def test_stop_while_a_batch_runs_is_a_clean_stop(spark: Any, recording: Callable[..., str]) -> None:
    """Case R4: no failure, no exception, within five seconds, and the next stream runs."""
    got = Collector()
    slow = ReplayOptions((recording(1_000),), speed=1.0 * SECOND)  # a quarter of an hour
    runner = StreamRunner(spark, make_plan(), slow, got)
    runner.start()
    wait_for(lambda: len(got.batches) >= 2, LONG, "the second batch")
    begun = time.monotonic()
    assert runner.stop()
    assert time.monotonic() - begun < 5
    progress = runner.progress()
    assert (progress.state, progress.error) == ("stopped", None)
    assert 0 < progress.rows < 1_000
    assert progress.clock is not None
    assert runner.stop(), "a second stop changes nothing"
    again = StreamRunner(spark, make_plan(), ReplayOptions((recording(100),)), got)
    again.start()
    assert again.wait(LONG)
    assert again.progress().state == "finished"


def test_stop_from_inside_the_callback(spark: Any, recording: Callable[..., str]) -> None:
    stopped: list[bool] = []
    runner = StreamRunner(
        spark,
        make_plan(),
        ReplayOptions((recording(1_000),), max_rows=10),
        lambda reports: stopped.append(runner.stop()),
    )
    runner.start()
    assert runner.wait(LONG)
    assert runner.progress().state == "stopped"
    assert stopped[0] is False, "it only asks"


def test_stop_with_finish_closes_all_windows(spark: Any, recording: Callable[..., str]) -> None:
    got = Collector()
    runner = StreamRunner(spark, make_plan(), ReplayOptions((recording(1_000),), speed=1.0 * SECOND), got)
    runner.start()
    wait_for(lambda: bool(got.batches), LONG, "the first batch")
    assert runner.stop(LONG, finish=True)
    assert runner.progress().state == "finished"
    assert got.finals() == expected(runner.progress().rows)


def test_an_error_in_a_task_is_one_line(spark: Any, recording: Callable[..., str]) -> None:
    runner = StreamRunner(spark, make_plan(), ReplayOptions((recording(100, value=2**62),)), Collector())
    runner.start()
    assert runner.wait(LONG)
    progress = runner.progress()
    assert progress.state == "failed"
    assert progress.error is not None
    assert "overflow" in progress.error
    assert "Traceback" not in progress.error
    assert "Traceback" in (progress.details or "")


def test_nanoseconds_that_do_not_fit_are_refused(spark: Any, tmp_path: Path) -> None:
    stamps = pa.array([1_000, 1_001], pa.int64()).cast(pa.timestamp("ns"))
    path = tmp_path / "nano.parquet"
    pq.write_table(pa.table([stamps, pa.array(["a", "b"]), pa.array([1, 1])], names=SCHEMA.names), path)
    runner = StreamRunner(spark, make_plan(), ReplayOptions((str(path),)), Collector())
    runner.start()
    assert runner.wait(LONG)
    assert "the column `ts` of" in (runner.progress().error or "")


def test_a_vanished_file_is_named(spark: Any, recording: Callable[..., str]) -> None:
    path = recording(1_000)
    got = Collector()
    runner = StreamRunner(spark, make_plan(), ReplayOptions((path,), speed=1.0 * SECOND), got)
    runner.start()
    wait_for(lambda: bool(got.batches), LONG, "the first batch")
    Path(path).unlink()
    assert runner.wait(LONG)
    assert f"the file `{path}` has vanished" in (runner.progress().error or "")


def test_an_error_in_the_callback_is_told(spark: Any, recording: Callable[..., str]) -> None:
    def broken(reports: list[Report]) -> None:
        raise RuntimeError("no room in the store")

    runner = StreamRunner(spark, make_plan(), ReplayOptions((recording(10),)), broken)
    runner.start()
    assert runner.wait(LONG)
    assert (runner.progress().state, runner.progress().error) == ("failed", "RuntimeError: no room in the store")


def test_a_restart_on_the_checkpoint_goes_on(spark: Any, recording: Callable[..., str], tmp_path: Path) -> None:
    """It hands on what the first run has led to and reads the rest; two runs at once are refused."""
    got, later = Collector(), Collector()
    plan, options, checkpoint = make_plan(), ReplayOptions((recording(1_000),), max_rows=100), tmp_path / "checkpoint"
    runner = StreamRunner(spark, plan, options, got, checkpoint=checkpoint)
    runner.start()
    wait_for(lambda: len(got.batches) >= 3, LONG, "some batches")
    with pytest.raises(EngineError, match="is in use by process"):
        StreamRunner(spark, plan, options, later, checkpoint=checkpoint).start()
    assert runner.stop()
    again = StreamRunner(spark, plan, options, later, checkpoint=checkpoint)
    again.start()
    assert again.wait(LONG)
    progress = again.progress()
    assert (progress.state, progress.rows, progress.resumed) == ("finished", 1_000, "goes on: `q`"), progress.details
    assert len(later.batches) <= 10 + 1, "what was committed is not read again"
    finals: dict[Any, Any] = {}
    for reports in later.batches:  # the batch that the stop broke off may have come twice: the same results
        one = Collector()
        one.batches = [reports]
        for place, values in one.finals().items():
            assert finals.setdefault(place, values) == values
    assert finals == expected(1_000)
    done = StreamRunner(spark, plan, options, got, checkpoint=checkpoint)
    done.start()
    assert done.wait(LONG)
    assert (done.progress().state, done.progress().rows) == ("finished", 1_000)
