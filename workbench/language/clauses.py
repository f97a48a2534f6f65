"""Clauses of SELECT that this language does not have, why, and the nearest thing that works."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from workbench.language.sql import SqlText

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
