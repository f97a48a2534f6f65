"""The shared plan: what is computed once for all queries of a stream, and who uses it.

Three levels as in the parallel aggregation tree of *LightSaber* §3: rows are folded into slice partials
(:class:`Fold`), slice partials are assembled into windows (:class:`Assembly`), windows are lowered into the
results of queries (:class:`QueryPlan`). All nodes are frozen, hashable and picklable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.algebra import PARTIALS, PartialKind, user
from workbench.algebra.registry import plain_name
from workbench.logical import (
    AggregateCall,
    AnyWindow,
    ContextFree,
    Expression,
    Named,
    Query,
    Session,
    Stream,
    UserWindow,
    user_windows,
)
from workbench.plan.cost import Candidate
from workbench.plan.gag import Algorithm
from workbench.plan.slicing import Edges


@dataclass(frozen=True)
class Partial:
    """A partial aggregate that slices keep: its kind and the expressions it is fed with (none: every row).

    A kind without inputs is fed by the rows where every expression has a value.
    """

    kind: str
    arguments: tuple[Expression, ...] = ()

    @property
    def monoid(self) -> PartialKind:
        """The kind's definition."""
        return PARTIALS[self.kind]

    def __str__(self) -> str:
        return f"{plain_name(self.kind)}({', '.join(map(str, self.arguments)) or '*'})"


@dataclass(frozen=True)
class Fold:
    """Level 1: the rows that pass ``where``, by slice and key, into ``partials``.

    ``partials[0]`` is always ``count(*)``: it tells which (slice, key) have rows, and how many were late. Where there
    are ``gaps``, the rows of a slice and key are told apart wherever one of these sessions ends between them.

    ``columns`` is for windows that are aware of their context: the rows themselves are kept, with these expressions,
    until no earlier row can come (None: rows are folded at once). Rows of equal time stand in the order of the
    columns. ``ahead``: how many rows of its key, and how many microseconds behind it, each of them waits for at most.
    """

    where: Expression | None
    keys: tuple[Named, ...]
    partials: tuple[Partial, ...]
    gaps: tuple[Session, ...] = ()
    columns: tuple[Expression, ...] | None = None
    ahead: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Assembly:
    """Level 2 and 3: the windows of one kind over one fold, from the slice partials at ``partials``.

    ``users`` are the (query position, level) that take their results from it.
    """

    fold: int
    window: AnyWindow
    partials: tuple[int, ...]
    users: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Method:
    """How all windows over one partial of a fold are put together from slices, and what else was considered.

    ``chunk`` slices make a scan of overlaid stacks; ``considered`` are the candidates, cheapest first.
    """

    fold: int
    partial: int
    algorithm: Algorithm
    chunk: int
    considered: tuple[Candidate, ...]


@dataclass(frozen=True)
class Ingredient:
    """An aggregate call of a query and the positions of its parts among the fold's partials."""

    call: AggregateCall
    partials: tuple[int, ...]


@dataclass(frozen=True)
class QueryPlan:
    """A query, the fold it reads, and how its aggregate calls are lowered from that fold's partials."""

    query: Query
    fold: int
    ingredients: tuple[Ingredient, ...]


@dataclass(frozen=True)
class SharedPlan:
    """Everything that is computed for one stream; :func:`~workbench.plan.explain` prints it.

    The stream is cut at ``edges`` and at the edges of the windows in ``listed``, which are no progressions.
    """

    stream: Stream
    edges: tuple[Edges, ...]
    listed: tuple[ContextFree, ...]
    folds: tuple[Fold, ...]
    assemblies: tuple[Assembly, ...]
    methods: tuple[Method, ...]
    queries: tuple[QueryPlan, ...]

    @cached_property
    def progressions(self) -> npt.NDArray[np.int64]:
        """The (period, phase) of each of the ``edges``, a row each."""
        columns = [[each.period for each in self.edges], [each.phase for each in self.edges]]
        return np.array(columns, np.int64).T.copy()  # a third of the time that rows take

    def of_fold(self, fold: int) -> tuple[Assembly, ...]:
        """The windows over a fold."""
        return tuple(assembly for assembly in self.assemblies if assembly.fold == fold)

    def __getstate__(self) -> dict[str, Any]:
        """With the definitions of a user's aggregates and window types, so that another process can run the plan."""
        kinds = dict.fromkeys(partial.kind for fold in self.folds for partial in fold.partials if "#" in partial.kind)
        types = dict.fromkeys(each.window.name for each in self.assemblies if isinstance(each.window, UserWindow))
        exported = user.export(list(kinds)), user_windows.export(list(types))
        return {name: vars(self)[name] for name in self.__match_args__} | {"definitions": exported}

    def __setstate__(self, state: dict[str, Any]) -> None:
        aggregates, types = state.pop("definitions")
        user.restore(aggregates)
        user_windows.restore(types)
        vars(self).update(state)
