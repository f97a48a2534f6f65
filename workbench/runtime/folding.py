"""Rows into the partials of their cells, ``[slice, key]``: the work of level 1, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra.partials import OBJECT
from workbench.codegen import BLOCK, FoldKernel, Runs
from workbench.codegen.source import Feed
from workbench.errors import DataError
from workbench.kernels.slicing import Slices, cut, slices_of
from workbench.logical import Column, Expression, walk
from workbench.logical.joins import Join, conjuncts, joins_of, split_at_joins
from workbench.plan import Fold, Partial, SharedPlan
from workbench.runtime.expressions import evaluate, evaluate_filter
from workbench.runtime.joining import columns_of, joined
from workbench.runtime.keys import Codes, number_keys
from workbench.time import LIMIT

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True)
class Rows:
    """The rows of a batch that a fold takes: their slices, keys (None: one key) and inputs, as kernels want them."""

    slices: Slices
    codes: Codes | None
    keys: list[pa.Array]
    inputs: list[tuple[Array, Array | None]]

    def __len__(self) -> int:
        return len(self.slices)


class Folder:
    """One fold of a plan: filter, keys, inputs, kernel. May be used by several threads at once."""

    def __init__(self, fold: Fold) -> None:
        self.spec = fold
        self._inputs: list[tuple[Expression, str | None]] = []
        self._feeds = [Feed(partial.kind, self._columns(partial)) for partial in fold.partials]
        self.kinds = [feed.monoid for feed in self._feeds]
        self.kernel = FoldKernel(self._feeds, runs=not fold.keys)
        self._joins = joins_of(fold.where)
        self._before, self._after = split_at_joins(fold.where)
        expressions = [entry[0] for entry in self._inputs] + [named.expression for named in fold.keys]
        self._table_columns = columns_of([*expressions, *conjuncts(self._after), *_keys_of(self._joins)])

    def _columns(self, partial: Partial) -> tuple[int, ...]:
        """The input columns of a partial."""
        kinds = partial.monoid.inputs or (None,) * len(partial.arguments)
        return tuple(self._input(*entry) for entry in zip(partial.arguments, kinds, strict=True))

    def _input(self, argument: Expression, dtype: str | None) -> int:
        """The column of an argument in a type; a partial that only counts shares any column of its argument."""
        for index, (expression, kind) in enumerate(self._inputs):
            if expression == argument and (dtype is None or kind in (None, dtype)):
                self._inputs[index] = (expression, kind or dtype)
                return index
        self._inputs.append((argument, dtype))
        return len(self._inputs) - 1

    def read(self, batch: pa.RecordBatch, slices: Slices) -> Rows:
        """What the fold takes of a batch; every row of the batch has an event time and a slice."""
        batch, slices = _passing(self._before, batch, slices)
        for join in self._joins:
            batch, times = joined(batch, join, self._table_columns.get(join, ()))
            if times is not None:
                slices = slices.only(times)
        batch, slices = _passing(self._after, batch, slices)
        codes: Codes | None = None
        keys: list[pa.Array] = []
        if self.spec.keys and len(batch):
            codes, keys = number_keys([evaluate(named.expression, batch) for named in self.spec.keys], len(batch))
        return Rows(slices, codes, keys, [_column(*entry, batch) for entry in self._inputs])

    def blank(self, cells: int) -> list[Fields]:
        """Cells without rows, all partials."""
        return [kind.blank(cells) for kind in self.kinds]

    def fold(self, rows: Rows, numbers: Array, width: int, cells: Sequence[Fields]) -> None:
        """Fold rows into ``cells``, a matrix of ``width`` keys: the slice at place p has the row ``numbers[p]``.

        Block by block, so that what is made for a row on the way never leaves the cache.
        """
        function = self.kernel.ready(len(rows))
        size = BLOCK if all(kind.compiled for kind in self.kinds) else max(len(rows), 1)
        for low in range(0, len(rows), size):
            high = min(low + size, len(rows))
            some = rows.slices.rows(low, high)
            runs = Runs(numbers[some.places] * width, some.bounds)
            group: Runs | Array = runs
            if rows.codes is not None:
                group = runs.expanded()
                group += rows.codes.rows(slice(low, high))
            self.kernel.into(cells, group, chosen(rows.inputs, slice(low, high)), function)

    def fold_cells(self, group: Array, inputs: Sequence[tuple[Array, Array | None]], cells: Sequence[Fields]) -> None:
        """Fold rows into cells that are known by number; for folds with keys."""
        self.kernel.into(cells, group, inputs, self.kernel.ready(len(group)))


def _passing(condition: Expression | None, batch: pa.RecordBatch, slices: Slices) -> tuple[pa.RecordBatch, Slices]:
    """The rows for which a condition is true, and their slices."""
    if condition is None:
        return batch, slices
    mask = evaluate_filter(condition, batch)
    return batch.filter(mask), slices.only(mask.to_numpy(zero_copy_only=False))


def _keys_of(joins: Sequence[Join]) -> list[Expression]:
    return [key for join in joins for key in join.keys]


def chosen(inputs: Sequence[tuple[Array, Array | None]], rows: slice | Array) -> list[tuple[Array, Array | None]]:
    """Some rows of input columns; a column whose values nobody reads has none."""
    return [
        (values[rows] if len(values) else values, None if valid is None else valid[rows]) for values, valid in inputs
    ]


def slices_of_batch(batch: pa.RecordBatch, plan: SharedPlan) -> tuple[pa.RecordBatch, Slices, int]:
    """The rows that have an event time, their slices, and the latest time (meaningless without rows)."""
    name = plan.stream.time
    stamps = batch.column(name)
    if stamps.null_count:
        batch = batch.filter(stamps.is_valid())
        stamps = batch.column(name)
    edges = [(edge.period, edge.phase) for edge in plan.edges]
    if not len(stamps):
        return batch, slices_of(np.zeros(0, np.int64), edges), -LIMIT
    unit = _UNITS.get(stamps.type.unit)
    if unit is not None:
        times = stamps.view(pa.int64()).to_numpy()
        ends = int(times[0]) * unit, int(times[-1]) * unit
        if max(map(abs, ends)) <= LIMIT and (slices := cut(times, edges, unit)) is not None:
            return batch, slices, ends[1]
    times = stamps.cast(pa.timestamp("us", stamps.type.tz)).view(pa.int64()).to_numpy()
    latest = int(times.max())
    if latest > LIMIT or int(times.min()) < -LIMIT:
        raise DataError(f"a time in column `{name}` is further than 146,000 years from 1970")
    return batch, slices_of(times, edges), latest


def plan_columns(plan: SharedPlan) -> tuple[str, ...]:
    """The source columns that a plan reads, the time column first, each once."""
    found = dict.fromkeys([plan.stream.time])
    for fold in plan.folds:
        expressions = [named.expression for named in fold.keys]
        expressions += [argument for partial in fold.partials for argument in partial.arguments]
        expressions += [fold.where] if fold.where is not None else []
        for expression in expressions:
            found |= dict.fromkeys(node.name for node in walk(expression) if isinstance(node, Column))
    return tuple(found)


def _column(expression: Expression, dtype: str | None, batch: pa.RecordBatch) -> tuple[Array, Array | None]:
    """Values (anything where NULL) and validity of an input column, in the type its partials take."""
    array = evaluate(expression, batch)
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if dtype is None:
        return np.zeros(0, np.int64), valid
    if dtype == OBJECT:
        return array.fill_null("").to_numpy(zero_copy_only=False), valid
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    array = array.cast(kind, safe=not pa.types.is_floating(kind))
    if array.null_count:
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False), valid
