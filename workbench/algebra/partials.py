"""Partial aggregates: monoids over the fields that a slice keeps for each key.

A partial is what can be shared: it is computed once per slice and merged into every window that needs it. Each
kind is a monoid ``(identity, combine)`` with a ``lift`` from one value (*SlideSide* §2, *General Stream Slicing*
§5.4.1). Counts and integers, which can be taken apart exactly, have an inverse as well; floats have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.kernels import combine


@dataclass(frozen=True)
class Field:
    """One column of a partial: its NumPy type and the identity's value."""

    name: str
    dtype: str
    identity: int | float


@dataclass(frozen=True)
class PartialKind:
    """A monoid of partial aggregates.

    ``input`` is the NumPy type its values are brought to before ``lift`` (None: the kind looks at no value, only
    at which rows have one). ``lift(x) -> fields`` and ``combine(*left, *right) -> fields`` are functions of
    :mod:`workbench.kernels.combine`, valid on arrays and, compiled, on scalars. ``idempotent``: combining a
    partial with itself changes nothing. ``commutative``: the order of two partials does not matter. ``invert(*total,
    *prefix) -> fields`` makes the monoid a group: what ``combine(prefix, rest) == total`` leaves of ``total``, exact
    for every ``prefix``, or None.
    """

    name: str
    fields: tuple[Field, ...]
    input: str | None
    lift: Callable[..., tuple[Any, ...]]
    combine: Callable[..., tuple[Any, ...]]
    idempotent: bool = False
    commutative: bool = True
    invert: Callable[..., tuple[Any, ...]] | None = None

    @property
    def identity(self) -> tuple[int | float, ...]:
        """The fields of an empty set of rows: ``combine(identity, p) == p == combine(p, identity)``."""
        return tuple(field.identity for field in self.fields)


_INT = np.iinfo(np.int64)

_KINDS = (
    PartialKind(
        "count",
        (Field("n", "int64", 0),),
        None,
        combine.lift_value,
        combine.combine_add,
        invert=combine.invert_add,
    ),
    PartialKind("sum_float", (Field("sum", "float64", 0.0),), "float64", combine.lift_value, combine.combine_add),
    PartialKind(
        "sum_int",
        (Field("low", "uint64", 0), Field("high", "int64", 0)),
        "int64",
        combine.lift_wide,
        combine.combine_wide,
        invert=combine.invert_wide,
    ),
    PartialKind(
        "min_float",
        (Field("min", "float64", np.inf),),
        "float64",
        combine.lift_value,
        combine.combine_min,
        idempotent=True,
    ),
    PartialKind(
        "max_float",
        (Field("max", "float64", -np.inf),),
        "float64",
        combine.lift_value,
        combine.combine_max,
        idempotent=True,
    ),
    PartialKind(
        "min_int",
        (Field("min", "int64", int(_INT.max)),),
        "int64",
        combine.lift_value,
        combine.combine_min,
        idempotent=True,
    ),
    PartialKind(
        "max_int",
        (Field("max", "int64", int(_INT.min)),),
        "int64",
        combine.lift_value,
        combine.combine_max,
        idempotent=True,
    ),
    PartialKind(
        "moments",
        (Field("n", "float64", 0.0), Field("mean", "float64", 0.0), Field("m2", "float64", 0.0)),
        "float64",
        combine.lift_moments,
        combine.combine_moments,
    ),
)

#: Every kind of partial by name.
PARTIALS: Mapping[str, PartialKind] = MappingProxyType({kind.name: kind for kind in _KINDS})
