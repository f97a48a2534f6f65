"""Sums of floats over the last rows, kept up to date by what comes and what leaves (subtract-on-evict).

For those who ask for ``numerics='fast'``: the running sum has seen rows that are no longer in the window, so it is
rounded as a sum of more values than there are. It is the least work there is, one scan of the differences between
rows that come and rows that leave, and what it can spoil is bounded: every so many rows a sum is computed afresh. What
is not finite never gets into a running sum that goes on: a scan that has met any ends in NaN or infinity, so one look
at its end tells, and its piece is done over with infinities and NaN counted apart
(:func:`~workbench.kernels.combine.lift_fast`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.kernels.combine import MINUS
from workbench.kernels.jit import jit
from workbench.kernels.scan import prefix_difference


@jit
def _counted(x: Any) -> Any:
    """How often a value is +inf and -inf, in one integer; NaN is one of each."""
    nan = x != x
    return ((x == np.inf) | nan) * np.int64(1) + ((x == -np.inf) | nan) * np.int64(MINUS)


@jit
def _told(total: Any, counts: Any) -> Any:
    """The sum of a window from that of its finite values and the counts of the others."""
    if counts == 0:
        return total
    plus, minus = counts % MINUS > 0, counts // MINUS > 0
    if plus and minus:
        return np.nan
    return np.inf if plus else -np.inf


@jit
def _afresh(values: Any) -> Any:
    """The sum of the finite values, in eight strands that do not wait for each other."""
    a = b = c = d = e = f = g = h = 0.0
    whole = values.size - values.size % 8
    for i in range(0, whole, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(whole, values.size):
        total += values[i]
    if total - total == 0.0:
        return total
    total = 0.0
    for i in range(values.size):
        if values[i] - values[i] == 0.0:
            total += values[i]
    return total


@jit
def _careful(comes: Any, leaves: Any, out: Any, total: Any, counts: Any) -> Any:
    """The sums at the rows of a piece where some in the windows are not finite; returns the new total and counts."""
    for i in range(comes.size):
        if comes[i] - comes[i] == 0.0:
            total += comes[i]
        if leaves[i] - leaves[i] == 0.0:
            total -= leaves[i]
        counts += _counted(comes[i]) - _counted(leaves[i])
        out[i] = _told(total, counts)
    return total, counts


@jit
def rolling_sums(
    x: Any, ring: Any, at: Any, totals: Any, counts: Any, since: Any, sizes: Any, periods: Any, tile: Any, out: Any
) -> None:
    """Write the sums of the windows of ``sizes`` rows that end at each row of ``x`` to ``out[window, row]``.

    ``ring`` holds the last rows, at least as many as the longest window has and ``tile``, in a multiple of ``tile``
    places and ``tile`` more that repeat the first; ``at[0]`` is the place of the next row. ``totals`` are the sums of
    the finite values in each window now, ``counts`` how many of the others, ``since`` the rows since it was last
    summed up afresh.
    """
    rows, n, row = ring.size - tile, x.size, 0
    while row < n:
        pos = at[0]
        m = min(tile - pos % tile, n - row)
        comes = x[row : row + m]
        ring[pos : pos + m] = comes
        if pos < tile:
            ring[rows + pos : rows + pos + m] = comes
        for q in range(sizes.size):
            begin = (pos - sizes[q]) % rows
            leaves, sums = ring[begin : begin + m], out[q, row : row + m]
            finite = counts[q] == 0
            if finite:
                total = prefix_difference(comes, leaves, sums, totals[q])
                finite = total - total == 0.0
            if finite:
                totals[q] = total
            else:
                totals[q], counts[q] = _careful(comes, leaves, sums, totals[q], counts[q])
            since[q] += m
            if since[q] >= periods[q]:
                since[q] = 0
                begin = (pos + m - sizes[q]) % rows
                end = min(begin + sizes[q], rows)
                totals[q] = _afresh(ring[begin:end]) + _afresh(ring[: begin + sizes[q] - end])
        at[0] = (pos + m) % rows
        row += m
