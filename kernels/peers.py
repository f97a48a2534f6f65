"""Peers: rows of one key and time, which have the same frames by time and so the same results.

Rows stand by key and time. The *moments* of them are the groups of peers; ``at`` holds the first row of each, and
behind the last one the number of rows, all int32::

    key       a  a  a  a  a  b  b
    time      1  1  2  2  2  2  3
    at        0     2        5  6  7
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.compiler import cgutils, get_host_cpu_features, intrinsic, ir, types
from workbench.kernels.frames import place
from workbench.kernels.jit import jit
from workbench.kernels.prefetch import AHEAD, LINE, soon_read

Array = npt.NDArray[Any]


#: Whether the processor has an instruction for :func:`_note`'s stores, which are a branch a lane without one.
_COMPRESSES = bool(get_host_cpu_features().get("avx512f"))
_LANES = 8
#: Rows for which a loop asks ahead at once.
_STRETCH = 64
_I32, _I64 = ir.IntType(32), ir.IntType(64)
#: No moments: rows stand for themselves.
NO_MOMENTS = np.zeros(0, np.int32)


def _count_moments(times: Array, runs: Array, begin: int, end: int) -> int:
    """How many rows of ``[begin, end)`` begin a moment; -1 where one is earlier than the one before it in its run."""
    found, back = 0, 0
    for low in range(max(begin, 1), end, _STRETCH):
        high = min(low + _STRETCH, end)
        for row in range(low + AHEAD, high + AHEAD, LINE // 8):
            soon_read(times, np.uint64(row))
        before, now = times[low - 1 : high - 1], times[low:high]
        for j in range(now.size):
            found += now[j] != before[j]
            back += now[j] < before[j]
    if begin == 0 and end > 0:
        found += 1
    for run in range(place(runs, 0, runs.size, max(begin, 1)), runs.size):
        if runs[run] >= end:
            break
        found += times[runs[run]] == times[runs[run] - 1]
        back -= times[runs[run]] < times[runs[run] - 1]
    return found if back == 0 else -1


def _next_moment(times: Array, runs: Array, row: int) -> int:
    """The first row at or behind ``row`` that begins a moment, or the number of rows."""
    run = place(runs, 0, runs.size, row)
    while 0 < row < times.size and times[row] == times[row - 1]:
        if run < runs.size and row == runs[run]:
            break
        row += 1
    return row


def _note_typed(context: Any, times: Any, row: Any, starts: Any, moments: Any, found: Any) -> Any:
    """How many of the ``_LANES`` rows from ``row`` on begin a moment; they and their times go behind ``found``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        read, rows, instants = (
            context.make_array(signature.args[place])(context, builder, arguments[place]).data for place in (0, 2, 3)
        )
        lanes = ir.VectorType(_I64, _LANES)

        def load(place: Any) -> Any:
            loaded = builder.load(builder.bitcast(builder.gep(read, [place]), lanes.as_pointer()))
            loaded.align = 8
            return loaded

        row, found = arguments[1], arguments[4]
        now = load(row)
        begins = builder.icmp_signed("!=", now, load(builder.sub(row, _I64(1))))
        for values, target in ((_from(builder, builder.trunc(row, _I32)), rows), (now, instants)):
            place, width = builder.gep(target, [found]), values.type.element.width
            kind = ir.FunctionType(ir.VoidType(), [values.type, place.type, begins.type])
            store = f"llvm.masked.compressstore.v{_LANES}i{width}"
            builder.call(cgutils.get_or_insert_function(builder.module, kind, store), [values, place, begins])
        return builder.ctpop(builder.zext(builder.bitcast(begins, ir.IntType(_LANES)), _I64))

    return types.uint64(times, types.uint64, starts, moments, types.uint64), generate


def _from(builder: Any, first: Any) -> Any:
    """``first``, ``first + 1``, ... in the lanes of a vector."""
    lanes = ir.VectorType(first.type, _LANES)
    some = builder.insert_element(lanes(ir.Undefined), first, _I32(0))
    same = builder.shuffle_vector(some, lanes(ir.Undefined), ir.VectorType(_I32, _LANES)([0] * _LANES))
    return builder.add(same, lanes(list(range(_LANES))))


_note: Any = intrinsic(_note_typed)


def _begin_moments(times: Array, runs: Array, begin: int, end: int, starts: Array, moments: Array) -> None:
    """The rows of ``[begin, end)`` that begin a moment, into ``starts``, and their times.

    There is room for just those (:func:`count_moments`). Where the processor can put the chosen lanes of a vector
    side by side, rows go by eight. One by one, a row is written before it is known whether it begins a moment, so
    behind the last of them nothing more is done.
    """
    found, room = np.uint64(0), np.uint64(starts.size)
    run, row = place(runs, 0, runs.size, begin + 1) - 1, begin
    while found < room:
        while row >= runs[run + 1]:
            run += 1
        stop = min(runs[run + 1], end)
        if row == runs[run]:
            starts[found], moments[found] = row, times[row]
            found += np.uint64(1)
            row += 1
        while _COMPRESSES and row + _LANES <= stop:
            soon_read(times, np.uint64(row + AHEAD))
            found += _note(times, np.uint64(row), starts, moments, found)
            row += _LANES
        before = times[row - 1]
        for i in range(row, stop):
            if found == room:
                break
            now = times[np.uint64(i)]
            starts[found], moments[found] = i, now
            found += np.uint64(now != before)
            before = now
        row = stop


count_moments, next_moment, begin_moments = jit(_count_moments), jit(_next_moment), jit(_begin_moments)


def _row_ends(at: Array, begin: int, ends: Array) -> None:
    """Behind which row the moments from ``begin`` on end, or rows if there are no moments, as floats."""
    if at.size == 0:
        for j in range(ends.size):
            ends[j] = begin + 1 + j
    else:
        last = at[begin + 1 : begin + 1 + ends.size]
        for j in range(ends.size):
            ends[j] = last[j]


row_ends = jit(_row_ends)


def _spread(values: Array, at: Array, out: Array) -> None:
    """The value of each moment to its rows; ``out[0]`` is for row ``at[0]``.

    Four rows are written at once, whatever there are: moments mostly have few, and a loop of unknown length costs
    more. What is too much is written over by the next moment, before the end of ``out`` nothing is.
    """
    origin, safe = at[0], out.size - 4
    for moment in range(values.size):
        low, high, value = at[moment] - origin, at[moment + 1] - origin, values[moment]
        if low <= safe:
            row = np.uint64(low)
            out[row] = value
            out[row + np.uint64(1)] = value
            out[row + np.uint64(2)] = value
            out[row + np.uint64(3)] = value
            low += 4
        for left in range(low, high):
            out[left] = value


spread = jit(_spread)


def _own(at: Array, owners: Array) -> None:
    """The place of each row's moment among those of ``at``. There is room for three rows more than these have.

    Four are written at once, as by :func:`spread`.
    """
    origin = at[0]
    for moment in range(at.size - 1):
        low, high = at[moment] - origin, at[moment + 1] - origin
        row = np.uint64(low)
        owners[row] = moment
        owners[row + np.uint64(1)] = moment
        owners[row + np.uint64(2)] = moment
        owners[row + np.uint64(3)] = moment
        for left in range(low + 4, high):
            owners[np.uint64(left)] = moment


own = jit(_own)
