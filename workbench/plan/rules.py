"""Rewrites of a partial under the filter of its fold: pure functions, listed in ``RULES``, tested one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa

from workbench.logical import Call, Cast, Column, Expression, Literal
from workbench.plan.shared import Partial

#: Functions that are NULL exactly where an argument is.
_STRICT = frozenset({"add", "subtract", "multiply", "negate", "abs"})
#: Conditions that are never true where an argument is NULL.
_REJECTS_NULL = frozenset({"is_not_null", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


def count_of_never_null(partial: Partial, where: Expression | None, schema: pa.Schema) -> Partial:
    """``count(x)`` is ``count(*)`` where x cannot be NULL, so that the two are shared."""
    if partial.kind != "count":
        return partial
    return Partial("count", tuple(each for each in partial.arguments if not never_null(each, where, schema)))


#: Applied in this order to every partial.
RULES: tuple[Callable[[Partial, Expression | None, pa.Schema], Partial], ...] = (count_of_never_null,)


def read_wider(partials: Collection[Partial]) -> dict[Partial, Partial]:
    """What to read in place of partials whose fields are the first ones of another that is there anyway.

    A variance beside a kurtosis of the same expression reads the moments up to the fourth.
    """
    narrower = (
        (Partial(partial.monoid.extends, partial.arguments), partial)
        for partial in partials
        if partial.monoid.extends
    )
    return {narrow: wide for narrow, wide in narrower if narrow in partials}


def rewrite(partial: Partial, where: Expression | None, schema: pa.Schema) -> Partial:
    """The partial after all rules."""
    for rule in RULES:
        partial = rule(partial, where, schema)
    return partial


def never_null(expression: Expression, where: Expression | None, schema: pa.Schema) -> bool:
    """Whether the expression has a value in every row that passes ``where``; False where that is not plain."""
    if expression in _with_value(where):
        return True
    match expression:
        case Literal():
            return expression.value is not None
        case Column():
            return not schema.field(expression.name).nullable
        case Call(function=function) if function in _STRICT:
            return all(never_null(argument, where, schema) for argument in expression.arguments)
        case Cast():
            widens = pa.types.is_floating(expression.type) and not pa.types.is_string(expression.argument.type)
            return widens and never_null(expression.argument, where, schema)
    return False


def _with_value(where: Expression | None) -> set[Expression]:
    """Expressions that a condition lets through only with a value."""
    if not isinstance(where, Call):
        return set()
    if where.function == "and":
        return set().union(*(_with_value(argument) for argument in where.arguments))
    return set(where.arguments) if where.function in _REJECTS_NULL else set()
