"""Where the stream is cut: slice edges are the union of all window edges and no more.

*General Stream Slicing* §5: a slice is the piece between two neighbouring window edges, so every window is a run
of whole slices and a row is aggregated once, into its slice. Rows may come late, so ends are edges as well as
starts. The edges of periodic windows are arithmetic progressions; one that another one covers is left out. Those of
calendars and fixed bands are listed when a batch comes (:mod:`workbench.plan.grids`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.time import format_duration


@dataclass(frozen=True, order=True)
class Edges:
    """The times ``phase + k * period`` for all integers k; ``0 <= phase < period``, microseconds."""

    period: int
    phase: int

    def covers(self, other: Edges) -> bool:
        """Whether every edge of ``other`` is one of these."""
        return other.period % self.period == 0 and (other.phase - self.phase) % self.period == 0

    def __str__(self) -> str:
        text = f"every {format_duration(self.period)}"
        return text + (f" + {format_duration(self.phase)}" if self.phase else "")


def union(progressions: Iterable[Edges]) -> tuple[Edges, ...]:
    """All edges of some progressions as the fewest progressions, shortest period first.

    Example, one window of 10 with slide 4: starts at 0, 4, 8, ... and ends at 2, 6, 10, ...::

        0   2   4   6   8   10  12
        |---|---|---|---|---|---|     edges every 2: (4, 0) and (4, 2)
    """
    kept: list[Edges] = []
    for edges in sorted(set(progressions)):
        if not any(finer.covers(edges) for finer in kept):
            kept.append(edges)
    return tuple(kept)
