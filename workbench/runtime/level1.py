"""Level 1: rows into slice partials, inside one task (*LightSaber* §3, *General Stream Slicing* §5.2).

A task folds the record batches it reads and ends with one message for every bucket of keys, also for buckets
without rows, because every bucket must learn the latest event time of all tasks in the same micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from workbench.algebra.partials import OBJECT
from workbench.codegen import FoldKernel
from workbench.codegen.source import Feed
from workbench.errors import DataError
from workbench.kernels.slicing import number_slices, slice_starts
from workbench.logical import Column, Expression, walk
from workbench.plan import Fold, Partial, SharedPlan
from workbench.results import encode_keys
from workbench.runtime import wire
from workbench.runtime.expressions import evaluate, evaluate_filter
from workbench.time import LIMIT

Array = npt.NDArray[Any]


class Level1:
    """Folds the rows of one task of one micro-batch; make a new one for each. ``buckets`` is fixed per plan.

    ``columns`` are the source columns it reads, the time column first.
    """

    def __init__(self, plan: SharedPlan, buckets: int) -> None:
        self.plan = plan
        self.buckets = buckets
        self.columns = plan_columns(plan)
        self._edges = [(edges.period, edges.phase) for edges in plan.edges]
        self._folders = [_Folder(fold) for fold in plan.folds]
        self._parts: list[list[tuple[dict[str, Any], list[pa.RecordBatch]]]] = [[] for _ in range(buckets)]
        self._rows = 0
        self._max_event: int | None = None

    def fold(self, batch: pa.RecordBatch) -> None:
        """Take in rows; cost proportional to them, nothing of them is kept but partials.

        Rows without an event time belong to no window: they are counted as rows and change nothing else.
        """
        self._rows += len(batch)
        batch = batch.select(list(self.columns))
        stamps = batch.column(self.plan.stream.time)
        if stamps.null_count:
            batch = batch.filter(stamps.is_valid())
            stamps = batch.column(self.plan.stream.time)
        if not len(batch):
            return
        times = stamps.cast(pa.timestamp("us", stamps.type.tz)).cast(pa.int64()).to_numpy()
        latest = int(times.max())
        if latest > LIMIT or int(times.min()) < -LIMIT:
            raise DataError(f"a time in column `{self.plan.stream.time}` is further than 146,000 years from 1970")
        self._max_event = latest if self._max_event is None else max(self._max_event, latest)
        starts, position = number_slices(slice_starts(times, self._edges))
        for index, folder in enumerate(self._folders):
            for bucket, tables in folder.fold(batch, starts, position, self.buckets):
                self._parts[bucket].append(({"fold": index}, tables))

    def messages(self, *, finish: bool = False) -> list[bytes]:
        """One message for each bucket ``0 .. buckets - 1``. ``finish`` says that no row will ever follow."""
        messages = []
        for parts in self._parts:
            header = {
                "rows": self._rows,
                "max_event": self._max_event,
                "finish": finish,
                "folds": [head["fold"] for head, _ in parts],
            }
            messages.append(wire.pack(wire.Kind.SLICES, header, [t for _, tables in parts for t in tables]))
        return messages


class _Folder:
    """One fold of the plan: filter, keys, inputs, kernel."""

    def __init__(self, fold: Fold) -> None:
        self.spec = fold
        self._inputs: list[tuple[Expression, str | None]] = []
        self._feeds = [Feed(partial.kind, self._columns(partial)) for partial in fold.partials]
        self._fields = [field for feed in self._feeds for field in feed.monoid.fields]
        self._kernel = FoldKernel(self._feeds)
        self._names = [
            f"p{number}_{index}"
            for number, feed in enumerate(self._feeds)
            for index in range(len(feed.monoid.fields))
        ]

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

    def fold(
        self, batch: pa.RecordBatch, starts: Array, position: Array, buckets: int
    ) -> list[tuple[int, list[pa.RecordBatch]]]:
        """For each bucket with rows, a table of its keys and a table of its (slice, key) partials."""
        if self.spec.where is not None:
            mask = evaluate_filter(self.spec.where, batch)
            batch = batch.filter(mask)
            position = position[mask.to_numpy(zero_copy_only=False)]
        if not len(batch):
            return []
        codes, keys = self._keys(batch)
        distinct = len(keys) if keys is not None else 1
        group, cells = self._groups(position * distinct + codes, len(starts) * distinct)
        partials = self._kernel(group, len(cells), [self._column(*entry, batch) for entry in self._inputs])
        rows = partials[0][0]
        present = np.flatnonzero(rows > 0)
        fields = [field[present] for fields in partials for field in fields]
        slices, code = np.divmod(cells[present], distinct)
        return self._split(starts[slices], code, keys, fields, buckets)

    def _keys(self, batch: pa.RecordBatch) -> tuple[Array | int, pa.RecordBatch | None]:
        """The key code of every row, and the distinct keys by code; no keys: one group."""
        if not self.spec.keys:
            return 0, None
        arrays = [_plain(evaluate(named.expression, batch)) for named in self.spec.keys]
        codes, distinct = encode_keys(arrays)
        columns = list(zip(*distinct, strict=True))
        names = [str(index) for index in range(len(arrays))]
        table = pa.record_batch(
            [pa.array(column, array.type) for column, array in zip(columns, arrays, strict=True)], names=names
        )
        return codes, table

    @staticmethod
    def _groups(cell: Array, cells: int) -> tuple[Array, Array]:
        """Dense group numbers and the cell of each group. Few cells: every cell is a group, nothing is sorted."""
        if cells <= max(4 * len(cell), 1 << 16):
            return cell, np.arange(cells)
        found, group = np.unique(cell, return_inverse=True)
        return group, found

    @staticmethod
    def _column(expression: Expression, dtype: str | None, batch: pa.RecordBatch) -> tuple[Array, Array]:
        """Values (anything where NULL) and validity of an input column, in the type its partials take."""
        array = evaluate(expression, batch)
        valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else np.ones(len(array), np.bool_)
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

    def _split(
        self, slices: Array, code: Array, keys: pa.RecordBatch | None, fields: Sequence[Array], buckets: int
    ) -> list[tuple[int, list[pa.RecordBatch]]]:
        if keys is None:
            keys = pa.RecordBatch.from_arrays([pa.array([0], pa.int8())], names=["none"])
        bucket_of = key_buckets(keys, buckets)
        out = []
        for bucket in range(buckets):
            mine = np.flatnonzero(bucket_of == bucket)
            chosen = np.flatnonzero(bucket_of[code] == bucket) if buckets > 1 else np.arange(len(code))
            if not len(chosen):
                continue
            rank = np.zeros(len(bucket_of), np.int32)
            rank[mine] = np.arange(len(mine))
            columns = [pa.array(slices[chosen]), pa.array(rank[code[chosen]])]
            columns += [field.to_arrow(cells[chosen]) for field, cells in zip(self._fields, fields, strict=True)]
            entries = pa.record_batch(columns, names=["slice", "key", *self._names])
            out.append((bucket, [keys.take(pa.array(mine)), entries]))
        return out


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


def key_buckets(keys: pa.RecordBatch, buckets: int) -> Array:
    """The bucket of each key: a hash that is the same in every process and on every machine.

    NULL, NaN and both zeros have one place each, whatever their bits.
    """
    mixed = np.zeros(len(keys), np.uint64)
    for column in keys.columns:
        if pa.types.is_floating(column.type):
            values = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
            values = np.where(np.isnan(values), np.nan, values + 0.0)
            hashed = pd.util.hash_array(values)
        else:
            texts = column.cast(pa.string()).to_pandas()
            hashed = pd.util.hash_array(texts.fillna("\0null").to_numpy(object), categorize=False)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashed
    mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(buckets)).astype(np.int64)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
