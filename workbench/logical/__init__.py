"""Logical nodes: what the user asked for, frozen and hashable. SQL and the builder both lower to these."""

from workbench.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    Named,
    aggregate_calls,
    walk,
)
from workbench.logical.nodes import Query, Stream, Workload
from workbench.logical.windows import (
    AnyWindow,
    Band,
    Calendar,
    ContextAware,
    ContextFree,
    CountWindow,
    Cumulating,
    LastRows,
    Punctuation,
    Session,
    Window,
)

__all__ = [
    "AggregateCall",
    "AnyWindow",
    "Band",
    "Calendar",
    "Call",
    "Cast",
    "Column",
    "ContextAware",
    "ContextFree",
    "CountWindow",
    "Cumulating",
    "Expression",
    "LastRows",
    "Literal",
    "Named",
    "Punctuation",
    "Query",
    "Session",
    "Stream",
    "Window",
    "Workload",
    "aggregate_calls",
    "walk",
]
