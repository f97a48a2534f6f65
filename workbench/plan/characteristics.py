"""What a query asks of the operator, and what follows from it (*General Stream Slicing* §4 and §5).

The decision trees of the paper's Figures 4 to 6 as code: must rows be kept, can slices split, do rows move from slice
to slice. A stream here is never guaranteed to be in order: rows may be out of order by the delay and the allowed
lateness, and tasks read their parts side by side. So whether it is in order decides no more than how long rows are
kept: with a delay and a lateness of 0 only those of the latest time.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.algebra import AGGREGATES, PARTIALS
from workbench.logical import (
    AnyWindow,
    Backwards,
    ContextAware,
    ContextFree,
    CountWindow,
    EachRow,
    LastRows,
    MeasureWindow,
    Punctuation,
    Query,
    RowsFrame,
    Session,
    UserContext,
    UserWindow,
    aggregate_calls,
    ahead_of,
    over_calls,
)
from workbench.time import format_duration


@dataclass(frozen=True)
class Characteristics:
    """One query by the four characteristics of §4, and the decisions that follow from them.

    ``windows`` is context free, session, forward context free or forward context aware; ``measure`` time or count (or
    both), or the number that windows are along; ``functions`` the least convenient class of its aggregates; ``order``
    how far rows may be out of order.
    """

    order: str
    functions: str
    measure: str
    windows: str
    keeps_rows: str | None
    splits: bool
    removes: str | None

    def __str__(self) -> str:
        found = f"{self.windows} windows, measure {self.measure}, {self.functions} functions, {self.order}"
        if self.keeps_rows is None:
            return f"{found}: rows are folded at once, as slices never split"
        moves = f"; {self.removes}" if self.removes else ""
        splits = "; slices split" if self.splits else ""
        return f"{found}: rows are kept, because {self.keeps_rows}{splits}{moves}"


def characteristics(query: Query) -> Characteristics:
    """The characteristics of a query and the decisions of the trees."""
    commutes = _commutes(query)
    window = query.windows[0]
    return Characteristics(
        order=_order(query),
        functions="commutative" if commutes else "non-commutative",
        measure=_measure(query),
        windows=_kind(query),
        keeps_rows=_reason(query, commutes),
        splits=isinstance(window, Punctuation | LastRows | UserContext),
        removes=_removes(window),
    )


def _removes(window: AnyWindow) -> str | None:
    """Figure 6: how a late row takes rows out of slices."""
    match window:
        case CountWindow():
            return "a late row moves all behind it by one"
        case MeasureWindow(backwards=Backwards.DROP):
            return "a late row takes out those that it shows to go back"
    return None


def _measure(query: Query) -> str:
    frames = {type(over.frame) for named in query.values for over in over_calls(named.expression)}
    if isinstance(query.windows[0], MeasureWindow):
        return f"`{query.windows[0].measure}`"
    if isinstance(query.windows[0], LastRows) or len(frames) > 1:
        return "time and count"
    return "count" if isinstance(query.windows[0], CountWindow) or RowsFrame in frames else "time"


def _waits(query: Query) -> str:
    """What the results of an OVER query wait for behind their rows, in words; empty if for nothing."""
    rows, time = ahead_of(over.frame for named in query.values for over in over_calls(named.expression))
    said = [f"{rows} row{'s' * (rows > 1)}" if rows else "", format_duration(time) if time else ""]
    return " and ".join(filter(None, said))


def keeps_rows(query: Query) -> bool:
    """Figure 4: whether rows of the query are kept until no earlier one can come."""
    return _reason(query, _commutes(query)) is not None


def lasting(query: Query) -> str | None:
    """Why something is kept of every key for ever, in words; None where later windows of a key that has been silent
    for long are those of one that has never been there.
    """
    match query.windows[0]:
        case CountWindow():
            return "its rows are counted on"
        case LastRows():
            return "its last rows are in windows to come"
        case Punctuation():
            return "its window is open until the next mark"
        case MeasureWindow():
            return "its measure goes on from where it was"
        case UserContext():
            return "its rows go on from what the window type remembers"
        case EachRow() if any(over.frame.lasting for named in query.values for over in over_calls(named.expression)):
            return "frames of its later rows hold earlier ones of any time"
    return None if query.fill is None else "its windows without rows are filled"


def _reason(query: Query, commutes: bool) -> str | None:
    """Figure 4, for a stream that may be out of order."""
    if not commutes:
        return "an aggregate is not commutative"
    if any(isinstance(window, CountWindow) for window in query.windows):
        return "rows are counted"
    if any(isinstance(window, MeasureWindow) for window in query.windows):
        return "an earlier row can show that a later one goes back"
    if EachRow() in query.windows:
        waits = _waits(query)
        return f"every row is an edge{f', and waits for {waits} behind it' if waits else ''}"
    if any(isinstance(window, ContextAware) for window in query.windows):
        return "an earlier row can be a new edge"
    return None


def _kind(query: Query) -> str:
    match query.windows[0]:
        case UserWindow() as window:
            return f"user-defined {window.definition.kind}"
        case window if isinstance(window, ContextFree | MeasureWindow):
            return "context free"
        case Session():
            return "session"
        case LastRows():
            return "forward context aware"
        case EachRow() if _waits(query):
            return "forward context aware"
    return "forward context free"


def _order(query: Query) -> str:
    stream = query.stream
    return "rows in order" if not stream.delay and not stream.lateness else "rows out of order"


def _commutes(query: Query) -> bool:
    expressions = [named.expression for named in query.values]
    expressions += [query.having] if query.having is not None else []
    calls = {call for expression in expressions for call in aggregate_calls(expression)}
    parts = (part for call in calls for part in AGGREGATES[call.function].parts(call.operands))
    return all(PARTIALS[part.kind].commutative for part in parts)
