"""Which rows are in the frame of each row, and windows over them in plain array code.

Rows stand by key and, within a key, in order of time: a *run* of rows for each key, ``runs[r] .. runs[r + 1]``. The
frame of a row is the rows ``[first, last)``; neither ever descends from one row to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.jit import jit

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


def _place(values: Array, low: int, high: int, value: int) -> int:
    """The first place in ``[low, high)`` with at least ``value``, among ascending ones, or ``high``."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


place = jit(_place)


def _behind(values: Array, low: int, high: int, value: int) -> int:
    """As ``place``, for one that is not far behind ``low``, where ``values[low]`` is less."""
    hop = 1
    while low + hop < high and values[low + hop] < value:
        low += hop
        hop *= 2
    return place(values, low + 1, min(low + hop, high), value)


behind = jit(_behind)


def _fill_first(
    times: Array, runs: Array, by_time: bool, preceding: int, low: int, begin: int, end: int, first: Array
) -> int:
    """Where the frames of the rows ``[begin, end)`` begin, into ``first``, which has an entry for each.

    ``preceding`` rows or units of time, negative: all rows of the key. ``low`` is where to look for the first one, at
    or before it in the row's run; returns the last one. Two pointers, no search.

    Mostly three rows leave at most. Additions are cheaper than branches that nobody can foretell, and three loads
    that do not wait for each other take as long as one.
    """
    run = place(runs, 0, runs.size, begin + 1) - 1
    row = begin
    while row < end:
        while row >= runs[run + 1]:
            run += 1
        head, stop = runs[run], min(runs[run + 1], end)
        low = max(low, head)
        if preceding < 0:
            for i in range(row, stop):
                first[i - begin] = head
        elif by_time:
            own, now = first[row - begin : stop - begin], times[row:stop]
            for j in range(now.size):
                since = now[j] - preceding
                if low + 2 <= row + j:
                    some = (times[np.uint64(low)] < since) + (times[np.uint64(low + 1)] < since)
                    low += some + (times[np.uint64(low + 2)] < since)
                while times[np.uint64(low)] < since:
                    low += 1
                own[j] = low
        else:
            for i in range(row, stop):
                first[i - begin] = max(head, i - preceding)
        row = stop
    return low


def _fill_last(times: Array, runs: Array, by_time: bool, begin: int, end: int, last: Array) -> bool:
    """Where they end, exclusive: behind the rows of the row's own time, or behind the row.

    False where all end behind the row.
    """
    own, now = last[: end - begin], times[begin:end]
    next_ = times[begin + 1 : end + 1]
    tied = 0
    if by_time:
        for j in range(next_.size):
            tied += now[j] == next_[j]
    for j in range(own.size):
        own[j] = begin + j + 1
    if tied == 0:
        return False
    run = place(runs, 0, runs.size, begin + 1) - 1
    row = begin
    while row < end:
        while row >= runs[run + 1]:
            run += 1
        tail = runs[run + 1]
        stop = min(tail, end)
        after = stop  # the end of the peers of a row, from the last row of the run in this piece back
        while after < tail and times[after] == times[stop - 1]:
            after += 1
        for i in range(stop - 1, row - 1, -1):
            if i + 1 < stop and times[i] != times[i + 1]:
                after = i + 1
            last[i - begin] = after
        row = stop
    return True


fill_first, fill_last = jit(_fill_first), jit(_fill_last)


def _fill_ahead(times: Array, runs: Array, by_time: bool, ahead: int, begin: int, end: int, out: Array) -> None:
    """For each of the rows ``[begin, end)`` the first one of its run at least so many rows, or so long, behind it."""
    run, low = place(runs, 0, runs.size, begin + 1) - 1, begin
    for row in range(begin, end):
        while row >= runs[run + 1]:
            run += 1
        if by_time:
            low = max(low, row)
            while low < runs[run + 1] and times[low] < times[row] + ahead:
                low += 1
            out[row - begin] = low
        else:
            out[row - begin] = min(row + ahead, runs[run + 1])


fill_ahead = jit(_fill_ahead)


def _fill_index(times: Array, origin: int, shift: int, index: Array) -> None:
    bucket = 0
    for row in range(times.size):
        own = (times[row] - origin) >> shift
        while bucket <= own:
            index[bucket] = row
            bucket += 1
    while bucket < index.size:
        index[bucket] = times.size
        bucket += 1


_filled = jit(_fill_index)
#: No index.
NO_INDEX = np.zeros(0, np.int32)


def time_index(times: Array) -> tuple[Array, int]:
    """For ascending times the first row at or after each ``times[0] + (b << shift)``, and ``shift``.

    At most about two entries a row. With it the beginning of a frame is looked up, however the times are spread: for
    frames that go far back over rows of one key. Empty for very many rows.
    """
    if not 0 < len(times) < 1 << 31:
        return NO_INDEX, 0
    span, shift = int(times[-1]) - int(times[0]), 0
    while span >> shift > 2 * len(times):
        shift += 1
    index = np.empty((span >> shift) + 2, np.int32)
    _filled(times, times[0], shift, index)
    return index, shift


def _look_up(times: Array, index: Array, shift: int, preceding: int, begin: int, end: int, first: Array) -> None:
    """As ``fill_first`` for a frame by time over the rows of one key."""
    origin = times[0]
    for i in range(begin, end):
        since = max(times[i] - preceding, origin)
        low = np.int64(index[(since - origin) >> shift])
        if shift > 0:
            # Most buckets have few rows, and additions are cheaper than branches that nobody can foretell.
            low += times[low] < since
            low += times[low] < since
            while times[low] < since:
                low += 1
        first[i - begin] = low


look_up = jit(_look_up)


def _fill_steps(times: Array, chunk: int, begin: int, end: int, steps: Array) -> None:
    """The time from row to row in each chunk from ``begin`` (a multiple of ``chunk``) to ``end``.

    0 where it is not always the same.
    """
    for low in range(begin, end, chunk):
        high = min(low + chunk, end)
        step = times[low + 1] - times[low] if low + 1 < high else 0
        uneven = step & 0
        now, next_ = times[low : high - 1], times[low + 1 : high]
        for i in range(now.size):
            uneven |= (next_[i] - now[i]) ^ step
        steps[low // chunk] = step if uneven == 0 else 0


fill_steps = jit(_fill_steps)


def _regular(
    times: Array,
    steps: Array,
    chunk: int,
    by_time: bool,
    preceding: int,
    low: int,
    head: int,
    row: int,
    stop: int,
) -> tuple[int, int, int]:
    """Where the frame of ``row`` begins, for how many rows up to ``stop`` that tells it, and whether it moves on.

    Those are rows of one run that begins at ``head``, of one chunk, and so are the rows where the frames begin.
    ``low`` is at or before the beginning, ``steps`` those of :func:`_fill_steps`. No rows where nothing is known. ::

        rows      .  .  .  .  .  .  .  .  .      at equal distances, here and where the frames begin: a row further
        frames    [--------)
                     [--------)
    """
    if preceding < 0:
        return head, stop - row, 0
    if not by_time:
        if row - preceding <= head:
            return head, min(stop, head + preceding + 1) - row, 0
        return row - preceding, min(stop - row, chunk - (row - preceding) % chunk), 1
    step = steps[row // chunk]
    if step <= 0:
        return low, 0, 0
    since, low = times[row] - preceding, max(low, head)
    # Mostly it begins where the last one did, or a row further: no search.
    if times[low] < since:
        low = low + 1 if times[low + 1] >= since else place(times, low + 2, row, since)
    ahead = times[low] - since
    if ahead < step and steps[low // chunk] == step:
        return low, min(stop - row, chunk - low % chunk), 1
    return low, min(stop - row, ahead // step + 1), 0


regular = jit(_regular)


def _first_low(times: Array, runs: Array, by_time: bool, preceding: int, begin: int) -> int:
    """Where the frame of a row begins, found by halving: for the first row of a piece."""
    head = runs[place(runs, 0, runs.size, begin + 1) - 1]
    if preceding < 0:
        return int(head)
    if by_time:
        return int(place(times, head, begin, times[begin] - preceding))
    return int(max(head, begin - preceding))


first_low = jit(_first_low)


def frames_of(
    times: Array,
    runs: Array,
    by_time: bool,
    preceding: int | None,
    begin: int = 0,
    end: int | None = None,
    until: int = 0,
) -> tuple[Array, Array]:
    """First and last (exclusive) row of the frames of the rows ``[begin, end)``, int64.

    ``preceding`` is in the unit of ``times`` or in rows; None: from the key's first row on. ``until``, in the same
    unit, is where frames end; with 0, frames by time hold the rows of the row's own time, frames by rows end with
    the row. One that ends earlier ends where a frame of one less than ``until`` would begin. Both may be negative:
    behind the row.
    """
    end = len(times) if end is None else end
    first, last = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    if begin < end:
        back = -1 if preceding is None else preceding
        if preceding is not None and preceding < 0:
            fill_ahead(times, runs, by_time, -preceding, begin, end, first)
        else:
            low = first_low(times, runs, by_time, back, begin)
            fill_first(times, runs, by_time, back, low, begin, end, first)
        if until < 0:
            fill_ahead(times, runs, by_time, 1 - until, begin, end, last)
        elif until:
            low = first_low(times, runs, by_time, until - 1, begin)
            fill_first(times, runs, by_time, until - 1, low, begin, end, last)
        else:
            fill_last(times, runs, by_time, begin, end, last)
    return first, last


def windows_by_doubling(
    first: Array, last: Array, fields: Fields, identity: Sequence[Any], combine: Callable[..., Fields]
) -> Fields:
    """Partials of the rows ``[first, last)``, whatever they are, for any monoid, without compiling anything.

    Partials of 1, 2, 4, ... rows; each window takes those of its size's binary digits, from its last row back. Cost:
    ``log2`` of the longest window in vector operations over all rows.
    """
    out = tuple(np.full(len(first), value, field.dtype) for value, field in zip(identity, fields, strict=True))
    pieces, half, until = fields, 1, last.copy()
    size = last - first
    while len(size) and half <= size.max():
        chosen = np.flatnonzero(size & half)
        until[chosen] -= half
        merged = combine(*(piece[until[chosen]] for piece in pieces), *(field[chosen] for field in out))
        for target, values in zip(out, merged, strict=True):
            target[chosen] = values
        pieces = combine(*(piece[:-half] for piece in pieces), *(piece[half:] for piece in pieces))
        half *= 2
    return out
