"""What a task assumes of its keys: a range, in which an array serves instead of a hash (*Grizzly* §6.2.2).

Level 1 needs two things of a key: a small number, and the bucket that is its home, which is a hash of its text. The
hash costs a microsecond for each key of each batch. So a task watches which range integer keys are in, assumes that
they stay there, and keeps the buckets of the range in an array::

    batch        1        2        3        4        5        6
    keys in    10..90   12..88   10..90   10..120  15..110  10..118
    assumed      -      10..90   10..90     ->     10..165  10..165
    buckets    hashed   array    array    hashed   array    array
                                         violated, renewed with room above

A batch with a key outside is done the generic way, with equal results, and the range is learned anew (§6.1.2). Where
that happens again soon, the task waits longer each time before it assumes anything: keys that only grow stay generic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]
#: The least and the largest value of each key column.
Bounds: TypeAlias = list[tuple[int, int]]

#: Keys of a range that may be assumed: 4 MB of buckets.
_WIDEST = 1 << 20
_FAR = 1 << 62
#: Batches that an assumption must have held for its violation to count as a first one, and the longest wait.
_LASTING, _LONGEST = 64, 64
#: Rows of a batch in which the most frequent key is looked for, and in one of how many batches.
_SAMPLE, _EVERY = 1 << 13, 16


@dataclass(frozen=True)
class _Assumed:
    """A range of keys, all combinations of several columns, and the bucket of each; -1 where nobody has asked."""

    bounds: Bounds
    buckets: Array

    @staticmethod
    def of(bounds: Bounds) -> _Assumed:
        return _Assumed(bounds, np.full(_combinations(bounds), -1, np.int32))

    def places(self, values: Sequence[Array], found: Bounds) -> Array | None:
        """Where keys stand; None where one of them, whose bounds are ``found``, is outside."""
        if any(low < least or high > most for (low, high), (least, most) in zip(found, self.bounds, strict=True)):
            return None
        places = np.zeros(len(values[0]), np.int64)
        for column, (least, most) in zip(values, self.bounds, strict=True):
            places = places * (most - least + 1) + (column - least)
        return places


@dataclass
class KeyProfile:
    """The keys of one fold in one process: what was seen, what is assumed, how often that was wrong.

    ``distinct`` keys had the batch before; ``hottest`` is the share of its rows that the most frequent one had in the
    latest sample. ``held`` and ``generic`` count batches by the way they were done, ``violations`` the assumptions
    that failed.
    """

    distinct: int = 0
    hottest: float = 0.0
    held: int = 0
    generic: int = 0
    violations: int = 0

    def __post_init__(self) -> None:
        self._assumed: _Assumed | None = None
        self._buckets = 0
        self._seen: Bounds = []
        self._room: list[tuple[int, int]] = []
        self._wait, self._explored, self._lasted, self._batches = 1, 0, 0, 0

    @property
    def assumed(self) -> Bounds | None:
        """The range that keys are assumed to be in."""
        return None if self._assumed is None else self._assumed.bounds

    def most(self, rows: int) -> int:
        """How many keys may be numbered by their range in a batch of so many rows, by what the one before had.

        Keys that no row has cost a cell each; a hash costs more than that where there are many keys.
        """
        return max(rows // 4, 1_024, min(4 * rows, 16 * self.distinct))

    def sample(self, codes: Callable[[slice], Array], rows: int) -> None:
        """Look for the most frequent key, if it is time to; ``codes`` gives those of some rows."""
        self._batches += 1
        if rows and self._batches % _EVERY == 1:
            some = codes(slice(0, min(rows, _SAMPLE)))
            self.hottest = float(np.bincount(some - some.min()).max()) / len(some)

    def buckets(self, keys: pa.RecordBatch, buckets: int, hashed: Callable[[pa.RecordBatch], Array]) -> Array:
        """The bucket of each key of a batch, each there once: what ``hashed`` says of them."""
        self.distinct = len(keys)
        if buckets != self._buckets:
            self._buckets, self._assumed, self._seen = buckets, None, []
        values = _integers(keys)
        if values is None:
            self.generic += 1
            return hashed(keys)
        found = [(int(column.min()), int(column.max())) for column in values]
        if self._assumed is not None:
            places = self._assumed.places(values, found)
            if places is not None:
                return self._held(self._assumed, keys, places, hashed)
            self._violated(self._assumed.bounds, found)
        self.generic += 1
        own = hashed(keys)
        self._explore(values, found, own)
        return own

    def _held(
        self, assumed: _Assumed, keys: pa.RecordBatch, places: Array, hashed: Callable[[pa.RecordBatch], Array]
    ) -> Array:
        self.held += 1
        self._lasted += 1
        buckets = assumed.buckets[places]
        new = np.flatnonzero(buckets < 0)
        if len(new):
            buckets[new] = assumed.buckets[places[new]] = hashed(keys.take(pa.array(new)))
        return buckets

    def _violated(self, bounds: Bounds, found: Bounds) -> None:
        """Back to the generic way; the next range gets room on the sides where this one was too narrow."""
        self.violations += 1
        self._wait = 1 if self._lasted >= _LASTING else min(2 * self._wait, _LONGEST)
        self._assumed, self._explored, self._lasted, self._seen = None, 0, 0, bounds
        self._room = [
            (int(low < least), int(high > most)) for (low, high), (least, most) in zip(found, bounds, strict=True)
        ]

    def _explore(self, values: Sequence[Array], found: Bounds, buckets: Array) -> None:
        """Widen what was seen by a batch, and assume it once enough batches were seen."""
        seen = self._seen or found
        seen = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(seen, found, strict=True)]
        if _combinations(seen) > _WIDEST:
            seen = found  # keys that move on leave a range behind
        self._seen = seen
        self._explored += 1
        if self._explored < self._wait or _combinations(seen) > _WIDEST:
            return
        room = self._room or [(0, 0)] * len(seen)
        wider = [
            (low - down * (high - low + 1) // 2, high + up * (high - low + 1) // 2)
            for (low, high), (down, up) in zip(seen, room, strict=True)
        ]
        assumed = _Assumed.of(wider if _combinations(wider) <= _WIDEST else seen)
        places = assumed.places(values, found)
        assert places is not None
        assumed.buckets[places] = buckets
        self._assumed = assumed


def _combinations(bounds: Bounds) -> int:
    return math.prod(high - low + 1 for low, high in bounds)


def _integers(keys: pa.RecordBatch) -> list[Array] | None:
    """The columns of keys as int64; None where one is something else, has NULL, or is at the ends of its type."""
    if not len(keys) or not keys.num_columns:
        return None
    kinds = [each.type for each in keys.columns]
    if any(not pa.types.is_integer(kind) or pa.types.is_uint64(kind) for kind in kinds):
        return None
    if any(each.null_count for each in keys.columns):
        return None
    values = [each.to_numpy().astype(np.int64) for each in keys.columns]
    # There must be room around a range.
    return None if any(column.min() <= -_FAR or column.max() >= _FAR for column in values) else values
