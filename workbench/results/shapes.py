"""The shapes of results: what a writer hands over and what a reader gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.errors import QueryError
from workbench.results.units import Unit

Array = npt.NDArray[Any]

#: Bounds of windows in tables.
STAMP = pa.timestamp("us", tz="UTC")

#: What a struct, a list or a text costs in memory, about: the budget of a level counts with it.
OBJECT_BYTES = 512


class Status(IntEnum):
    """What a result is worth. ``ABSENT`` marks a window without a row, and withdraws a provisional one."""

    ABSENT = 0
    PROVISIONAL = 1
    FINAL = 2
    REVISED = 3


@dataclass(frozen=True)
class Level:
    """One zoom level, in microseconds; along a measure, in the units of ``unit``.

    A regular one has the windows ``[start, start + size)`` with ``start = offset + k * slide``. The windows of an
    irregular one, whose slide is 0, have bounds of their own, which may differ by key; its ``size`` is what a window
    is about as long as, 0 if that is not known.
    """

    label: str
    size: int
    slide: int
    offset: int = 0
    unit: Unit | None = None

    @property
    def bound_type(self) -> pa.DataType:
        """The type of window bounds in tables: timestamps, or the numbers of a measure."""
        return STAMP if self.unit is None else self.unit.bound_type

    def bounds(self, times: Array) -> pa.Array:
        """Bounds as a column of a table."""
        return pa.array(times).cast(STAMP) if self.unit is None else self.unit.bounds(times)

    @property
    def regular(self) -> bool:
        """Whether bounds follow from the level alone."""
        return self.slide > 0


def no_time_axis(label: str) -> QueryError:
    """The error for a picture of windows along a measure."""
    hint = "leave the picture out: `results()` has them as a table"
    return QueryError(f"windows of `{label}` have no place on a time axis", hint=hint)


@dataclass(frozen=True)
class Schema:
    """The shape of one query's results: its levels from fine to coarse, key columns and value columns.

    Bounds of all levels are of one type.
    """

    query: str
    levels: tuple[Level, ...]
    keys: tuple[tuple[str, pa.DataType], ...]
    values: tuple[tuple[str, pa.DataType], ...]

    def require_time(self) -> None:
        """Raises QueryError where windows are no pieces of time, so that a plot cannot show them."""
        for level in self.levels:
            if level.unit is not None:
                raise no_time_axis(level.label)

    @property
    def numbered(self) -> bool:
        """Whether there are windows that their level, key and start do not tell apart."""
        return not all(level.regular for level in self.levels)

    @property
    def numeric(self) -> tuple[str, ...]:
        """The value columns that a line can show: numbers, booleans and times; not structs, lists or text."""
        return plottable(self.values)


@dataclass(frozen=True)
class ResultColumns:
    """Some windows, columnar; all arrays have one length.

    ``keys`` are Arrow arrays in the order of the schema, ``values`` Arrow arrays (NULL where the aggregate has no
    value), ``starts`` int64 microseconds, ``status`` int8 codes of :class:`Status`, ``revisions`` int16. Irregular
    levels add the windows' ``ends`` and ``numbers``: what identifies a window within its key, int64, ascending with
    time. At regular ones the start does.
    """

    starts: Array
    keys: tuple[pa.Array, ...]
    values: tuple[pa.Array, ...]
    status: Array
    revisions: Array
    ends: Array | None = None
    numbers: Array | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def pick(self, which: Array | slice) -> ResultColumns:
        """Some of the windows, by mask or position; of a slice nothing is copied."""

        def picked(column: pa.Array) -> pa.Array:
            if isinstance(which, slice):
                return column[which]
            return column.filter(pa.array(which)) if which.dtype == np.bool_ else column.take(pa.array(which))

        ends, numbers = (None if side is None else side[which] for side in (self.ends, self.numbers))
        keys, values = (tuple(map(picked, side)) for side in (self.keys, self.values))
        return ResultColumns(
            self.starts[which], keys, values, self.status[which], self.revisions[which], ends, numbers
        )

    @staticmethod
    def joined(parts: Sequence[ResultColumns]) -> ResultColumns:
        """One behind the other; they are of one query."""
        if len(parts) == 1:
            return parts[0]
        keys, values = (
            tuple(pa.concat_arrays(columns) for columns in zip(*(getattr(part, side) for part in parts), strict=True))
            for side in ("keys", "values")
        )

        def bounds(side: str) -> Any:
            columns = [getattr(part, side) for part in parts]
            return None if columns[0] is None else np.concatenate(columns)

        sides = map(bounds, ("status", "revisions", "ends", "numbers"))
        return ResultColumns(bounds("starts"), keys, values, *sides)


@dataclass(slots=True, eq=False)
class ResultBatch:
    """Windows of one level of a query: the rows ``[low, high)`` of columns that other batches may have part in."""

    level: int
    columns: ResultColumns
    low: int
    high: int

    @classmethod
    def of(
        cls,
        level: int,
        starts: Array,
        keys: tuple[pa.Array, ...],
        values: tuple[pa.Array, ...],
        status: Array,
        revisions: Array,
        ends: Array | None = None,
        numbers: Array | None = None,
    ) -> ResultBatch:
        """A batch with columns of its own: see :class:`ResultColumns`."""
        return cls(level, ResultColumns(starts, keys, values, status, revisions, ends, numbers), 0, len(starts))

    def __len__(self) -> int:
        return self.high - self.low

    def own(self) -> ResultColumns:
        """The columns of this batch alone; nothing is copied."""
        if len(self) == len(self.columns):
            return self.columns
        return self.columns.pick(slice(self.low, self.high))


@dataclass(frozen=True)
class Series:
    """A range of one level for some keys: matrices ``[window, key]``, a copy that nobody else changes.

    ``values[name][i, j]`` is NaN where NULL or where ``status[i, j]`` is ABSENT. ``starts`` ascends, at a regular
    level by the slide; ``ends`` has a column for each key, or one for all.
    """

    level: int
    starts: Array
    ends: Array
    keys: tuple[tuple[Any, ...], ...]
    values: dict[str, Array]
    status: Array


@dataclass(frozen=True)
class Rows:
    """Kept windows, an entry each: the place of its key, bounds, (values, validity) columns, status, revision.

    ``numbers`` are those of windows with bounds of their own; of a regular level there need be none.
    """

    keys: Array
    starts: Array
    ends: Array
    values: list[tuple[Array, Array]]
    status: Array
    revisions: Array
    numbers: Array | None = None


def plottable(values: Iterable[tuple[str, pa.DataType]]) -> tuple[str, ...]:
    """The names of the columns, of those with their types, that a line can show."""
    return tuple(name for name, kind in values if storage(kind) is not object or pa.types.is_decimal(kind))


def nothing_to_plot(values: Iterable[tuple[str, pa.DataType]]) -> QueryError:
    """The error for a picture of a query none of whose value columns a line can show."""
    names = ", ".join(f"`{name}`" for name, _ in values)
    return QueryError(f"nothing to plot: {names}", hint="a line needs numbers; `results()` gives all values")


def storage(kind: pa.DataType) -> npt.DTypeLike:
    """The NumPy type that a value column is kept in."""
    if pa.types.is_boolean(kind):
        return np.bool_
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return np.int64
    return np.float64 if pa.types.is_floating(kind) else object


def unpacked(array: pa.Array, dtype: npt.DTypeLike) -> tuple[Array, Array]:
    """Values (0 where NULL) and validity of an Arrow array; structs, lists, decimals and text as Python objects."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(array.type):
        array = array.fill_null(0)  # lines are drawn of them, too
    if np.dtype(dtype).hasobject:
        cells = np.empty(len(array), object)
        cells[:] = array.to_pylist()
        return cells, valid
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_temporal(array.type):
        array = array.cast(pa.int64())
    filled = array.fill_null(False if pa.types.is_boolean(array.type) else 0) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False).astype(dtype), valid
