"""How often the final results of windows have been revised by late rows, until they are settled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.logical import Fill
from workbench.runtime.branches.base import table_of

Array = npt.NDArray[Any]

#: The last number there is: rows that are late in every micro-batch get there within hours.
MOST = np.iinfo(np.int16).max


def one_more(revisions: Array, again: Array) -> Array:
    """Revision numbers, int16, with one more where there was a revision ``again``; :data:`MOST` stays."""
    return revisions + (again & (revisions < MOST))


def counter(place: int, fill: Fill | None) -> int:
    """Where revisions of a kind of windows are counted for the queries that fill so.

    A late row revises results of FILL that others do not have, and of PREVIOUS more than of NULL and ZERO.
    """
    return place if fill is None else -1 - 2 * place - (fill is Fill.PREVIOUS)


class Revisions:
    """Revision numbers by kind of window (a :func:`counter`), end and key number; 0 where nothing was revised."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], Array] = {}
        self._written = True

    def next(self, place: int, ends: Array, changed: Array) -> Array:
        """Count one more revision of the ``[window, key]`` that have changed; returns all their numbers, int16."""
        out = np.zeros(changed.shape, np.int16)
        for row, end in enumerate(ends.tolist()):
            counts = self._counts.get((place, end), out[row, :0])
            out[row, : len(counts)] = counts
            out[row] = one_more(out[row], changed[row])
            self._counts[place, end] = out[row].copy()
        self._written &= not len(ends)
        return out

    def forget(self, settled: int) -> None:
        """Windows that ended by then are not revised any more."""
        gone = [name for name in self._counts if name[1] <= settled]
        for name in gone:
            del self._counts[name]
        self._written &= not gone

    def renumber(self, kept: Array) -> None:
        """Key ``kept[n]`` is key ``n`` from now on."""
        self._counts = {name: counts[kept[kept < len(counts)]] for name, counts in self._counts.items()}
        self._written = not self._counts

    def adopt(self, older: Revisions, places: dict[int, int]) -> None:
        """Take over the numbers of the kinds of windows that are still there; ``places`` are new by old."""
        fills = (None, *Fill)
        counters = {counter(old, fill): counter(new, fill) for old, new in places.items() for fill in fills}
        self._counts = {
            (counters[place], end): counts for (place, end), counts in older._counts.items() if place in counters
        }
        self._written = not self._counts

    def changes(self) -> pa.RecordBatch | None:
        """What to write, if something has changed since the last call."""
        if self._written:
            return None
        self._written = True
        rows = [
            (place, end, key, counts[key])
            for (place, end), counts in self._counts.items()
            for key in np.flatnonzero(counts)
        ]
        return table_of(
            [np.array(column, np.int64) for column in zip(*rows, strict=True)] or [np.zeros(0, np.int64)] * 4
        )

    def restore(self, table: pa.RecordBatch) -> None:
        """Inverse of :meth:`changes`, for fresh revisions."""
        for place, end, key, count in zip(*(column.to_pylist() for column in table.columns), strict=True):
            counts = self._counts.get((place, end), np.zeros(0, np.int16))
            counts = np.concatenate([counts, np.zeros(max(0, key + 1 - len(counts)), np.int16)])
            counts[key] = count
            self._counts[place, end] = counts
