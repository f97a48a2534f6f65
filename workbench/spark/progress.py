"""Where a stream is: what a runner tells of itself."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from workbench.runtime.learned import Learned, together
from workbench.runtime.wire import Report, added

State = Literal["starting", "running", "finished", "stopped", "failed"]

#: Over how long ``rows_per_s`` is measured, seconds.
_RECENT = 5.0


@dataclass(frozen=True)
class Progress:
    """Where a stream is. Times in microseconds of event time, None before the first row.

    ``late`` counts late rows by query, ``backward`` those that were left out as their measure goes back, with one of
    them in words, ``ahead`` the rows too far in the future to move the watermark, ``dropped`` those that could not be
    read, where the source was told to leave them out. ``slices`` and ``tuples`` (rows) are what is kept, of so
    many ``keys``, in ``state_bytes``; ``merges``, ``splits`` and ``recomputations`` count what rows out of order have
    made necessary so far: slices merged, edges put between rows that were there, and windows put together again from
    rows. ``clock`` is the arrival time reached by a replay with a speed. ``batch_seconds`` is how long the latest
    micro-batch took. ``learned`` tells what tasks have seen of the rows, by fold.
    ``resumed`` says what goes on and what begins on an older checkpoint. ``error`` is one readable line of a failed
    stream, ``details`` all that Spark said about it.
    """

    state: State = "starting"
    rows: int = 0
    rows_per_s: float = 0.0
    watermark: int | None = None
    max_event: int | None = None
    late: dict[str, int] = field(default_factory=dict)
    backward: dict[str, tuple[int, str]] = field(default_factory=dict)
    ahead: int = 0
    dropped: int = 0
    batches: int = 0
    batch_seconds: float = 0.0
    slices: int = 0
    tuples: int = 0
    state_bytes: int = 0
    keys: int = 0
    merges: int = 0
    splits: int = 0
    recomputations: int = 0
    learned: dict[str, Learned] = field(default_factory=dict)
    clock: int | None = None
    resumed: str | None = None
    error: str | None = None
    details: str | None = None

    def after(self, reports: Sequence[Report]) -> Progress:
        """With one micro-batch more, of which all buckets have told."""
        late = Counter(self.late)
        backward = self.backward
        for report in reports:
            late.update(report.late)
            backward = added(backward, report.backward)

        def total(fact: str) -> int:
            return sum(getattr(report, fact) for report in reports)

        def latest(fact: str) -> int | None:
            known = [time for report in reports if (time := getattr(report, fact)) is not None]
            return max(known, default=getattr(self, fact))

        # What is equal in every bucket counts once.
        every = {fact: getattr(self, fact) + (getattr(reports[0], fact) if reports else 0) for fact in _OF_ALL}
        work = {fact: getattr(self, fact) + total(fact) for fact in ("merges", "splits", "recomputations")}
        kept = {fact: total(fact) for fact in ("slices", "tuples", "keys", "state_bytes")}
        times = {fact: latest(fact) for fact in ("watermark", "max_event")}
        learned = together([self.learned, *(report.learned for report in reports)])
        counts: dict[str, Any] = {**every, **work, **kept, **times}
        return replace(self, late=dict(late), backward=backward, learned=learned, batches=self.batches + 1, **counts)


_OF_ALL = ("rows", "ahead", "dropped")


class Rate:
    """Rows per second of the last few seconds."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, rows: int) -> None:
        """So many more, at this moment."""
        self._recent.append((time.monotonic(), rows))

    def now(self) -> float:
        """How many a second; 0 where none has come."""
        now = time.monotonic()
        while self._recent and now - self._recent[0][0] > _RECENT:
            self._recent.popleft()
        span = now - self._recent[0][0] if self._recent else 0.0
        return sum(rows for _, rows in self._recent) / max(span, 0.5)
