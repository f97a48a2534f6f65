"""Sorted runs: all values of a slice in ascending order, each once, with the number of its rows.

*General Stream Slicing* §5.4.1: what holistic functions need of a slice is its sorted values, run-length encoded;
runs of slices are merged when a window ends. A run is one immutable object in a cell of a partial's matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

from workbench.algebra.ordered import ranks
from workbench.algebra.partials import OBJECT, Array, Codec, Field, Fields, PartialKind
from workbench.kernels.later import Later
from workbench.kernels.runs import merge_sorted


class Run:
    """Distinct values ascending (NaN last, both zeros as 0) and how often each occurs. Never changed.

    Two runs are equal if they hold the same values the same number of times.
    """

    __slots__ = ("counts", "values")

    def __init__(self, values: Array, counts: Array) -> None:
        self.values = values
        self.counts = counts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return np.array_equal(self.counts, other.counts) and not _differ(self.values, other.values).any()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Run({self.values.tolist()}, {self.counts.tolist()})"

    @property
    def rows(self) -> int:
        """How many rows it stands for."""
        return int(self.counts.sum())


def merge(a: Run, b: Run) -> Run:
    """The run of both sets of rows. Cost: linear in the distinct values (a stable sort of two sorted runs)."""
    if not len(a.counts):
        return b
    if not len(b.counts):
        return a
    # Runs of slices are short: what counts is the number of NumPy calls.
    values = np.concatenate((a.values, b.values))
    order = values.argsort(kind="stable")
    values, counts = values[order], np.concatenate((a.counts, b.counts))[order]
    fresh = np.empty(len(values), np.bool_)
    fresh[0] = True
    np.not_equal(values[1:], values[:-1], out=fresh[1:])
    if values[-2] != values[-2]:  # NaN in both
        fresh[-1] = False
    first = fresh.nonzero()[0]
    return Run(values[first], np.add.reduceat(counts, first))


_merge_cells: Callable[[Array, Array], Array] = np.frompyfunc(merge, 2, 1)


def combine_texts(a: Array, b: Array) -> Fields:
    """:func:`merge` cell by cell."""
    return (_merge_cells(a, b),)


_EMPTY = [(np.zeros(0, dtype), np.zeros(0, np.int64)) * 2 for dtype in ("int64", "float64")]
_compiled = Later(merge_sorted, _EMPTY)


def combine_numbers(a: Array, b: Array) -> Fields:
    """:func:`merge` cell by cell: compiled, several times as fast, once that is ready."""
    compiled = _compiled.ready()
    return (_merge_cells(a, b) if compiled is None else _merge_with(compiled)(a, b),)


@cache
def _merge_with(merge_sorted: Callable[..., tuple[Array, Array]]) -> Callable[[Array, Array], Array]:
    def merge(a: Run, b: Run) -> Run:
        if not len(a.counts):
            return b
        return Run(*merge_sorted(a.values, a.counts, b.values, b.counts)) if len(b.counts) else a

    cells: Callable[[Array, Array], Array] = np.frompyfunc(merge, 2, 1)
    return cells


def fold(group: Array, values: Array) -> tuple[Array, Fields]:
    """The run of each group of rows: sorted by group and value, then lengths between changes."""
    distinct: Array | None = None
    if values.dtype == object:
        values, distinct = ranks(values)
    elif values.dtype.kind == "f":
        values = values + 0.0  # -0.0 becomes 0.0
    group, values = _sorted(group, values)
    new_group = np.diff(group, prepend=group[:1] - 1) != 0
    starts = np.flatnonzero(new_group | _starts(values))
    counts = np.diff(np.append(starts, len(values)))
    values = values[starts] if distinct is None else distinct[values[starts]]
    bounds = np.flatnonzero(new_group[starts])
    return group[starts][bounds], (_cells(values, counts, np.append(bounds, len(values))),)


#: At least so many rows to a group, on the average, for groups to be sorted one by one.
_MANY = 64


def _sorted(group: Array, values: Array) -> tuple[Array, Array]:
    """Rows by group, then by value with NaN last.

    Of few groups each is sorted by itself, in place: NumPy sorts values many times as fast as it finds their order.
    """
    sizes = np.bincount(group) if len(group) and group.max() < len(group) // _MANY else np.zeros(0, np.int64)
    if not len(sizes):
        order = np.lexsort((values, group))
        return group[order], values[order]
    if len(sizes) <= 1 << 16:
        group = group.astype(np.uint16)  # for which a stable sort counts
    values = values[np.argsort(group, kind="stable")]
    ends = np.cumsum(sizes)
    for low, high in zip((ends - sizes).tolist(), ends.tolist(), strict=True):
        values[low:high].sort()
    return np.repeat(np.arange(len(sizes)), sizes), values


def _cells(values: Array, counts: Array, bounds: Array) -> Array:
    """Runs between neighbouring bounds; each keeps its own copy, so that a large batch can be forgotten."""
    cells = np.empty(len(bounds) - 1, object)
    for place, (low, high) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        cells[place] = Run(values[low:high].copy(), counts[low:high].copy())
    return cells


def _differ(a: Array, b: Array) -> Array:
    """Where two arrays differ; NaN equals itself."""
    unequal: Array = (a != b) & ~((a != a) & (b != b))
    return unequal


def _starts(values: Array) -> Array:
    """Where a value differs from the one before it."""
    return np.concatenate((np.ones(min(1, len(values)), np.bool_), _differ(values[1:], values[:-1])))


def _codec(dtype: str) -> Codec:
    """A list column of (value, count) structs."""
    kind = pa.string() if dtype == OBJECT else pa.from_numpy_dtype(np.dtype(dtype))

    def encode(cells: Array) -> pa.Array:
        offsets = np.zeros(len(cells) + 1, np.int32)
        np.cumsum([len(run.counts) for run in cells], out=offsets[1:])
        values = np.concatenate([np.empty(0, dtype), *(run.values for run in cells)])
        counts = np.concatenate([np.empty(0, np.int64), *(run.counts for run in cells)])
        pairs = pa.StructArray.from_arrays([pa.array(values, kind), pa.array(counts)], ["value", "count"])
        return pa.ListArray.from_arrays(offsets, pairs)

    def decode(column: pa.Array) -> Array:
        values, counts = column.flatten().flatten()
        bounds = column.offsets.to_numpy()
        return _cells(values.to_numpy(zero_copy_only=False), counts.to_numpy(), bounds - bounds[0])

    return Codec(encode, decode, lambda run: 200 + 16 * len(run.counts))


def _kind(name: str, dtype: str) -> PartialKind:
    empty = Run(np.empty(0, dtype), np.empty(0, np.int64))

    def lift(values: Array) -> Fields:
        return fold(np.arange(len(values)), values)[1]

    combine = combine_texts if dtype == OBJECT else combine_numbers
    return PartialKind(
        f"runs_{name}", (Field("run", OBJECT, empty, _codec(dtype)),), (dtype,), lift, combine, fold=fold
    )


KINDS = (_kind("int", "int64"), _kind("float", "float64"), _kind("text", OBJECT))
