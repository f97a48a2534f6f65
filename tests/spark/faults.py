"""What the tests of faults have in common: a stream whose answer is known, and processes to kill."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.spark.events import SECOND, make_plan
from workbench.feeds import ReplayOptions
from workbench.results import Status
from workbench.runtime.wire import Report
from workbench.spark.progress import Progress
from workbench.spark.runner import StreamRunner

LONG = 240.0
ROWS = 1_000
#: Rows of a micro-batch: ten of them.
BITE = 100

Windows = dict[tuple[str, int], tuple[Any, ...]]


def counted(rows: int = ROWS, value: int = 1, size: int = 60) -> Windows:
    """The windows of ``recording``, counted one by one: (key, start in seconds) -> (total, n)."""
    counts: dict[tuple[str, int], int] = {}
    for row in range(rows):
        place = "abc"[row % 3], row // size * size
        counts[place] = counts.get(place, 0) + 1
    return {place: (n * value, n) for place, n in counts.items()}


class Finals:
    """The final results of the query ``q`` over any number of runs: what comes again must say the same."""

    def __init__(self) -> None:
        self.found: Windows = {}
        self.rows: list[int] = []

    def __call__(self, reports: list[Report]) -> None:
        self.rows.append(reports[0].rows)
        for batch in (each.own() for report in reports for name, each in report.results if name == "q"):
            values = zip(*(column.to_pylist() for column in batch.values), strict=True)
            for key, start, status, row in zip(
                batch.keys[0].to_pylist(), batch.starts, batch.status, values, strict=True
            ):
                if status == Status.FINAL:
                    assert self.found.setdefault((key, int(start) // SECOND), row) == row


def run(
    spark: Any,
    path: str,
    checkpoint: Path,
    got: Callable[[list[Report]], None],
    harm: Callable[[StreamRunner], object] = lambda runner: None,
    *,
    bite: int = BITE,
) -> Progress:
    """One run to its end, whatever that is; ``harm`` is called when it has started."""
    options = ReplayOptions((path,), max_rows=bite)
    runner = StreamRunner(spark, make_plan(), options, got, checkpoint=checkpoint)
    runner.start()
    harm(runner)
    assert runner.wait(LONG), runner.progress()
    return runner.progress()


def pythons(jvm: int) -> Iterator[psutil.Process]:
    """The Python processes below a JVM: the planner, the daemon of workers and its forks."""
    for process in psutil.Process(jvm).children(recursive=True):
        try:
            if "python" in process.name():
                yield process
        except psutil.NoSuchProcess:
            continue


def kill(process: psutil.Process) -> None:
    """At once, with no chance to clean up."""
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def assert_readable(progress: Progress) -> None:
    """A failed run says why, in one line or with a hint below it, never with a trace."""
    assert progress.state == "failed"
    assert progress.error, progress.details
    lines = [line for line in progress.error.splitlines() if not line.startswith("hint: ")]
    assert len(lines) == 1, progress.error
    assert "Traceback" not in progress.error
