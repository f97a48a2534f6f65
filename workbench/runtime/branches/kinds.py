"""Which edges a window type over kept rows has."""

from __future__ import annotations

from workbench.logical import (
    AnyWindow,
    CountWindow,
    EachRow,
    LastRows,
    MeasureWindow,
    Punctuation,
    Session,
    UserContext,
)
from workbench.runtime.branches.along import MeasureEdges
from workbench.runtime.branches.edges import CountEdges, Edges, GridEdges, LastEdges, MarkEdges, SessionEdges
from workbench.runtime.branches.told import ToldEdges


def edges_of(window: AnyWindow) -> Edges:
    """The edges of a window type."""
    match window:
        case Session():
            return SessionEdges(window)
        case CountWindow():
            return CountEdges(window)
        case LastRows():
            return LastEdges(window)
        case Punctuation():
            return MarkEdges(window)
        case MeasureWindow():
            return MeasureEdges(window)
        case UserContext():
            return ToldEdges(window)
        case EachRow():
            raise TypeError("windows of single rows are not found by their edges")
    return GridEdges(window)
