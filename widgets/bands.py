"""Which value columns belong together: the range behind an average or a median, and the count of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.logical import AggregateCall, Literal, Query

#: Aggregates that say where the middle of a column is, or a value of it.
_MIDDLES = frozenset({"avg", "first", "geometric_mean", "last", "median", "mode"})
_QUANTILES = frozenset({"quantile", "approx_quantile"})
_HALF = 0.5


@dataclass(frozen=True)
class Roles:
    """What a plot may know of value columns.

    ``bands`` names the low and the high column behind a middle one, ``count`` the column that counts the rows of a
    window, None where there is none.
    """

    bands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    count: str | None = None


def roles_of(query: Query) -> Roles:
    """The roles of a query's value columns.

    Behind an average, a median, a first, last or most frequent value lies the narrowest range that the query has of
    the same argument under the same rows: quantiles on either side, else the least and the greatest value.
    """
    calls = {named.name: named.expression for named in query.values if isinstance(named.expression, AggregateCall)}
    bands = {}
    for name, call in calls.items():
        if call.function in _MIDDLES or _place(call) == _HALF:
            places = {
                place: other
                for other, found in reversed(calls.items())
                if found.arguments[:1] == call.arguments[:1] and (place := _place(found)) is not None
            }
            low = max((place for place in places if place < _HALF), default=None)
            high = min((place for place in places if place > _HALF), default=None)
            if low is not None and high is not None:
                bands[name] = (places[low], places[high])
    count = next((name for name, call in calls.items() if call.function == "count" and not call.arguments), None)
    return Roles(bands, count)


def _place(call: AggregateCall) -> float | None:
    """Where an aggregate lies among the sorted values: 0 the least, 1 the greatest; None for what has no place."""
    if call.function in _QUANTILES:
        at = call.arguments[1]
        return float(at.value) if isinstance(at, Literal) and isinstance(at.value, int | float) else None
    return {"min": 0.0, "median": _HALF, "max": 1.0}.get(call.function)
