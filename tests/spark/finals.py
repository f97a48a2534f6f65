"""What comes out of several runs on one checkpoint, and a hang in the middle of a micro-batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from tests.spark.events import SECOND
from workbench.results import Status
from workbench.runtime.wire import Report

#: Patience with a loaded machine; nothing here is a measurement.
LONG = 180.0


class Finals:
    """Keeps the final results of all runs; one that comes again must be the same.

    The micro-batch before which ``let_pass`` others have come hangs, ``inside`` the callback, until ``gate`` opens.
    What an earlier run has recorded comes on the thread that starts the next one, and does not count.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], tuple[int, int]] = {}
        self.let_pass = 1_000_000
        self.gate = threading.Event()
        self.inside = threading.Event()

    def hang(self, let_pass: int) -> None:
        """Hang in a micro-batch of the next run, whose offsets are in Spark's log by then."""
        self.let_pass = let_pass
        self.gate.clear()
        self.inside.clear()

    def __call__(self, reports: list[Report]) -> None:
        if threading.current_thread() is not threading.main_thread():
            if self.let_pass == 0:
                self.inside.set()
                assert self.gate.wait(LONG)
            self.let_pass -= 1
        for place, value in finals_of(reports):
            assert self.found.setdefault(place, value) == value


def finals_of(reports: list[Report]) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
    """(key, window start in seconds) and the values of the final results of one micro-batch."""
    for _, batch in (result for report in reports for result in report.results):
        own = batch.own()
        values = zip(*(column.to_pylist() for column in own.values), strict=True)
        for key, start, status, value in zip(
            own.keys[0].to_pylist(), own.starts.tolist(), own.status, values, strict=True
        ):
            if status == Status.FINAL:
                yield (key, start // SECOND), value
