"""The printed form of a shared plan: where it is cut, what is shared, and who uses what."""

from __future__ import annotations

import math

from workbench.logical import MeasureWindow, Numerics, Store
from workbench.plan.characteristics import characteristics, lasting
from workbench.plan.gag import Algorithm
from workbench.plan.shared import Fold, Method, QueryPlan, SharedPlan
from workbench.time import format_duration


def explain(plan: SharedPlan) -> str:
    """The plan as text, one line a slice rule, partial, window and value; equal plans print equally."""
    windows = sum(len(entry.query.windows) for entry in plan.queries)
    lines = [
        f"SharedPlan of `{plan.stream.name}`: {_count(len(plan.queries), 'query', 'queries')}, "
        f"{_count(windows, 'window')}, one pass over the rows",
        f"  time    {plan.stream.time}, watermark {format_duration(plan.stream.delay)} behind the latest row",
        f"  slices  cut at {cut_at(plan)}",
    ]
    lines += [f"  query   {entry.query.name}: {characteristics(entry.query)}" for entry in plan.queries]
    lines += [f"  keys    {name}: none is forgotten, because {why}" for name, why in _lasting(plan)]
    for position, fold in enumerate(plan.folds):
        lines += _fold(plan, position, fold)
    if plan.methods:
        lines.append("  method  of putting windows together from slices, by the cost for a key and a new slice")
        lines += [f"    f{method.fold}.p{method.partial} {_method(method)}" for method in plan.methods]
        lines.append(f"  store   {_store(plan)}")
    lines += [f"  fast    {_fast(plan, entry)}" for entry in plan.queries if entry.query.numerics is Numerics.FAST]
    for position, assembly in enumerate(plan.assemblies):
        inputs = ", ".join(f"p{index}" for index in assembly.partials)
        users = ", ".join(f"{plan.queries[query].query.name}[{level}]" for query, level in assembly.users)
        lines.append(f"  w{position}      {assembly.window.label} of f{assembly.fold}: {inputs} -> {users}")
    for entry in plan.queries:
        for named in entry.query.values:
            lines.append(f"  value   {entry.query.name}.{named.name} = {named.expression}")
        if entry.query.having is not None:
            lines.append(f"  having  {entry.query.name}: {entry.query.having}")
        if entry.query.fill is not None:
            fill = entry.query.fill.value
            lines.append(f"  fill    {entry.query.name}: {fill}, from a key's first window to the latest event time")
    return "\n".join(lines)


def _lasting(plan: SharedPlan) -> list[tuple[str, str]]:
    """The queries of whose keys something is kept for ever, and why."""
    found = [(entry.query, lasting(entry.query)) for entry in plan.queries]
    return [(query.name, why) for query, why in found if query.keys and why]


def cut_at(plan: SharedPlan) -> str:
    """Where the stream is cut into slices, in words."""
    edges = [str(edges) for edges in plan.edges] + [f"the edges of {window.label}" for window in plan.listed]
    along = [each.window for each in plan.assemblies if isinstance(each.window, MeasureWindow)]
    edges += [f"the edges of {window.label}" for window in dict.fromkeys(along)]
    return ", ".join(edges) or "no time that is known beforehand"


#: What each algorithm keeps of the slices.
_KEPT = {
    Algorithm.TWO_STACKS: "lazy (the slices alone)",
    Algorithm.FLAT_FAT: "eager (a tree over the slices)",
    Algorithm.SLIDE_SIDE: "scans of chunks of slices",
    Algorithm.SLIDE_SIDE_INV: "prefixes of the slices",
}


def _store(plan: SharedPlan) -> str:
    """What is kept for windows to come and why: ``by cost: lazy (the slices alone) f0.p1; prefixes ... f0.p0``."""
    forced = plan.stream.store
    why = "by cost" if forced is Store.AUTO else f"`{forced.value}` was asked for"
    users: dict[str, list[str]] = {}
    for method in plan.methods:
        users.setdefault(_KEPT[method.algorithm], []).append(f"f{method.fold}.p{method.partial}")
    return f"{why}: " + "; ".join(f"{kept} for {', '.join(of)}" for kept, of in sorted(users.items()))


def _fast(plan: SharedPlan, entry: QueryPlan) -> str:
    """What ``numerics='fast'`` does to a query, and what that costs in exactness."""
    read = {place for ingredient in entry.ingredients for place in ingredient.partials}
    rounded = [
        method
        for method in plan.methods
        if method.fold == entry.fold
        and method.partial in read
        and method.algorithm is Algorithm.SLIDE_SIDE_INV
        and plan.folds[method.fold].partials[method.partial].monoid.rounding
    ]
    name = entry.query.name
    if not rounded:
        return f"{name}: asked for, and changes nothing: no aggregate of floats is put together from prefixes here"
    places = ", ".join(f"f{method.fold}.p{method.partial}" for method in rounded)
    own = any("#" in plan.folds[method.fold].partials[method.partial].kind for method in rounded)
    return (
        f"{name}: {places} as differences of prefixes, begun anew every {max(m.chunk for m in rounded)} slices: "
        "results are rounded as sums over all of those, and windows that begin behind a value of 1e90 are wrong "
        f"until then, {'behind NaN and infinities too' if own else 'but not behind NaN and infinities'}"
    )


def _method(method: Method) -> str:
    """The choice first, then what else there was: ``SlideSide (invertible) 1.6 ns, TwoStacks would be 647 ns``."""
    texts = {
        candidate: f"{candidate.algorithm.value} {nanoseconds(candidate.cost)}" for candidate in method.considered
    }
    chosen = next(c for c in method.considered if (c.algorithm, c.chunk) == (method.algorithm, method.chunk))
    text = texts.pop(chosen) + (f" in chunks of {method.chunk}" if method.chunk > 1 else "")
    return f"{text}; {', '.join(texts.values())}" if texts else text


def nanoseconds(cost: float) -> str:
    """Two digits that count."""
    digits = max(0, 1 - math.floor(math.log10(max(cost, 1e-3))))
    return f"{cost:.{digits}f} ns"


def _fold(plan: SharedPlan, position: int, fold: Fold) -> list[str]:
    where = "all rows" if fold.where is None else f"where {fold.where}"
    by = ", ".join(str(named.expression) for named in fold.keys) or "nothing (one group)"
    if fold.columns is None:
        gaps = "".join(f" and {gap.label}" for gap in fold.gaps)
        lines = [f"  f{position}      {where}, by slice{gaps} and {by}"]
    else:
        kept = ", ".join(map(str, fold.columns)) or "their times alone"
        lines = [f"  f{position}      {where}, by {by}, kept as rows until none can come before them: {kept}"]
    for index, partial in enumerate(fold.partials):
        users = [
            f"{entry.query.name}.{ingredient.call}"
            for entry in plan.queries
            if entry.fold == position
            for ingredient in entry.ingredients
            if index in ingredient.partials
        ]
        shared = f"shared by {', '.join(users)}" if len(users) > 1 else (users or ["row count"])[0]
        order = "" if partial.monoid.commutative else ", in order of time"
        reason = f", in Python: {partial.monoid.python}" if partial.monoid.python else ""
        rounds = ", with an inverse that rounds" if partial.monoid.rounding else ""
        what = f"{partial}{order}{rounds}{reason}"
        lines.append(f"    p{index}    {what} <- {shared}" if users else f"    p{index}    {what}")
    return lines


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"
