"""Rows into the partials of their cells, ``[slice, key]``: the work of level 1, wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra.decimals import units
from workbench.algebra.partials import OBJECT
from workbench.codegen import BLOCK, FoldKernel, Lanes, Runs
from workbench.codegen.source import LANES, Feed
from workbench.errors import DataError
from workbench.kernels.combine import lift_value
from workbench.kernels.slicing import NO_EDGES, Extent, Slices, extent_of, slices_of
from workbench.logical import Column, Expression, Session, walk
from workbench.plan import Fold, Partial, SharedPlan, grid_of
from workbench.runtime.expressions import Columns, evaluate
from workbench.runtime.joining import steps_of
from workbench.runtime.keyrange import KeyProfile
from workbench.runtime.keys import Codes, number_keys
from workbench.runtime.learned import Learned, subject_of
from workbench.runtime.selection import Filter
from workbench.time import LIMIT, parse_duration

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: Rows for each cell, on average, from which on there may be several cells to a slice.
_FEW = 16
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True)
class Cut:
    """The rows of a batch that have an event time, their slices, and the latest time (meaningless without rows)."""

    batch: pa.RecordBatch
    slices: Slices
    latest: int
    stamps: pa.Array

    def times(self) -> Array:
        """The event time of each row, microseconds; they are known to fit."""
        return micros(self.stamps, "")


@dataclass(frozen=True)
class Rows:
    """The rows of a batch that a fold takes: their slices, keys (None: one key) and inputs, as kernels want them.

    ``times`` are there where windows depend on them, with the columns of rows that are kept, or, where gaps differ by
    row, the ends ``[gap, row]`` of the sessions that a row would be the last of.
    """

    slices: Slices
    codes: Codes | None
    keys: list[pa.Array]
    inputs: list[tuple[Array, Array | None]]
    times: Array | None = None
    ends: Array | None = None
    columns: list[pa.Array] | None = None

    def __len__(self) -> int:
        return len(self.slices)


class Folder:
    """One fold of a plan: filter, keys, inputs, kernel. May be used by several threads at once.

    It learns from the rows it reads: its filters their order, ``learned_keys`` what level 1 sees of its keys.
    """

    def __init__(self, fold: Fold) -> None:
        self.spec = fold
        self.learned_keys = KeyProfile()
        self._inputs: list[tuple[Expression, str | None]] = []
        self._places: dict[Expression, list[int]] = {}
        self._feeds = [Feed(partial.kind, self._columns(partial)) for partial in fold.partials]
        self.kinds = [feed.monoid for feed in self._feeds]
        read = [entry[0] for entry in self._inputs] + [named.expression for named in fold.keys]
        gaps = [session.gap for session in fold.gaps if not isinstance(session.gap, int)]
        self._steps = steps_of(fold.where, [*read, *gaps, *(fold.columns or ())])

    @cached_property
    def subject(self) -> str:
        """The fold, where it is told what was learned of it."""
        return subject_of(self.spec)

    def learned(self) -> Learned:
        """What this process has learned so far of the rows that the fold reads."""
        filters = [step.profile for step in self._steps if isinstance(step, Filter) and step.profile is not None]
        return Learned.of(filters, self.learned_keys)

    @cached_property
    def _kernel(self) -> FoldKernel:
        """For rows whose cell changes at random."""
        return FoldKernel(self._feeds)

    @cached_property
    def _run_kernel(self) -> FoldKernel:
        """For rows whose cell changes seldom: there is one key, and they are in order of time."""
        return FoldKernel(self._feeds, Runs)

    @cached_property
    def _lane_kernel(self) -> FoldKernel:
        """For rows whose cell changes often, but mostly to one that was there just before."""
        return FoldKernel(self._feeds, Lanes)

    def _columns(self, partial: Partial) -> tuple[int, ...]:
        """The input columns of a partial."""
        kinds = partial.monoid.inputs or (None,) * len(partial.arguments)
        return tuple(self._input(*entry) for entry in zip(partial.arguments, kinds, strict=True))

    def _input(self, argument: Expression, dtype: str | None) -> int:
        """The column of an argument in a type; a partial that only counts shares any column of its argument."""
        places = self._places.setdefault(argument, [])
        for index in places:
            kind = self._inputs[index][1]
            if dtype is None or kind in (None, dtype):
                self._inputs[index] = (argument, kind or dtype)
                return index
        places.append(len(self._inputs))
        self._inputs.append((argument, dtype))
        return places[-1]

    def read(self, cut: Cut) -> Rows:
        """What the fold takes of a batch; every row of the batch has an event time and a slice."""
        batch, slices, spec = cut.batch, cut.slices, self.spec
        times = cut.times() if spec.gaps or spec.columns is not None else None
        for step in self._steps:
            batch, often = step(batch)
            if often is not None:
                slices = slices.only(often)
                times = None if times is None else np.repeat(times, often)
        codes: Codes | None = None
        keys: list[pa.Array] = []
        if spec.keys and len(batch):
            columns = [evaluate(named.expression, batch) for named in spec.keys]
            codes, keys = number_keys(columns, len(batch), self.learned_keys.most(len(batch)))
        if spec.columns is not None:
            return Rows(slices, codes, keys, [], times, columns=[evaluate(each, batch) for each in spec.columns])
        inputs = [_column(*entry, batch) for entry in self._inputs]
        if times is None or not spec.gaps:
            return Rows(slices, codes, keys, inputs)
        if all(isinstance(session.gap, int) for session in spec.gaps):
            return Rows(slices, codes, keys, inputs, times)
        ends = np.stack([session_ends(gap, times, batch) for gap in spec.gaps])
        return Rows(slices, codes, keys, inputs, times, ends)

    def lift(self, columns: Mapping[Expression, pa.Array], rows: int) -> list[Fields]:
        """Each row as a partial of its own, from the columns of rows that were kept."""
        cells = self.blank(rows)
        if rows:
            self.fold_cells(np.arange(rows), [_column(*entry, columns, rows) for entry in self._inputs], cells)
        return cells

    def lift_rows(self, columns: Columns, rows: int) -> list[Fields | None]:
        """As :meth:`lift`, with no copy where a value is its own partial; None for a count of all rows."""
        inputs = [_column(*entry, columns, rows) for entry in self._inputs]
        found: list[Fields | None] = []
        cells: list[Fields] = []
        for place, (feed, kind) in enumerate(zip(self._feeds, self.kinds, strict=True)):
            complete = all(inputs[index][1] is None for index in (*feed.required, *feed.valued))
            if complete and kind.name == "count":
                found.append(None)
            elif complete and kind.compiled and kind.lift is lift_value:
                found.append((inputs[feed.valued[0]][0],))
            else:
                if not cells:
                    cells = self.blank(rows)
                    self.fold_cells(np.arange(rows), inputs, cells)
                found.append(cells[place])
        return found

    def blank(self, cells: int) -> list[Fields]:
        """Cells without rows, all partials."""
        return [kind.blank(cells) for kind in self.kinds]

    def fold(self, rows: Rows, numbers: Array | None, width: int, cells: Sequence[Fields]) -> None:
        """Fold rows into ``cells``, a matrix of ``width`` keys: the slice at place p has the row ``numbers[p]``.

        Without ``numbers`` it has the row p. Block by block, so that what is made for a row on the way never leaves
        the cache.
        """
        if self._in_lanes(rows):
            self._fold_lanes(rows, numbers, cells)
            return
        runs = rows.codes is None and rows.slices.bounds is not None
        kernel = self._run_kernel if runs else self._kernel
        function = kernel.ready(len(rows))
        size = BLOCK if all(kind.compiled for kind in self.kinds) else max(len(rows), 1)
        for low in range(0, len(rows), size):
            high = min(low + size, len(rows))
            some = rows.slices.rows(low, high)
            first = some.places.astype(np.int64, copy=False) if numbers is None else numbers[some.places]
            first = first if width == 1 else first * width
            group: Runs | Array = first if some.bounds is None else Runs(first, some.bounds)
            if rows.codes is not None:
                group = (group.expanded() if isinstance(group, Runs) else group) + rows.codes.rows(slice(low, high))
            kernel.into(cells, group, chosen(rows.inputs, slice(low, high)), function)

    def _in_lanes(self, rows: Rows) -> bool:
        """Whether rows go to several cells of each slice: it is the same in whatever order, and slices are few."""
        if rows.codes is not None or rows.slices.bounds is not None:
            return False
        exact = all(kind.compiled and kind.exact and kind.commutative for kind in self.kinds)
        return exact and len(rows.slices.starts) * LANES * _FEW <= len(rows)

    def _fold_lanes(self, rows: Rows, numbers: Array | None, cells: Sequence[Fields]) -> None:
        """As :meth:`fold` without keys, neighbours to different cells, which are combined in the end."""
        kernel, places = self._lane_kernel, rows.slices.places.astype(np.int32, copy=False)
        function, parts = kernel.ready(len(rows)), self.blank(len(rows.slices.starts) * LANES)
        for low in range(0, len(rows), BLOCK):
            some = slice(low, min(low + BLOCK, len(rows)))
            kernel.into(parts, Lanes(places[some]), chosen(rows.inputs, some), function)
        for kind, fields, own in zip(self.kinds, cells, parts, strict=True):
            total = fields if numbers is None else tuple(field[numbers] for field in fields)
            with np.errstate(all="ignore"):
                for lane in range(LANES):
                    total = kind.combine(*total, *(part[lane::LANES] for part in own))
            for field, values in zip(fields, total, strict=True):
                field[slice(None) if numbers is None else numbers] = values

    def fold_cells(self, group: Array, inputs: Sequence[tuple[Array, Array | None]], cells: Sequence[Fields]) -> None:
        """Fold rows into cells that are known by number."""
        self._kernel.into(cells, group, inputs, self._kernel.ready(len(group)))

    def compile(self) -> None:
        """Wait until all kernels are compiled. Without it the first rows may be folded by array code."""
        self._kernel.compile()
        if not self.spec.keys:
            self._run_kernel.compile()
            self._lane_kernel.compile()


def chosen(inputs: Sequence[tuple[Array, Array | None]], rows: slice | Array) -> list[tuple[Array, Array | None]]:
    """Some rows of input columns; a column whose values nobody reads has none."""
    return [
        (values[rows] if len(values) else values, None if valid is None else valid[rows]) for values, valid in inputs
    ]


def cut_batch(batch: pa.RecordBatch, plan: SharedPlan) -> Cut:
    """Cut the rows of a batch into slices; rows without an event time are left out. Raises DataError."""
    name = plan.stream.time
    stamps = batch.column(name)
    if stamps.null_count:
        batch = batch.filter(stamps.is_valid())
        stamps = batch.column(name)
    edges = plan.progressions
    if not len(stamps):
        return Cut(batch, slices_of(np.zeros(0, np.int64), edges), -LIMIT, stamps)
    unit = _UNITS.get(stamps.type.unit, 0)
    times, unit = (stamps.view(pa.int64()).to_numpy(), unit) if unit else (micros(stamps, name), 1)
    extent = extent_of(times)
    first, last = extent.first * unit, extent.last * unit
    if max(abs(first), abs(last)) > LIMIT:
        micros(stamps, name)  # which says it of what does not fit
    require_near(plan, first, last)
    return Cut(batch, slices_of(times, edges, _other_edges(plan, times, extent, unit), extent, unit), last, stamps)


def require_near(plan: SharedPlan, first: int, last: int) -> None:
    """Raises DataError where the first or the last of some times, in microseconds, is out of reach."""
    if last > LIMIT or first < -LIMIT:
        name, far = plan.stream.time, last if last > LIMIT else first
        raise DataError(
            f"a time in column `{name}` is further than 146,000 years from 1970: {far:,} microseconds from it"
        )


def micros(stamps: pa.Array, name: str) -> Array:
    """Event times of column ``name`` in microseconds; none is NULL.

    Raises DataError, which has the value, where one does not fit into them or would lose digits.
    """
    try:
        return stamps.cast(pa.timestamp("us", stamps.type.tz)).view(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise DataError(f"a time in column `{name}` does not fit into microseconds: {error}") from None


#: Times are told apart by 2 ** this many microseconds, 407 days, where they lie further apart than ``_FAR`` of these.
_STRETCH, _FAR = 45, 64


def _other_edges(plan: SharedPlan, times: Array, extent: Extent, unit: int) -> Array:
    """The edges that are no progressions, as far as rows at these times, in units of microseconds, meet them.

    One row in the year 9999 does not make all days up to then edges: only stretches of time with rows are asked for.
    """
    if not plan.listed:
        return NO_EDGES
    first, last = extent.first * unit, extent.last * unit
    spans = [(first, last)]
    if last - first > _FAR << _STRETCH:
        begins = np.unique(times * unit >> _STRETCH) << _STRETCH
        spans = [(low, low + (1 << _STRETCH)) for low in begins.tolist()]
    return np.unique(np.concatenate([grid_of(window).edges(*span) for window in plan.listed for span in spans]))


def session_ends(session: Session, times: Array, columns: Columns) -> Array:
    """When the session that a row is the last of would end; rows without a gap end at their own time.

    For a session that a row at its end still joins, that is a microsecond later than what is told as its end.
    """
    if isinstance(session.gap, int):
        return times + session.gap + session.joins
    gaps = evaluate(session.gap, columns, len(times)).dictionary_encode()
    micros = [parse_duration(text) for text in gaps.dictionary.to_pylist()]
    own = np.array([gap + session.joins if gap > 0 else 0 for gap in [*micros, 0]], np.int64)
    return times + own[gaps.indices.fill_null(len(micros)).to_numpy(zero_copy_only=False)]


def plan_columns(plan: SharedPlan) -> tuple[str, ...]:
    """The source columns that a plan reads, the time column first, each once."""
    found = dict.fromkeys([plan.stream.time])
    for fold in plan.folds:
        expressions = [named.expression for named in fold.keys]
        expressions += [argument for partial in fold.partials for argument in partial.arguments]
        expressions += [fold.where] if fold.where is not None else []
        expressions += [gap.gap for gap in fold.gaps if not isinstance(gap.gap, int)]
        expressions += fold.columns or ()
        for expression in expressions:
            found |= dict.fromkeys(node.name for node in walk(expression) if isinstance(node, Column))
    return tuple(found)


def _column(
    expression: Expression, dtype: str | None, columns: Columns, rows: int | None = None
) -> tuple[Array, Array | None]:
    """Values (anything where NULL) and validity of an input column, in the type its partials take."""
    array = evaluate(expression, columns, rows)
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if dtype is None:
        return np.zeros(0, np.int64), valid
    if dtype == OBJECT:
        return array.fill_null("").to_numpy(zero_copy_only=False), valid
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    if pa.types.is_decimal128(array.type):
        array = units(array, str(expression))
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    array = array.cast(kind, safe=not pa.types.is_floating(kind))
    if array.null_count:
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False), valid
