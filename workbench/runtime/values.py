"""What all kernels of scalar functions are made with: Arrow arrays and scalars, NULL in and NULL out.

Every kernel is called with the call it computes, for its type and for errors, and with its argument values,
already of the types that :mod:`workbench.logical.functions` demands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import DataError
from workbench.logical.expressions import Call
from workbench.logical.types import is_number, type_name

Value: TypeAlias = "pa.Array | pa.Scalar"
Kernel: TypeAlias = Callable[..., Value]


def plain(kernel: Kernel, **options: Any) -> Kernel:
    """An Arrow function that already means what the language means."""
    return lambda call, *arguments: kernel(*arguments, **options)


def checked(kernel: Kernel) -> Kernel:
    """Arithmetic with Arrow's overflow checks."""

    def run(call: Call, *arguments: Value) -> Value:
        try:
            return kernel(*arguments)
        except pa.ArrowInvalid as error:
            if "divide by zero" in str(error):
                raise division_by_zero(call) from None
            raise overflow(call) from None

    return run


def overflow(call: Call) -> DataError:
    """The error for a result that its type does not hold."""
    hint = f"use a wider type, such as `CAST({call.arguments[0]} AS double)`" if is_number(call.type) else None
    return DataError(f"`{call}` overflows `{type_name(call.type)}`", hint=hint)


def division_by_zero(call: Call) -> DataError:
    """The error for a division by zero."""
    divisor = call.arguments[1]
    return DataError(f"division by zero in `{call}`", hint=f"`nullif({divisor}, 0)` gives NULL instead of an error")


def null(call: Call) -> pa.Scalar:
    """NULL, of the type of a call."""
    return pa.scalar(None, call.type)


def nulls(call: Call, value: Value) -> Value:
    """NULL, as often as there are values."""
    return null(call) if isinstance(value, pa.Scalar) else pa.nulls(len(value), call.type)


def on_arrays(kernel: Callable[..., Any]) -> Kernel:
    """A kernel for which scalars are made arrays, all of one length."""

    def run(call: Call, *arguments: Value) -> Value:
        length = next((len(each) for each in arguments if isinstance(each, pa.Array)), None)
        arrays = [
            each if isinstance(each, pa.Array) else pa.repeat(each, 1 if length is None else length)
            for each in arguments
        ]
        result = kernel(call, *arrays)
        return result if length is not None else result[0]

    return run


def in_numpy(kernel: Callable[..., npt.NDArray[Any]]) -> Kernel:
    """A kernel on NumPy arrays: the result is NULL where an argument is, whatever ``kernel`` makes of the 1 there."""

    @on_arrays
    def run(call: Call, *arguments: pa.Array) -> pa.Array:
        valid = np.logical_and.reduce([each.is_valid().to_numpy(zero_copy_only=False) for each in arguments])
        filled = [pc.fill_null(each, pa.scalar(1, each.type)) if each.null_count else each for each in arguments]
        with np.errstate(all="ignore"):
            result = kernel(*(each.to_numpy(zero_copy_only=False) for each in filled))
        return pa.array(result, call.type, mask=~valid)

    return run


def by_value(function: Callable[..., Any]) -> Kernel:
    """A kernel that calls a Python function with each distinct value of the first argument; the others are constants.

    NULL where one of them is NULL.
    """

    def run(call: Call, value: Value, *constants: pa.Scalar) -> Value:
        fixed = [each.as_py() for each in constants]
        if None in fixed:
            return nulls(call, value)
        if isinstance(value, pa.Scalar):
            known = value.as_py()
            return pa.scalar(None if known is None else function(known, *fixed), call.type)
        coded = value.dictionary_encode()
        results = pa.array([function(each, *fixed) for each in coded.dictionary.to_pylist()], call.type)
        return results.take(coded.indices)

    return run


def comparable(column: pa.Array) -> pa.Array:
    """Values of which equal ones have equal bits: Arrow looks NaN and the two zeros up by theirs."""
    if not pa.types.is_floating(column.type):
        return column
    doubles = pc.add(pc.cast(column, pa.float64()), 0.0)
    return pc.if_else(pc.is_nan(doubles), float("nan"), doubles).view(pa.int64())
