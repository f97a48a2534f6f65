"""The value types of the language: their SQL names, and how two types meet.

A timestamp is an instant in microseconds. Values of one column keep the column's own zone tag; where an
instant with a zone meets one without, the one without counts as UTC (Spark's session zone is UTC here too).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.types as is_

from workbench.errors import QueryError
from workbench.logical.decimals import decimal_of, is_decimal, stored_decimal, wider

#: An instant, as literals and mixed comparisons have it.
TIMESTAMP = pa.timestamp("us", tz="UTC")

#: Numbers from narrow to wide; two of them meet in the wider one.
NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())

#: SQL names that ``CAST`` takes, folded. The first name of a type is the one it is printed with.
SQL_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
}
_BYTES = (is_.is_binary, is_.is_large_binary, is_.is_binary_view, is_.is_fixed_size_binary)
#: What stored numbers become that the language has no type for.
_WIDENED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.float16(): pa.float32()}
_NAMES = {kind: name for name, kind in reversed(SQL_TYPES.items())}


def type_name(kind: pa.DataType) -> str:
    """The SQL name of a type, or Arrow's where SQL has none: ``bigint``, ``timestamp``, ``list<item: int8>``."""
    if is_.is_timestamp(kind):
        return "timestamp"
    if is_.is_null(kind):
        return "NULL"
    if is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    return _NAMES.get(kind, str(kind))


def language_type(kind: pa.DataType) -> pa.DataType:
    """The type with which a stored column enters expressions.

    Text in any layout (large, view, dictionary) is ``string``; instants of any unit are microseconds, in their
    own zone; unsigned integers are the next wider integer, as Spark reads them, and half floats are floats. The
    evaluator converts the values, and refuses to cut off nanoseconds. 64 bits without a sign stay what they are:
    nothing wider holds them. Decimals of up to 38 digits are ``decimal(p, s)`` in any layout.
    """
    if is_.is_dictionary(kind):
        return language_type(kind.value_type)
    if is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.string()
    if is_.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    return _WIDENED.get(kind, stored_decimal(kind))


def is_integer(kind: pa.DataType) -> bool:
    """Whether the type is one of the integers."""
    return kind in NUMBERS[:4]


def is_number(kind: pa.DataType) -> bool:
    """Whether the type is an integer or a float."""
    return kind in NUMBERS


def is_numeric(kind: pa.DataType) -> bool:
    """Whether the type is that of numbers or decimals."""
    return is_number(kind) or is_decimal(kind)


def is_temporal(kind: pa.DataType) -> bool:
    """Whether the type is a date or a timestamp."""
    return bool(is_.is_timestamp(kind) or is_.is_date32(kind))


def is_key(kind: pa.DataType) -> bool:
    """Whether rows can be grouped by values of the type: all that is neither nested nor bytes."""
    held = is_.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)
    return not (held or any(each(kind) for each in _BYTES))


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type in which values of all ``kinds`` meet, as Spark's ANSI rules have it.

    NULL fits every type; numbers widen, an integer beside a ``float`` to ``double``; decimals meet in one that has
    the digits of all, and are doubles beside a float; a date beside a timestamp is its midnight. Raises QueryError
    for everything else: text is never read as a number by itself.
    """
    known = set(kinds) - {pa.null()}
    if len(known) <= 1:
        return known.pop() if known else pa.null()
    if all(map(is_number, known)):
        widest = max(known, key=NUMBERS.index)
        return pa.float64() if widest == pa.float32() else widest
    if all(map(is_numeric, known)):
        if any(map(is_.is_floating, known)):
            return pa.float64()
        return reduce(wider, map(decimal_of, known))
    if all(map(is_temporal, known)):
        instants = known - {pa.date32()}
        return instants.pop() if len(instants) == 1 else TIMESTAMP
    names = " with ".join(dict.fromkeys(f"`{type_name(kind)}`" for kind in kinds if kind in known))
    if any(map(is_temporal, known)):
        raise QueryError(f"does not take {names}", hint="write a time as TIMESTAMP '2013-01-31 10:15:00'")
    raise QueryError(f"does not take {names}", hint="convert one of them, such as `CAST(x AS double)`")


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether ``CAST`` converts ``source`` to ``target``.

    Numbers and timestamps convert as seconds since 1970. Unsigned integers only come in, as numbers.
    """
    if source in (target, pa.null()):
        return True
    if is_.is_timestamp(source) and target in (pa.int64(), pa.float64()):
        return True
    if is_number(target):
        return is_number(source) or source in (pa.bool_(), pa.string(), pa.uint64()) or is_.is_decimal(source)
    if is_decimal(target):
        return is_numeric(source) or source in (pa.bool_(), pa.string())
    if target == pa.string():
        return is_numeric(source) or source == pa.bool_() or is_temporal(source)
    if target == pa.bool_():
        return is_numeric(source) or source == pa.string()
    if is_.is_timestamp(target) and is_number(source):
        return True
    if is_temporal(target):
        return is_temporal(source) or source == pa.string()
    return False
