"""What of a running plan goes on in the next one: folds, partials and windows are matched by what they are."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from workbench.errors import QueryError
from workbench.logical import EachRow, MeasureWindow, Query, Session, Stream, UserContext
from workbench.plan.shared import Fold, SharedPlan


@dataclass(frozen=True)
class Carried:
    """By place in the new plan the place in the old one, None for what begins with the new.

    ``partials`` are by fold; ``windows`` are by assembly and, in it, by partial: a partial that was kept before, but
    not for these windows, begins for them.
    """

    folds: tuple[int | None, ...]
    partials: tuple[tuple[int | None, ...], ...]
    windows: dict[tuple[int, int], tuple[int, int] | None]


_FROM_THE_FIRST_ROW = (
    "start the query from the first row: with `history=True`, or, where the source has a checkpoint, "
    "in the first cell that runs on a new one"
)


def carry(old: SharedPlan, new: SharedPlan) -> Carried:
    """What goes on from one plan to the next. Raises QueryError where the next one cannot begin in the middle."""
    if old.stream != new.stream:
        if old.stream.name == new.stream.name:
            names = [each.name for each in fields(Stream)]
            other = [name for name in names if getattr(old.stream, name) != getattr(new.stream, name)]
            raise QueryError(
                f"the stream `{new.stream.name}` has another {' and '.join(other)} than its plan began with",
                hint="define the source as it was, or start from the first row: with a new checkpoint, if it has one",
            )
        raise QueryError(f"a plan of `{old.stream.name}` cannot go on as one of `{new.stream.name}`")
    running = {entry.query for entry in old.queries}
    for entry in new.queries:
        reason = None if entry.query in running else _no_beginning(entry.query)
        if reason is not None:
            raise QueryError(reason, hint=_FROM_THE_FIRST_ROW)
    before = {_shape(fold): place for place, fold in enumerate(old.folds)}
    folds = tuple(before.get(_shape(fold)) for fold in new.folds)
    partials = tuple(_partials(old, origin, fold) for origin, fold in zip(folds, new.folds, strict=True))
    assemblies = {(each.fold, each.window): place for place, each in enumerate(old.assemblies)}
    windows: dict[tuple[int, int], tuple[int, int] | None] = {}
    for place, assembly in enumerate(new.assemblies):
        origin = folds[assembly.fold]
        known = None if origin is None else assemblies.get((origin, assembly.window))
        if known is None and isinstance(assembly.window, Session) and not isinstance(assembly.window.gap, int):
            raise QueryError(
                f"a {assembly.window.label} cannot begin while the stream runs: "
                "an earlier row with a long gap could be part of any session",
                hint=_FROM_THE_FIRST_ROW,
            )
        for partial in assembly.partials:
            was = partials[assembly.fold][partial]
            goes_on = known is not None and was is not None and was in old.assemblies[known].partials
            windows[place, partial] = (known, was) if goes_on and known is not None and was is not None else None
    return Carried(folds, partials, windows)


def _no_beginning(query: Query) -> str | None:
    """Why a query cannot begin in the middle of a stream, if it cannot."""
    if EachRow() in query.windows:
        return f"the OVER query `{query.name}` cannot begin while the stream runs: frames reach back"
    if query.fill is not None:
        return (
            f"the query `{query.name}` with FILL cannot begin while the stream runs: "
            "which keys there are, and what was before, is not known"
        )
    for window in query.windows:
        if isinstance(window, UserContext):
            return (
                f"the query `{query.name}` with windows `{window.label}` cannot begin while the stream runs: "
                "what earlier rows mean to them is not known"
            )
        if isinstance(window, MeasureWindow):
            return (
                f"the query `{query.name}` along `{window.measure}` cannot begin while the stream runs: "
                "how far its keys have come is not known"
            )
    return None


@dataclass(frozen=True)
class Passage:
    """What becomes of queries when another plan takes over, in the words of a user; str() is one line.

    ``afresh`` names queries, or some levels of them, that begin with the new plan; ``gone`` those it does not have.
    """

    goes_on: tuple[str, ...]
    afresh: tuple[str, ...]
    gone: tuple[str, ...]

    def of(self, name: str) -> Passage:
        """What becomes of one query."""
        own = f"`{name}`"
        parts = (self.goes_on, self.afresh, self.gone)
        return Passage(*(tuple(n for n in part if n == own or n.startswith(f"{own} at ")) for part in parts))

    def __str__(self) -> str:
        said = (("goes on", self.goes_on), ("begins afresh", self.afresh), ("gone", self.gone))
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in said if names)


def passage(old: SharedPlan, new: SharedPlan) -> Passage:
    """What goes on from one plan to the next, by query and level. Raises QueryError as :func:`carry` does."""
    carried = carry(old, new).windows
    begins: dict[int, set[int]] = {}
    for place, assembly in enumerate(new.assemblies):
        for query, level in assembly.users:
            read = {0}.union(*(each.partials for each in new.queries[query].ingredients))
            if any(carried.get((place, partial), (0, 0)) is None for partial in read):
                begins.setdefault(query, set()).add(level)
    goes_on, afresh = [], []
    for place, entry in enumerate(new.queries):
        levels, name = begins.get(place, set()), f"`{entry.query.name}`"
        if len(levels) < len(entry.query.windows):
            goes_on.append(name)
        if levels:
            labels = ", ".join(f"'{entry.query.windows[level].label}'" for level in sorted(levels))
            afresh.append(name if len(levels) == len(entry.query.windows) else f"{name} at {labels}")
    names = {entry.query.name for entry in new.queries}
    gone = [f"`{entry.query.name}`" for entry in old.queries if entry.query.name not in names]
    return Passage(tuple(goes_on), tuple(afresh), tuple(gone))


def _shape(fold: Fold) -> tuple[Any, ...]:
    """What makes two folds the same, whatever partials they have."""
    return fold.where, tuple(named.expression for named in fold.keys), fold.columns, fold.ahead


def _partials(old: SharedPlan, origin: int | None, fold: Fold) -> tuple[int | None, ...]:
    known = () if origin is None else old.folds[origin].partials
    return tuple(known.index(partial) if partial in known else None for partial in fold.partials)
