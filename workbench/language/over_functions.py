"""Functions that stand before an OVER and nowhere else, told by aggregates over frames.

``lag(x, n)`` is the value of the frame that holds the one row ``n`` before, ``lead`` behind, ``row_number()`` the
count of all rows up to this one. What would have to know how many rows there are is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from workbench.algebra import AGGREGATES
from workbench.errors import QueryError
from workbench.language.literals import convert
from workbench.language.sql import SqlText
from workbench.logical import AggregateCall, Call, Expression, Frame, Literal, OverCall, RangeFrame, RowsFrame
from workbench.logical.expressions import operands
from workbench.logical.functions import check_arity
from workbench.logical.types import common_type, is_integer, type_name

_BIGINT = pa.int64()
#: The number of rows in a frame.
_ROWS = AggregateCall(_BIGINT, "count", ())

_NO_END = "`{name}` depends on how many rows there are, and a stream has no end"
_NUMBERED = "`row_number()` and `rank()` number the rows from the first one on"
#: What cannot be told of a stream, why, and what can.
_REFUSED = {
    "dense_rank": (
        "`{name}` is not supported: it counts the times of all rows so far",
        "`rank()` leaves gaps; `count(DISTINCT {time})` with the same OVER has none, and keeps every time",
    ),
    "nth_value": (
        "`{name}` is not supported",
        "`first_value(x)` is the first of a frame, `lag(x, n)` is `n` rows before",
    ),
    **dict.fromkeys(("ntile", "percent_rank", "cume_dist"), (_NO_END, _NUMBERED)),
}
#: Aggregates that can be told what to do about NULL, and the one that ignores it.
_IGNORING = {"first": "first", "first_value": "first", "last": "last", "last_value": "last"}
_RESPECTING = {name: f"{plain}_value" for name, plain in _IGNORING.items()}

#: Functions of another row, and whether that is before this one or behind it.
_SHIFTS = {"lag": 1, "lead": -1}

#: Binds a node over single rows.
Bind = Callable[[exp.Expr], Expression]


def is_over_function(name: str) -> bool:
    """Whether a name, folded, means something before an OVER alone."""
    return name in OVER_FUNCTIONS or name in _REFUSED


def resolve_nulls(text: SqlText, node: exp.Expr) -> exp.Expr:
    """The call before an OVER, without ``IGNORE NULLS`` or ``RESPECT NULLS``; raises QueryError where it has none."""
    written = node
    inside = node.expressions[-1] if isinstance(node, exp.Anonymous) and node.expressions else node
    nulls = inside if isinstance(inside, (exp.IgnoreNulls, exp.RespectNulls)) else None
    if nulls is None:
        return node
    if nulls is not node:
        node = node.copy()
        node.expressions[-1].replace(nulls.this.copy())
    else:
        node = nulls.this
    name = node.name.casefold()
    ignores = isinstance(nulls, exp.IgnoreNulls)
    if name in _SHIFTS and not ignores:
        return node
    if name in _SHIFTS:
        hint = (
            "`last(x) OVER (... ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)` is the last value before the row"
        )
        raise text.error(f"`{name}` with `IGNORE NULLS` is not supported", written, hint=f"{hint} that is not NULL")
    if name not in _IGNORING:
        raise text.error(
            f"`{'IGNORE' if ignores else 'RESPECT'} NULLS` stands behind `first_value` and `last_value`",
            written,
            hint="aggregates ignore NULL",
        )
    node = node.copy()
    node.set("this", (_IGNORING if ignores else _RESPECTING)[name])
    return node


def bind_over_function(text: SqlText, node: exp.Expr, row: Bind, time: str) -> Expression:
    """What a call of such a function means, without its OVER. Raises QueryError for what cannot be told."""
    name, nodes = node.name.casefold(), list(node.expressions)
    if name in _REFUSED:
        message, hint = (part.format(name=name, time=time) for part in _REFUSED[name])
        raise text.error(message, node, hint=hint)
    with text.at(node):
        check_arity(name, (1, 3) if name in _SHIFTS else (0, 0), len(nodes))
        return _NUMBERING[name] if name in _NUMBERING else _shifted(text, node, row)


def _over(call: AggregateCall, frame: Frame) -> OverCall:
    return OverCall(call.type, call, frame)


def _shifted(text: SqlText, node: exp.Expr, row: Bind) -> Expression:
    """``lag(x, rows, default)``: the default stands where there is no such row, not where its value is NULL."""
    name, nodes = node.name.casefold(), node.expressions
    value = row(nodes[0])
    rows = _SHIFTS[name] * (_offset(text, nodes[1], name) if len(nodes) > 1 else 1)
    frame = RowsFrame(rows, rows)
    try:
        kind = AGGREGATES["first_value"].result_type(operands((value,)))
    except QueryError as error:
        raise QueryError(f"`{text.source(node)}`: {error.message}", hint=error.hint) from None
    found = _over(AggregateCall(kind, "first_value", (value,)), frame)
    default = _default(text, nodes[2], name, row(nodes[2]), kind) if len(nodes) > 2 else None
    if default is None:
        return found
    missing = Call(pa.bool_(), "equal", (_over(_ROWS, frame), Literal(_BIGINT, 0)))
    return Call(kind, "case", (missing, default, found))


def _offset(text: SqlText, node: exp.Expr, name: str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        return int(node.this)
    hint = f"such as `{name}(x, 2)`; `lag` looks at rows before this one, `lead` at rows behind it"
    raise text.error(f"the offset of `{name}` is a whole number of rows", node, hint=hint)


def _default(text: SqlText, node: exp.Expr, name: str, default: Expression, kind: pa.DataType) -> Expression | None:
    """The third argument with the type of the first; None for NULL."""
    if pa.types.is_null(default.type):
        return None
    if not _fits(default, kind):
        raise text.error(
            f"the default of `{name}` must be `{type_name(kind)}` as its value is, got `{text.source(node)}`",
            node,
            hint=f"convert one of them with `CAST(... AS {type_name(kind)})`",
        )
    return convert(default, kind)


def _fits(value: Expression, kind: pa.DataType) -> bool:
    """Whether a value can be of a type without losing anything."""
    if is_integer(kind) and isinstance(value, Literal) and is_integer(value.type):
        return isinstance(value.value, int) and abs(2 * value.value + 1) < 1 << kind.bit_width
    try:
        return bool(common_type([kind, value.type]) == kind)
    except QueryError:
        return False


_UP_TO_PEERS, _PEERS = (_over(_ROWS, RangeFrame(reach)) for reach in (None, 0))
_BEFORE = Call(_BIGINT, "subtract", (_UP_TO_PEERS, _PEERS))
_NUMBERING: dict[str, Expression] = {
    "row_number": _over(_ROWS, RowsFrame(None)),
    "rank": Call(_BIGINT, "add", (_BEFORE, Literal(_BIGINT, 1))),
}
#: The names that mean something before an OVER alone.
OVER_FUNCTIONS = (*_SHIFTS, *_NUMBERING)
