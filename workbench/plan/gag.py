"""The generalized aggregation graph (*LightSaber* §5): from a set of windows to an aggregation algorithm.

Every associative aggregate of a window is a combination of one node of a prefix scan and one node of a suffix scan
over the buffered elements (rows or slices). The graph starts with all nodes of both scans (Fig. 7). What the windows
never read is marked off and swept away (§5.2), the rest is computed eagerly (prefixes: one combine per element, no
buffer) or lazily (suffixes: one pass at each trigger point). What is left *is* one of the known algorithms::

    what the windows read                      one window            several windows
    group: the root, kept up by an inverse     subtract-on-evict     SlickDeque (invertible)
    group: every prefix, every suffix                                SlideSide (invertible)
    monoid: the root and lazy suffixes         TwoStacks             SlideSide (non-invertible)
    selective monoid: eager suffixes           SlickDeque (non-invertible)

:func:`initial`, :func:`mark`, :func:`sweep` and :func:`schedule` are the paper's steps, pure functions on frozen
graphs; ``str(graph)`` is the printed form, :func:`evaluate` computes a graph's results by following its edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Algorithm(Enum):
    """The algorithms that a graph can become."""

    SUBTRACT_ON_EVICT = "subtract-on-evict"
    TWO_STACKS = "TwoStacks"
    SLICK_DEQUE_INV = "SlickDeque (invertible)"
    SLICK_DEQUE = "SlickDeque (non-invertible)"
    SLIDE_SIDE_INV = "SlideSide (invertible)"
    SLIDE_SIDE = "SlideSide (non-invertible)"
    #: Of no graph of scans: a tree over the slices.
    FLAT_FAT = "FlatFAT"


class Strategy(Enum):
    """What the windows are made to read: the choices that are left to the cost model."""

    ROOT = "a running total for each window"
    PREFIXES = "differences of prefixes"
    STACKS = "a suffix and the running prefix"
    DEQUE = "suffixes kept up eagerly"


@dataclass(frozen=True)
class Node:
    """A value of the graph: ``inputs`` combined from left to right, or the second taken away from the first.

    ``role`` is ``a`` (element), ``ps`` (prefix), ``ss`` (suffix) or ``q`` (result of a window).
    """

    name: str
    role: str
    inputs: tuple[str, ...] = ()
    minus: bool = False

    def __str__(self) -> str:
        return f"{self.name} = {(' - ' if self.minus else ' + ').join(self.inputs)}" if self.inputs else self.name


@dataclass(frozen=True)
class Graph:
    """A buffer of ``leaves`` elements, the ``windows`` (sizes, ascending) that end at its newest one, and the nodes.

    ``required`` are the nodes that some window reads at some time, ``lazy`` those computed at a trigger point only,
    which comes every ``trigger`` elements.
    """

    leaves: int
    windows: tuple[int, ...]
    nodes: tuple[Node, ...]
    required: frozenset[str] = frozenset()
    lazy: frozenset[str] = frozenset()
    trigger: int | None = None

    def role(self, role: str) -> tuple[Node, ...]:
        """The nodes of one role, in the order of the buffer."""
        return tuple(node for node in self.nodes if node.role == role)

    @property
    def root(self) -> str:
        """The prefix over the whole buffer."""
        return f"ps{self.leaves - 1}"

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.windows))
        lines = [f"GAG over {self.leaves} elements, windows of {sizes}"]
        for node in self.nodes:
            if node.role == "a":
                continue
            tags = ["required"] if node.name in self.required else []
            if self.trigger is not None or self.lazy:
                tags += ["lazy" if node.name in self.lazy else "eager"]
            lines.append(f"  {node}" + (f"  [{', '.join(tags)}]" if tags else ""))
        if self.trigger is not None:
            lines.append(f"  trigger every {self.trigger} elements")
        return "\n".join(lines)


def initial(leaves: int, windows: Sequence[int]) -> Graph:
    """Fig. 7: all elements, the whole prefix scan and the whole suffix scan; nothing is required yet."""
    if not windows or not 0 < min(windows) <= max(windows) <= leaves:
        raise ValueError(f"windows of 1 to {leaves} elements, got {list(windows)}")
    nodes = [Node(f"a{i}", "a") for i in range(leaves)]
    nodes += [Node(f"ps{i}", "ps", (f"ps{i - 1}", f"a{i}") if i else ("a0",)) for i in range(leaves)]
    nodes += [Node(f"ss{i}", "ss", (f"a{i}", f"ss{i + 1}") if i < leaves - 1 else (f"a{i}",)) for i in range(leaves)]
    return Graph(leaves, tuple(sorted(windows)), tuple(nodes))


def mark(graph: Graph, strategy: Strategy) -> Graph:
    """Fig. 8a and 8d: what the windows read in one round of the buffer (§5.2, first step; §5.4).

    The largest window fills the buffer. While it slides, the end cursor visits every place: a window that does not
    wrap is a prefix (or, for a group, the difference of two), one that wraps is a suffix and a prefix. An inverse
    can keep the root up to date by itself, so that nothing else is read; a monoid whose suffixes are renewed at
    every trigger point reads no prefix but the running one.
    """
    prefixes = [node.name for node in graph.role("ps")]
    suffixes = [node.name for node in graph.role("ss")]
    match strategy:
        case Strategy.ROOT:
            required = [graph.root]
        case Strategy.PREFIXES:
            required = prefixes + suffixes
        case Strategy.STACKS:
            required = [graph.root, *suffixes]
        case Strategy.DEQUE:
            required = suffixes
    return replace(graph, required=frozenset(required))


def sweep(graph: Graph) -> Graph:
    """Fig. 8b and 8e: nodes that nobody reads are replaced by their inputs; equal nodes are one."""
    inputs: dict[str, tuple[str, ...]] = {}

    def expand(name: str) -> tuple[str, ...]:
        node = by_name[name]
        return (name,) if node.role == "a" or name in graph.required else inputs[name]

    by_name = {node.name: node for node in graph.nodes}
    order = [*graph.role("a"), *graph.role("ps"), *reversed(graph.role("ss"))]
    for node in order:
        inputs[node.name] = tuple(leaf for name in node.inputs for leaf in expand(name))
    kept: dict[tuple[str, tuple[str, ...]], Node] = {}
    for node in graph.nodes:
        if node.role == "a":
            kept[node.name, ()] = node
        elif node.name in graph.required:
            kept.setdefault((node.role, inputs[node.name]), replace(node, inputs=inputs[node.name]))
    return replace(graph, nodes=tuple(kept.values()))


def schedule(graph: Graph, strategy: Strategy) -> Graph:
    """Fig. 8e: prefixes are eager; suffixes need the buffer and a whole pass, so they wait for a trigger point.

    It comes when the smallest window begins to evict what the stacks hold: until then its start lies in a suffix
    that is still right, and so do the starts of all larger windows (*SlideSide* §3.2). With all prefixes at hand
    the suffixes are only for windows that wrap, and the point is the end of the buffer. A deque holds the distinct
    values of a suffix scan that every element brings up to date, so nothing in it is lazy.
    """
    suffixes = frozenset(node.name for node in graph.role("ss"))
    if not suffixes or strategy is Strategy.DEQUE:
        return graph
    return replace(graph, lazy=suffixes, trigger=graph.leaves if strategy is Strategy.PREFIXES else graph.windows[0])


def results(graph: Graph, end: int) -> Graph:
    """Fig. 9: the graph with a node for each window whose newest element is at place ``end`` of the circular buffer.

    A window that wraps around (its start cursor is right of its end cursor) is ``ss(start) + ps(end)``, another one
    ``ps(end) - ps(start - 1)``, or ``ps(end)`` where it starts at place 0. For graphs with all prefixes.
    """
    nodes = []
    for number, size in enumerate(graph.windows, start=1):
        start = (end - size + 1) % graph.leaves
        if start > end:
            nodes.append(Node(f"q{number}", "q", (f"ss{start}", f"ps{end}")))
        elif start == 0:
            nodes.append(Node(f"q{number}", "q", (f"ps{end}",)))
        else:
            nodes.append(Node(f"q{number}", "q", (f"ps{end}", f"ps{start - 1}"), minus=True))
    return replace(graph, nodes=(*graph.nodes, *nodes))


def overlay(graph: Graph) -> str:
    """The stacks of several windows at one address (*SlideSide* §3.2): which suffixes each of them is."""
    lines = ["stacks, overlaid at the newest element"]
    for size in graph.windows:
        places = [f"ss{i}" for i in range(graph.leaves - 1, graph.leaves - 1 - size, -1)]
        lines.append(f"  window of {size}: {' '.join(places)}")
    return "\n".join(lines)


def specialise(windows: Sequence[int], strategy: Strategy) -> Graph:
    """All steps: the graph of the windows, specialised. The largest window fills the buffer."""
    return schedule(sweep(mark(initial(max(windows), windows), strategy)), strategy)


def algorithm_of(graph: Graph) -> Algorithm:
    """The name of what a scheduled graph has become, from its nodes and edges alone."""
    prefixes, suffixes = graph.role("ps"), graph.role("ss")
    several = len(graph.windows) > 1
    if not suffixes:
        return Algorithm.SLICK_DEQUE_INV if several else Algorithm.SUBTRACT_ON_EVICT
    if not graph.lazy:
        return Algorithm.SLICK_DEQUE
    if len(prefixes) == 1 and prefixes[0].inputs == tuple(node.name for node in graph.role("a")):
        return Algorithm.SLIDE_SIDE if several else Algorithm.TWO_STACKS
    return Algorithm.SLIDE_SIDE_INV


def strategies(group: bool, selective: bool) -> tuple[Strategy, ...]:
    """What may be chosen from: an inverse allows totals and differences, min and max allow a deque."""
    found = [Strategy.PREFIXES, Strategy.ROOT] if group else []
    found.append(Strategy.STACKS)
    return (*found, Strategy.DEQUE) if selective else tuple(found)


def evaluate(
    graph: Graph,
    elements: Mapping[str, float],
    combine: Callable[[float, float], float],
    invert: Callable[[float, float], float] | None = None,
) -> dict[str, float]:
    """The value of every node from those of the elements ``a0, a1, ...``, along the edges."""
    values = dict(elements)
    by_name = {node.name: node for node in graph.nodes}

    def value(name: str) -> float:
        if name not in values:
            first, *others = (value(other) for other in by_name[name].inputs)
            for other in others:
                if by_name[name].minus:
                    if invert is None:
                        raise TypeError(f"`{name}` takes one partial from another, which needs an inverse")
                    first = invert(first, other)
                else:
                    first = combine(first, other)
            values[name] = first
        return values[name]

    for node in graph.nodes:
        value(node.name)
    return values
