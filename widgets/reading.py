"""From the store to points: what a plot of some range, width and level has to draw.

A window of a regular level is drawn at its END, the moment from which its value can be known; the axis says so.
Windows with bounds of their own are in :mod:`workbench.widgets.spans`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from workbench.results import QueryResults, Schema, Series, Status
from workbench.widgets.bands import Roles
from workbench.widgets.keys import Key
from workbench.widgets.points import Array, Band, Points, isolated, reduced
from workbench.widgets.spans import irregular_points
from workbench.widgets.values import scale_of

#: Part of the visible range that is read on either side of it, so that a small pan shows data at once.
MARGIN = 0.25
#: The largest value that has a place on an axis: the distance between two of them is still a float, with a border.
LARGEST = 7e307
#: Windows times keys of a range that are spread out at most.
_CELLS = 4_000_000


def read_points(
    results: QueryResults,
    level: int,
    start: int,
    end: int,
    width: int,
    keys: Sequence[Key],
    roles: Roles | None = None,
    values: Sequence[str] | None = None,
) -> dict[str, Points]:
    """The points of ``values`` (all columns by default) for windows that end in ``[start, end]``, and a margin.

    Times are microseconds. The columns of the matrices are ``keys`` in that order, NaN for a key that the level does
    not hold, and for values that no axis can hold (infinite ones, those beyond ``LARGEST``): a page that meets one
    draws nothing at all. At most four points per pixel column (of ``width`` over the range) and key: M4 where more
    windows fall into one.
    """
    roles = roles or Roles()
    shape = results.schema.levels[level]
    if values is not None and roles.count is not None:
        values = list(dict.fromkeys([*values, roles.count]))
    margin = int((end - start) * MARGIN) + shape.slide
    pixel = max(1, (end - start) // max(1, width))
    if not shape.regular:
        # How long a window is, only the store knows: those that began earlier may still be running.
        series = drawable(aligned(results.series(level, None, end + margin + 1, keys, values), keys), results.schema)
        return irregular_points(series, start - margin, pixel, width, roles)
    first, last = start - margin - shape.size, end + margin - shape.size + 1
    series = aligned(results.series(level, first, last, keys, values), keys)
    series = gridded(drawable(series, results.schema), shape.slide)
    ends = series.starts + shape.size
    count = series.values.get(roles.count or "")
    points = {}
    for name, y in series.values.items():
        x = np.broadcast_to(ends[:, None], y.shape)
        whole = Points(x, y, series.status, isolated(y), count=count)
        # Columns are counted from the epoch, not from the edge of the range, so that a moving range picks the
        # same points again and the line does not shimmer.
        dense = pixel > 4 * shape.slide
        columns = ends // pixel
        if dense:
            whole = reduced(whole, columns)
        points[name] = replace(whole, band=_band(series, name, roles, ends, columns if dense else None))
    return points


def drawable(series: Series, schema: Schema) -> Series:
    """The series with NaN for what no axis can hold, and times as their axis has them."""
    scales = {name: scale_of(kind) for name, kind in schema.values}
    values = {name: np.where(np.abs(matrix) <= LARGEST, matrix, np.nan) for name, matrix in series.values.items()}
    times = {name: matrix * scales[name] for name, matrix in values.items() if scales[name] != 1}
    return replace(series, values=values | times)


def gridded(series: Series, slide: int) -> Series:
    """The series with a row for every start of its range, so that a gap in time is a gap in the line.

    A store that keeps few windows far apart leaves out starts without any. Where the rows would be too many to hold,
    the series stays as it is, and its lines bridge the gaps.
    """
    starts = series.starts
    rows = int((starts[-1] - starts[0]) // slide + 1) if len(starts) else 0
    if rows == len(starts) or rows * max(1, len(series.keys)) > _CELLS:
        return series
    places = (starts - starts[0]) // slide

    def spread(matrix: Array, fill: float) -> Array:
        wide = np.full((rows, matrix.shape[1]), fill, matrix.dtype)
        wide[places] = matrix
        return wide

    values = {name: spread(matrix, np.nan) for name, matrix in series.values.items()}
    whole = starts[0] + np.arange(rows, dtype=np.int64) * slide
    return replace(series, starts=whole, values=values, status=spread(series.status, Status.ABSENT))


def aligned(series: Series, keys: Sequence[Key]) -> Series:
    """The series with a column for each of ``keys`` in that order, absent where the level does not hold the key."""
    if series.keys == tuple(keys):
        return series
    position = {key: place for place, key in enumerate(keys)}
    places = [position[key] for key in series.keys]

    def spread(matrix: Array, fill: float) -> Array:
        wide = np.full((len(matrix), len(keys)), fill, matrix.dtype)
        wide[:, places] = matrix
        return wide

    ends = series.ends if series.ends.shape[1] == 1 else spread(series.ends, 0)
    values = {name: spread(matrix, np.nan) for name, matrix in series.values.items()}
    return replace(series, keys=tuple(keys), ends=ends, values=values, status=spread(series.status, Status.ABSENT))


def _band(series: Series, name: str, roles: Roles, ends: Array, columns: Array | None) -> Band | None:
    """The band behind a column; of each pixel column (if given) the least low and the greatest high."""
    if name not in roles.bands:
        return None
    low, high = (series.values[side] for side in roles.bands[name])
    gap = np.isnan(low) | np.isnan(high)
    low, high = np.where(gap, np.nan, low), np.where(gap, np.nan, high)
    if columns is not None and len(columns):
        starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
        low, high = np.fmin.reduceat(low, starts, axis=0), np.fmax.reduceat(high, starts, axis=0)
        ends = ends[starts]
    return Band(np.broadcast_to(ends[:, None], low.shape), low, high)
