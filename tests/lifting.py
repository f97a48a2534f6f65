"""Random partials of any compiled kind, with the values at the edges of their types among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.algebra import PartialKind

#: One kind of every shape of kernel: one field scanned with SIMD or several, groups, picks by order, rounding ones.
TYPICAL = ["count", "sum_float", "sum_fast", "sum_int", "min_int", "max_float", "moments", "first_float"]
#: Compiling a kernel takes a second or two, so these are only tried in the slow run; the rest have the same combines.
RARE = ["product", "moments4", "comoments", "last_int", "min_by_int_float", "max_by_float_int"]
KINDS = [*TYPICAL, *(pytest.param(name, marks=pytest.mark.slow) for name in RARE)]
FLOATS = [np.nan, np.inf, -np.inf, -0.0, 0.0]
INTEGERS = [2**63 - 1, -(2**63), 0]

Fields = tuple[Any, ...]


def partials_of(kind: PartialKind, shape: tuple[int, ...], seed: int, special: float = 0.1) -> Fields:
    """The partials of single rows, arrays of a shape; ``special`` is the share of NaN, infinities and extremes.

    A kind that rounds gets finite values only: inf in a variance is NaN or inf by the order of combining.
    """
    rng = np.random.default_rng(seed)
    columns: list[Any] = []
    for position, dtype in enumerate(kind.inputs):
        values = rng.integers(-40, 40, shape).astype(dtype)
        if dtype == "float64":
            values /= 8
        if dtype == "int64" or kind.exact or kind.name in ("sum_float", "sum_fast"):
            chosen = rng.random(shape) < special
            values[chosen] = rng.choice(np.array(INTEGERS if dtype == "int64" else FLOATS, dtype), int(chosen.sum()))
        columns.append(values)
        if position in kind.nullable:
            columns.append(rng.random(shape) < 0.8)
            values[~columns[-1]] = 0
    with np.errstate(all="ignore"):
        fields = kind.lift(*columns) if columns else kind.lift(np.ones(shape, np.int64))
    return tuple(np.ascontiguousarray(field, spec.dtype) for field, spec in zip(fields, kind.fields, strict=True))


def recalculated(kind: PartialKind, fields: Fields, low: int, high: int) -> Fields:
    """The combination of the rows ``[low, high)`` of arrays or matrices, left to right."""
    total = kind.blank(1) if fields[0].ndim == 1 else kind.blank(fields[0].shape[1])
    for row in range(low, high):
        with np.errstate(all="ignore"):
            total = kind.combine(*total, *(np.atleast_1d(field[row]) for field in fields))
    return total


def assert_same(kind: PartialKind, found: Fields, expected: Fields, where: str = "") -> None:
    """Equal, up to rounding where the kind rounds."""
    sizes = [np.abs(field[np.isfinite(field)]).max(initial=1.0) for field in expected if field.dtype.kind == "f"]
    for one, other in zip(found, expected, strict=True):
        if one.dtype.kind != "f" or (kind.exact and kind.name != "sum_float"):
            np.testing.assert_array_equal(one, other, err_msg=where)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * max(sizes), err_msg=where)
