"""Windows that slide by one row over rows of many keys: frames by time or by a number of rows, for any monoid.

The kernels are those of :mod:`workbench.codegen.over_text`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.algebra import PartialKind
from workbench.codegen import modules
from workbench.codegen.kernels import Job, choice, variant
from workbench.codegen.over_text import near_source, peers_source, scans_source, shared_source, stacks_source
from workbench.kernels.frames import NO_INDEX, windows_by_doubling
from workbench.kernels.peers import NO_MOMENTS

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: Rows to a scan: what the kernels work on at a time stays in the second-level cache.
CHUNK = 4096
#: Rows of array code at a time: partials that are objects grow with the window.
_BLOCK = 4096
#: Measured on a 2-core cloud machine: array code needs this long for a row of a window of a thousand rows.
_ROW_SECONDS = 5e-7
#: No distances.
NO_STEPS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class SortedRows:
    """Times of rows by key and then in order, where each key's begin (and the last's end), and a ``time_index``.

    Where ``at`` is not empty, moments stand for rows (:mod:`workbench.kernels.peers`). ``steps`` are the distances of
    rows by chunk (:func:`workbench.kernels.frames.fill_steps`), which shared frames by time need.
    """

    times: Array
    runs: Array
    index: Array = field(default_factory=lambda: NO_INDEX)
    shift: int = 0
    at: Array = field(default_factory=lambda: NO_MOMENTS)
    steps: Array = field(default_factory=lambda: NO_STEPS)


class FrameKernel:
    """Windows of the frames of rows over one partial."""

    def __init__(self, kind: PartialKind) -> None:
        self.kind = kind
        makers = {"stacks": stacks_source, "near": near_source, "peers": peers_source}
        makers |= {"scans": scans_source, "shared": shared_source}
        self._jobs = {name: self._job(name, make(kind)) for name, make in makers.items()} if kind.compiled else {}

    def windows(self, first: Array, last: Array, fields: Fields, *, compiled: bool | None = None) -> Fields:
        """Partials of the rows ``[first, last)`` of ``fields``; neither descends."""
        function = None
        if self.kind.compiled:
            function = variant(self._jobs["stacks"], choice(compiled), len(first) * _ROW_SECONDS)
        if function is None:
            return self._generic(first, last, fields)
        out = self._empty(len(first))
        function(first, last, *map(sealed, fields), *self.kind.blank(1), *out)
        return out

    def single(self, first: Array, last: Array, fields: Fields) -> Fields:
        """The same where no window has more than one row: nothing to combine, nothing to compile."""
        some = np.flatnonzero(last > first)
        out = self.kind.blank(len(first))
        for target, column in zip(out, fields, strict=True):
            target[some] = column[first[some]]
        return out

    def near(
        self,
        rows: SortedRows,
        frame: tuple[bool, int],
        fields: Fields,
        piece: tuple[int, int],
        out: Fields,
        mean: bool = False,
    ) -> bool:
        """Write the partials of the windows of the rows ``[begin, end)`` to ``out``; False where array code must.

        ``frame`` tells whether it goes by time, and how far back. As :meth:`shared` otherwise.
        """
        if not self.kind.compiled:
            return False
        function = variant(self._jobs["near"], choice(None), (piece[1] - piece[0]) * _ROW_SECONDS)
        if function is None:
            return False
        parts = [*map(sealed, fields), *self.kind.blank(1)]
        where = [sealed(rows.times), sealed(rows.runs), sealed(rows.at), *frame]
        function(*where, *parts, *piece, mean, *out)
        return True

    def finds(self, rows: int) -> bool:
        """Whether :meth:`near` may be called for so many rows."""
        if not self.kind.compiled:
            return False
        return variant(self._jobs["near"], choice(None), rows * _ROW_SECONDS) is not None

    def unites(self, rows: int) -> bool:
        """Whether :meth:`united` may be called for so many rows; False where they had better be left as they are."""
        if not self.kind.compiled:
            return False
        return variant(self._jobs["peers"], choice(None), rows * _ROW_SECONDS) is not None

    def united(self, at: Array, fields: Fields, out: Fields, piece: tuple[int, int]) -> None:
        """Write the partials of the moments of a piece to ``out``."""
        function = variant(self._jobs["peers"], "compiled", 0.0)
        assert function is not None
        function(sealed(at), *piece, *map(sealed, fields), *out)

    def scan(self, fields: Fields, scans: tuple[Fields, Fields], begin: int, end: int) -> None:
        """Make the scans of the chunks from ``begin`` (a multiple of ``CHUNK``) to ``end``."""
        function = variant(self._jobs["scans"], "compiled", 0.0)
        assert function is not None
        function(*map(sealed, fields), *scans[0], *scans[1], *self.kind.blank(1), CHUNK, begin, end)

    def shared(
        self,
        rows: SortedRows,
        frames: tuple[Array, Array],
        fields: Fields,
        scans: tuple[Fields, Fields],
        piece: tuple[int, int],
        out: Fields,
        mean: bool = False,
        wide: bool = False,
    ) -> None:
        """Write the partials ``[frame, row]`` of the windows of the rows ``[begin, end)`` of a piece to ``out``.

        ``frames`` are which go by time, and how far back they reach (negative: all rows of the key). Needs the scans
        of all rows that the frames reach. ``mean`` divides a sum of floats by the window's number of rows. ``out``
        has room for the piece, or, ``wide``, for all rows, which then are rows even if ``piece`` counts moments.
        """
        function = variant(self._jobs["shared"], "compiled", 0.0)
        assert function is not None
        where = [sealed(rows.times), sealed(rows.runs), sealed(rows.at), sealed(rows.steps), rows.index, rows.shift]
        parts = [*map(sealed, fields), *scans[0], *scans[1], *self.kind.blank(1)]
        function(*where, *map(sealed, frames), *parts, CHUNK, *piece, mean, wide, 0 if wide else piece[0], *out)

    def _empty(self, rows: int) -> Fields:
        return tuple(np.empty(rows, kind) for kind in self.kind.dtypes)

    def _generic(self, first: Array, last: Array, fields: Fields) -> Fields:
        """Array code, some rows at a time."""
        parts = []
        with np.errstate(all="ignore"):
            for low in range(0, len(first), _BLOCK):
                some = slice(low, low + _BLOCK)
                origin, until = first[low], last[some][-1]
                rows = tuple(field[origin:until] for field in fields)
                bounds = first[some] - origin, last[some] - origin
                parts.append(windows_by_doubling(*bounds, rows, self.kind.identity, self.kind.combine))
        if not parts:
            return self._empty(0)
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _job(self, name: str, source: str) -> Job:
        none, rows = np.zeros(0, np.int64), [np.zeros(1, kind) for kind in self.kind.dtypes]
        inputs, unit = [sealed(row) for row in rows], self.kind.blank(1)
        out = [np.zeros((1, 1), kind) for kind in self.kind.dtypes]
        one: list[Any] = [
            sealed(np.zeros(1, np.int64)),
            sealed(np.array([0, 1])),
            sealed(NO_MOMENTS),
            sealed(NO_STEPS),
        ]
        one += [NO_INDEX, 0, sealed(np.ones(1, np.bool_)), sealed(np.zeros(1, np.int64))]
        samples: dict[str, list[Any]] = {
            "stacks": [none, none, *inputs, *unit, *rows],
            "near": [*one[:3], True, 0, *inputs, *unit, 0, 0, False, *rows],
            "peers": [sealed(NO_MOMENTS), 0, 0, *inputs, *rows],
            "scans": [*inputs, *rows, *rows, *unit, CHUNK, 0, 0],
            "shared": [*one, *inputs, *rows, *rows, *unit, CHUNK, 0, 0, False, False, 0, *out],
        }
        entry = "scans" if name == "scans" else "over"
        return Job(modules.digest(source), source, entry, samples[name], self.kind.scalars)


def sealed(array: Array) -> Array:
    """A contiguous view that is not to be written to, so that there is one type of input and one machine code."""
    if array.flags.writeable or not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).view()
        array.flags.writeable = False
    return array
