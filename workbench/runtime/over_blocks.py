"""What frames are found over, made block by block: each stays in the cache from its times to its scans.

Each thread takes the blocks of its part of the rows, in their order::

    times        |1 1 2 2 2 3 ...  |
    partials     |x x x x x x ...  |  of rows
    moments      |1   2     3 ...  |  with the partials of their rows as one, where all frames go by time
    scans        |chunk|chunk|chu..|  of whole chunks: one that a block cuts waits for the next block
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from workbench.codegen.over import CHUNK, NO_STEPS, FrameKernel, SortedRows, sealed
from workbench.kernels.frames import NO_INDEX, fill_steps, time_index
from workbench.kernels.peers import NO_MOMENTS, begin_moments, count_moments, next_moment
from workbench.runtime.over_columns import room

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]
T = TypeVar("T")

#: Rows to a block.
_BLOCK = 1 << 18
#: Share of the chunks with rows at equal distances from which on frames are found without an index.
_REGULAR = 0.9


@dataclass(frozen=True)
class Block:
    """The rows ``[begin, end)``, and the moments ``[low, high)`` that these are, or the rows once more."""

    begin: int
    end: int
    low: int
    high: int


def row_blocks(rows: int) -> list[Block]:
    """Blocks of rows that stand for themselves."""
    return [Block(*cut, *cut) for cut in pairwise([*range(0, rows, _BLOCK), rows])]


def moment_blocks(pool: ThreadPoolExecutor, threads: int, times: Array, runs: Array) -> list[Block] | None:
    """Blocks that begin with a moment; None if a row is earlier than the one before it in its run."""
    times, runs, step = sealed(times), sealed(runs), max(1, min(_BLOCK, len(times) // threads))
    edges = [0]
    for edge in range(step, len(times), step):
        if edge > edges[-1]:
            edges.append(next_moment(times, runs, edge))
    if edges[-1] < len(times):
        edges.append(len(times))
    cuts = [*pairwise(edges)]
    parts = pool.map(lambda own: [count_moments(times, runs, *cut) for cut in own], _shares(cuts, threads))
    counts = [*chain.from_iterable(parts)]
    moments = pairwise([0, *accumulate(counts)])
    return None if min(counts) < 0 else [Block(*own, *found) for own, found in zip(cuts, moments, strict=True)]


class Places:
    """Moments or rows with their partials, ``values``, and the ``scans`` of those at ``scanned``.

    ``united``: moments stand for the rows of ``blocks``. ``stepped``: frames that go by time will use the scans.
    """

    def __init__(
        self,
        kernels: Sequence[FrameKernel],
        rows: tuple[Array, Array, list[Fields | None]],
        blocks: Sequence[Block],
        united: bool,
        scanned: Iterable[int],
        stepped: bool,
    ) -> None:
        self._kernels, self._blocks, self._rows = kernels, blocks, rows
        count = self._count = blocks[-1].high
        self._times, self._runs, self.values = rows
        self._at = NO_MOMENTS
        if united:
            self._times, self._at = room(count, np.int64), room(count + 1, np.int32)
            self.values = [own and tuple(room(count, field.dtype) for field in own) for own in self.values]
        self._steps = np.empty(-(-count // CHUNK), np.int64) if stepped else NO_STEPS
        self.scans: dict[int, tuple[Fields, Fields]] = {}
        for position in scanned:
            kinds = kernels[position].kind.dtypes
            first, second = (tuple(room(count, kind) for kind in kinds) for _ in range(2))
            self.scans[position] = first, second

    def fill(self, pool: ThreadPoolExecutor, threads: int) -> SortedRows:
        """Make all there is to make on so many threads."""
        parts = _shares(self._blocks, threads)
        list(pool.map(self._fill, parts))
        # Chunks in which another thread went on.
        for low in {part[-1].high // CHUNK * CHUNK for part in parts if part[-1].high % CHUNK}:
            self._scan(low, min(low + CHUNK, self._count))
        runs, index, shift = self._runs, NO_INDEX, 0
        if len(self._at):
            # In the type of ``at``, which would be converted as a whole otherwise.
            runs = np.searchsorted(self._at, runs.astype(self._at.dtype))
        if len(runs) == 2 and np.count_nonzero(self._steps) < _REGULAR * len(self._steps):
            index, shift = time_index(self._times)
        return SortedRows(self._times, runs, index, shift, self._at, self._steps)

    def _fill(self, blocks: Sequence[Block]) -> None:
        ready = -(-blocks[0].low // CHUNK) * CHUNK
        for block in blocks:
            if len(self._at):
                self._unite(block)
            until = block.high if block.high == self._count else block.high // CHUNK * CHUNK
            if until > ready:
                self._scan(ready, until)
                ready = until

    def _unite(self, block: Block) -> None:
        """The moments of a block and their partials."""
        times, runs, fields = self._rows
        own = slice(block.low, block.high)
        begin_moments(sealed(times), sealed(runs), block.begin, block.end, self._at[own], self._times[own])
        self._at[block.high] = block.end  # where the next block begins, which another thread may take later
        for kernel, mine, out in zip(self._kernels, fields, self.values, strict=True):
            if mine is not None and out is not None:
                kernel.united(self._at, mine, out, (block.low, block.high))

    def _scan(self, low: int, high: int) -> None:
        """Distances and scans of whole chunks."""
        if len(self._steps):
            fill_steps(sealed(self._times), CHUNK, low, high, self._steps)
        for position, scans in self.scans.items():
            values = self.values[position]
            assert values is not None
            self._kernels[position].scan(values, scans, low, high)


def _shares(items: Sequence[T], threads: int) -> list[Sequence[T]]:
    """Some neighbours for each thread, if there are as many."""
    edges = np.linspace(0, len(items), min(threads, len(items)) + 1).astype(int).tolist()
    return [items[low:high] for low, high in pairwise(edges)]
