"""Compiling a workload: equal folds, partials and windows of different queries become one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from workbench.algebra import AGGREGATES, Part
from workbench.logical import AggregateCall, Call, Expression, Literal, Query, Window, Workload, aggregate_calls
from workbench.plan.cost import Constants, Span, constants, over_slices
from workbench.plan.gag import Algorithm
from workbench.plan.rules import rewrite
from workbench.plan.shared import Assembly, Fold, Ingredient, Method, Partial, QueryPlan, SharedPlan
from workbench.plan.slicing import Edges, slice_edges

ROWS = Partial("count", None)

#: What queries of one fold have in common: filter and key expressions.
Shape: TypeAlias = tuple[Expression | None, tuple[Expression, ...]]


def compile_workload(
    workload: Workload, *, algorithm: Algorithm | None = None, costs: Constants | None = None
) -> SharedPlan:
    """The shared plan of a workload.

    Queries with the same filter and the same keys read one fold; within it every partial stands once; windows of
    the same size, slide and offset over one fold are assembled once. The order of the queries decides the order
    in the plan and nothing else. Which algorithm puts windows together is what ``costs`` say is cheapest (by default
    this machine's), or ``algorithm`` for every partial that allows it.
    """
    partials: dict[Shape, list[Partial]] = {}
    shapes: list[Shape] = []
    queries = []
    for query in workload.queries:
        shape: Shape = (query.where, tuple(named.expression for named in query.keys))
        if shape not in partials:
            partials[shape] = [ROWS]
            shapes.append(shape)
        ingredients = _ingredients(query, partials[shape])
        queries.append(QueryPlan(query, shapes.index(shape), ingredients))
    folds = []
    for position, shape in enumerate(shapes):
        first = next(plan.query for plan in queries if plan.fold == position)
        folds.append(Fold(first.where, first.keys, tuple(partials[shape])))
    windows = [window for query in workload.queries for window in query.windows]
    edges, assemblies = slice_edges(windows), _assemblies(queries)
    methods = tuple(_methods(folds, assemblies, edges, costs or constants(), algorithm))
    return SharedPlan(workload.stream, edges, tuple(folds), assemblies, methods, tuple(queries))


def _ingredients(query: Query, partials: list[Partial]) -> tuple[Ingredient, ...]:
    """How each aggregate call of a query is made; partials not there yet are added."""
    calls: dict[AggregateCall, None] = {}
    expressions = [named.expression for named in query.values]
    for expression in [*expressions, *([query.having] if query.having is not None else [])]:
        calls |= dict.fromkeys(aggregate_calls(expression))
    found = []
    for call in calls:
        types = tuple(argument.type for argument in call.arguments)
        positions = []
        for part in AGGREGATES[call.function].parts(types):
            partial = rewrite(Partial(part.kind, _fed_with(part, call)), query.where, query.stream.schema)
            if partial not in partials:
                partials.append(partial)
            positions.append(partials.index(partial))
        found.append(Ingredient(call, tuple(positions)))
    return tuple(found)


def _fed_with(part: Part, call: AggregateCall) -> Expression | None:
    if not part.of_argument or not call.arguments:
        return None
    argument = call.arguments[0]
    if part.only_true:
        return Call(argument.type, "nullif", (argument, Literal(argument.type, False)))
    return argument


def _assemblies(queries: list[QueryPlan]) -> tuple[Assembly, ...]:
    users: dict[tuple[int, Window], list[tuple[int, int]]] = {}
    needed: dict[tuple[int, Window], set[int]] = {}
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
    for number, fold in enumerate(folds):
        for index, partial in enumerate(fold.partials):
            windows = [entry.window for entry in assemblies if entry.fold == number and index in entry.partials]
            if windows:
                spans = [Span(window.size * density, window.slide * density) for window in windows]
                considered = over_slices(partial.monoid, spans, costs)
                fit = [candidate for candidate in considered if candidate.algorithm is forced] or considered
                yield Method(number, index, fit[0].algorithm, fit[0].chunk, considered)
