"""Points of one value column: what a plot draws of it, split into what is final, open, alone and revised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.results import Status
from workbench.widgets.m4 import m4

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Band:
    """The range between two values, matrices ``[point, key]``: ``x`` microseconds, NaN in both where none is."""

    x: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Points:
    """One value column as it is drawn, matrices ``[point, key]``.

    ``x`` int64 microseconds (ascending for each key), ``y`` with NaN where the line is interrupted, ``status`` codes,
    ``alone`` true where a value has no neighbour, so that no line would show it. ``starts`` and ``ends`` are the
    bounds of the windows where they do not follow from the level, ``count`` the rows of each window where the query
    counts them.
    """

    x: Array
    y: Array
    status: Array
    alone: Array
    starts: Array | None = None
    ends: Array | None = None
    count: Array | None = None
    band: Band | None = None

    def final(self) -> Points:
        """The windows that are final or revised, ``y`` NaN elsewhere, up to the last one."""
        known = self.status >= Status.FINAL
        rows = np.flatnonzero(known.any(axis=1))
        # Nothing for the open windows behind them: their number changes at every tick, this part seldom.
        return self._part(0, int(rows[-1]) + 1 if len(rows) else 0, known)

    def provisional(self) -> Points:
        """The provisional windows and, to join the lines, the point before each run of them."""
        open_ = self.status == Status.PROVISIONAL
        rows = np.flatnonzero(open_.any(axis=1))
        if not len(rows):
            return self._part(0, 0, open_)
        joined = open_.copy()
        joined[:-1] |= open_[1:]
        return self._part(max(0, int(rows[0]) - 1), len(open_), joined)

    def dots(self) -> tuple[Array, Array, Array]:
        """``x``, ``y`` and key position of the values without a neighbour, each once."""
        return self._marks(self.alone)

    def revised(self) -> tuple[Array, Array, Array]:
        """``x``, ``y`` and key position of the windows that were changed after they had been final, each once."""
        return self._marks((self.status == Status.REVISED) & ~np.isnan(self.y))

    def of(self, key: int) -> Points:
        """The points of one key."""
        band = self.band and Band(*(matrix[:, key : key + 1] for matrix in vars(self.band).values()))
        return replace(self.mapped(lambda matrix: matrix[:, key : key + 1]), band=band)

    def _marks(self, chosen: Array) -> tuple[Array, Array, Array]:
        rows, keys = np.nonzero(chosen)
        found = np.unique(np.stack([self.x[rows, keys], keys], axis=1), axis=0, return_index=True)[1]
        rows, keys = rows[found], keys[found]
        return self.x[rows, keys], self.y[rows, keys], keys

    def _part(self, first: int, end: int, shown: Array) -> Points:
        return replace(self.mapped(lambda matrix: matrix[first:end]), y=np.where(shown, self.y, np.nan)[first:end])

    def mapped(self, function: Callable[[Array], Array]) -> Points:
        """The points with each of their matrices as ``function`` gives it; the band stays."""
        parts: dict[str, Any] = {
            name: function(part) for name, part in vars(self).items() if isinstance(part, np.ndarray)
        }
        return replace(self, **parts)


def isolated(y: Array) -> Array:
    """Where a value stands between two gaps of its column."""
    gap = np.pad(np.isnan(y), ((1, 1), (0, 0)), constant_values=True)
    alone: Array = ~gap[1:-1] & gap[:-2] & gap[2:]
    return alone


def reduced(whole: Points, columns: Array) -> Points:
    """The M4 points of pixel ``columns`` (ascending, one of each row)."""
    rows = m4(columns, whole.y)
    none = rows < 0
    # A column without a value keeps its place as a gap; its x is the start of the column's windows.
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    rows = np.where(none, np.repeat(starts, 4)[:, None], rows)

    picked = whole.mapped(lambda matrix: np.take_along_axis(matrix, rows, axis=0))
    return replace(picked, y=np.where(none, np.nan, picked.y), alone=picked.alone & ~none)
