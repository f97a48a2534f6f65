"""Partial aggregates: monoids over the fields that a slice keeps for each key.

A partial is what can be shared: it is computed once per slice and merged into every window that needs it. Each
kind is a monoid ``(identity, combine)`` with a ``lift`` from the values of one row (*SlideSide* §2, *General Stream
Slicing* §5.4.1). Counts and integers, which can be taken apart exactly, have an inverse as well; floats have none,
unless a query asks for ``numerics='fast'``: then a kind may be replaced by its ``fast`` one, whose inverse rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]
#: The fields of one partial, an array each.
Fields = tuple[Array, ...]

#: The NumPy type of a value that is text, and of a field whose cells are Python objects.
OBJECT = "object"


@dataclass(frozen=True)
class Codec:
    """How a field of objects travels: ``encode(cells) -> Arrow array`` and back. Never pickle.

    ``size(cell)`` is about how many bytes a cell keeps.
    """

    encode: Callable[[Array], pa.Array]
    decode: Callable[[pa.Array], Array]
    size: Callable[[Any], int]


@dataclass(frozen=True)
class Field:
    """One column of a partial: its NumPy type and the identity's value.

    A field of type ``object`` holds one immutable Python object a cell and has a codec.
    """

    name: str
    dtype: str
    identity: Any
    codec: Codec | None = None

    def to_arrow(self, cells: Array) -> pa.Array:
        """The column that is sent and stored for an array of cells."""
        return pa.array(cells) if self.codec is None else self.codec.encode(cells)

    def from_arrow(self, column: pa.Array) -> Array:
        """Inverse of :meth:`to_arrow`."""
        return column.to_numpy() if self.codec is None else self.codec.decode(column)

    def nbytes(self, cells: Array) -> int:
        """Bytes that the cells keep, about."""
        return cells.nbytes if self.codec is None else cells.nbytes + sum(map(self.codec.size, cells.flat))


@dataclass(frozen=True)
class PartialKind:
    """A monoid of partial aggregates.

    ``inputs`` are the NumPy types of the values that ``lift(*values) -> fields`` takes (``()``: it looks at no value,
    only at which rows have one, and is called with 1). A row feeds a partial where all its inputs have a value;
    a position in ``nullable`` may be NULL, and ``lift`` gets that input's validity right after its value.

    ``combine(*left, *right) -> fields`` is valid on arrays and, with ``lift``, compiled on scalars, unless a field is
    an object. ``idempotent``: combining a partial with itself changes nothing. ``commutative``: the order of two
    partials does not matter. ``invert(*total, *prefix) -> fields`` makes the monoid a group: what
    ``combine(prefix, rest) == total`` leaves of ``total``, exact for every ``prefix``, or None. ``rounding``: it is
    not exact, and windows may be differences all the same. ``fast`` names the kind of that sort that stands in for
    this one where a query asks for it.

    ``fold(group, *values) -> (groups, fields)`` folds whole columns at once, groups ascending; None: rows are
    lifted and combined pairwise. ``extends`` names a kind whose fields are the first of this one's: where both are
    fed alike, only this one is kept. ``exact`` is off where rounding depends on the order of combining.
    ``python`` says why the kind cannot be compiled, where that is worth telling. ``scalars`` are the functions that
    kernels call, by name, where those are not the ones of :mod:`workbench.kernels.combine`.
    """

    name: str
    fields: tuple[Field, ...]
    inputs: tuple[str, ...]
    lift: Callable[..., tuple[Any, ...]]
    combine: Callable[..., tuple[Any, ...]]
    idempotent: bool = False
    commutative: bool = True
    invert: Callable[..., tuple[Any, ...]] | None = None
    nullable: frozenset[int] = frozenset()
    fold: Callable[..., tuple[Array, Fields]] | None = None
    extends: str | None = None
    exact: bool = True
    python: str | None = None
    scalars: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    rounding: bool = False
    fast: str | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """The fields of an empty set of rows: ``combine(identity, p) == p == combine(p, identity)``."""
        return tuple(field.identity for field in self.fields)

    @property
    def group(self) -> bool:
        """Whether there is an exact inverse: integers cannot round or be poisoned."""
        return self.invert is not None and all(np.dtype(kind).kind in "iu" for kind in self.dtypes)

    @property
    def differences(self) -> bool:
        """Whether windows may be differences of prefixes."""
        return self.group or self.rounding

    @property
    def compiled(self) -> bool:
        """Whether kernels of this kind are compiled; otherwise it is array code everywhere."""
        return self.python is None and not any(kind == OBJECT for kind in (*self.inputs, *self.dtypes))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The NumPy types of the fields."""
        return tuple(field.dtype for field in self.fields)

    def blank(self, shape: int | tuple[int, int]) -> Fields:
        """Arrays full of the identity."""
        return tuple(np.full(shape, field.identity, field.dtype) for field in self.fields)
