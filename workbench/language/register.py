"""Aggregates and window types of a user's as words of the language."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from workbench.algebra import AGGREGATES, user
from workbench.errors import QueryError
from workbench.language.over_functions import is_over_function
from workbench.language.sql import parse_expression
from workbench.language.windows import FORMS
from workbench.logical import user_windows
from workbench.logical.functions import SQL_FUNCTIONS
from workbench.logical.user_windows import WINDOW_TYPES

_WORD = re.compile(r"[a-z_][a-z0-9_]*")


def register_aggregate(name: str, cls: type) -> None:
    """Make a class an aggregate under a name, which is folded as all names of functions are.

    One of that name is replaced: queries that run keep the one they were started with. Raises QueryError for a name
    that is taken by the language, and for a class that is no monoid.
    """
    user.define(_word(name, "aggregate", WINDOW_TYPES), cls)


def register_window_type(name: str, cls: type) -> None:
    """Make a class a window type under a name, which is folded as all names of functions are.

    One of that name is replaced: queries that run keep the one they were started with. Raises QueryError for a name
    that is taken by the language, and for a class that implements none of the interfaces.
    """
    user_windows.define(_word(name, "window type", AGGREGATES), cls)


def _word(name: str, noun: str, others: Collection[str]) -> str:
    """A name that the language has room for, folded."""
    folded, article = name.casefold(), "an" if noun[0] in "aeiou" else "a"
    if not _WORD.fullmatch(folded):
        raise QueryError(f"`{name}` is no name for {article} {noun}", hint="letters, digits and `_`, no digit first")
    builtin = folded in AGGREGATES.builtin or folded in SQL_FUNCTIONS or folded in FORMS or is_over_function(folded)
    if builtin or not isinstance(parse_expression(f"{folded}()")[1], exp.Anonymous):
        raise QueryError(f"`{folded}` is built in and cannot be defined anew", hint=f"give the {noun} another name")
    if folded in others:
        raise QueryError(f"`{folded}` is taken", hint=f"give the {noun} another name")
    return folded
