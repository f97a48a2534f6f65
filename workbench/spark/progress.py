"""Where a stream is: what a runner tells of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

State = Literal["starting", "running", "finished", "stopped", "failed"]


@dataclass(frozen=True)
class Progress:
    """Where a stream is. Times in microseconds of event time, None before the first row.

    ``late`` counts late rows by query, ``backward`` those that were left out as their measure goes back, with one of
    them in words, ``ahead`` the rows too far in the future to move the watermark, ``dropped``
    those that could not be read, where the source was told to leave them out. ``slices`` and ``tuples`` (rows) are
    what is kept, in ``state_bytes``. ``clock`` is the arrival time reached by a replay with a speed.
    ``batch_seconds`` is how long the latest micro-batch took. ``resumed`` says what goes on and what begins on an
    older checkpoint. ``error`` is one readable line of a failed stream, ``details`` all that Spark said about it.
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
    clock: int | None = None
    resumed: str | None = None
    error: str | None = None
    details: str | None = None
