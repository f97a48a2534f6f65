"""What an aggregate function is: the partials it is made of, and how a result is lowered from them.

``avg`` is a sum and a count, ``min`` a minimum and the count that tells NULL from a value; two aggregates that
need the same part share it. Numerics (docs/aggregates.md): NULL is ignored, NaN propagates within its own
window, integers are exact and overflow is an error (NULL with ``try_sum``), a window without a value gives NULL
(counts give 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from workbench.algebra.decimals import Word, of_units
from workbench.algebra.partials import Array, Fields
from workbench.errors import QueryError

Types = tuple[pa.DataType, ...]

#: In the feeds of a part: the row's event time, in microseconds.
TIME = -1


class Family(StrEnum):
    """How large a partial is (Gray et al., Data Cube, 1997)."""

    #: One value of the result's kind.
    DISTRIBUTIVE = "distributive"
    #: A fixed number of values.
    ALGEBRAIC = "algebraic"
    #: Grows with the distinct values of the rows.
    HOLISTIC = "holistic"


@dataclass(frozen=True)
class Operands:
    """What an aggregate is called with: the types and texts of its arguments, and the values of the constant ones."""

    types: Types
    constants: tuple[Any, ...] = ()
    texts: tuple[str, ...] = ()

    def constant(self, position: int, default: Any = None) -> Any:
        """The value of a constant argument, or ``default`` where the argument was left out."""
        return self.constants[position] if position < len(self.constants) else default

    def misfit(self, position: int, wanted: str) -> QueryError:
        """The error for an argument of the wrong type: what it is, and what to do about it."""
        kind = self.types[position]
        name = f"`{self.texts[position]}`" if self.texts else f"argument {position + 1}"
        return QueryError(f"expected {wanted}, but {name} is `{kind}`", hint=_remedy(wanted, kind))


@dataclass(frozen=True)
class Part:
    """A partial that an aggregate needs, by the kind's name.

    ``feeds`` says what feeds each input of the kind: the position of an argument, or ``TIME``. A kind without
    inputs is fed by the rows where all of ``feeds`` have a value; ``()`` means every row. ``only_true`` keeps the
    rows where the argument is true, ``below`` those where it is less than a number. ``words`` says for each of
    ``feeds`` which half of a decimal it is, see :func:`~workbench.algebra.decimals.halves`.
    """

    kind: str
    feeds: tuple[int, ...] = (0,)
    only_true: bool = False
    below: float | None = None
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function.

    ``arity`` bounds the number of arguments, those from position ``constant_from`` on must be constants.
    ``result_type(operands)`` is the Arrow type of the result and raises QueryError where the arguments do not fit,
    ``parts(operands)`` names the partials in the order in which ``lower(fields, operands, type, text) -> array``
    takes their fields; ``text`` names the aggregate in errors. ``order_sensitive``: the result depends on the rows'
    event times, not only on their values. ``counts_null``: NULL is a value to it, which others ignore.
    """

    name: str
    arity: tuple[int, int]
    family: Family
    result_type: Callable[[Operands], pa.DataType]
    parts: Callable[[Operands], tuple[Part, ...]]
    lower: Callable[[Sequence[Fields], Operands, pa.DataType, str], pa.Array]
    constant_from: int | None = None
    order_sensitive: bool = False
    counts_null: bool = False


def is_number(kind: pa.DataType) -> bool:
    """Whether sums are taken of values of a type."""
    return bool(is_.is_integer(kind) or is_.is_floating(kind)) and kind != pa.uint64()


def number(operands: Operands, position: int = 0) -> pa.DataType:
    """The type of an argument that must be a number."""
    kind = operands.types[position]
    if not is_number(kind):
        raise operands.misfit(position, "a number")
    return kind


def _remedy(wanted: str, kind: pa.DataType) -> str | None:
    """What to do about an argument of a type that does not fit."""
    if wanted == "a condition":
        return "write a comparison, such as `x > 0`"
    if is_.is_string(kind) or is_.is_decimal(kind) or kind == pa.uint64():
        return "convert it with `CAST(... AS DOUBLE)`"
    if is_.is_boolean(kind):
        return "use `count_if` for conditions"
    if is_.is_timestamp(kind) or is_.is_date32(kind):
        return "`min`, `max`, `first`, `last`, `mode` and `count_distinct` take it"
    if is_.is_duration(kind):
        return "make it a number of seconds in the source, in pandas by `.dt.total_seconds()`"
    return None


def ordered(operands: Operands, position: int = 0) -> pa.DataType:
    """The type of an argument that must have an order: numbers, decimals, booleans, dates, timestamps, text."""
    kind = operands.types[position]
    fits = (
        is_.is_decimal128(kind) or is_.is_timestamp(kind) or is_.is_date32(kind) or kind in (pa.bool_(), pa.string())
    )
    if fits or is_number(kind):
        return kind
    raise operands.misfit(position, "a number, a boolean, a date, a timestamp or text")


def double(operands: Operands) -> pa.DataType:
    """The result type ``double`` of an aggregate whose arguments are all numbers."""
    for position in range(len(operands.types)):
        number(operands, position)
    return pa.float64()


def condition(operands: Operands) -> pa.DataType:
    """The type of an argument that must be a condition."""
    if not is_.is_boolean(operands.types[0]):
        raise operands.misfit(0, "a condition")
    return operands.types[0]


def flavour(kind: pa.DataType) -> str:
    """Which variant of a kind takes values of a type: ``float``, ``text``, or ``int`` for all the rest."""
    if is_.is_floating(kind):
        return "float"
    return "text" if is_.is_string(kind) else "int"


def parts(*kinds: str) -> Callable[[Operands], tuple[Part, ...]]:
    """Parts fed with all arguments, by kind; ``*`` stands for the flavour of the first argument."""

    def make(operands: Operands) -> tuple[Part, ...]:
        feeds = tuple(range(len(operands.types)))
        return tuple(Part(kind.replace("*", flavour(operands.types[0])), feeds) for kind in kinds)

    return make


def values_array(values: Array, empty: Array, kind: pa.DataType) -> pa.Array:
    """Cells of a partial as a column of an argument's type; NULL where ``empty``."""
    if is_.is_string(kind):
        texts = values.copy()
        texts[empty] = None
        return pa.array(texts, kind)
    if is_.is_date32(kind):
        return pa.array(values, mask=empty).cast(pa.int32()).cast(kind)
    if is_.is_decimal128(kind):
        return of_units(values, empty, kind)
    return pa.array(values, mask=empty).cast(kind)
