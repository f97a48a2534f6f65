"""Extremes and picks: aggregates that give back a value of the rows, least, greatest, first or last.

Values have one order: numbers by size with NaN the greatest, FALSE before TRUE, text by code point. Among equal
times ``first`` takes the smallest value and ``last`` the greatest, so neither arrival nor any split of the rows into
tasks and micro-batches shows in a result; the partials are commutative and idempotent. ``first_value`` and
``last_value`` are those of the first and the last row, even if that is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.types as is_

from workbench.algebra.aggregates import (
    TIME,
    Aggregate,
    Family,
    Operands,
    Part,
    flavour,
    number,
    ordered,
    parts,
    values_array,
)
from workbench.algebra.decimals import Word, is_wide, of_halves
from workbench.algebra.partials import OBJECT, Array, Codec, Field, Fields, PartialKind
from workbench.errors import DataError
from workbench.kernels import combine

_INT = np.iinfo(np.int64)


class Bound:
    """Greater than every text, or less than every one: the identities of text that Python does not have."""

    def __init__(self, top: bool) -> None:
        self._top = top

    def __repr__(self) -> str:
        return "greatest text" if self._top else "least text"

    def __lt__(self, other: object) -> bool:
        return not self._top and other is not self

    def __gt__(self, other: object) -> bool:
        return self._top and other is not self

    def __le__(self, other: object) -> bool:
        return not self._top or other is self

    def __ge__(self, other: object) -> bool:
        return self._top or other is self


def _text_codec(bound: Bound) -> Codec:
    """Texts as an Arrow string column in which NULL stands for the bound."""

    def encode(cells: Array) -> pa.Array:
        return pa.array([None if cell is bound else cell for cell in cells], pa.string())

    def decode(column: pa.Array) -> Array:
        cells = column.to_numpy(zero_copy_only=False).astype(object)
        cells[column.is_null().to_numpy(zero_copy_only=False)] = bound
        return cells

    return Codec(encode, decode, lambda cell: 0 if cell is bound else 49 + len(cell))


_TOP, _BOTTOM = Bound(True), Bound(False)
_NUMPY = {"int": "int64", "float": "float64", "text": OBJECT}
#: The least and the greatest value of each flavour, NaN being the greatest float.
_LIMITS: dict[str, tuple[Any, Any]] = {
    "int": (int(_INT.min), int(_INT.max)),
    "float": (-np.inf, np.nan),
    "text": (_BOTTOM, _TOP),
}


def _field(name: str, kind: str, greatest: bool) -> Field:
    """A field whose identity is the least or the greatest value of its flavour."""
    codec = _text_codec(_TOP if greatest else _BOTTOM) if kind == "text" else None
    return Field(name, _NUMPY[kind], _LIMITS[kind][greatest], codec)


def ranks(values: Array) -> tuple[Array, Array]:
    """For each text its place among the distinct ones in their order, and those."""
    codes, distinct = pd.factorize(values)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], distinct[order]


def _fold_texts(
    group: Array, *values: Array, lift: Callable[..., tuple[Any, ...]], last: bool
) -> tuple[Array, Fields]:
    """The first or last row of each group in the order of its fields: one sort, whatever their types."""
    fields = lift(*values)
    keys = [ranks(field)[0] if field.dtype == object else field for field in fields]
    order = np.lexsort((*keys[::-1], group))
    ends = np.diff(group[order]) != 0
    chosen = order[np.append(ends, True) if last else np.insert(ends, 0, True)] if len(order) else order
    return group[chosen], tuple(field[chosen] for field in fields)


def _plain(x: Array) -> Array:
    """Both zeros are one value."""
    return x if x.dtype == object else x + 0


def _lift_texts(order: Array, x: Array) -> tuple[Array, ...]:
    return (_plain(order), _plain(x))


def _lift_least_texts(order: Array, x: Array, known: Array) -> tuple[Array, ...]:
    return (_plain(order), np.int64(1) - known, _plain(x))


def _lift_greatest_texts(order: Array, x: Array, known: Array) -> tuple[Array, ...]:
    return (_plain(order), np.int64(0) + known, _plain(x))


def _pick(
    name: str, fields: Sequence[Field], inputs: tuple[str, ...], lifts: Sequence[Any], merge: Any, last: bool
) -> PartialKind:
    """A kind that keeps the first or last row; the second of ``lifts`` and the fold are for texts."""
    texts = OBJECT in inputs
    lift = lifts[texts]
    return PartialKind(
        name,
        tuple(fields),
        inputs,
        lift,
        merge,
        idempotent=True,
        nullable=frozenset({1} if len(fields) == 3 else ()),
        fold=partial(_fold_texts, lift=lift, last=last) if texts else None,
    )


def _extreme(kind: str, last: bool) -> PartialKind:
    """NaN wins on both sides: it propagates. So the identities are the infinities."""
    name, merge = ("max", combine.combine_max) if last else ("min", combine.combine_min)
    field = _field(name, kind, not last)
    if kind == "float":
        field = Field(name, "float64", -np.inf if last else np.inf)
    fold = partial(_fold_texts, lift=combine.lift_value, last=last) if kind == "text" else None
    return PartialKind(
        f"{name}_{kind}", (field,), (_NUMPY[kind],), combine.lift_value, merge, idempotent=True, fold=fold
    )


def _by_time(kind: str, last: bool) -> PartialKind:
    name, merge = ("last", combine.combine_latest) if last else ("first", combine.combine_earliest)
    fields = (_field("time", "int", not last), _field("value", kind, not last))
    inputs = ("int64", _NUMPY[kind])
    return _pick(f"{name}_{kind}", fields, inputs, (combine.lift_pair, _lift_texts), merge, last)


def _by_value(order: str, kind: str, last: bool) -> PartialKind:
    name, merge = ("max_by", combine.combine_greatest) if last else ("min_by", combine.combine_least)
    lifts = (combine.lift_greatest, _lift_greatest_texts) if last else (combine.lift_least, _lift_least_texts)
    fields = (
        _field("order", order, not last),
        Field("rank", "int64", -1 if last else 2),
        _field("value", kind, not last),
    )
    return _pick(f"{name}_{order}_{kind}", fields, (_NUMPY[order], _NUMPY[kind]), lifts, merge, last)


KINDS = (
    *(_extreme(kind, last) for last in (False, True) for kind in _NUMPY),
    *(_by_time(kind, last) for last in (False, True) for kind in _NUMPY),
    *(_by_value(order, kind, last) for last in (False, True) for order in _NUMPY for kind in _NUMPY),
)


def _extreme_parts(name: str) -> Callable[[Operands], tuple[Part, ...]]:
    """Of a decimal whose halves are apart the one with the extreme upper half, and of those the lower half."""

    def make(operands: Operands) -> tuple[Part, ...]:
        if is_wide(operands.types[0]):
            return (Part(f"{name}_by_int_int", (0, 0), words=(Word.HIGH, Word.LOW)), Part("count"))
        return parts(f"{name}_*", "count")(operands)

    return make


def _lower_extreme(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    if is_wide(kind):
        high, _, low = fields[0]
        return of_halves(high, low, fields[1][0] == 0, kind)
    return values_array(fields[0][0], fields[1][0] == 0, kind)


def _range_type(operands: Operands) -> pa.DataType:
    return pa.int64() if is_.is_integer(number(operands)) else pa.float64()


def _lower_range(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    low, high, empty = fields[0][0], fields[1][0], fields[2][0] == 0
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, as it should be
        spread = np.where(empty, 0, high - np.where(empty, high, low))
    if spread.dtype == np.int64 and (spread < 0).any():
        raise DataError(f"integer overflow in `{text}`: max - min of a window does not fit into 64 bits")
    return pa.array(spread, mask=empty)


def _time_parts(*names: str) -> Callable[[Operands], tuple[Part, ...]]:
    def make(operands: Operands) -> tuple[Part, ...]:
        kind = flavour(operands.types[0])
        return (*(Part(f"{name}_{kind}", (TIME, 0)) for name in names), Part("count"))

    return make


def _lower_pick(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    return values_array(fields[0][1], fields[1][0] == 0, kind)


def _by_type(operands: Operands) -> pa.DataType:
    ordered(operands, 1)
    return ordered(operands)


def _by_parts(name: str) -> Callable[[Operands], tuple[Part, ...]]:
    def make(operands: Operands) -> tuple[Part, ...]:
        value, order = (flavour(kind) for kind in operands.types)
        return (Part(f"{name}_{order}_{value}", (1, 0)),)

    return make


def _row_parts(name: str) -> Callable[[Operands], tuple[Part, ...]]:
    """The value of the row with the least or greatest time."""
    return lambda operands: (Part(f"{name}_int_{flavour(operands.types[0])}", (TIME, 0)),)


def _lower_by(known: int) -> Callable[[Sequence[Fields], Operands, pa.DataType, str], pa.Array]:
    def lower(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
        _, rank, value = fields[0]
        return values_array(value, rank != known, kind)

    return lower


def _m4_type(operands: Operands) -> pa.DataType:
    kind = number(operands)
    return pa.struct([(name, kind) for name in ("first", "last", "min", "max")])


def _m4_parts(operands: Operands) -> tuple[Part, ...]:
    extremes = parts("min_*", "max_*", "count")(operands)
    return (*_time_parts("first", "last")(operands)[:2], *extremes)


def _lower_m4(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    first, last, low, high, count = fields
    empty = count[0] == 0
    columns = [values_array(cells, empty, operands.types[0]) for cells in (first[1], last[1], low[0], high[0])]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(empty))


def _family() -> list[Aggregate]:
    one, two, algebraic, distributive = (1, 1), (2, 2), Family.ALGEBRAIC, Family.DISTRIBUTIVE
    return [
        Aggregate("min", one, distributive, ordered, _extreme_parts("min"), _lower_extreme),
        Aggregate("max", one, distributive, ordered, _extreme_parts("max"), _lower_extreme),
        Aggregate("range", one, algebraic, _range_type, parts("min_*", "max_*", "count"), _lower_range),
        Aggregate("first", one, algebraic, ordered, _time_parts("first"), _lower_pick, order_sensitive=True),
        Aggregate("last", one, algebraic, ordered, _time_parts("last"), _lower_pick, order_sensitive=True),
        _of_row("first_value", "min_by", 0),
        _of_row("last_value", "max_by", 1),
        Aggregate("min_by", two, algebraic, _by_type, _by_parts("min_by"), _lower_by(0)),
        Aggregate("max_by", two, algebraic, _by_type, _by_parts("max_by"), _lower_by(1)),
        Aggregate("m4", one, algebraic, _m4_type, _m4_parts, _lower_m4, order_sensitive=True),
    ]


def _of_row(name: str, by: str, known: int) -> Aggregate:
    parts_of, lower = _row_parts(by), _lower_by(known)
    return Aggregate(name, (1, 1), Family.ALGEBRAIC, ordered, parts_of, lower, order_sensitive=True, counts_null=True)


AGGREGATES = tuple(_family())
ALIASES: dict[str, str] = {}
