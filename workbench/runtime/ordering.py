"""Rows of a table brought into order by key and time, and results back to where the rows stand.

Where rows come in order of time, counting the rows of each key is all that it takes: a column is read from end to
end and written to as many places as there are keys, each of which goes on behind its last row; and the other way
round on the way back. Going row by row wherever a permutation says takes twice as long, as every row is in another
line of the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.codegen.over import sealed
from workbench.kernels.partition import count_keys, fetch_rows, gather, order_rows, place_rows, scatter

Array = npt.NDArray[Any]


class Ordering(ABC):
    """``order`` is the row at each place, None if rows stand as they are to; ``runs`` where keys begin and end."""

    order: Array | None
    runs: Array

    @abstractmethod
    def sorted(self, column: Array) -> Array:
        """A column of the table in order."""

    @abstractmethod
    def restored(self, column: Array, out: Array) -> None:
        """A column in order, written to where its rows stand in the table."""


class AsIs(Ordering):
    """Rows of one key that come in order of time."""

    def __init__(self, rows: int) -> None:
        self.order, self.runs = None, np.array([0, rows])

    def sorted(self, column: Array) -> Array:
        return column

    def restored(self, column: Array, out: Array) -> None:
        out[:] = column


class Permuted(Ordering):
    """Rows that were sorted in whatever way."""

    order: Array

    def __init__(self, pool: ThreadPoolExecutor, parts: int, order: Array, runs: Array) -> None:
        self._pool, self.order, self.runs = pool, order, runs
        self._parts = list(pairwise(np.linspace(0, len(order), parts + 1).astype(int).tolist()))

    def sorted(self, column: Array) -> Array:
        if column.dtype == object:
            return column[self.order]
        out = np.empty_like(column)

        def part(low: int, high: int) -> None:
            gather(sealed(column), sealed(self.order[low:high]), out[low:high])

        list(self._pool.map(part, *zip(*self._parts, strict=True)))
        return out

    def restored(self, column: Array, out: Array) -> None:
        def part(low: int, high: int) -> None:
            scatter(sealed(column[low:high]), sealed(self.order[low:high]), out)

        list(self._pool.map(part, *zip(*self._parts, strict=True)))


class Counted(Ordering):
    """Rows that come in order of time, by key, as ``codes`` (int32) say. Each thread takes its part of the rows."""

    def __init__(self, pool: ThreadPoolExecutor, parts: int, codes: Array) -> None:
        codes = sealed(codes)  # one type of input, and so one machine code
        self._pool, self._codes = pool, codes
        self._parts = list(pairwise(np.linspace(0, len(codes), parts + 1).astype(int).tolist()))
        counts = np.zeros((parts, int(codes.max()) + 1), np.int64)
        list(pool.map(lambda part, own: count_keys(codes[slice(*part)], own), self._parts, counts))
        total = counts.sum(axis=0)
        self._places = np.cumsum(total) - total + np.cumsum(counts, axis=0) - counts
        self.runs = np.append(0, np.cumsum(total[total > 0]))

    @cached_property
    def order(self) -> Array:  # type: ignore[override]
        order = np.empty(len(self._codes), np.int32 if len(self._codes) < 1 << 31 else np.int64)

        def part(part: tuple[int, int], places: Array) -> None:
            order_rows(self._codes[slice(*part)], part[0], places, order)

        list(self._pool.map(part, self._parts, self._places.copy()))
        return order

    def sorted(self, column: Array) -> Array:
        if column.dtype == object:
            return column[self.order]
        out, values = np.empty_like(column), sealed(column)

        def part(part: tuple[int, int], places: Array) -> None:
            place_rows(self._codes[slice(*part)], places, values[slice(*part)], out)

        list(self._pool.map(part, self._parts, self._places.copy()))
        return out

    def restored(self, column: Array, out: Array) -> None:
        values = sealed(column)

        def part(part: tuple[int, int], places: Array) -> None:
            fetch_rows(self._codes[slice(*part)], places, values, out[slice(*part)])

        list(self._pool.map(part, self._parts, self._places.copy()))
