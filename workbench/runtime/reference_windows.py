"""The oracle's windows: which rows are in which, one window type after the other, as its definition says.

Rows are plain Python values, a window is a list of rows. Nothing is shared with the fast paths: calendars are
computed with dates, sessions by walking through the rows of a key.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from workbench.logical import (
    AnyWindow,
    Band,
    Calendar,
    ContextFree,
    CountWindow,
    Cumulating,
    Expression,
    LastRows,
    Literal,
    MeasureWindow,
    Punctuation,
    Session,
    UserContext,
    UserGrid,
    Window,
)
from workbench.runtime.notifying import NEVER, fresh, notify, spans
from workbench.time import parse_duration


@dataclass(frozen=True)
class Row:
    """Event time in microseconds, key, and the values of all expressions that the query reads."""

    time: int
    key: tuple[Any, ...]
    values: dict[Expression, Any] = field(hash=False)
    number: int = 0


@dataclass(frozen=True)
class Arrival:
    """One micro-batch: the watermark that held before it, and its rows."""

    watermark: float
    rows: list[Row]


#: Windows as (key, start, end, rows).
Windows = list[tuple[tuple[Any, ...], int, int, list[Row]]]


def windows_of(
    window: AnyWindow, arrivals: Sequence[Arrival], lateness: int, ordered: bool
) -> tuple[Windows, set[int]]:
    """All windows that are final at the end of the stream, and the numbers of the rows that missed one.

    ``ordered``: an aggregate depends on the order of its rows, so a row behind the watermark is late for all windows.
    """
    match window:
        case Window() | Cumulating() | Band() | Calendar() | UserGrid() if not ordered:
            return _context_free(window, arrivals, lateness)
        case Session() if not ordered:
            return _sessions(window, arrivals, lateness)
    by_key, missed = in_time(arrivals, lateness)
    windows = []
    for key, rows in by_key.items():
        rows.sort(key=lambda row: (row.time, content(row)))
        windows += [(key, *found) for found in _ORDERED[type(window)](window, rows)]
    return windows, missed


def in_time(arrivals: Sequence[Arrival], lateness: int) -> tuple[dict[tuple[Any, ...], list[Row]], set[int]]:
    """The rows that are not behind the watermark and the allowed lateness, by key; and the numbers of the others."""
    missed = {row.number for each in arrivals for row in each.rows if row.time < each.watermark - lateness}
    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for arrival in arrivals:
        for row in arrival.rows:
            if row.number not in missed:
                by_key[row.key].append(row)
    return by_key, missed


def content(row: Row) -> list[Any]:
    """What rows of equal time are ordered by: the values that the query reads, NaN behind all, NULL behind that."""
    read = sorted((e for e in row.values if not isinstance(e, Literal)), key=str)
    values = [row.values[expression] for expression in read]
    return [(2, 0) if v is None else (1, 0) if v != v else (0, v) for v in values]


def _context_free(window: ContextFree, arrivals: Sequence[Arrival], lateness: int) -> tuple[Windows, set[int]]:
    members: dict[tuple[tuple[Any, ...], int, int], list[Row]] = defaultdict(list)
    missed = set()
    for arrival in arrivals:
        for row in arrival.rows:
            for start, end in containing(window, row.time):
                if end + lateness <= arrival.watermark:
                    missed.add(row.number)
                else:
                    members[row.key, start, end].append(row)
    return [(*place, rows) for place, rows in members.items()], missed


@singledispatch
def containing(window: Any, time: int) -> Iterable[tuple[int, int]]:
    """The context-free windows that contain a time."""
    raise TypeError(window)


@containing.register
def _(window: Window, time: int) -> Iterable[tuple[int, int]]:
    start = (time - window.offset) // window.slide * window.slide + window.offset
    while start + window.size > time:
        yield start, start + window.size
        start -= window.slide


@containing.register
def _(window: Cumulating, time: int) -> Iterable[tuple[int, int]]:
    start = time - (time - window.offset) % window.size
    for end in range(start + window.step, start + window.size + 1, window.step):
        if time < end:
            yield start, end


@containing.register
def _(window: Band, time: int) -> Iterable[tuple[int, int]]:
    if window.start <= time < window.end:
        yield window.start, window.end


@containing.register
def _(window: Calendar, time: int) -> Iterable[tuple[int, int]]:
    zone = ZoneInfo(window.zone)
    day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)).astimezone(zone).date()
    if window.unit in ("day", "week"):
        days = window.count * (7 if window.unit == "week" else 1)
        first = date(1969, 12, 29) if window.unit == "week" else date(1970, 1, 1)
        start = day - timedelta(days=(day - first).days % days)
        end = start + timedelta(days=days)
    else:
        months = window.count * {"month": 1, "quarter": 3, "year": 12}[window.unit]
        number = day.year * 12 + day.month - 1
        number -= (number - 1970 * 12) % months
        start, end = (date(n // 12, n % 12 + 1, 1) for n in (number, number + months))
    moments = (datetime(d.year, d.month, d.day, tzinfo=zone) for d in (start, end))
    low, high = (round(moment.timestamp()) * 1_000_000 for moment in moments)
    yield low, high


@containing.register
def _(window: UserGrid, time: int) -> Iterable[tuple[int, int]]:
    """Edge by edge, until a window begins behind the time."""
    edge = window.call("next_edge", time)
    while edge is not None:
        for start, end in window.call("trigger", edge - 1, edge):
            if start > time:
                return
            yield start, end
        edge = window.call("next_edge", edge)


def following(window: AnyWindow, start: int, end: int) -> tuple[int, int] | None:
    """The context-free window after one of the same type."""
    match window:
        case Window():
            return start + window.slide, end + window.slide
        case Cumulating():
            grown = end + window.step
            return (start, grown) if grown <= start + window.size else (start + window.size, grown)
        case Calendar():
            return next(iter(containing(window, end)))
    return None


def _sessions(window: Session, arrivals: Sequence[Arrival], lateness: int) -> tuple[Windows, set[int]]:
    """Sessions of the rows that are in time, batch by batch: what is settled is never joined again.

    A row is late when a session of this row alone would be settled; where gaps differ by row, when it is behind the
    watermark and the allowed lateness.
    """
    joins = 1 if window.joins else 0  # a row at exactly the end is still in time
    done: Windows = []
    live: dict[tuple[Any, ...], list[tuple[int, int, list[Row]]]] = defaultdict(list)
    missed: set[int] = set()
    for arrival in arrivals:
        for key, sessions in live.items():
            settled = [each for each in sessions if each[1] + joins + lateness <= arrival.watermark]
            done += [(key, *each) for each in settled]
            sessions[:] = [each for each in sessions if each not in settled]
        for row in arrival.rows:
            gap = row.values[window.gap] if isinstance(window.gap, Expression) else window.gap
            gap = parse_duration(gap) if isinstance(gap, str) else gap
            if gap is None or gap <= 0:
                continue
            until = row.time + (1 if isinstance(window.gap, Expression) else gap + joins)
            if until + lateness <= arrival.watermark:
                missed.add(row.number)
            else:
                live[row.key].append((row.time, row.time + gap, [row]))
        for key, sessions in live.items():
            joined: list[tuple[int, int, list[Row]]] = []
            for start, end, rows in sorted(sessions, key=lambda each: each[:2]):
                if joined and start < joined[-1][1] + joins:
                    before = joined.pop()
                    joined.append((before[0], max(before[1], end), before[2] + rows))
                else:
                    joined.append((start, end, rows))
            live[key] = joined
    return done + [(key, *each) for key, sessions in live.items() for each in sessions], missed


def _counts(window: CountWindow, rows: list[Row]) -> Iterable[tuple[int, int, list[Row]]]:
    for first in range(0, len(rows) - window.size + 1, window.slide):
        own = rows[first : first + window.size]
        yield own[0].time, own[-1].time + 1, own


def _lasts(window: LastRows, rows: list[Row]) -> Iterable[tuple[int, int, list[Row]]]:
    edges = {(row.time - window.offset) // window.every * window.every + window.every + window.offset for row in rows}
    for edge in sorted(edges):
        own = [row for row in rows if row.time < edge][-window.rows :]
        yield own[0].time, edge, own


def _marks(window: Punctuation, rows: list[Row]) -> Iterable[tuple[int, int, list[Row]]]:
    marks = {row.time for row in rows if row.values[window.condition]}
    edges = [*sorted({rows[0].time, *marks}), math.inf]
    for start, end in pairwise(edges):
        own = [row for row in rows if start <= row.time < end]
        yield int(start), int(own[-1].time + 1 if end == math.inf else end), own


def backward(window: MeasureWindow, arrivals: Sequence[Arrival], lateness: int) -> int:
    """How many rows go back, of those that have a measure and are in time."""
    by_key, _ = in_time(arrivals, lateness)
    measured = [row.values[window.measure] for rows in by_key.values() for row in rows]
    finite = [value for value in measured if value is not None and math.isfinite(value)]
    return len(finite) - sum(len(forward(window, rows)) for rows in by_key.values())


def forward(window: MeasureWindow, rows: list[Row]) -> list[Row]:
    """The rows of a key, in order of time and measure, that do not go back from an earlier one."""
    kept: list[Row] = []
    measured = [row for row in rows if row.values[window.measure] is not None]
    for row in sorted(measured, key=lambda row: (row.time, row.values[window.measure])):
        if math.isfinite(row.values[window.measure]) and all(
            before.values[window.measure] <= row.values[window.measure] for before in kept if before.time < row.time
        ):
            kept.append(row)
    return kept


def _measures(window: MeasureWindow, rows: list[Row]) -> Iterable[tuple[int, int, list[Row]]]:
    def exact(units: int) -> Any:
        """A bound as a value that measures are compared with: the nearest double, where they are doubles."""
        number = Fraction(units, 10**window.digits)
        return float(number) if pa.types.is_floating(window.measure.type) else number

    members: dict[int, list[Row]] = defaultdict(list)
    for row in forward(window, rows):
        value = row.values[window.measure]
        start = (math.floor(value * 10**window.digits) - window.offset) // window.slide + 2  # too far, by one or two
        while exact(start * window.slide + window.offset + window.size) > value:
            if exact(start * window.slide + window.offset) <= value:
                members[start * window.slide + window.offset].append(row)
            start -= 1
    return [(start, start + window.size, own) for start, own in sorted(members.items())]


def _told(window: UserContext, rows: list[Row]) -> Iterable[tuple[int, int, list[Row]]]:
    memory = fresh(window)
    notify(window, memory, [(row.time, *(row.values[each] for each in window.arguments)) for row in rows])
    for start, end, _ in spans(window, memory):
        own = [row for row in rows if start <= row.time < end]
        if own:
            yield start, end if end < NEVER else own[-1].time + 1, own


def _grid(window: ContextFree, rows: list[Row]) -> Iterable[tuple[int, int, list[Row]]]:
    windows = {bounds for row in rows for bounds in containing(window, row.time)}
    return [(start, end, [row for row in rows if start <= row.time < end]) for start, end in sorted(windows)]


def _plain_sessions(window: Session, rows: list[Row]) -> Iterable[tuple[int, int, list[Row]]]:
    found, _ = _sessions(window, [Arrival(-math.inf, rows)], 0)
    return [(start, end, own) for _, start, end, own in found]


_ORDERED: dict[type, Callable[[Any, list[Row]], Iterable[tuple[int, int, list[Row]]]]] = {
    CountWindow: _counts,
    LastRows: _lasts,
    MeasureWindow: _measures,
    UserContext: _told,
    Punctuation: _marks,
    Session: _plain_sessions,
    **dict.fromkeys((Window, Cumulating, Band, Calendar, UserGrid), _grid),
}
