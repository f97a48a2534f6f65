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
from workbench.logical.nodes import Query, Stream, Window, Workload

__all__ = [
    "AggregateCall",
    "Call",
    "Cast",
    "Column",
    "Expression",
    "Literal",
    "Named",
    "Query",
    "Stream",
    "Window",
    "Workload",
    "aggregate_calls",
    "walk",
]
