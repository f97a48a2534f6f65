"""Context-free windows as arithmetic on arrays: what every type of them can be asked.

The two methods of the paper's interface for them (*General Stream Slicing* §5.4.2) are here in the form that a whole
batch needs: :meth:`Grid.edges` and ``progressions`` give the edges in a range of time (``getNextEdge``),
:meth:`Grid.select` the windows that ended between two watermarks (``triggerWin``). Times in int64 microseconds.

Ends of the windows of a grid ascend with their starts, so neighbouring slices share most of their windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.plan.slicing import Edges
from workbench.time import LIMIT

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Bounds:
    """Windows ``[starts[i], ends[i])``, by end ascending."""

    starts: Array
    ends: Array

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, which: slice | Array) -> Bounds:
        return Bounds(self.starts[which], self.ends[which])


class Grid(ABC):
    """The windows of one context-free type, numbered so that starts and ends ascend with the number."""

    #: Edges that are arithmetic progressions.
    progressions: tuple[Edges, ...] = ()

    def edges(self, low: int, high: int) -> Array:
        """The edges that are not in ``progressions``: the latest at or before ``low`` and all in ``(low, high]``."""
        return np.zeros(0, np.int64)

    @abstractmethod
    def containing(self, times: Array) -> tuple[Array, Array]:
        """The first and the last number (inclusive) of the windows that contain each time; last < first: none."""

    @abstractmethod
    def bounds(self, numbers: Array) -> Bounds:
        """Windows by number."""

    @abstractmethod
    def closed(self, time: int) -> int:
        """The largest number of a window that ends at or before a time."""

    def select(self, starts: Array, after: int, until: int) -> Bounds:
        """The windows that end in ``(after, until]`` and contain at least one of the slices, which ascend.

        Cost: proportional to the slices and the answer, however far apart they lie.
        """
        return self.bounds(self._touched(starts, self.closed(after) + 1, self.closed(until)))

    def _touched(self, starts: Array, low: int, high: int) -> Array:
        if not len(starts) or high < low:
            return np.zeros(0, np.int64)
        first, last = self.containing(starts)
        first, last = np.maximum(first, low), np.minimum(last, high)
        # Both ascend, so what earlier slices have named ends at the largest last so far.
        named = np.maximum.accumulate(np.concatenate(([low - 1], last[:-1])))
        begin = np.maximum(first, named + 1)
        count = np.maximum(last - begin + 1, 0)
        begin, count = begin[count > 0], count[count > 0]
        before = np.cumsum(count) - count
        return np.repeat(begin - before, count) + np.arange(int(count.sum()))

    def first_end(self, starts: Array) -> Array:
        """When the first window that contains each slice ends; ``LIMIT`` where there is none."""
        first, last = self.containing(starts)
        return np.where(first <= last, self.bounds(first).ends, LIMIT)

    def next_end(self, time: int) -> int:
        """The end of the first window to end after a time, ``LIMIT`` if there is none."""
        return int(self.bounds(np.array([self.closed(time) + 1])).ends[0])

    def open_from(self, watermark: int) -> int:
        """The start of the earliest window that ends after a watermark: slices before it are of no more use."""
        return int(self.bounds(np.array([self.closed(watermark) + 1])).starts[0])
