"""Levels 2 and 3: slice partials into windows, one kernel for all windows over a partial."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.algebra import PARTIALS, PartialKind
from workbench.codegen import modules
from workbench.codegen.kernels import Job, choice, variant
from workbench.codegen.slices import differences_source, overlaid_source, tree_source, two_stacks_source
from workbench.kernels import tree
from workbench.kernels.two_stacks import assemble
from workbench.plan.gag import Algorithm

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: The block-wise forms of the graph's algorithms over slices, and how many scans each keeps beside them.
_SOURCES: dict[Algorithm, tuple[Callable[[PartialKind], str], int]] = {
    Algorithm.SLIDE_SIDE_INV: (differences_source, 1),
    Algorithm.SLIDE_SIDE: (overlaid_source, 2),
    Algorithm.TWO_STACKS: (two_stacks_source, 0),
    Algorithm.FLAT_FAT: (tree_source, 1),
}
#: Measured on a 2-core cloud machine: array code needs this long for a combine of one slice over all keys.
_COMBINE_SECONDS = 5e-6
_NONE = np.zeros(0, np.int64)


def scan_rows(slices: int) -> int:
    """Rows that the scans of so many slices, or a tree over them, have room in."""
    return slices + slices.bit_length() + 1


class Scans:
    """What a kernel keeps beside the slices of a store, for one partial: scans or a tree, and how far they hold.

    Rows of the scans are rows of the store's matrices. ``valid`` is the first slice whose scan is out of date, and
    of the slices before ``known`` the ``touched`` ones have changed since a tree was brought up to date. The store
    tells of slices that change, and drops all with :meth:`reset` where rows move.
    """

    def __init__(self) -> None:
        self.arrays: tuple[Fields, Fields] | None = None
        self.valid = 0
        self.known = 0
        self.touched = np.zeros(0, np.bool_)

    def touch(self, rows: Array) -> None:
        """The slices at some rows have changed, or are new."""
        self.valid = min(self.valid, int(rows.min()))
        if int(rows.max()) >= len(self.touched):
            self.touched = np.append(self.touched, np.zeros(int(rows.max()) + 1, np.bool_))
        self.touched[rows] = True

    def changed(self, end: int) -> Array:
        """The slices before ``end``, ascending, that have changed since the last call, all of which count as seen."""
        known = min(self.known, end)
        rows = np.append(np.flatnonzero(self.touched[:known]), np.arange(known, end))
        self.touched[:end] = False
        self.known = end
        return rows

    def forget(self) -> None:
        """All slices have changed, but the memory is still of use."""
        self.valid = self.known = 0

    def reset(self) -> None:
        """Rows have moved."""
        self.arrays = None
        self.forget()


class AssembleKernel:
    """Windows over one partial by one algorithm; ``chunk`` slices to a scan of stacks, or of prefixes that round."""

    def __init__(self, kind: str | PartialKind, algorithm: Algorithm = Algorithm.TWO_STACKS, chunk: int = 1) -> None:
        self.kind = PARTIALS[kind] if isinstance(kind, str) else kind
        if algorithm is Algorithm.SLIDE_SIDE_INV and not self.kind.differences:
            raise TypeError(f"`{self.kind.name}` has no exact inverse, so its windows cannot be differences")
        self.algorithm = algorithm
        self.chunk = chunk
        make, self._scans = _SOURCES[algorithm]
        self.source = make(self.kind) if self.kind.compiled else ""
        self.name = modules.digest(self.source)
        self._scratch: Fields = ()

    def __call__(
        self,
        first: Array,
        last: Array,
        bounds: Array,
        leaves: Fields,
        scans: Scans,
        *,
        keys: int,
        end: int,
        compiled: bool | None = None,
    ) -> Fields:
        """Partials ``[window, key]`` of the windows ``[first[w], last[w])`` over rows of the matrices ``leaves``.

        Windows ``bounds[i] .. bounds[i + 1]`` are of one kind and ascend. ``leaves`` are the whole matrices of the
        store, of which ``keys`` columns and the rows before ``end`` are in use; ``scans`` belong to them.
        ``compiled`` forces a variant (True waits for the compiler). The next call writes over what this one returns.
        """
        function = None
        if self.kind.compiled:
            seconds = partial(_array_seconds, first, last, bounds)
            function = variant(self._job, choice(compiled), seconds)
        if function is None and self.algorithm is not Algorithm.FLAT_FAT:
            return self._generic(first, last, bounds, tuple(leaf[:, :keys] for leaf in leaves))
        prefix, suffix = self._extended(leaves, scans)
        changed = scans.changed(end) if self.algorithm is Algorithm.FLAT_FAT else _NONE
        if function is None:
            return self._tree(first, last, changed, *(tuple(m[:, :keys] for m in side) for side in (leaves, prefix)))
        out = self._room(len(first), keys)
        matrices = [*leaves, *prefix, *suffix, *self.kind.blank(1)]
        function(first, last, bounds, changed, *matrices, keys, min(scans.valid, end), end, self.chunk, *out)
        if self._scans:
            scans.valid = end
        return out

    def compile(self) -> None:
        """Wait until the compiled variant is there; a kind of objects has none."""
        if self.kind.compiled:
            variant(self._job, "compiled", 0.0)

    def _generic(self, first: Array, last: Array, bounds: Array, leaves: Fields) -> Fields:
        parts = []
        with np.errstate(all="ignore"):
            for low, high in pairwise(bounds):
                parts.append(assemble(first[low:high], last[low:high], leaves, self.kind.identity, self.kind.combine))
        return tuple(np.concatenate(fields) for fields in zip(*parts, strict=True))

    def _tree(self, first: Array, last: Array, changed: Array, leaves: Fields, above: Fields) -> Fields:
        with np.errstate(all="ignore"):
            tree.renew(changed, leaves, above, self.kind.combine)
            return tree.assemble(first, last, leaves, above, self.kind.identity, self.kind.combine)

    def _extended(self, leaves: Fields, scans: Scans) -> tuple[Fields, Fields]:
        """The scans' arrays, made where there are none; every cell begins as the identity."""
        if scans.arrays is None:
            rows, columns = leaves[0].shape
            room = scan_rows(rows)
            prefix, suffix = ((room if self._scans > needed else 0, columns) for needed in (0, 1))
            scans.arrays = self.kind.blank(prefix), self.kind.blank(suffix)
        return scans.arrays

    def _room(self, windows: int, keys: int) -> Fields:
        """Matrices for the answer, in memory that was there before: fresh pages would cost more than the kernel."""
        size = windows * keys
        if not self._scratch or len(self._scratch[0]) < size:
            self._scratch = tuple(np.empty(size, field.dtype) for field in self.kind.fields)
        return tuple(array[:size].reshape(windows, keys) for array in self._scratch)

    @cached_property
    def _job(self) -> Job:
        empty = np.zeros(0, np.int64)
        matrices = [np.zeros((0, 0), field.dtype) for field in self.kind.fields]
        ranges = [empty, empty, np.zeros(1, np.int64), empty]
        sample = [*ranges, *matrices, *matrices, *matrices, *self.kind.blank(1), 0, 0, 0, 1, *matrices]
        return Job(self.name, self.source, "assemble", sample, self.kind.scalars)


def _array_seconds(first: Array, last: Array, bounds: Array) -> float:
    """How long array code takes for the combines of slices that these windows need, over all keys, about."""
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    combines = len(first) + 2 * int((last[bounds[some + 1] - 1] - first[bounds[some]]).sum())
    return combines * _COMBINE_SECONDS
