"""Aggregate functions of the language, each made of shared partials.

``avg`` is a sum and a count, ``min`` a minimum and the count that tells NULL from a value; two aggregates that
need the same part share it. Numerics (docs/architecture.md): NULL is ignored, NaN propagates within its own
window, integers are exact and overflow is an error (NULL with ``try_sum``), a window without a value gives NULL
(``count`` gives 0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.errors import DataError, QueryError

Array = npt.NDArray[Any]
#: The fields of one partial, an array each.
Fields = tuple[Array, ...]
Types = tuple[pa.DataType, ...]


@dataclass(frozen=True)
class Part:
    """A partial that an aggregate needs, by the kind's name.

    It is fed with the aggregate's argument; with ``of_argument`` off with every row, with ``only_true`` with the
    rows where the argument is true.
    """

    kind: str
    of_argument: bool = True
    only_true: bool = False


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function.

    ``arity`` bounds the number of arguments, ``result_type(types)`` is the Arrow type of the result and raises
    QueryError where the arguments do not fit, ``parts(types)`` names the partials in the order in which
    ``lower(fields, type, text) -> array`` takes their fields; ``text`` names the aggregate in errors.
    """

    name: str
    arity: tuple[int, int]
    result_type: Callable[[Types], pa.DataType]
    parts: Callable[[Types], tuple[Part, ...]]
    lower: Callable[[Sequence[Fields], pa.DataType, str], pa.Array]


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _number(types: Types) -> pa.DataType:
    if not _is_number(types[0]) or types[0] == pa.uint64():
        raise QueryError(f"expected a number, got a value of type `{types[0]}`", hint=_cast_hint(types[0]))
    return types[0]


def _cast_hint(kind: pa.DataType) -> str | None:
    if pa.types.is_string(kind) or pa.types.is_decimal(kind) or kind == pa.uint64():
        return "convert it with `CAST(... AS DOUBLE)`"
    return "use `count_if` for conditions" if pa.types.is_boolean(kind) else None


def _ordered(types: Types) -> pa.DataType:
    kind = types[0]
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return kind
    return _number(types)


def _double(types: Types) -> pa.DataType:
    _number(types)
    return pa.float64()


def _sum_type(types: Types) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(_number(types)) else pa.float64()


def _condition(types: Types) -> pa.DataType:
    if not pa.types.is_boolean(types[0]):
        raise QueryError(f"expected a condition, got a value of type `{types[0]}`")
    return pa.int64()


def _suffix(types: Types) -> str:
    return "float" if pa.types.is_floating(types[0]) else "int"


def _lower_count(fields: Sequence[Fields], kind: pa.DataType, text: str) -> pa.Array:
    return pa.array(fields[0][0])


def _signed(low: Array) -> Array:
    return low.view(np.int64)


def _lower_sum(fields: Sequence[Fields], kind: pa.DataType, text: str) -> pa.Array:
    if pa.types.is_floating(kind):
        return pa.array(fields[0][0], mask=fields[1][0] == 0)
    low, high = fields[0]
    overflow = high != _signed(low) >> np.int64(63)
    if overflow.any():
        raise DataError(
            f"integer overflow in `{text}`: the sum of a window does not fit into 64 bits",
            hint=f"use `try_sum` for NULL instead, or `{text.replace('(', '(CAST(', 1)[:-1]} AS DOUBLE))`",
        )
    return pa.array(_signed(low), mask=fields[1][0] == 0)


def _lower_try_sum(fields: Sequence[Fields], kind: pa.DataType, text: str) -> pa.Array:
    if pa.types.is_floating(kind):
        return _lower_sum(fields, kind, text)
    low, high = fields[0]
    overflow = high != _signed(low) >> np.int64(63)
    return pa.array(_signed(low), mask=overflow | (fields[1][0] == 0))


def _lower_avg(fields: Sequence[Fields], kind: pa.DataType, text: str) -> pa.Array:
    total, count = fields[0], fields[1][0]
    if len(total) == 1:
        value = total[0]
    else:  # 128 bits: where the high word only repeats the sign, the low word is the whole number
        low, high = total
        narrow = high == _signed(low) >> np.int64(63)
        value = np.where(narrow, _signed(low).astype(np.float64), high * 2.0**64 + low)
    return pa.array(value / np.maximum(count, 1), mask=count == 0)


def _lower_extreme(fields: Sequence[Fields], kind: pa.DataType, text: str) -> pa.Array:
    values = pa.array(fields[0][0], mask=fields[1][0] == 0)
    return values.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else values.cast(kind)


def _lower_range(fields: Sequence[Fields], kind: pa.DataType, text: str) -> pa.Array:
    low, high, empty = fields[0][0], fields[1][0], fields[2][0] == 0
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, as it should be
        spread = np.where(empty, 0, high - np.where(empty, high, low))
    if spread.dtype == np.int64 and (spread < 0).any():
        raise DataError(f"integer overflow in `{text}`: max - min of a window does not fit into 64 bits")
    return pa.array(spread, mask=empty)


def _moment(sample: bool, root: bool) -> Callable[[Sequence[Fields], pa.DataType, str], pa.Array]:
    """Variance (or its root) from the moments: M2 / n, or M2 / (n - 1) of a sample, NULL below 1 or 2 values."""

    def lower(fields: Sequence[Fields], kind: pa.DataType, text: str) -> pa.Array:
        (_, _, m2), count = fields[0], fields[1][0]
        divisor = count - int(sample)
        value = m2 / np.maximum(divisor, 1)
        return pa.array(np.sqrt(value) if root else value, mask=divisor < 1)

    return lower


def _family() -> list[Aggregate]:
    def parts(*kinds: str) -> Callable[[Types], tuple[Part, ...]]:
        """Parts by kind; `*` stands for the flavour of the argument's type, `int` or `float`."""
        return lambda types: tuple(Part(kind.replace("*", _suffix(types) if types else "")) for kind in kinds)

    def count_parts(types: Types) -> tuple[Part, ...]:
        return (Part("count", of_argument=bool(types)),)

    one = (1, 1)
    return [
        Aggregate("count", (0, 1), lambda types: pa.int64(), count_parts, _lower_count),
        Aggregate("count_if", one, _condition, lambda types: (Part("count", only_true=True),), _lower_count),
        Aggregate("sum", one, _sum_type, parts("sum_*", "count"), _lower_sum),
        Aggregate("try_sum", one, _sum_type, parts("sum_*", "count"), _lower_try_sum),
        Aggregate("avg", one, _double, parts("sum_*", "count"), _lower_avg),
        Aggregate("min", one, _ordered, parts("min_*", "count"), _lower_extreme),
        Aggregate("max", one, _ordered, parts("max_*", "count"), _lower_extreme),
        Aggregate("range", one, _sum_type, parts("min_*", "max_*", "count"), _lower_range),
        Aggregate("var_samp", one, _double, parts("moments", "count"), _moment(True, False)),
        Aggregate("var_pop", one, _double, parts("moments", "count"), _moment(False, False)),
        Aggregate("stddev_samp", one, _double, parts("moments", "count"), _moment(True, True)),
        Aggregate("stddev_pop", one, _double, parts("moments", "count"), _moment(False, True)),
    ]


_ALIASES = {"mean": "avg", "variance": "var_samp", "stddev": "stddev_samp", "std": "stddev_samp"}
_BY_NAME = {aggregate.name: aggregate for aggregate in _family()}

#: Every aggregate by name and by alias.
AGGREGATES: Mapping[str, Aggregate] = MappingProxyType(
    _BY_NAME | {alias: _BY_NAME[name] for alias, name in _ALIASES.items()}
)
