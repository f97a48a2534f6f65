"""Aggregates of a user's as words of the language."""

from __future__ import annotations

import re

from workbench.algebra import AGGREGATES, user
from workbench.errors import QueryError
from workbench.language.windows import FORMS
from workbench.logical.functions import SQL_FUNCTIONS

_WORD = re.compile(r"[a-z_][a-z0-9_]*")


def register_aggregate(name: str, cls: type) -> None:
    """Make a class an aggregate under a name, which is folded as all names of functions are.

    One of that name is replaced: queries that run keep the one they were started with. Raises QueryError for a name
    that is taken by the language, and for a class that is no monoid.
    """
    folded = name.casefold()
    if not _WORD.fullmatch(folded):
        raise QueryError(f"`{name}` is no name for an aggregate", hint="letters, digits and `_`, no digit first")
    if folded in AGGREGATES.builtin or folded in SQL_FUNCTIONS or folded in FORMS:
        raise QueryError(f"`{folded}` is built in and cannot be defined anew", hint="give the aggregate another name")
    user.define(folded, cls)
