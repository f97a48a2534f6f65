"""The nodes of time-centric expressions (*TiLT* §4.1): what a signal is made of, as immutable values.

An expression is a function of time. ``~x[t]`` is the value of a column at the time ``t``, or nothing (the paper's φ);
a reduction folds the values of a window that moves with ``t`` into one; everything else is arithmetic at one time.
Times and durations are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from workbench.time import format_duration


@dataclass(frozen=True)
class Node:
    """Base of all nodes; equal nodes are one and the same computation.

    A node may be used by many others, which may be used by many. So whoever goes over an expression meets each node
    once (:func:`walk`), and nodes that have others below them keep their hash.
    """

    def kept_hash(self) -> int:
        """The hash of all fields, computed once."""
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = hash((type(self), *(getattr(self, each.name) for each in fields(self))))
            object.__setattr__(self, "_hash", found)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without the hash, as texts have another one in each process."""
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    def children(self) -> tuple[Node, ...]:
        """The nodes that this one is computed from."""
        return ()


@dataclass(frozen=True)
class Constant(Node):
    """A number that is the same at every time; None is φ."""

    value: float | None


@dataclass(frozen=True)
class Sample(Node):
    """``~column[t - back]``: the value of the last row at or before a time, as long as no other row comes.

    ``previous`` rows before that one (negative: after it). ``hold``: a row's value ends so long after its time, in
    any case; None: only with the next row. ``what`` is the row's value, or its ``age``: seconds since its time.
    """

    source: str
    column: str
    hold: int | None = None
    back: int = 0
    previous: int = 0
    what: str = "value"


@dataclass(frozen=True)
class Trailing:
    """The window ``(t - back - width, t - back]``."""

    width: int
    back: int = 0

    def __str__(self) -> str:
        return f"{_moment(self.back + self.width)} : {_moment(self.back)}"


@dataclass(frozen=True)
class Tumbling:
    """The window ``[k * width, (k + 1) * width)`` that ``t - back`` lies in: a part of it is after ``t``."""

    width: int
    back: int = 0

    def __str__(self) -> str:
        moment = _moment(self.back)
        return f"{moment} in its {format_duration(self.width)}"


Window = Trailing | Tumbling


class Reducer(StrEnum):
    """How the values of a window become one."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    VAR = "var"
    STD = "std"
    SKEWNESS = "skewness"
    KURTOSIS = "kurtosis"


@dataclass(frozen=True)
class Reduce(Node):
    """``⊕(reducer, ~operand[window])``: of the values that begin in the window, each once (*TiLT* eq. 3)."""

    reducer: Reducer
    operand: Node
    window: Window

    __hash__ = Node.kept_hash

    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True)
class Apply(Node):
    """An operation on the values of one time; φ where one of them is, unless the operation is about φ."""

    operation: str
    operands: tuple[Node, ...]

    __hash__ = Node.kept_hash

    def children(self) -> tuple[Node, ...]:
        return self.operands


#: Operations by name, and how they are written.
WRITTEN = {
    "add": "({} + {})",
    "subtract": "({} - {})",
    "multiply": "({} * {})",
    "divide": "({} / {})",
    "negate": "(-{})",
    "less": "({} < {})",
    "less_equal": "({} <= {})",
    "greater": "({} > {})",
    "greater_equal": "({} >= {})",
    "equal": "({} == {})",
    "not_equal": "({} != {})",
    "and": "({} & {})",
    "or": "({} | {})",
    "not": "(~{})",
    "where": "({1} ? {0} : φ)",
    "fill": "({0} ≠ φ ? {0} : {1})",
    "is_missing": "({} = φ)",
    "abs": "abs({})",
    "sqrt": "sqrt({})",
    "log": "log({})",
    "exp": "exp({})",
    "least": "least({}, {})",
    "greatest": "greatest({}, {})",
}


def walk(*nodes: Node) -> Iterator[Node]:
    """Nodes and all below them, each once, those that a node is computed from before it."""
    seen: set[int] = set()

    def below(node: Node) -> Iterator[Node]:
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.children():
                yield from below(child)
            yield node

    for node in nodes:
        yield from below(node)


def shifted(node: Node, by: int) -> Node:
    """The node as it was ``by`` microseconds before: shifts are pushed to the leaves, so that none is left."""
    made: dict[int, Node] = {}
    for each in walk(node):
        if isinstance(each, Sample):
            made[id(each)] = replace(each, back=each.back + by)
        elif isinstance(each, Reduce):
            made[id(each)] = replace(each, window=replace(each.window, back=each.window.back + by))
        elif isinstance(each, Apply):
            made[id(each)] = replace(each, operands=tuple(made[id(operand)] for operand in each.operands))
        else:
            made[id(each)] = each
    return made[id(node)]


def united(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """The same nodes, where equal ones are one object, so that nobody compares them part by part."""
    known: dict[Node, Node] = {}
    made: dict[int, Node] = {}
    for each in walk(*nodes.values()):
        if isinstance(each, Reduce):
            one: Node = replace(each, operand=made[id(each.operand)])
        elif isinstance(each, Apply):
            one = replace(each, operands=tuple(made[id(operand)] for operand in each.operands))
        else:
            one = each
        made[id(each)] = known.setdefault(one, one)
    return {name: made[id(node)] for name, node in nodes.items()}


def per_row(node: Node) -> str | None:
    """The source whose rows alone decide the node, so that it has one value a row and changes nowhere else.

    None where it has no such source: it holds a reduction, a shift, a neighbour, a limit of time, or two sources.
    """
    sources = set()
    for each in walk(node):
        if isinstance(each, Reduce) or (isinstance(each, Sample) and replace(each, hold=None) != plain(each)):
            return None
        if isinstance(each, Sample):
            sources.add(each.source)
    return sources.pop() if len(sources) == 1 else None


def plain(sample: Sample) -> Sample:
    """The column as it comes with its row."""
    return Sample(sample.source, sample.column)


def written(node: Node, names: Mapping[Node, str] | None = None, deep: int = 8) -> str:
    """The node as text, as the paper writes it; nodes in ``names`` by their name, no more than ``deep`` levels."""
    if names and node in names:
        return names[node]
    if isinstance(node, Constant):
        return "φ" if node.value is None else f"{node.value:g}"
    if isinstance(node, Sample):
        place = _moment(node.back)
        if node.previous:
            rows = f"{abs(node.previous)} row{'s' * (abs(node.previous) > 1)}"
            place += f", {rows} {'before' if node.previous > 0 else 'after'}"
        text = f"~{node.column}[{place}]"
        return text if node.what == "value" else f"{node.what}({text})"
    if deep == 0:
        return "…"
    if isinstance(node, Reduce):
        operand = written(node.operand, names, deep - 1).removesuffix("[t]")
        return f"⊕({node.reducer}, {operand}[{node.window}])"
    if isinstance(node, Apply):
        return WRITTEN[node.operation].format(*(written(each, names, deep - 1) for each in node.operands))
    raise TypeError(f"not a node: {node!r}")


def _moment(back: int) -> str:
    if back == 0:
        return "t"
    return f"t {'-' if back > 0 else '+'} {format_duration(abs(back))}"
