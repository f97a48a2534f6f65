"""Partials in arrays: one array per field, since fields differ in type.

Numba cannot index a tuple of arrays of several types with a variable, so each number of fields has its own few
lines. The index is a position, or a tuple of positions in arrays of several dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from workbench.kernels.fifo.monoids import Partial
from workbench.kernels.jit import jitable

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


class Access(NamedTuple):
    """``load(fields, index) -> partial``, ``store(fields, index, partial)`` and ``same(a, b)`` (NaN is NaN)."""

    load: Callable[[Fields, Any], Partial]
    store: Callable[[Fields, Any, Partial], None]
    same: Callable[[Partial, Partial], bool]


@jitable
def _equal(x: Any, y: Any) -> Any:
    return x == y or (x != x and y != y)


@jitable
def _load_1(fields: Fields, i: Any) -> Partial:
    return (fields[0][i],)


@jitable
def _load_2(fields: Fields, i: Any) -> Partial:
    return (fields[0][i], fields[1][i])


@jitable
def _load_3(fields: Fields, i: Any) -> Partial:
    return (fields[0][i], fields[1][i], fields[2][i])


@jitable
def _load_4(fields: Fields, i: Any) -> Partial:
    return (fields[0][i], fields[1][i], fields[2][i], fields[3][i])


@jitable
def _store_1(fields: Fields, i: Any, partial: Partial) -> None:
    fields[0][i] = partial[0]


@jitable
def _store_2(fields: Fields, i: Any, partial: Partial) -> None:
    fields[0][i] = partial[0]
    fields[1][i] = partial[1]


@jitable
def _store_3(fields: Fields, i: Any, partial: Partial) -> None:
    fields[0][i] = partial[0]
    fields[1][i] = partial[1]
    fields[2][i] = partial[2]


@jitable
def _store_4(fields: Fields, i: Any, partial: Partial) -> None:
    fields[0][i] = partial[0]
    fields[1][i] = partial[1]
    fields[2][i] = partial[2]
    fields[3][i] = partial[3]


@jitable
def _same_1(a: Partial, b: Partial) -> Any:
    return _equal(a[0], b[0])


@jitable
def _same_2(a: Partial, b: Partial) -> Any:
    return _equal(a[0], b[0]) and _equal(a[1], b[1])


@jitable
def _same_3(a: Partial, b: Partial) -> Any:
    return _equal(a[0], b[0]) and _equal(a[1], b[1]) and _equal(a[2], b[2])


@jitable
def _same_4(a: Partial, b: Partial) -> Any:
    return _equal(a[0], b[0]) and _equal(a[1], b[1]) and _equal(a[2], b[2]) and _equal(a[3], b[3])


ACCESS = (
    Access(_load_1, _store_1, _same_1),
    Access(_load_2, _store_2, _same_2),
    Access(_load_3, _store_3, _same_3),
    Access(_load_4, _store_4, _same_4),
)


def blank(identity: Partial, dtypes: tuple[str, ...], slots: int) -> Fields:
    """Arrays of ``slots`` identities."""
    return tuple(np.full(slots, value, dtype) for value, dtype in zip(identity, dtypes, strict=True))
