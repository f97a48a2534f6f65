"""Results of queries that are alike in one piece, so that a thousand of them are one record and not a thousand.

::

    columns    |----------------------------------|
    targets    |-- q0 --|--- q1 ---|-- q2, q3 ----|       queries may share rows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.results.shapes import Array, ResultBatch, ResultColumns


@dataclass(frozen=True)
class Targets:
    """Queries, by name, and levels of theirs that results are for, an entry each; they stay the same for long."""

    names: tuple[str, ...]
    levels: tuple[int, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.names, self.levels))

    def __hash__(self) -> int:
        return self._hash

    def __len__(self) -> int:
        return len(self.names)


@dataclass(slots=True, eq=False)
class ResultBundle:
    """Windows for several targets: those of target ``i`` are the rows ``[lows[i], highs[i])`` of the columns."""

    targets: Targets
    columns: ResultColumns
    lows: Array
    highs: Array

    @classmethod
    def of(cls, query: str, batch: ResultBatch) -> ResultBundle:
        """A batch of one query."""
        low, high = np.array([batch.low]), np.array([batch.high])
        return cls(Targets((query,), (batch.level,)), batch.columns, low, high)

    def batches(self) -> Iterator[tuple[str, ResultBatch]]:
        """The batch of each target that has any windows, with the name of its query."""
        bounds = zip(self.lows.tolist(), self.highs.tolist(), strict=True)
        for name, level, (low, high) in zip(self.targets.names, self.targets.levels, bounds, strict=True):
            if low < high:
                yield name, ResultBatch(level, self.columns, low, high)


def batches_of(bundles: Iterable[ResultBundle]) -> list[tuple[str, ResultBatch]]:
    """The batches of all bundles, in their order."""
    return [entry for bundle in bundles for entry in bundle.batches()]
