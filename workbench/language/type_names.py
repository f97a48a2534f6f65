"""The types that SQL names behind ``CAST(... AS`` and ``::``."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.logical.decimals import MOST
from workbench.logical.types import SQL_TYPES

#: What other dialects have, and what there is here.
_ELSEWHERE = {
    "time": "`hour(t)` and `minute(t)` are parts of a timestamp, `date_format(t, 'HH:mm')` is text",
    "uuid": "it is a `string` here",
}


def named_type(node: exp.DataType) -> pa.DataType:
    """The type that a node names. Raises QueryError, without a place, where there is none."""
    word = node.meta.get("written")
    if word in _ELSEWHERE:
        raise QueryError(f"there is no type `{word}`", hint=_ELSEWHERE[word])
    brackets = [each for each in node.expressions if isinstance(each, exp.DataTypeParam)]
    numbers = all(isinstance(each.this, exp.Literal) and not each.this.is_string for each in brackets)
    written = node.sql(dialect="spark").casefold() if numbers else node.this.value.casefold()
    if node.this is exp.DataType.Type.DECIMAL:
        return _decimal(written, [each.name for each in brackets])
    if written not in SQL_TYPES:
        hint = did_you_mean(written, [*SQL_TYPES, "decimal"], "type")
        raise QueryError(f"unknown or unsupported type `{written}`", hint=hint)
    if brackets:
        hint = "`left(s, 3)` cuts text, `round(x, 3)` numbers"
        raise QueryError(f"the type `{written}` takes nothing in brackets", hint=hint)
    return SQL_TYPES[written]


def _decimal(written: str, given: list[str]) -> pa.DataType:
    """``decimal`` is ``decimal(10)``, which is ``decimal(10, 0)``."""
    numbers = [int(each) if each.isdigit() else -1 for each in given or ["10"]]
    precision, scale = numbers if len(numbers) == 2 else (numbers[0], 0)
    if len(numbers) > 2 or not 1 <= precision <= MOST or not 0 <= scale <= precision:
        hint = f"`decimal(p, s)` has up to p digits, {MOST} at most, s of them behind the point"
        raise QueryError(f"no decimals are `{written}`", hint=hint)
    return pa.decimal128(precision, scale)
