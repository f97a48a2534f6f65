"""Compiling a workload: equal folds, partials and windows of different queries become one."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa

from workbench.algebra import AGGREGATES, PARTIALS, TIME, Part
from workbench.errors import QueryError
from workbench.logical import (
    AggregateCall,
    AnyWindow,
    Calendar,
    Call,
    Cast,
    Column,
    ContextFree,
    CountWindow,
    Cumulating,
    EachRow,
    Expression,
    LastRows,
    Literal,
    MeasureWindow,
    Numerics,
    Query,
    Session,
    Store,
    Stream,
    Window,
    Workload,
    aggregate_calls,
    ahead_of,
    beside_frames,
    over_calls,
    require_few,
    window_reads,
)
from workbench.logical.types import language_type
from workbench.plan.characteristics import keeps_rows
from workbench.plan.cost import Candidate, Constants, constants, over_slices
from workbench.plan.gag import Algorithm
from workbench.plan.grids import listed, slice_edges
from workbench.plan.rules import read_wider, rewrite
from workbench.plan.shared import Assembly, Fold, Ingredient, Method, Partial, QueryPlan, SharedPlan
from workbench.plan.slicing import Edges
from workbench.time import DAY

ROWS = Partial("count")
#: The algorithms of the stores that may be asked for; every kind of partial allows them.
_FORCED = {Store.LAZY: Algorithm.TWO_STACKS, Store.EAGER: Algorithm.FLAT_FAT}

#: What queries of one fold have in common: filter, key expressions, and the columns of rows that are kept.
Shape: TypeAlias = tuple[Expression | None, tuple[Expression, ...], tuple[Expression, ...] | None, tuple[int, int]]
#: The partials that calls of running queries read.
Reads: TypeAlias = dict[Query, dict[AggregateCall, tuple[Partial, ...]]]
#: The partials of each aggregate call of a query.
Needs: TypeAlias = list[tuple[AggregateCall, tuple[Partial, ...]]]


def compile_workload(
    workload: Workload,
    *,
    algorithm: Algorithm | None = None,
    costs: Constants | None = None,
    running: SharedPlan | None = None,
) -> SharedPlan:
    """The shared plan of a workload.

    Queries with the same filter and the same keys read one fold; within it every partial stands once; equal windows
    over one fold are assembled once. Windows that are aware of their context have folds of their own, which keep
    rows. The order of the queries decides the order in the plan and nothing else. Which algorithm puts windows
    together is what ``costs`` say is cheapest (by default this machine's), or ``algorithm`` for every partial that
    allows it, or that of the store which the stream asks for.

    ``running`` is the plan that this one takes over from while the stream runs: its queries go on reading the
    partials that they read, since what another one has missed cannot be made up for.
    """
    reads = _reads(running)
    folds_of: dict[Shape, int] = {}
    partials: list[dict[Partial, None]] = []
    queries = []
    for query in workload.queries:
        for window in query.windows:
            require_few(window)
        keys = tuple(named.expression for named in query.keys)
        shape: Shape = (query.where, keys, _kept_columns(query), _ahead(query))
        fold = folds_of.setdefault(shape, len(partials))
        if fold == len(partials):
            partials.append({ROWS: None})
        queries.append((query, fold, _ingredients(query, partials[fold], reads.get(query, {}))))
    read = {each for calls in reads.values() for own in calls.values() for each in own}
    plans, kept = _number(queries, partials, read)
    shapes = list(folds_of)
    folds = []
    for position, of_fold in enumerate(kept):
        users = [plan.query for plan in plans if plan.fold == position]
        gaps = dict.fromkeys(window for query in users for window in query.windows if isinstance(window, Session))
        folds.append(Fold(users[0].where, users[0].keys, of_fold, tuple(gaps), *shapes[position][2:]))
    windows = [window for query in workload.queries for window in query.windows]
    grids = [window for window in windows if isinstance(window, ContextFree)]
    edges, assemblies = slice_edges(grids), _assemblies(plans)
    forced = algorithm or _FORCED.get(workload.stream.store)
    methods = tuple(_methods(folds, assemblies, edges, costs or constants(), forced))
    return SharedPlan(workload.stream, edges, listed(grids), tuple(folds), assemblies, methods, plans)


def _ahead(query: Query) -> tuple[int, int]:
    """How far behind a row its frames reach: queries that wait for other rows must not make this one wait."""
    return ahead_of(over.frame for named in query.values for over in over_calls(named.expression))


def _kept_columns(query: Query) -> tuple[Expression, ...] | None:
    """What is kept of the rows of a query, if they are.

    All that the query itself reads, in an order that does not depend on how it is written: rows of equal time are
    ordered by it, so what other queries read must not matter.
    """
    if not keeps_rows(query):
        return None
    if query.fill is not None:
        raise QueryError(
            f"FILL is not there for `{query.name}`: its rows are kept, as an aggregate is not commutative",
            hint="leave FILL out, or register the aggregate as commutative if it is",
        )
    read = [argument for call in _calls(query) for argument in call.arguments]
    read += [part for window in query.windows for part in window_reads(window)]
    if EachRow() in query.windows:
        known = {stream_time(query.stream), *(named.expression for named in query.keys)}
        beside = [leaf for named in query.values for leaf in beside_frames(named.expression)]
        read += [leaf for leaf in beside if leaf not in known]
    kept = {each for each in read if isinstance(each, Expression) and not isinstance(each, Literal)}
    return tuple(sorted(kept, key=str))


def _number(
    queries: list[tuple[Query, int, Needs]], partials: list[dict[Partial, None]], fixed: Collection[Partial]
) -> tuple[tuple[QueryPlan, ...], list[tuple[Partial, ...]]]:
    """The queries with the positions of their partials, and the partials of each fold that are kept."""
    wider = [
        {narrow: wide for narrow, wide in read_wider(of_fold).items() if narrow not in fixed} for of_fold in partials
    ]
    kept = [tuple(each for each in own if each not in wide) for own, wide in zip(partials, wider, strict=True)]
    places = [{partial: place for place, partial in enumerate(own)} for own in kept]
    plans = []
    for query, fold, needs in queries:
        ingredients = tuple(
            Ingredient(call, tuple(places[fold][wider[fold].get(need, need)] for need in wanted))
            for call, wanted in needs
        )
        plans.append(QueryPlan(query, fold, ingredients))
    return tuple(plans), kept


def _reads(running: SharedPlan | None) -> Reads:
    if running is None:
        return {}
    return {
        plan.query: {
            ingredient.call: tuple(running.folds[plan.fold].partials[place] for place in ingredient.partials)
            for ingredient in plan.ingredients
        }
        for plan in running.queries
    }


def _ingredients(
    query: Query, partials: dict[Partial, None], reads: Mapping[AggregateCall, tuple[Partial, ...]]
) -> Needs:
    """The partials that each aggregate call of a query is made of; those not there yet are added.

    ``reads`` are those that its calls read in the running plan.
    """
    found = []
    for call in _calls(query):
        parts = AGGREGATES[call.function].parts(call.operands)
        fed = (Partial(_kind(part, query), _fed_with(part, call, query.stream)) for part in parts)
        needs = reads.get(call) or tuple(rewrite(each, query.where, query.stream.schema) for each in fed)
        partials |= dict.fromkeys(needs)
        found.append((call, needs))
    return found


def _kind(part: Part, query: Query) -> str:
    """The kind of a part, or the one that stands in for it where a query may have differences of floats.

    Sessions and the frames of OVER are not put together from prefixes, so they have no use for it.
    """
    fast = PARTIALS[part.kind].fast if query.numerics is Numerics.FAST else None
    from_slices = any(not isinstance(window, Session | EachRow) for window in query.windows)
    return fast if fast is not None and from_slices else part.kind


def _calls(query: Query) -> list[AggregateCall]:
    """The aggregate calls of a query, each once."""
    expressions = [named.expression for named in query.values]
    expressions += [query.having] if query.having is not None else []
    return list(dict.fromkeys(call for expression in expressions for call in aggregate_calls(expression)))


def _fed_with(part: Part, call: AggregateCall, stream: Stream) -> tuple[Expression, ...]:
    found = [_only(part, stream_time(stream) if feed == TIME else call.arguments[feed]) for feed in part.feeds]
    for place, word in enumerate(part.words):
        found[place] = Call(pa.int64(), f"decimal_{word}", (found[place],))
    return tuple(found)


def _only(part: Part, argument: Expression) -> Expression:
    """The argument, or a condition that has a value in the rows that the part keeps."""
    if part.below is not None:
        bound = Literal(pa.float64(), part.below)
        number = argument if argument.type == bound.type else Cast(bound.type, argument)
        argument = Call(pa.bool_(), "less", (number, bound))
    if part.below is not None or part.only_true:
        return Call(argument.type, "nullif", (argument, Literal(argument.type, False)))
    return argument


def stream_time(stream: Stream) -> Column:
    """The event time of a row as an expression."""
    return Column(language_type(stream.schema.field(stream.time).type), stream.time)


def _assemblies(queries: tuple[QueryPlan, ...]) -> tuple[Assembly, ...]:
    users: dict[tuple[int, AnyWindow], list[tuple[int, int]]] = {}
    needed: dict[tuple[int, AnyWindow], set[int]] = {}
    for position, plan in enumerate(queries):
        for level, window in enumerate(plan.query.windows):
            users.setdefault((plan.fold, window), []).append((position, level))
            used = {index for ingredient in plan.ingredients for index in ingredient.partials}
            needed.setdefault((plan.fold, window), {0}).update(used)
    return tuple(
        Assembly(fold, window, tuple(sorted(needed[fold, window])), tuple(users[fold, window]))
        for fold, window in users
    )


def _methods(
    folds: list[Fold],
    assemblies: tuple[Assembly, ...],
    edges: tuple[Edges, ...],
    costs: Constants,
    forced: Algorithm | None,
) -> Iterator[Method]:
    density = sum(1 / progression.period for progression in edges)
    known: dict[tuple[str, tuple[float, ...]], tuple[Candidate, ...]] = {}
    for number, fold in enumerate(folds):
        for index, partial in enumerate(fold.partials):
            windows = [entry.window for entry in assemblies if entry.fold == number and index in entry.partials]
            # Sessions over fragments merge as they come; there is nothing left to put together.
            merged = Session | EachRow if fold.columns is None else EachRow
            sizes = tuple(_slices_in(window, density) for window in windows if not isinstance(window, merged))
            if sizes:
                alike = partial.kind, sizes
                known[alike] = considered = known.get(alike) or over_slices(partial.monoid, sizes, costs)
                fit = [candidate for candidate in considered if candidate.algorithm is forced] or considered
                yield Method(number, index, fit[0].algorithm, fit[0].chunk, considered)


_DAYS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}


def _slices_in(window: AnyWindow, density: float) -> float:
    """How many slices a window is put together from, about; sessions are slices themselves."""
    match window:
        case Window() | Cumulating():
            return max(1.0, window.size * density)
        case Calendar():
            return max(1.0, window.count * _DAYS[window.unit] * DAY * density)
        case CountWindow():
            return window.size / math.gcd(window.size, window.slide)
        case LastRows():
            return window.rows
        case MeasureWindow():
            return window.size / math.gcd(window.size, window.slide)
    return 1.0
