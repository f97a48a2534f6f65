"""Clauses of SELECT: keys, FILL, which is ours, and those that are not here, why, and what works instead."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from sqlglot import exp

from workbench.errors import did_you_mean
from workbench.language.sql import SqlText
from workbench.logical import AnyWindow, ContextFree, Expression, Fill, UserGrid, aggregate_calls
from workbench.logical.types import is_key, is_numeric, type_name

_REFUSED = {
    "distinct": ("`DISTINCT` is not supported", "GROUP BY gives every key once per window"),
    "order": ("`ORDER BY` is not supported: results come in the order of time", "sort what `results()` gives"),
    "limit": ("`LIMIT` is not supported: a stream has no end", "take the first rows of what `results()` gives"),
    "offset": ("`OFFSET` is not supported: a stream has no end", "take the rows that you need of `results()`"),
    "laterals": ("`LATERAL VIEW` is not supported", "unfold the rows before they become a source"),
    "qualify": ("`QUALIFY` is not supported", "`HAVING` is"),
}


def refuse_clauses(text: SqlText, select: exp.Select, supported: Collection[str]) -> None:
    """Raise QueryError for the first clause of a SELECT that is not among ``supported``."""
    for clause, value in select.args.items():
        if clause in supported or not value:
            continue
        node = value[0] if isinstance(value, list) else value
        message, hint = _REFUSED.get(clause, (f"`{clause.strip('_').upper()}` is not supported", None))
        raise text.error(message, node if isinstance(node, exp.Expr) else select, hint=hint)


def check_key(text: SqlText, node: exp.Expr, key: Expression) -> None:
    """Raises QueryError for an expression that rows cannot be grouped by."""
    if is_key(key.type):
        return
    hint = None
    if pa.types.is_struct(key.type) and key.type.num_fields:
        hint = f"a field of it can be one, such as `{key}.{key.type.field(0).name}`"
    raise text.error(f"`{key}` of type `{type_name(key.type)}` cannot be a key", node, hint=hint)


def bind_fill(
    text: SqlText,
    select: exp.Select,
    windows: Sequence[AnyWindow],
    items: Sequence[tuple[exp.Expr, str, Expression]],
) -> Fill | None:
    """What FILL asks for; ``items`` are the select items with their names and what they are.

    Raises QueryError for a word that it does not know, for windows that are there by their rows alone, and for zeros
    where no number is.
    """
    node = select.args.get("fill")
    if node is None:
        return None
    words = [fill.name for fill in Fill]
    if node.name.upper() not in words:
        hint = did_you_mean(node.name.upper(), words)
        raise text.error(f"cannot fill with `{node.name}`", node, hint=hint or "`NULL`, `ZERO` or `PREVIOUS`")
    fill = Fill[node.name.upper()]
    for window in windows:
        if not isinstance(window, ContextFree) or isinstance(window, UserGrid):
            raise text.error(
                f"FILL needs windows that are there without rows, a window `{window.label}` is not",
                node,
                hint="`window`, `zoom`, `cumulate_window`, `band_window` and `calendar_window` make such windows",
            )
    for item, name, value in items:
        if fill is Fill.ZERO and aggregate_calls(value) and not is_numeric(value.type):
            raise text.error(
                f"FILL ZERO needs numbers, but `{name}` is `{type_name(value.type)}`",
                item,
                hint="`FILL NULL` and `FILL PREVIOUS` are for values of any type",
            )
    return fill
