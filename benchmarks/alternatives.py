"""The alternatives of *General Stream Slicing* §3 to slices, compiled: sums of an integer over tumbling windows.

Each takes rows in order of arrival, knows the watermark (the latest time less a delay) after every row, and writes
the sums of the windows that ended into ``sums[kind, number]``, window ``number`` of a kind beginning at ``number *
width``. Dense arrays take the place of hash tables, which favours them. Nothing is late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.jit import jit

Array = npt.NDArray[Any]

#: Leaves of the tree; twice what the rows of one run keep between two watermarks.
_LEAVES = 1 << 22


def _buckets(times: Array, values: Array, widths: Array, delay: int, sums: Array) -> None:
    """Each row is added to all windows it is in (§3.3)."""
    for i in range(times.size):
        for w in range(widths.size):
            sums[w, times[i] // widths[w]] += values[i]


def _tuple_buffer(times: Array, values: Array, widths: Array, delay: int, sums: Array) -> None:
    """Rows in order of time; a late one moves those behind it; a window adds up its rows when it ends (§3.1)."""
    kept, added = np.empty(times.size, np.int64), np.empty(times.size, np.int64)
    head, newest = 0, times[0]
    ends = widths.copy()
    soonest = ends.min()
    for i in range(times.size + 1):
        if i < times.size:
            place = i
            while place > head and kept[place - 1] > times[i]:
                kept[place], added[place] = kept[place - 1], added[place - 1]
                place -= 1
            kept[place], added[place] = times[i], values[i]
            newest = max(newest, times[i])
        watermark = newest - delay if i < times.size else newest + widths.max()
        tail = min(i + 1, times.size)
        while soonest <= watermark:
            for w in range(widths.size):
                if ends[w] == soonest and ends[w] - widths[w] <= newest:
                    low = head + np.searchsorted(kept[head:tail], ends[w] - widths[w])
                    total = 0
                    while low < tail and kept[low] < ends[w]:
                        total += added[low]
                        low += 1
                    sums[w, ends[w] // widths[w] - 1] = total
                if ends[w] == soonest:
                    ends[w] += widths[w]
            soonest = ends.min()
        oldest = (ends - widths).min()
        while head < tail and kept[head] < oldest:
            head += 1


def _aggregate_tree(times: Array, values: Array, widths: Array, delay: int, sums: Array) -> None:
    """A tree of sums over rows in order of time (§3.2, FlatFAT): a late row moves leaves and mends the tree."""
    leaves = 1
    while leaves < min(2 * times.size, _LEAVES):
        leaves *= 2
    tree, kept = np.zeros(2 * leaves, np.int64), np.empty(leaves, np.int64)
    head, tail, newest = 0, 0, times[0]
    ends = widths.copy()
    soonest = ends.min()
    for i in range(times.size + 1):
        if i < times.size:
            if tail == leaves:  # room again: the kept rows to the front, and the whole tree anew
                kept[: tail - head] = kept[head:tail]
                tree[leaves : leaves + tail - head] = tree[leaves + head : leaves + tail]
                tree[leaves + tail - head :] = 0
                head, tail = 0, tail - head
                for node in range(leaves - 1, 0, -1):
                    tree[node] = tree[2 * node] + tree[2 * node + 1]
            place = tail
            while place > head and kept[place - 1] > times[i]:
                kept[place], tree[leaves + place] = kept[place - 1], tree[leaves + place - 1]
                place -= 1
            kept[place], tree[leaves + place] = times[i], values[i]
            low, high = (leaves + place) // 2, (leaves + tail) // 2
            while high:
                for node in range(low, high + 1):
                    tree[node] = tree[2 * node] + tree[2 * node + 1]
                low, high = low // 2, high // 2
            tail += 1
            newest = max(newest, times[i])
        watermark = newest - delay if i < times.size else newest + widths.max()
        while soonest <= watermark:
            for w in range(widths.size):
                if ends[w] == soonest and ends[w] - widths[w] <= newest:
                    low = leaves + head + np.searchsorted(kept[head:tail], ends[w] - widths[w])
                    high = leaves + head + np.searchsorted(kept[head:tail], ends[w])
                    total = 0
                    while low < high:
                        if low % 2:
                            total += tree[low]
                            low += 1
                        if high % 2:
                            high -= 1
                            total += tree[high]
                        low, high = low // 2, high // 2
                    sums[w, ends[w] // widths[w] - 1] = total
                if ends[w] == soonest:
                    ends[w] += widths[w]
            soonest = ends.min()
        oldest = (ends - widths).min()
        while head < tail and kept[head] < oldest:
            head += 1


_COMPILED = {"buckets": jit(_buckets), "tuple_buffer": jit(_tuple_buffer), "aggregate_tree": jit(_aggregate_tree)}
NAMES = tuple(_COMPILED)


def sums_by(name: str, times: Array, values: Array, widths: Array, delay: int) -> Array:
    """The sums ``[kind, number]`` of all windows by one of the alternatives; times are not negative."""
    sums = np.zeros((len(widths), int(times.max()) // int(widths.min()) + 2), np.int64)
    _COMPILED[name](times, values, widths, delay, sums)
    return sums
