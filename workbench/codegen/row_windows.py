"""Windows over the last rows of a sequence, for every row: the compiled kernels with their state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from workbench.algebra import PARTIALS, PartialKind
from workbench.codegen import modules
from workbench.codegen.kernels import sealed
from workbench.codegen.rows import differences_source, doubling_source, overlaid_source, segmented_source
from workbench.plan.cost import PIECE, Part, constants, over_rows

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


class RowKernel(Protocol):
    """Some windows of one monoid.

    ``compiled(*fields, *state, *out)`` is the kernel itself, for callers that are compiled or have their fields
    :func:`~workbench.codegen.kernels.sealed`; ``state`` has ``partials`` partial aggregates.
    """

    compiled: Callable[..., None]
    state: tuple[Any, ...]
    partials: int

    def push(self, fields: Fields, out: Fields) -> None:
        """Take in the partials of ``n`` rows and write the windows that end at each, ``[where[window], n]``."""


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


class _Kernel:
    """What the kernels have in common: the compiled function, and the state it gets between rows and output."""

    state: tuple[Any, ...]

    def __init__(
        self,
        kind: PartialKind,
        source: str,
        sizes: Sequence[int],
        dtypes: Sequence[npt.DTypeLike],
        where: Sequence[int] | None,
    ) -> None:
        self.compiled = _compiled(kind, source)
        self._sizes = np.array(sizes, np.int64)
        self._where = np.arange(len(sizes)) if where is None else np.array(where, np.int64)
        self._unit = unit_of(kind, dtypes)

    def push(self, fields: Fields, out: Fields) -> None:
        self.compiled(*map(sealed, fields), *self.state, *out)

    def _blank(self, *shapes: int | tuple[int, ...]) -> list[Array]:
        """Arrays full of the identity, all fields of the first shape, then of the next."""
        return [np.full(shape, one[0], one.dtype) for shape in shapes for one in self._unit]


class Differences(_Kernel):
    """A ring of prefix partials; every window is the difference of two. For groups."""

    def __init__(
        self,
        kind: PartialKind,
        sizes: Sequence[int],
        dtypes: Sequence[npt.DTypeLike],
        where: Sequence[int] | None = None,
    ) -> None:
        if kind.invert is None or not kind.group:
            raise TypeError(f"`{kind.name}` has no exact inverse, so its windows cannot be differences of prefixes")
        super().__init__(kind, differences_source(kind), sizes, dtypes, where)
        self._invert = kind.invert
        self.partials = max(8, -(-int(self._sizes.max() + 1) // PIECE) + 1) * PIECE
        self._ring = self._blank(self.partials + PIECE)
        self._at = np.zeros(1, np.int64)
        self.state = (*self._ring, self._at, self._sizes, self._where, PIECE)

    def recent(self) -> Fields:
        """The partials of the last rows, as many as the largest window has, taken back from the prefixes."""
        longest = int(self._sizes.max())
        places = (int(self._at[0]) + np.arange(-longest - 1, 0)) % self.partials
        prefixes = [ring[places] for ring in self._ring]
        invert = self._invert
        return invert(*(prefix[1:] for prefix in prefixes), *(prefix[:-1] for prefix in prefixes))

    def refill(self, fields: Fields) -> None:
        """Begin after these rows."""
        self.push(fields, tuple(np.empty((len(self._sizes), len(fields[0])), ring.dtype) for ring in self._ring))


class Overlaid(_Kernel):
    """One suffix scan of every ``chunk`` rows and one running prefix for all windows of at least ``chunk`` rows."""

    def __init__(
        self,
        kind: PartialKind,
        sizes: Sequence[int],
        dtypes: Sequence[npt.DTypeLike],
        where: Sequence[int] | None = None,
        chunk: int | None = None,
    ) -> None:
        chunk = min(min(sizes), PIECE) if chunk is None else chunk
        if not 1 < chunk <= min(sizes):
            raise ValueError(f"a chunk has more than 1 row and at most as many as a window, got {chunk}")
        super().__init__(kind, overlaid_source(kind), sizes, dtypes, where)
        reach = self._sizes - 1
        back = -(-reach // chunk)
        ring, count = max(1, int(back.max())), len(reach)
        arrays = self._blank(chunk, chunk, ring * chunk, ring, (count, ring + 1), count, count, count)
        places = (np.zeros(2, np.int64), reach, 2 - back, np.zeros(count, np.int64), self._where)
        self.state = (*arrays, *self._unit, *places)
        self.partials = chunk * (2 + ring) + ring + int(back.sum()) + 3 * count


class Segmented(_Kernel):
    """One window in chunks as long as it is: the suffix after each row of the chunk before, and a running prefix."""

    def __init__(
        self,
        kind: PartialKind,
        sizes: Sequence[int],
        dtypes: Sequence[npt.DTypeLike],
        where: Sequence[int] | None = None,
    ) -> None:
        if len(sizes) != 1:
            raise ValueError(f"segments are those of one window, got {list(sizes)}")
        super().__init__(kind, segmented_source(kind), sizes, dtypes, where)
        size = int(self._sizes[0])
        arrays = self._blank(size, size + PIECE, 1)
        self.state = (*arrays, *self._unit, np.zeros(1, np.int64), self._where, PIECE)
        self.partials = 2 * size + PIECE + 1


class Doubling(_Kernel):
    """Partials of the last 1, 2, 4, ... rows; short windows are put together from them."""

    def __init__(
        self,
        kind: PartialKind,
        sizes: Sequence[int],
        dtypes: Sequence[npt.DTypeLike],
        where: Sequence[int] | None = None,
    ) -> None:
        super().__init__(kind, doubling_source(kind), sizes, dtypes, where)
        history = int(self._sizes.max()) - 1
        pieces = self._blank(history, history + PIECE, history + PIECE)
        self.state = (*pieces, self._sizes, self._where, PIECE)
        self.partials = history + 2 * (history + PIECE)


_METHODS: dict[str, Callable[..., RowKernel]] = {
    "differences": Differences,
    "overlaid": Overlaid,
    "segmented": Segmented,
    "doubling": Doubling,
}


class RowWindows:
    """The windows ``sizes`` (in rows, sliding by one) over a sequence of partials of one kind.

    A window that is not full yet has what there is. ``dtypes`` are the types of the fields, by default the kind's;
    which kernels share the windows is the cost model's choice (:func:`workbench.plan.cost.over_rows`): ``parts``,
    each with its one of ``kernels``.
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
        self.kernels = [self._kernel(part) for part in self.parts]

    def _kernel(self, part: Part) -> RowKernel:
        sizes = [self.sizes[q] for q in part.windows]
        chunk = {"chunk": part.chunk} if part.method == "overlaid" else {}
        return _METHODS[part.method](self.kind, sizes, self.dtypes, part.windows, **chunk)

    @property
    def partials(self) -> int:
        """How many partial aggregates are kept."""
        return sum(kernel.partials for kernel in self.kernels)

    def push(self, fields: Fields, out: Fields | None = None) -> Fields:
        """The windows that end at each of the next rows: fields ``[window, row]``, into ``out`` where it is given."""
        if out is None:
            out = tuple(np.empty((len(self.sizes), len(fields[0])), dtype) for dtype in self.dtypes)
        fields = tuple(map(sealed, fields))  # once, not in each kernel: a call counts where batches are short
        for kernel in self.kernels:
            kernel.compiled(*fields, *kernel.state, *out)
        return out
