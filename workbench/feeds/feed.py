"""What a host needs of a feed: how far the next micro-batch may go, and the rows between two positions.

A *position* says which rows are out. A host writes the position that a micro-batch ends at to a log of its own before
the batch runs; so whatever crashes, the same rows are read again between the same two positions. Everything that a
position does not say, but on which the rows between two of them depend, a feed writes to its own folder first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

#: Fewer rows than this are not worth another task.
TASK_ROWS = 50_000
#: Rows of a micro-batch where nobody bounds them: of the first one, and at most.
FIRST_ROWS, MOST_ROWS = 100_000, 8_000_000

#: Which rows are out: what JSON can hold, by names that a feed chooses, except ``finished``, ``plan``, ``passed``.
Position: TypeAlias = dict[str, Any]


@dataclass
class Tally:
    """What a task counts while it reads: ``dropped`` rows that cannot be read, if the feed was told to drop them."""

    dropped: int = 0


class Piece(Protocol):
    """Rows that one task reads. Picklable and complete in itself: it is read in another process or machine."""

    def read(self, schema: pa.Schema, tally: Tally) -> Iterator[pa.RecordBatch]:
        """The columns of ``schema``, in its types, of these rows, in order; the same ones every time.

        Raises SourceError where they cannot be read any more.
        """
        ...


class Feed(Protocol):
    """The rows of one run of a plan, from the first position on. Used by one thread of one process at a time."""

    def initial(self) -> Position:
        """The position before the first row."""
        ...

    def advance(self, position: Position, limit: int | None) -> tuple[Position, bool]:
        """How far a micro-batch after ``position`` may go, and whether no row will ever follow. Never waits.

        The position itself where there is nothing. ``limit`` bounds the rows, None leaves that to the feed. Raises
        SourceError where the feed cannot go on; asked again after the cause is gone, it does.
        """
        ...

    def pieces(self, start: Position, end: Position, tasks: int) -> list[list[Any]]:
        """The rows between two positions that :meth:`advance` gave, now or before a crash: pieces for each task.

        At most ``tasks`` of similar length, at least one, which may be empty.
        """
        ...

    def commit(self, position: Position) -> None:
        """What is before ``position`` will never be asked for again."""
        ...

    def close(self) -> None:
        """Let go of what is open; the feed is not used again."""
        ...


class FeedOptions(Protocol):
    """What a feed is opened from, in whatever process needs it. Picklable.

    ``max_rows`` bounds a micro-batch (None: as the feed sees fit), ``tasks`` the tasks it is cut into (None: one per
    bucket). ``replayable`` says whether another run can begin with the first row again.
    """

    @property
    def replayable(self) -> bool: ...

    @property
    def max_rows(self) -> int | None: ...

    @property
    def tasks(self) -> int | None: ...

    def open(self, time: str, folder: Path, now: Callable[[], float]) -> Feed:
        """The feed, with ``time`` the column of event time and ``now`` a clock in seconds that never goes back.

        ``folder`` is the feed's own, as lasting as the positions are; the feed makes it where it needs one.
        """
        ...


def task_count(rows: int, tasks: int) -> int:
    """How many of at most ``tasks`` tasks so many rows are worth; at least one."""
    return max(1, min(tasks, rows // TASK_ROWS))


def usual_rows(row: int) -> int:
    """How many rows a micro-batch takes that begins at ``row``, where nobody bounds them: three times those before.

    The first results come soon, and a long recording pays for few micro-batches. By the position alone, so a second
    run is cut into the same ones, and the same rows are late.
    """
    return min(max(3 * row, FIRST_ROWS), MOST_ROWS)
