"""Windows over the last rows of a sequence, for every row: the compiled kernels with their state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from workbench.algebra import PARTIALS, PartialKind
from workbench.codegen import modules
from workbench.codegen.rows import differences_source, doubling_source, overlaid_source
from workbench.plan.cost import PIECE, Part, constants, over_rows

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


class RowKernel(Protocol):
    """Some windows of one monoid. ``partials`` is how many partial aggregates the state holds."""

    partials: int

    def push(self, fields: Fields, out: Fields) -> None:
        """Take in the partials of ``n`` rows and write the windows that end at each, ``[window, n]``."""


def _compiled(kind: PartialKind, source: str) -> Callable[..., None]:
    function: Callable[..., None] = modules.load(modules.digest(source), source, kind.scalars).push
    return function


def unit_of(kind: PartialKind, dtypes: Sequence[npt.DTypeLike]) -> Fields:
    """The identity as arrays of one element, in the types that the rows have.

    The extremes of a type stay extremes: the identity of an int32 minimum is the largest int32.
    """
    found = []
    for field, wanted in zip(kind.fields, dtypes, strict=True):
        value = field.identity
        if np.dtype(field.dtype).kind == "i":
            own: Any = np.iinfo(field.dtype)
            other: Any = np.iinfo(wanted)
            value = {own.max: other.max, own.min: other.min}.get(value, value)
        found.append(np.array([value], wanted))
    return tuple(found)


class Differences:
    """A ring of prefix partials; every window is the difference of two. For groups."""

    def __init__(self, kind: PartialKind, sizes: Sequence[int], dtypes: Sequence[npt.DTypeLike]) -> None:
        if kind.invert is None or not kind.group:
            raise TypeError(f"`{kind.name}` has no exact inverse, so its windows cannot be differences of prefixes")
        self._invert = kind.invert
        self._push = _compiled(kind, differences_source(kind))
        self._sizes = np.array(sizes, np.int64)
        self._tile = PIECE
        rows = max(8, -(-int(self._sizes.max() + 1) // self._tile) + 1) * self._tile
        self._ring = tuple(np.zeros(rows + self._tile, dtype) for dtype in dtypes)
        self._at = np.zeros(1, np.int64)
        self.partials = rows

    def push(self, fields: Fields, out: Fields) -> None:
        self._push(*fields, *self._ring, self._at, self._sizes, self._tile, *out)

    def recent(self) -> Fields:
        """The partials of the last rows, as many as the largest window has, taken back from the prefixes."""
        longest = int(self._sizes.max())
        places = (int(self._at[0]) + np.arange(-longest - 1, 0)) % (len(self._ring[0]) - self._tile)
        prefixes = [ring[places] for ring in self._ring]
        invert = self._invert
        return invert(*(prefix[1:] for prefix in prefixes), *(prefix[:-1] for prefix in prefixes))

    def refill(self, fields: Fields) -> None:
        """Begin after these rows."""
        blank = tuple(np.empty((len(self._sizes), len(fields[0])), ring.dtype) for ring in self._ring)
        self.push(fields, blank)


class Overlaid:
    """One suffix scan of every ``chunk`` rows and one running prefix for all windows of at least ``chunk`` rows."""

    def __init__(
        self, kind: PartialKind, sizes: Sequence[int], dtypes: Sequence[npt.DTypeLike], chunk: int | None = None
    ) -> None:
        chunk = min(min(sizes), PIECE) if chunk is None else chunk
        if not 1 < chunk <= min(sizes):
            raise ValueError(f"a chunk has more than 1 row and at most as many as a window, got {chunk}")
        self._push = _compiled(kind, overlaid_source(kind))
        reach = np.array(sizes, np.int64) - 1
        back = -(-reach // chunk)
        ring = max(1, int(back.max()))
        unit = unit_of(kind, dtypes)

        def blank(*shape: int) -> Fields:
            return tuple(np.full(shape, one[0], one.dtype) for one in unit)

        count = len(reach)
        self._state: list[Array] = [
            *blank(chunk),
            *blank(chunk),
            *blank(ring * chunk),
            *blank(ring),
            *blank(count, ring + 1),
            *blank(count),
            *blank(count),
            *blank(count),
            *unit,
            np.zeros(2, np.int64),
            reach,
            2 - back,
            np.zeros(count, np.int64),
        ]
        self.partials = chunk * (2 + ring) + ring + int(back.sum()) + 3 * count

    def push(self, fields: Fields, out: Fields) -> None:
        self._push(*fields, *self._state, *out)


class Doubling:
    """Partials of the last 1, 2, 4, ... rows; short windows are put together from them."""

    def __init__(self, kind: PartialKind, sizes: Sequence[int], dtypes: Sequence[npt.DTypeLike]) -> None:
        self._push = _compiled(kind, doubling_source(kind))
        self._sizes = np.array(sizes, np.int64)
        longest = int(self._sizes.max())
        self._tile = PIECE // 2
        shape = (longest.bit_length(), longest - 1 + self._tile)
        self._levels = tuple(np.full(shape, one[0], one.dtype) for one in unit_of(kind, dtypes))
        self.partials = shape[0] * shape[1]

    def push(self, fields: Fields, out: Fields) -> None:
        self._push(*fields, *self._levels, self._sizes, self._tile, *out)


_METHODS: dict[str, Callable[..., RowKernel]] = {
    "differences": Differences,
    "overlaid": Overlaid,
    "doubling": Doubling,
}


class RowWindows:
    """The windows ``sizes`` (in rows, sliding by one) over a sequence of partials of one kind.

    A window that is not full yet has what there is. ``dtypes`` are the types of the fields, by default the kind's;
    which kernels share the windows is the cost model's choice (:func:`workbench.plan.cost.over_rows`).
    """

    def __init__(
        self,
        kind: str | PartialKind,
        sizes: Sequence[int],
        dtypes: Sequence[npt.DTypeLike] | None = None,
        parts: Sequence[Part] | None = None,
    ) -> None:
        self.kind = PARTIALS[kind] if isinstance(kind, str) else kind
        self.sizes = tuple(map(int, sizes))
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"a window has at least 1 row, got {list(self.sizes)}")
        self.dtypes = tuple(np.dtype(dtype) for dtype in dtypes or [field.dtype for field in self.kind.fields])
        self.parts = tuple(over_rows(self.kind, self.sizes, constants()) if parts is None else parts)
        self._kernels = [self._kernel(part) for part in self.parts]

    def _kernel(self, part: Part) -> RowKernel:
        sizes = [self.sizes[q] for q in part.windows]
        chunk = {"chunk": part.chunk} if part.method == "overlaid" else {}
        return _METHODS[part.method](self.kind, sizes, self.dtypes, **chunk)

    @property
    def partials(self) -> int:
        """How many partial aggregates are kept."""
        return sum(kernel.partials for kernel in self._kernels)

    def push(self, fields: Fields, out: Fields | None = None) -> Fields:
        """The windows that end at each of the next rows: fields ``[window, row]``, into ``out`` where it is given."""
        shape = (len(self.sizes), len(fields[0]))
        if out is None:
            out = tuple(np.empty(shape, dtype) for dtype in self.dtypes)
        if len(self.parts) == 1 and self.parts[0].windows == tuple(range(shape[0])):
            self._kernels[0].push(fields, out)
            return out
        for part, kernel in zip(self.parts, self._kernels, strict=True):
            own = tuple(np.empty((len(part.windows), shape[1]), dtype) for dtype in self.dtypes)
            kernel.push(fields, own)
            for target, values in zip(out, own, strict=True):
                target[list(part.windows)] = values
        return out
