"""Slice partials into windows and windows into result rows, for every host of levels 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.codegen import AssembleKernel, Scans
from workbench.logical import Fill, Window
from workbench.plan import Assembly, Bounds, QueryPlan, SharedPlan
from workbench.results import ResultBundle, ResultColumns, Targets
from workbench.runtime.lowering import lower
from workbench.time import LIMIT

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]
#: Results with the queries that they are for.
Emitted = list[ResultBundle]


class Leaves(Protocol):
    """Matrices ``[slice, key]`` of one fold in order of time: the slice store of an operator, or a table's."""

    @property
    def scans(self) -> Sequence[Scans]: ...

    @property
    def keys(self) -> int:
        """How many columns are in use."""

    @property
    def end(self) -> int:
        """The matrix row after the newest slice."""

    def rows(self, times: Array) -> Array:
        """The matrix row of the first slice that starts at or after each time."""

    def partials(self, position: int) -> Fields:
        """The matrices of one partial."""


@dataclass(frozen=True)
class Ranges:
    """Windows over a fold as the rows ``[first, last)`` of its leaves.

    ``kind`` is the place of each one's :class:`Assembly` among some that the caller knows; kinds ascend, and the
    windows of a kind.
    """

    kind: Array
    first: Array
    last: Array


@dataclass(frozen=True)
class Windows:
    """Partials of windows: matrices ``[row, key]`` by partial, and the row of each window.

    ``rows`` is None where it is the window's own number; windows whose kind has no use for a partial have none.
    """

    fields: dict[int, Fields]
    rows: dict[int, Array | None]

    def of(self, partial: int, which: Array | None = None) -> Fields:
        """One partial, of some windows by number; None: of all."""
        fields, rows = self.fields[partial], self.rows[partial]
        if rows is not None:
            which = rows if which is None else rows[which]
        return fields if which is None else tuple(field[which] for field in fields)


class Assembler:
    """The kernels of all windows of a plan. Not for several threads at once: it keeps the room for its answers."""

    def __init__(self, plan: SharedPlan) -> None:
        self.plan = plan
        self._kernels = [
            AssembleKernel(plan.folds[method.fold].partials[method.partial].kind, method.algorithm, method.chunk)
            for method in plan.methods
        ]
        self._uses: dict[int, tuple[Sequence[Assembly], dict[int, Array]]] = {}

    def compile(self) -> None:
        """Wait until all compiled variants are there."""
        for kernel in self._kernels:
            kernel.compile()

    def assemble(self, fold: int, assemblies: Sequence[Assembly], ranges: Ranges, leaves: Leaves) -> Windows:
        """Partials of windows of some kinds over a fold. The next call writes over what this one returns."""
        found, used = Windows({}, {}), self._used(fold, assemblies)
        every = bounds_of(ranges.kind, len(assemblies))
        for method, kernel in zip(self.plan.methods, self._kernels, strict=True):
            if method.fold != fold or method.partial not in used:
                continue
            uses = used[method.partial]
            first, last, bounds, rows = ranges.first, ranges.last, every, None
            if not uses.all():
                mine = uses[ranges.kind]
                first, last, rows = first[mine], last[mine], np.cumsum(mine) - 1
                bounds = bounds_of(ranges.kind[mine], len(assemblies))
            matrices, scans = leaves.partials(method.partial), leaves.scans[method.partial]
            fields = kernel(first, last, bounds, matrices, scans, keys=max(1, leaves.keys), end=leaves.end)
            found.fields[method.partial], found.rows[method.partial] = fields, rows
        return found

    def _used(self, fold: int, assemblies: Sequence[Assembly]) -> dict[int, Array]:
        """Which of the assemblies use a partial, for each that some do; remembered for those of the last call."""
        known, used = self._uses.get(fold, ((), {}))
        if known is not assemblies:
            shapes: dict[Any, int] = {}
            shape = np.array([shapes.setdefault(assembly.partials, len(shapes)) for assembly in assemblies])
            used = {
                partial: np.array([partial in partials for partials in shapes])[shape]
                for partial in sorted({partial for partials in shapes for partial in partials})
            }
            self._uses[fold] = assemblies, used
        return used


@dataclass(frozen=True)
class Alike:
    """Results that are lowered in one go: the windows of some kinds, for queries that differ in no value.

    ``places`` are the places of the kinds that the targets take their windows from, among the caller's; ``kinds``
    those places, ascending, or None if it is all of them. ``since``, by kind, is where the first window starts that
    was wholly seen, where some began in the middle of the stream. Partials of earlier ones may be at odds: one knows
    of rows that another has not seen. So nothing is computed of them. ``fill`` is how they fill windows, which
    decides how often their results are revised; NULL stands for ZERO as well.
    """

    entry: QueryPlan
    regular: bool
    fill: Fill | None
    partials: tuple[int, ...]
    targets: Targets
    places: Array
    kinds: Array | None
    since: Array | None = None

    @staticmethod
    def of(plan: SharedPlan, assemblies: Sequence[Assembly]) -> list[Alike]:
        """The results of all users of some kinds of windows."""
        groups: dict[Any, list[tuple[int, str, int]]] = {}
        first: dict[Any, QueryPlan] = {}
        for place, assembly in enumerate(assemblies):
            for number, level in assembly.users:
                entry = plan.queries[number]
                query = entry.query
                expressions = tuple(named.expression for named in (*query.keys, *query.values))
                fill = Fill.NULL if query.fill is Fill.ZERO else query.fill
                shape = (isinstance(assembly.window, Window), fill, entry.ingredients, expressions, query.having)
                first.setdefault(shape, entry)
                groups.setdefault(shape, []).append((place, query.name, level))
        alike = []
        for shape, targets in groups.items():
            entry = first[shape]
            places, names, levels = zip(*targets, strict=True)
            kinds = np.unique(places)
            partials = {0}.union(*(ingredient.partials for ingredient in entry.ingredients))
            every = None if len(kinds) == len(assemblies) else kinds
            alike.append(
                Alike(entry, shape[0], shape[1], tuple(partials), Targets(names, levels), np.array(places), every)
            )
        return alike

    def begun(self, since: Mapping[tuple[str, int], int]) -> Alike:
        """The same, of which targets begin at some time, by query and level.

        Those of one kind begin together, as they read the same partials.
        """
        targets = list(zip(self.targets.names, self.targets.levels, strict=True))
        if not since.keys() & set(targets):
            return self
        starts = np.full(int(self.places.max()) + 1, -LIMIT)
        starts[self.places] = [since.get(target, -LIMIT) for target in targets]
        return replace(self, since=starts)


def emit(
    alike: Sequence[Alike],
    kind: Array,
    bounds: Bounds,
    found: Windows,
    keys: Sequence[pa.Array],
    status: Array,
    wanted: Array | None = None,
    revisions: Mapping[Fill | None, Array] = MappingProxyType({}),
) -> Emitted:
    """The result rows of windows for all queries that use them.

    ``kind`` (ascending), ``bounds`` and ``status`` (codes) are of each window, as ``found``; the first partial counts
    rows: a window without any has no result. ``keys`` are the columns of the keys. ``wanted`` and ``revisions``,
    which are by ``fill`` of those alike, are matrices ``[window, key]``; without them: all, and never revised.
    """
    results: Emitted = []
    for group in alike:
        mine = None if group.kinds is None else np.flatnonzero(np.isin(kind, group.kinds))
        counts = found.of(0, mine)[0]
        present = counts != 0  # three times as fast as of the integers
        if wanted is not None:
            present &= wanted if mine is None else wanted[mine]
        if group.since is not None:
            own = slice(None) if mine is None else mine
            present &= (bounds.starts[own] >= group.since[kind[own]])[:, None]
        cells = np.flatnonzero(present)
        rows = cells // counts.shape[1]
        columns = cells - rows * counts.shape[1]  # np.divmod takes ten times as long
        windows = rows if mine is None else mine[rows]
        lowered = _lowered(
            group.entry,
            Cells(
                bounds[windows],
                [key.take(pa.array(columns)) for key in keys],
                {index: tuple(_taken(field, cells) for field in found.of(index, mine)) for index in group.partials},
                status[windows],
                revisions[group.fill][windows, columns] if revisions else None,
            ),
            regular=group.regular,
        )
        if len(lowered):
            edges = bounds_of(kind[windows], int(group.places.max()) + 1)
            results.append(ResultBundle(group.targets, lowered, edges[group.places], edges[group.places + 1]))
    return results


def bounds_of(kind: Array, kinds: int) -> Array:
    """Where the windows of each kind begin, if these ascend, and where those of the last kind asked for end."""
    return np.append(0, np.cumsum(np.bincount(kind, minlength=kinds)[:kinds]))


def _taken(field: Array, found: Array) -> Array:
    """A copy of some cells, or all: results outlive the matrices, which the next windows are written to."""
    return field.reshape(-1)[found] if len(found) < field.size else field.reshape(-1).copy()


@dataclass(frozen=True)
class Cells:
    """Results to be lowered, an entry each: bounds, key columns, partials by number, status codes, revisions.

    ``numbers`` identify windows of irregular levels within their key; None: the end does. Results that are withdrawn,
    all of them ABSENT, need no partials.
    """

    bounds: Bounds
    keys: list[pa.Array]
    partials: dict[int, Fields]
    status: Array
    revisions: Array | None = None
    numbers: Array | None = None

    def __getitem__(self, which: Array) -> Cells:
        return Cells(
            self.bounds[which],
            [column.filter(pa.array(which)) for column in self.keys],
            {index: tuple(field[which] for field in fields) for index, fields in self.partials.items()},
            self.status[which],
            None if self.revisions is None else self.revisions[which],
            None if self.numbers is None else self.numbers[which],
        )


def emit_cells(alike: Sequence[Alike], cells: Cells) -> Emitted:
    """As :func:`emit` for windows of one kind, with everything one entry a result."""
    results: Emitted = []
    for group in alike:
        own = cells if group.since is None else cells[cells.bounds.starts >= group.since[0]]
        columns = _lowered(group.entry, own, regular=group.regular)
        if len(columns):
            lows = np.zeros(len(group.targets), np.int64)
            results.append(ResultBundle(group.targets, columns, lows, lows + len(columns)))
    return results


def _lowered(entry: QueryPlan, cells: Cells, *, regular: bool) -> ResultColumns:
    values, status = _nothing(entry, cells) or lower(entry, cells.keys, cells.partials, cells.status)
    revisions = np.zeros(len(status), np.int16) if cells.revisions is None else cells.revisions
    ends = numbers = None
    if not regular:
        ends, numbers = cells.bounds.ends, cells.bounds.ends if cells.numbers is None else cells.numbers
    return ResultColumns(cells.bounds.starts, tuple(cells.keys), values, status, revisions, ends, numbers)


def _nothing(entry: QueryPlan, cells: Cells) -> tuple[tuple[pa.Array, ...], Array] | None:
    """What stands in withdrawn results: an expression need have no value over no rows."""
    if cells.status.any():
        return None
    kinds = [named.expression.type for named in entry.query.values]
    return tuple(pa.nulls(len(cells.status), kind) for kind in kinds), cells.status
