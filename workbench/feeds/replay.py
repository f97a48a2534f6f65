"""Recorded events, replayed in order of arrival: at a speed, or as fast as they can be read."""

from __future__ import annotations

import time as clocks
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from workbench.feeds.dialect import PLAIN, Dialect
from workbench.feeds.feed import Position, task_count, usual_rows
from workbench.feeds.formats import scan
from workbench.feeds.recording import FilePiece, Recording


@dataclass(frozen=True)
class ReplayOptions:
    """What to replay and how fast.

    ``paths`` are files of one ``format`` (of :mod:`workbench.feeds.formats`) whose rows stand in order of arrival,
    ``schema`` the columns that they must have (None: whatever they have), ``dialect`` how lines are written.
    ``arrival`` names the column of arrival times; None takes the event time. ``speed`` is microseconds of arrival per
    second of wall time, None is as fast as possible. Rows that arrived up to ``resume_clock`` come without waiting.
    ``max_rows`` bounds a micro-batch (None: see :func:`~workbench.feeds.feed.usual_rows`), ``tasks`` the tasks it is
    cut into (None: one per bucket).
    """

    replayable: ClassVar[bool] = True

    paths: tuple[str, ...]
    arrival: str | None = None
    speed: float | None = None
    max_rows: int | None = None
    resume_clock: int | None = None
    tasks: int | None = None
    format: str = "parquet"
    schema: pa.Schema | None = None
    dialect: Dialect = PLAIN

    def recording(self, time: str) -> Recording:
        """All rows, ``time`` being the column of event time. Raises SourceError as :meth:`open` does."""
        files = (scan(path, self.format, self.schema, self.dialect) for path in self.paths)
        return Recording(files, self.arrival or time)

    def open(self, time: str, folder: Path, now: Callable[[], float] = clocks.monotonic) -> ReplayFeed:
        """The feed; it writes nothing. Raises SourceError for a file that is missing or of another format."""
        return ReplayFeed(
            self.recording(time), None if self.speed is None else Pace(self.speed, now), self.resume_clock
        )


class Pace:
    """Arrival time as a function of wall time: ``speed`` microseconds per second, from ``clock`` on at first use."""

    def __init__(self, speed: float, now: Callable[[], float]) -> None:
        self._speed = speed
        self._now = now
        self._origin: tuple[float, int] | None = None

    def due(self, clock: int) -> int:
        """The arrival time reached by now. The first call starts the run, at ``clock``."""
        if self._origin is None:
            self._origin = self._now(), clock
        begun, first = self._origin
        return first + int((self._now() - begun) * self._speed)


class ReplayFeed:
    """A recording; a position is ``row``, the number of rows that are out, and ``clock``, when the last one was.

    ``clock`` is None where there is no speed, or no row.
    """

    def __init__(self, recording: Recording, pace: Pace | None, resume_clock: int | None) -> None:
        self._recording = recording
        self._pace = pace
        self._resume_clock = resume_clock

    def initial(self) -> Position:
        """Before the first row."""
        return {"row": 0, "clock": None}

    def advance(self, position: Position, limit: int | None) -> tuple[Position, bool]:
        """The rows that are due. The batch with the last row ends the stream; no rows at all end at once."""
        recording, start = self._recording, position["row"]
        row = min(recording.rows, start + (usual_rows(start) if limit is None else limit))
        clock = None
        if self._pace is not None and recording.rows:
            row = recording.rows_out(self._due(self._pace, position["clock"]), start, row)
            clock = recording.clock(row - 1) if row else None
        return {"row": row, "clock": clock}, row == recording.rows

    def pieces(self, start: Position, end: Position, tasks: int) -> list[list[FilePiece]]:
        """The rows between two positions; see :meth:`Recording.split`."""
        return self._recording.split(start["row"], end["row"], task_count(end["row"] - start["row"], tasks))

    def commit(self, position: Position) -> None:
        """Nothing can go: files are the user's."""

    def close(self) -> None:
        """Nothing is open."""

    def _due(self, pace: Pace, clock: int | None) -> int:
        """The arrival time reached by now; a restarted query goes on from where it was, not from the beginning."""
        reached = clock if clock is not None else self._recording.clock(0)
        resumed = self._resume_clock
        return pace.due(reached if resumed is None else max(reached, resumed))
