"""Boundary resolution (*TiLT* §5.1): which rows the values of a stretch of time depend on.

Values in ``(begin, end]`` depend on the rows of a source in ``(begin - back, end + ahead]``, on the ``before`` rows
of the same key next to that stretch on the left, and on the ``after`` rows next to it on the right. So time can be
cut anywhere, and each piece be computed by itself from its own rows and that overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.temporal.nodes import Node, Reduce, Sample, Trailing, Window, per_row, walk
from workbench.time import format_duration


@dataclass(frozen=True)
class Reach:
    """How far around a stretch of time the rows of one source are needed."""

    back: int = 0
    ahead: int = 0
    before: int = 0
    after: int = 0

    def __or__(self, other: Reach) -> Reach:
        """What either needs."""
        return Reach(*(max(mine, its) for mine, its in zip(_values(self), _values(other), strict=True)))

    def __str__(self) -> str:
        left = "begin" + (f" - {format_duration(self.back)}" if self.back else "")
        right = "end" + (f" + {format_duration(self.ahead)}" if self.ahead else "")
        text = f"({left} : {right}]"
        for count, side in ((self.before, "before"), (self.after, "after")):
            if count:
                text += f" and {count} row{'s' if count > 1 else ''} {side}"
        return text


@dataclass(frozen=True)
class Boundaries:
    """The reach of every source, and how long before a stretch the points of inner expressions begin."""

    sources: dict[str, Reach]
    points: int = 0

    @property
    def ahead(self) -> bool:
        """Whether values depend on rows that come after them."""
        return any(reach.ahead or reach.after for reach in self.sources.values())


def resolve(nodes: Iterable[Node]) -> Boundaries:
    """The boundaries of some expressions together."""
    nodes = list(nodes)
    found: dict[int, Boundaries] = {}
    for node in walk(*nodes):
        found[id(node)] = _resolved(node, [found[id(child)] for child in node.children()])
    return _together([found[id(node)] for node in nodes])


def _resolved(node: Node, below: list[Boundaries]) -> Boundaries:
    if isinstance(node, Sample):
        if node.hold is not None and not node.previous:
            return Boundaries({node.source: Reach(max(0, node.back + node.hold), max(0, -node.back))})
        # The row that counts at a time may be as old as it likes: it is the first one before the stretch.
        before, after = max(0, node.previous) + 1, max(0, -node.previous)
        return Boundaries({node.source: Reach(max(0, node.back), max(0, -node.back), before, after)})
    if isinstance(node, Reduce):
        back, ahead = _stretch(node.window)
        source = per_row(node.operand)
        if source is not None:
            return Boundaries({source: Reach(back, ahead)})
        (inner,) = below
        sources = {name: _moved(reach, back) for name, reach in inner.sources.items()}
        return Boundaries(sources, back + inner.points)
    return _together(below)


def _together(parts: list[Boundaries]) -> Boundaries:
    found: dict[str, Reach] = {}
    for part in parts:
        for source, reach in part.sources.items():
            found[source] = found.get(source, Reach()) | reach
    return Boundaries(found, max((part.points for part in parts), default=0))


def _moved(reach: Reach, back: int) -> Reach:
    return Reach(reach.back + back, reach.ahead, reach.before, reach.after)


def _stretch(window: Window) -> tuple[int, int]:
    """How far a window reaches before and after its time."""
    if isinstance(window, Trailing):
        return max(0, window.back + window.width), max(0, -window.back)
    return max(0, window.back + window.width), max(0, window.width - window.back)


def _values(reach: Reach) -> tuple[int, int, int, int]:
    return reach.back, reach.ahead, reach.before, reach.after
