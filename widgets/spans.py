"""Points of windows with bounds of their own, which differ by key: sessions, windows over a number of rows.

Windows of a key that do not overlap are drawn as segments from start to end, at the height of their value. Where
they do overlap, or are too many for that, a line goes from end to end. Each key has its own points: a window of
another key never interrupts a line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.results import Series, Status
from workbench.widgets.bands import Roles
from workbench.widgets.points import Array, Band, Points, isolated, reduced

#: Pixels that a segment needs.
_ROOM = 2


@dataclass(frozen=True)
class _Packed:
    """Windows of each key without gaps between them, ``[n-th window, key]``; ``there`` is false behind the last."""

    there: Array
    starts: Array
    ends: Array
    status: Array
    values: dict[str, Array]


def irregular_points(series: Series, since: int, pixel: int, width: int, roles: Roles) -> dict[str, Points]:
    """The points of every value column for windows that end after ``since``; see :func:`.points.read_points`."""
    packed = _pack(series, since)
    overlap = (packed.starts[1:] < packed.ends[:-1]) & packed.there[1:]
    segments = not overlap.any() and len(packed.there) * _ROOM <= width
    draw = _segments if segments else _lines
    return {name: draw(packed, name, pixel, width, roles) for name in series.values}


def _pack(series: Series, since: int) -> _Packed:
    present = (series.status != Status.ABSENT) & (series.ends >= since)
    longest = int(present.sum(axis=0).max()) if present.size else 0
    rows = np.argsort(~present, axis=0, kind="stable")[:longest]
    there = np.take_along_axis(present, rows, axis=0)
    starts = np.broadcast_to(series.starts[:, None], present.shape)

    def packed(matrix: Array) -> Array:
        return np.take_along_axis(np.broadcast_to(matrix, present.shape), rows, axis=0)

    values = {name: np.where(there, packed(matrix), np.nan) for name, matrix in series.values.items()}
    status = np.where(there, packed(series.status), Status.ABSENT).astype(np.int8)
    return _Packed(there, _held(packed(starts), there), _held(packed(series.ends), there), status, values)


def _held(times: Array, there: Array) -> Array:
    """Times that stay at the last one behind a key's last window, so that they ascend."""
    if not len(times):
        return times
    low = np.iinfo(np.int64).min
    held: Array = np.maximum.accumulate(np.where(there, times, low), axis=0)
    return np.where(held == low, 0, held)


def _segments(packed: _Packed, name: str, pixel: int, width: int, roles: Roles) -> Points:
    """Three points a window: its start, its end, and a gap."""

    def woven(first: Array, second: Array, third: Array) -> Array:
        return np.stack([first, second, third], axis=1).reshape(3 * len(first), first.shape[1])

    values, gap = packed.values[name], np.full(packed.there.shape, np.nan)
    short = (packed.starts == packed.ends) & ~np.isnan(values)
    none = np.zeros_like(short)
    band = None
    if name in roles.bands:
        low, high = (packed.values[side] for side in roles.bands[name])
        band = Band(woven(packed.starts, packed.ends, packed.ends), woven(low, low, gap), woven(high, high, gap))
    count = packed.values.get(roles.count or "")
    return Points(
        woven(packed.starts, packed.ends, packed.ends),
        woven(values, values, gap),
        woven(packed.status, packed.status, packed.status),
        woven(short, none, none),
        woven(packed.starts, packed.starts, packed.starts),
        woven(packed.ends, packed.ends, packed.ends),
        None if count is None else woven(count, count, count),
        band,
    )


def _lines(packed: _Packed, name: str, pixel: int, width: int, roles: Roles) -> Points:
    """One point a window, at its end; of too many those that M4 picks, key by key."""
    values = packed.values[name]
    count = packed.values.get(roles.count or "")
    whole = Points(packed.ends, values, packed.status, isolated(values), packed.starts, packed.ends, count)
    if len(values) <= 4 * width:
        if name not in roles.bands:
            return whole
        low, high = (packed.values[side] for side in roles.bands[name])
        return replace(whole, band=Band(packed.ends, low, high))
    parts = [reduced(whole.of(key), whole.x[:, key] // pixel) for key in range(values.shape[1])]
    return _side_by_side(parts)


def _side_by_side(parts: list[Points]) -> Points:
    """Points of single keys as one, short ones filled up behind their end."""
    height = max(len(part.y) for part in parts)

    def beside(name: str, fill: float | None) -> Array:
        padding = {"mode": "edge"} if fill is None else {"constant_values": fill}
        columns = [getattr(part, name) for part in parts]
        return np.hstack([np.pad(c, ((0, height - len(c)), (0, 0)), **padding) for c in columns])

    return Points(
        beside("x", None),
        beside("y", np.nan),
        beside("status", Status.ABSENT),
        beside("alone", False),
        beside("starts", None),
        beside("ends", None),
        None if parts[0].count is None else beside("count", np.nan),
    )
