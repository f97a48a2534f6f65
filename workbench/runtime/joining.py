"""Rows joined with static tables, whole batches at a time.

The keys of a table are numbered once a process; the rows that a number has stand side by side in ``order``::

    code     0      1   2
    starts   0      3   4      rows of the table with key 0: order[0:3]
    order    5 8 9  2   0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.logical import Expression, walk
from workbench.logical.joins import Join, TableColumn, conjuncts, joins_of, split_at_joins
from workbench.runtime.casts import cast
from workbench.runtime.expressions import evaluate
from workbench.runtime.selection import Filter, columns_of
from workbench.runtime.values import comparable

Array = npt.NDArray[Any]


#: Makes other rows of the rows of a batch, and says how often each is there; None for once each, in place.
Step: TypeAlias = Callable[[pa.RecordBatch], tuple[pa.RecordBatch, "Array | None"]]


def steps_of(where: Expression | None, read: Iterable[Expression]) -> list[Step]:
    """What a filter makes of the rows of a stream, for expressions that are ``read`` of them: filters and joins."""
    before, after = split_at_joins(where)
    joins = joins_of(where)
    read = list(read)
    later = [*read, *(key for join in joins for key in join.keys), *conjuncts(after)]
    columns = _columns_of(later)
    steps: list[Step] = [] if before is None else [Filter(before, columns_of(later))]
    steps += [partial(joined, join=join, columns=columns.get(join, ())) for join in joins]
    return steps if after is None else [*steps, Filter(after, columns_of(read))]


def _columns_of(expressions: Iterable[Expression]) -> dict[Join, tuple[TableColumn, ...]]:
    """The columns of each joined table that some expressions use."""
    found: dict[Join, dict[TableColumn, None]] = {}
    for expression in expressions:
        for node in walk(expression):
            if isinstance(node, TableColumn):
                found.setdefault(node.join, {})[node] = None
    return {join: tuple(columns) for join, columns in found.items()}


def joined(batch: pa.RecordBatch, join: Join, columns: Sequence[TableColumn]) -> tuple[pa.RecordBatch, Array | None]:
    """The rows of a join with ``columns`` of the table beside their own, in the order of the rows.

    Second, how often each row of ``batch`` is there; None for once each. Cost: one look-up a row.
    """
    index = _index(join)
    codes = index.codes([evaluate(key, batch) for key in join.keys])
    counts = np.append(index.counts, 0)[codes]
    times = np.maximum(counts, 1) if join.kind == "left" else counts
    once = bool((times == 1).all())
    offset = np.zeros(len(codes), np.int64)
    if not once:
        batch = batch.take(pa.array(np.repeat(np.arange(len(batch)), times)))
        offset = np.arange(len(batch)) - np.repeat(np.cumsum(times) - times, times)
        codes, counts = np.repeat(codes, times), np.repeat(counts, times)
    place = np.append(index.starts, 0)[codes] + offset
    # A table without rows has no place to look at; every row is without a partner then.
    rows = pa.array(np.append(index.order, 0)[np.where(counts > 0, place, -1)], mask=counts == 0)
    table = join.table.open()
    for column in columns:
        taken = table.column(column.name).combine_chunks().take(rows)
        batch = batch.append_column(column.stored, taken)
    return batch, None if once else times


@dataclass(frozen=True)
class _Index:
    """The numbers of the keys of a table.

    ``values`` are the distinct ones of each key column; ``pairs[i]`` are the combinations of the number so far with
    that of column ``i`` that are there, ascending. Key number c has the rows ``order[starts[c]:][:counts[c]]``.
    """

    values: list[pa.Array]
    pairs: list[Array]
    starts: Array
    counts: Array
    order: Array

    def codes(self, keys: Sequence[pa.Array]) -> Array:
        """The number of every row's key; -1 for keys that the table does not have."""
        codes = np.zeros(len(keys[0]), np.int64)
        for key, values, pairs in zip(keys, self.values, self.pairs, strict=True):
            own = _numbered(comparable(key), values)
            pair = np.where((codes < 0) | (own < 0), -1, codes * max(len(values), 1) + own)
            place = np.minimum(np.searchsorted(pairs, pair), max(len(pairs) - 1, 0))
            codes = np.where(np.append(pairs, -2)[place] == pair, place, -1)
        return codes


@lru_cache(maxsize=16)
def _index(join: Join) -> _Index:
    """Cost: a sort of the table's keys."""
    table = join.table.open()
    codes = np.zeros(len(table), np.int64)
    all_values, all_pairs = [], []
    for key, name in zip(join.keys, join.columns, strict=True):
        column = comparable(cast(table.column(name).combine_chunks(), key.type, f"{join.alias}.{name}"))
        values = column.drop_null().unique()
        own = _numbered(column, values)
        pair = np.where((codes < 0) | (own < 0), -1, codes * max(len(values), 1) + own)
        pairs = np.unique(pair[pair >= 0])
        codes = np.where(pair < 0, -1, np.searchsorted(pairs, pair))
        all_values.append(values)
        all_pairs.append(pairs)
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    counts = np.bincount(codes[codes >= 0], minlength=len(all_pairs[-1]))
    return _Index(all_values, all_pairs, np.cumsum(counts) - counts, counts, order)


def _numbered(column: pa.Array, values: pa.Array) -> Array:
    return np.asarray(pc.index_in(column, value_set=values).fill_null(-1).to_numpy(), np.int64)
