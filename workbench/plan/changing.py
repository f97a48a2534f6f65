"""What of a running plan goes on in the next one: folds, partials and windows are matched by what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.errors import QueryError
from workbench.logical import EachRow, Session
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


def carry(old: SharedPlan, new: SharedPlan) -> Carried:
    """What goes on from one plan to the next. Raises QueryError where the next one cannot begin in the middle."""
    if old.stream != new.stream:
        raise QueryError(f"a plan of `{old.stream.name}` cannot go on as one of `{new.stream.name}`")
    running = {entry.query for entry in old.queries}
    for entry in new.queries:
        if EachRow() in entry.query.windows and entry.query not in running:
            raise QueryError(
                f"the OVER query `{entry.query.name}` cannot begin while the stream runs: frames reach back",
                hint="start the query from the first row, with `history=True`",
            )
        if entry.query.fill is not None and entry.query not in running:
            raise QueryError(
                f"the query `{entry.query.name}` with FILL cannot begin while the stream runs: "
                "which keys there are, and what was before, is not known",
                hint="start the query from the first row, with `history=True`",
            )
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
                hint="start the query from the first row, with `history=True`",
            )
        for partial in assembly.partials:
            was = partials[assembly.fold][partial]
            goes_on = known is not None and was is not None and was in old.assemblies[known].partials
            windows[place, partial] = (known, was) if goes_on and known is not None and was is not None else None
    return Carried(folds, partials, windows)


def _shape(fold: Fold) -> tuple[Any, ...]:
    """What makes two folds the same, whatever partials they have."""
    return fold.where, tuple(named.expression for named in fold.keys), fold.columns


def _partials(old: SharedPlan, origin: int | None, fold: Fold) -> tuple[int | None, ...]:
    known = () if origin is None else old.folds[origin].partials
    return tuple(known.index(partial) if partial in known else None for partial in fold.partials)
