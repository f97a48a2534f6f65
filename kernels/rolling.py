"""Sums over the last rows, kept up to date by what comes and what leaves (subtract-on-evict, *SlideSide* §2).

One scan of the differences between rows that come and rows that leave: the least work there is. Of integers it is
exact wherever the window's own sum fits. Of floats it is for those who ask for ``numerics='fast'``: the running sum
has seen rows that are no longer in the window, so it is rounded as a sum of more values than there are. What is not
finite never gets into it: a scan that has met any ends in NaN or infinity, so one look at its end tells, and its rows
are done over with infinities and NaN counted apart (:func:`~workbench.kernels.combine.lift_fast`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.kernels.combine import MINUS
from workbench.kernels.jit import jit
from workbench.kernels.scan import prefix_difference, prefix_difference_past
from workbench.kernels.streaming import settle


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
def finite_sum(values: Any) -> Any:
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
def running_integers(comes: Any, leaves: Any, out: Any, q: Any, past: Any, totals: Any) -> None:
    """Sums of windows from the rows that come and those that leave, modulo the width of the type.

    ``totals[q]`` is the sum of the window before the first row, and then behind the last one. ``past``: they go past
    the caches.
    """
    if past:
        totals[q] = prefix_difference_past(comes, leaves, out, totals[q])
        settle()
    else:
        totals[q] = prefix_difference(comes, leaves, out, totals[q])


@jit
def running_floats(comes: Any, leaves: Any, out: Any, q: Any, past: Any, totals: Any, counts: Any, tile: Any) -> None:
    """The same of floats, ``tile`` rows at a time.

    ``totals[q]`` is the sum of the finite values in the window, ``counts[q]`` how many others there are.
    """
    total, others = totals[q], counts[q]
    for low in range(0, comes.size, tile):
        high = min(low + tile, comes.size)
        if others == 0:
            x, y, z = comes[low:high], leaves[low:high], out[low:high]
            reached = prefix_difference_past(x, y, z, total) if past else prefix_difference(x, y, z, total)
            if reached - reached == 0.0:
                total = reached
                continue
        total, others = _careful(comes[low:high], leaves[low:high], out[low:high], total, others)
    totals[q], counts[q] = total, others
    if past:
        settle()
