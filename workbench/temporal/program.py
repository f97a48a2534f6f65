"""Programs: named expressions over one time domain, and the one loop that they become (*TiLT* §5.2, §6.1).

Every expression is substituted into those that use it, windows and joins included, equal ones are computed once, and
what is left is one loop over the times of the domain. It has a *stage* for each depth of reductions of reductions;
a stage first moves its pointers into the rows, then slides its reductions, then does the arithmetic of all its
expressions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workbench.errors import QueryError
from workbench.temporal.boundaries import Boundaries, Reach, resolve
from workbench.temporal.expressions import DEFAULT, Expression, operand, sources_of
from workbench.temporal.nodes import Apply, Node, Reduce, Reducer, Sample, Trailing, per_row, united, walk, written
from workbench.time import format_duration

#: In pointers and reductions: the points of the domain itself, where others name a source.
POINTS = ""
#: Levels of an expression that are printed where what is used twice has a name.
_DEEP = 64

#: The partials that a reducer is made of (see :mod:`workbench.algebra`).
PARTIALS: dict[Reducer, tuple[str, ...]] = {
    Reducer.COUNT: ("count",),
    Reducer.SUM: ("count", "sum_float"),
    Reducer.MEAN: ("count", "sum_float"),
    Reducer.MIN: ("count", "min_float"),
    Reducer.MAX: ("count", "max_float"),
    Reducer.VAR: ("moments",),
    Reducer.STD: ("moments",),
    Reducer.SKEWNESS: ("moments4",),
    Reducer.KURTOSIS: ("moments4",),
}


@dataclass(frozen=True)
class Pointer:
    """How many rows of a source (or points) begin at or before ``t - back``, as ``t`` goes on.

    With a ``width``: before the tumbling window that ``t - back`` lies in, or with ``end`` before the next one.
    """

    of: str
    back: int
    width: int = 0
    end: bool = False


@dataclass(frozen=True)
class Slide:
    """A window over the values of an operand, between two pointers: what reductions share."""

    of: str
    operand: Node
    first: Pointer
    last: Pointer


@dataclass
class Stage:
    """What can be computed once the stages before it are: of pointers, windows and values, each once."""

    pointers: list[Pointer] = field(default_factory=list)
    slides: dict[Slide, list[str]] = field(default_factory=dict)
    #: Operands of reductions in later stages.
    values: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Program:
    """Expressions by name over a domain: a value ``every`` so many microseconds; None: at the times of ``at``'s rows.

    Points of a domain by time are the multiples of ``every`` since the epoch, for each key from the first one at or
    after its first row to the first one at or after its last.
    """

    outputs: Mapping[str, Node]
    every: int | None
    at: str

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The tables that are read, the one whose rows are the domain first."""
        found = dict.fromkeys([self.at, *(name for node in self.outputs.values() for name in sources_of(node))])
        return tuple(found)

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that are read of each source."""
        found: dict[str, dict[str, None]] = {source: {} for source in self.sources}
        for node in self.nodes():
            if isinstance(node, Sample):
                found[node.source][node.column] = None
        return {source: tuple(names) for source, names in found.items()}

    @cached_property
    def boundaries(self) -> Boundaries:
        """Which rows a stretch of time depends on."""
        return resolve(self.outputs.values())

    def reach(self, source: str) -> Reach:
        """How far around a stretch of points the rows of a source are needed, as points of the domain too."""
        reach = self.boundaries.sources.get(source, Reach())
        return reach | Reach(self.boundaries.points) if source == self.at else reach

    def nodes(self) -> Iterator[Node]:
        """All nodes of all outputs, each once, those that a node is computed from before it."""
        return walk(*self.outputs.values())

    @cached_property
    def depths(self) -> dict[Node, int]:
        """How many reductions of other expressions stand above each other in each node."""
        found: dict[Node, int] = {}
        for node in self.nodes():
            below = max((found[each] for each in node.children()), default=0)
            found[node] = below + (isinstance(node, Reduce) and per_row(node.operand) is None)
        return found

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The loop: stages in the order in which a block of points goes through them."""
        stages = [Stage() for _ in range(1 + max(self.depths.values()))]
        for node in self.nodes():
            if isinstance(node, Reduce):
                self._slide(node, stages)
            elif isinstance(node, Sample):
                _once(stages[0].pointers, Pointer(node.source, node.back))
        return tuple(stages)

    def _slide(self, node: Reduce, stages: list[Stage]) -> None:
        slide, stage = slide_of(node), stages[self.depths[node]]
        if slide.of == POINTS:
            _once(stages[self.depths[node.operand]].values, node.operand)
        for pointer in (slide.first, slide.last):
            _once(stage.pointers, pointer)
        for kind in PARTIALS[node.reducer]:
            _once(stage.slides.setdefault(slide, []), kind)

    def __str__(self) -> str:
        """The program as the paper writes it (Fig. 3): windows, what is used twice, outputs, boundaries, the loop."""
        lines = [f"t = every {format_duration(self.every)}" if self.every else f"t = at every row of `{self.at}`"]
        uses = Counter(child for node in self.nodes() for child in node.children())
        names: dict[Node, str] = {}
        for node in self.nodes():
            if isinstance(node, Reduce) or (isinstance(node, Apply) and uses[node] > 1):
                letter = "w" if isinstance(node, Reduce) else "a"
                name = f"{letter}{1 + sum(each.startswith(letter) for each in names.values())}"
                lines.append(f"{name} = {written(node, names, _DEEP)}")
                names[node] = name
        lines += [f"~{name}[t] = {written(node, names, _DEEP)}" for name, node in self.outputs.items()]
        needs = (f"~{source}{reach}" for source, reach in self.boundaries.sources.items())
        lines.append(f"values in (begin : end] need {', '.join(needs)}")
        lines += [f"one loop, stage {number}: {_told(stage)}" for number, stage in enumerate(self.stages, start=1)]
        return "\n".join(lines)


def program(outputs: Mapping[str, Expression], every: int | None = None, at: str | None = None) -> Program:
    """Check expressions and put them together; QueryError says what does not fit."""
    if not outputs:
        raise QueryError(
            "there is nothing to compute", hint="name an expression, such as `mean=x.window('1 s').mean()`"
        )
    nodes = united({name: operand(each) for name, each in outputs.items()})
    read = [source for node in nodes.values() for source in sources_of(node)]
    if not read:
        raise QueryError("no expression reads a column", hint="begin with `signal('column')`")
    domain = at or (DEFAULT if DEFAULT in read else read[0])
    made = Program(nodes, every, domain)
    for node in made.nodes():
        if isinstance(node, Reduce) and per_row(node.operand) is None:
            _check_inner(node)
    return made


def _check_inner(node: Reduce) -> None:
    """Inner expressions have values up to the time that is computed, not after it."""
    if not isinstance(node.window, Trailing) or node.window.back < 0:
        raise QueryError(
            f"`{written(node)}` needs values of an expression from times that are still to come",
            hint="look ahead in the columns themselves: `.ahead()` on a signal, inside of the window",
        )


def slide_of(node: Reduce) -> Slide:
    """The window of a reduction, between its pointers."""
    source = per_row(node.operand)
    of = POINTS if source is None else source
    window = node.window
    if isinstance(window, Trailing):
        first, last = Pointer(of, window.back + window.width), Pointer(of, window.back)
    else:
        first, last = (Pointer(of, window.back, window.width, end) for end in (False, True))
    return Slide(of, node.operand, first, last)


def _once(found: list[Any], item: Any) -> None:
    if item not in found:
        found.append(item)


def _told(stage: Stage) -> str:
    kinds = dict.fromkeys(kind for kinds in stage.slides.values() for kind in kinds)
    windows = f", {len(stage.slides)} window{'s' * (len(stage.slides) > 1)} of {', '.join(kinds)}" if kinds else ""
    return f"{len(stage.pointers)} pointers{windows}"
