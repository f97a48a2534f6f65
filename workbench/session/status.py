"""How a query is doing, as its handle says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.runtime.learned import Learned
from workbench.time import format_time


@dataclass(frozen=True)
class QueryStatus:
    """How a query is doing; times in microseconds, None before the first row.

    ``state`` is starting, running, finished, stopped or failed. ``batch_seconds`` is how long the latest micro-batch
    took, 0 where that is not known (yet). ``rows`` counts those read for the whole shared
    plan, ``late`` the rows of this query that missed at least one window, ``backward`` those that were left out as
    their measure goes back (the first of them in ``gone_back``), ``ahead`` those too far in the future to
    move the watermark, ``dropped`` those that the source could not read and was told to leave out. ``slices`` and
    ``tuples`` (rows) are what the shared plan keeps, of so many ``keys``; ``merges``, ``splits`` and
    ``recomputations`` count what rows out of order have made of its slices and windows so far. ``resumed`` tells,
    on an older checkpoint, what went on from there and what began. ``learned`` is what tasks have seen of the rows
    that the query reads: the order of its conditions and how many rows pass each, and the range of its keys.
    ``background`` names the queries that go on from an earlier run on the checkpoint, and whose cells have not run
    in this one.
    """

    query: str
    state: str
    rows: int
    rows_per_s: float
    batches: int
    batch_seconds: float
    watermark: int | None
    max_event: int | None
    late: int
    backward: int
    ahead: int
    dropped: int
    windows: dict[str, dict[str, int]]
    slices: int
    tuples: int
    state_bytes: int
    error: str | None
    resumed: str | None = None
    gone_back: str | None = None
    keys: int = 0
    merges: int = 0
    splits: int = 0
    recomputations: int = 0
    learned: tuple[Learned, ...] = ()
    background: tuple[str, ...] = ()

    def __str__(self) -> str:
        def moment(time: int | None) -> str:
            return "none yet" if time is None else format_time(time)

        latest = f", the latest took {self.batch_seconds:.2f} s" if self.batch_seconds else ""
        keys = f"{self.keys:,} key{'s' * (self.keys != 1)}"
        lines = [
            f"{self.query}: {self.state}",
            f"  rows       {self.rows:,} read, {self.rows_per_s:,.0f}/s, {self.late:,} late",
            f"  watermark  {moment(self.watermark)}, latest row {moment(self.max_event)}",
            f"  batches    {self.batches:,}{latest}",
            f"  state      {self.slices:,} slices, {self.tuples:,} rows kept, {keys}, {self.state_bytes:,} bytes",
        ]
        if self.backward:
            lines.insert(2, f"  measure    {self.backward:,} rows went back and were left out: {self.gone_back}")
        if self.merges or self.splits or self.recomputations:
            work = f"{self.merges:,} merges, {self.splits:,} splits, {self.recomputations:,} recomputations"
            lines.append(f"  slicing    {work}")
        if self.ahead:
            lines.insert(3, f"  future     {self.ahead:,} rows ahead of the clock do not move the watermark")
        if self.resumed:
            lines.append(f"  checkpoint {self.resumed}")
        if self.background:
            lines.append(f"  background {unattended(self.background)}")
        if self.dropped:
            lines.insert(3, f"  dropped    {self.dropped:,} rows that could not be read")
        for label, counts in self.windows.items():
            text = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
            lines.append(f"  windows    {label}: {text or 'none yet'}")
        lines += [line for learned in self.learned for line in learned.lines()]
        if self.error:
            lines.append("  error      " + self.error.replace("\n", "\n             "))
        return "\n".join(lines)

    __repr__ = __str__


def unattended(names: Sequence[str]) -> str:
    """What goes on in the background, and what a user can do about it."""
    listed, stop = ", ".join(f"`{name}`" for name in names), " ".join(names)
    return f"goes on from an earlier run: {listed}; run the cell of each, or end it: `%winquery stop {stop}`"
