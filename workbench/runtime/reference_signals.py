"""The oracle of time-centric programs: every value from its definition, row by row. Slow, and shares nothing.

It reads what :mod:`workbench.temporal.nodes` says of each node, and knows neither pointers, cuts, loops nor blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from workbench.temporal.nodes import Apply, Constant, Node, Reduce, Reducer, Sample, Trailing, per_row
from workbench.temporal.program import Program

#: Rows of one key in order of time: time and values by column, None where there is none.
Rows = Sequence[tuple[int, Mapping[str, float | None]]]


def reference(program: Program, sources: Mapping[str, Rows]) -> list[tuple[int, dict[str, float | None]]]:
    """Time and outputs of every point, of one key."""
    return _Reference(program, sources).points()


class _Reference:
    def __init__(self, program: Program, sources: Mapping[str, Rows]) -> None:
        self.program, self.sources = program, sources
        own = [time for time, _ in sources[program.at]]
        if program.every is None:
            self.times = sorted(set(own))
        elif own:
            first, last = -(-own[0] // program.every), -(-own[-1] // program.every)
            self.times = [number * program.every for number in range(first, last + 1)]
        else:
            self.times = []

    def points(self) -> list[tuple[int, dict[str, float | None]]]:
        outputs = self.program.outputs.items()
        return [(time, {name: self.at(node, time) for name, node in outputs}) for time in self.times]

    def at(self, node: Node, time: int) -> float | None:
        """The value of a node at a time."""
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, Sample):
            return self._sample(node, time)
        if isinstance(node, Reduce):
            return _reduced(node.reducer, self._window(node, time))
        assert isinstance(node, Apply)
        return _applied(node.operation, [self.at(each, time) for each in node.operands])

    def _sample(self, node: Sample, time: int) -> float | None:
        rows = self.sources[node.source]
        moment = time - node.back
        so_far = sum(when <= moment for when, _ in rows)
        place = so_far - 1 - node.previous
        if so_far == 0 or not 0 <= place < len(rows):
            return None
        if node.hold is not None and moment - rows[so_far - 1][0] >= node.hold:
            return None
        when, values = rows[place]
        return values[node.column] if node.what == "value" else (moment - when) / 1e6

    def _window(self, node: Reduce, time: int) -> list[float]:
        window = node.window
        moment = time - window.back

        def inside(when: int) -> bool:
            if isinstance(window, Trailing):
                return moment - window.width < when <= moment
            return when // window.width == moment // window.width

        source = per_row(node.operand)
        if source is None:
            found = [self.at(node.operand, when) for when in self.times if inside(when)]
        else:
            found = [_of_row(node.operand, values) for when, values in self.sources[source] if inside(when)]
        return [value for value in found if value is not None]


def _of_row(node: Node, values: Mapping[str, float | None]) -> float | None:
    if isinstance(node, Sample):
        return values[node.column]
    if isinstance(node, Constant):
        return node.value
    assert isinstance(node, Apply)
    return _applied(node.operation, [_of_row(each, values) for each in node.operands])


def _reduced(reducer: Reducer, values: list[float]) -> float | None:
    n = len(values)
    if reducer is Reducer.COUNT:
        return float(n)
    if n == 0:
        return None
    if reducer is Reducer.SUM:
        return sum(values)
    if reducer in (Reducer.MIN, Reducer.MAX):
        if any(map(math.isnan, values)):
            return math.nan
        return min(values) if reducer is Reducer.MIN else max(values)
    mean = fmean(values)
    if reducer is Reducer.MEAN:
        return mean
    second, third, fourth = (sum((value - mean) ** power for value in values) for power in (2, 3, 4))
    if reducer in (Reducer.VAR, Reducer.STD):
        if n < 2:
            return None
        return second / (n - 1) if reducer is Reducer.VAR else math.sqrt(second / (n - 1))
    if second == 0:
        return None
    return math.sqrt(n) * third / second**1.5 if reducer is Reducer.SKEWNESS else n * fourth / second**2 - 3


_PLAIN: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negate": lambda a: -a,
    "abs": abs,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "exp": lambda a: math.exp(a) if a < 709 else math.inf,
    "least": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else min(a, b),
    "greatest": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else max(a, b),
    "less": lambda a, b: float(a < b),
    "less_equal": lambda a, b: float(a <= b),
    "greater": lambda a, b: float(a > b),
    "greater_equal": lambda a, b: float(a >= b),
    "equal": lambda a, b: float(a == b),
    "not_equal": lambda a, b: float(a != b),
    "and": lambda a, b: float(a != 0 and b != 0),
    "or": lambda a, b: float(a != 0 or b != 0),
    "not": lambda a: float(a == 0),
}


def _applied(operation: str, values: list[float | None]) -> float | None:
    if operation == "fill":
        return values[1] if values[0] is None else values[0]
    if operation == "is_missing":
        return float(values[0] is None)
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if operation == "where":
        return known[0] if known[1] != 0 else None
    if operation == "divide":
        return None if known[1] == 0 else known[0] / known[1]
    if operation == "log":
        return None if known[0] <= 0 else math.log(known[0])
    return _PLAIN[operation](*known)
