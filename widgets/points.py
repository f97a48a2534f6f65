"""From the store to points: what a plot of some range, width and level has to draw.

A window is drawn at its END, the moment from which its value can be known; the axis says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.results import QueryResults, Series, Status
from workbench.widgets.m4 import m4

Array = npt.NDArray[Any]
Key = tuple[Any, ...]

#: Part of the visible range that is read on either side of it, so that a small pan shows data at once.
MARGIN = 0.25


@dataclass(frozen=True)
class Points:
    """One value column as it is drawn, matrices ``[point, key]``.

    ``x`` int64 microseconds (ends of windows, ascending), ``y`` with NaN where the line is interrupted, ``status``
    codes, ``alone`` true where a value has no neighbour, so that no line would show it.
    """

    x: Array
    y: Array
    status: Array
    alone: Array

    def final(self) -> tuple[Array, Array]:
        """``x`` and ``y`` of the windows that are final or revised, NaN elsewhere, up to the last one."""
        known = self.status >= Status.FINAL
        rows = np.flatnonzero(known.any(axis=1))
        # Nothing for the open windows behind them: their number changes at every tick, this part seldom.
        end = int(rows[-1]) + 1 if len(rows) else 0
        return self.x[:end], np.where(known, self.y, np.nan)[:end]

    def provisional(self) -> tuple[Array, Array]:
        """``x`` and ``y`` of the provisional windows and, to join the lines, of the point before each run."""
        open_ = self.status == Status.PROVISIONAL
        rows = np.flatnonzero(open_.any(axis=1))
        if not len(rows):
            return self.x[:0], self.y[:0]
        first = max(0, int(rows[0]) - 1)
        open_ = open_[first:]
        joined = open_.copy()
        joined[:-1] |= open_[1:]
        return self.x[first:], np.where(joined, self.y[first:], np.nan)

    def dots(self) -> tuple[Array, Array, Array]:
        """``x``, ``y`` and key position of the values without a neighbour, each once."""
        rows, keys = np.nonzero(self.alone)
        found = np.unique(np.stack([self.x[rows, keys], keys], axis=1), axis=0, return_index=True)[1]
        rows, keys = rows[found], keys[found]
        return self.x[rows, keys], self.y[rows, keys], keys


def read_points(
    results: QueryResults, level: int, start: int, end: int, width: int, keys: Sequence[Key]
) -> dict[str, Points]:
    """The points of every value column for windows that end in ``[start, end]`` microseconds, and a margin.

    The columns of the matrices are ``keys`` in that order, NaN for a key that the level does not hold. At most
    four points per pixel column (of ``width`` over the range) and key: M4 where more windows fall into one.
    """
    shape = results.schema.levels[level]
    margin = int((end - start) * MARGIN) + shape.slide
    series = results.series(level, start - margin - shape.size, end + margin - shape.size + 1, keys)
    ends = series.starts + shape.size
    places = [keys.index(key) for key in series.keys]
    pixel = max(1, (end - start) // max(1, width))
    status = _spread(series.status, places, len(keys), Status.ABSENT)
    points = {}
    for name, values in series.values.items():
        y = _spread(values, places, len(keys), np.nan)
        whole = Points(np.broadcast_to(ends[:, None], y.shape), y, status, _alone(y))
        # Columns are counted from the epoch, not from the edge of the range, so that a moving range picks the
        # same points again and the line does not shimmer.
        points[name] = whole if pixel <= 4 * shape.slide else _reduce(whole, ends // pixel)
    return points


def rank_keys(results: QueryResults, limit: int) -> list[Key]:
    """The ``limit`` most important keys, in order of appearance; all where there are not more.

    Importance: windows with a result at the coarsest level, then the sum of the first integer column (a count,
    as a rule), then order of appearance. Reads the whole coarsest level only where there are more keys.
    """
    level = len(results.schema.levels) - 1
    keys = results.keys(level)
    for other in range(level):
        known = set(keys)
        keys += [key for key in results.keys(other) if key not in known]
    if len(keys) <= limit:
        return keys
    series = results.series(level)
    windows = (series.status != Status.ABSENT).sum(axis=0)
    weight = _weight(results, series)
    best = np.lexsort((np.arange(len(windows)), -weight, -windows))[:limit]
    return [series.keys[position] for position in sorted(best)]


def key_label(key: Key) -> str:
    """How a key is written in legends: its parts, ``NULL`` for a missing one, ``all`` for the empty key."""
    return ", ".join("NULL" if part is None else str(part) for part in key) or "all"


def _weight(results: QueryResults, series: Series) -> Array:
    for name, kind in results.schema.values:
        if pa.types.is_integer(kind):
            return np.nansum(series.values[name], axis=0)
    return np.zeros(len(series.keys))


def _spread(matrix: Array, places: list[int], width: int, fill: float) -> Array:
    """The matrix with its columns at ``places`` of ``width`` columns, ``fill`` in the others."""
    if places == list(range(width)):
        return matrix
    wide = np.full((len(matrix), width), fill, matrix.dtype)
    wide[:, places] = matrix
    return wide


def _alone(y: Array) -> Array:
    gap = np.pad(np.isnan(y), ((1, 1), (0, 0)), constant_values=True)
    alone: Array = ~gap[1:-1] & gap[:-2] & gap[2:]
    return alone


def _reduce(whole: Points, columns: Array) -> Points:
    rows = m4(columns, whole.y)
    none = rows < 0
    # A column without a value keeps its place as a gap; its x is the start of the column's windows.
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    rows = np.where(none, np.repeat(starts, 4)[:, None], rows)
    x, y, status, alone = (
        np.take_along_axis(matrix, rows, axis=0) for matrix in (whole.x, whole.y, whole.status, whole.alone)
    )
    return Points(x, np.where(none, np.nan, y), status, alone & ~none)
