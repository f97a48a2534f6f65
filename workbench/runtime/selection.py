"""WHERE over batches of rows: conditions in the order that is the cheapest now (*Grizzly* §6.2.1).

Grizzly's compiled loop leaves a row at the first condition that it fails. Here conditions are whole columns at a
time, so rows that have failed are taken out of the way of the later ones where that costs less than asking about
them::

    rows        1 2 3 4 5 6 7 8
    a < 3       x . . x . . x .      asked about 8 rows
    text LIKE   x     .     x        asked about 3, whose columns were moved together
    kept        1           7

Conditions that may raise stay where they are written, and so does everything else on either side of them: each is
asked about the rows for which nothing before it is false, NULL among these, no more and no fewer
(:mod:`workbench.runtime.total`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import DataError
from workbench.logical import Column, Expression, walk
from workbench.logical.joins import TableColumn, conjuncts
from workbench.runtime.expressions import Evaluation
from workbench.runtime.predicates import Predicate, Profile, Sampling
from workbench.runtime.total import never_raises
from workbench.runtime.values import Value

Array = npt.NDArray[Any]

#: Rows that are asked about at once: enough to hide what a call costs, and few enough to learn from within a table.
_PIECE = 1 << 17


class Filter:
    """The rows of batches for which a condition is true. May be used by several threads at once.

    ``columns`` are those that are read of the rows that pass, None for all.
    """

    def __init__(
        self, condition: Expression, columns: frozenset[str] | None = None, sampling: Sampling | None = None
    ) -> None:
        self.conditions = tuple(conjuncts(condition))
        self._columns = columns
        self._sampling = sampling or Sampling()
        self._schema: pa.Schema | None = None
        #: What was learned of the conditions; None before the first rows.
        self.profile: Profile | None = None

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Array]:
        """The rows, and the mask of them."""
        kept = self.mask(batch)
        if self._columns is not None:
            names = [name for name in batch.schema.names if name in self._columns]
            batch = batch.select(names or batch.schema.names[:1])
        return batch.filter(pa.array(kept)), kept

    def mask(self, batch: pa.RecordBatch) -> Array:
        """Which rows pass; raises DataError as the whole condition in its written order does."""
        profile = self.profile
        if profile is None or not batch.schema.equals(self._schema):
            profile = self._learn_anew(batch.schema)
        pieces = [batch.slice(low, _PIECE) for low in range(0, max(len(batch), 1), _PIECE)]
        masks = [self._piece(piece, profile) for piece in pieces]
        return masks[0] if len(masks) == 1 else np.concatenate(masks)

    def _learn_anew(self, schema: pa.Schema) -> Profile:
        """What may change places depends on the types of the columns."""
        self._total = [never_raises(each, schema) for each in self.conditions]
        groups: list[list[int]] = []
        for number, total in enumerate(self._total):
            if total and number and self._total[number - 1]:
                groups[-1].append(number)
            else:
                groups.append([number])
        predicates = [Predicate(str(each), len(columns_of([each]))) for each in self.conditions]
        self._last_raising = max((n for n, total in enumerate(self._total) if not total), default=-1)
        profile = Profile(predicates, groups, self._sampling)
        self._schema, self.profile = schema, profile
        return profile

    def _piece(self, batch: pa.RecordBatch, profile: Profile) -> Array:
        if len(self.conditions) > 1:
            profile.observe(len(batch), lambda number, low, high: self._probe(batch.slice(low, high - low), number))
        chosen = profile.order
        rows, places = Evaluation.of(batch, None), None
        so_far: Value | None = None
        asked: list[tuple[int, int, int]] = []
        for place, number in enumerate(chosen.order):
            open_ends = any(later <= self._last_raising for later in chosen.order[place:])
            if so_far is not None:
                left = pc.fill_null(so_far, open_ends)
                if chosen.narrows(place, rows.length, pc.sum(left).as_py() or 0, self._sampling.call):
                    kept = left.to_numpy(zero_copy_only=False)
                    places = np.flatnonzero(kept) if places is None else places[kept]
                    rows = rows.only(left, [self.conditions[later] for later in chosen.order[place:]])
                    so_far = so_far.filter(left)
                    if not rows.length:
                        break
            found = self._asked(rows, number, so_far)
            asked.append((number, rows.length, pc.sum(found).as_py() or 0))
            so_far = found if so_far is None else pc.and_kleene(so_far, found)
        profile.count(asked)
        passed = pc.fill_null(so_far, False).to_numpy(zero_copy_only=False)
        if places is None:
            return np.asarray(passed)
        mask = np.zeros(len(batch), np.bool_)
        mask[places[passed]] = True
        return mask

    def _asked(self, rows: Evaluation, number: int, so_far: pa.Array | None) -> pa.Array:
        """The values of a condition; one that may raise is held to the rows that are open."""
        condition = self.conditions[number]
        if so_far is None or self._total[number]:
            value = rows.value(condition)
        else:
            value = rows.guarded(condition, pc.fill_null(so_far, True))
        return value if isinstance(value, pa.Array) else pa.repeat(value, rows.length)

    def _probe(self, sample: pa.RecordBatch, number: int) -> int:
        """How many rows of a sample pass a condition by itself; all, where it raises for some."""
        try:
            value = Evaluation.of(sample, None).value(self.conditions[number])
        except DataError:
            return len(sample)
        if isinstance(value, pa.Scalar):
            return len(sample) if value.as_py() else 0
        return pc.sum(value).as_py() or 0


def columns_of(expressions: Sequence[Expression]) -> frozenset[str]:
    """The stored names of the columns that expressions read."""
    nodes = (node for expression in expressions for node in walk(expression))
    return frozenset(node.stored for node in nodes if isinstance(node, Column | TableColumn))
