"""Window types as a user writes them: the built-in ones once more, to be compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar


class Tumbling:
    """Context free: ``window(ts, size, slide, offset)``."""

    def __init__(self, size: int, slide: int | None = None, offset: int = 0) -> None:
        self.size, self.slide, self.offset = size, slide or size, offset

    def next_edge(self, time: int) -> int:
        sides = (self.offset, self.offset + self.size)
        return min((time - side) // self.slide * self.slide + self.slide + side for side in sides)

    def trigger(self, after: int, until: int) -> Iterator[tuple[int, int]]:
        end = (after - self.offset - self.size) // self.slide * self.slide + self.slide + self.offset + self.size
        while end <= until:
            yield end - self.size, end
            end += self.slide


class Visits:
    """Forward context free: ``gap_window(ts, gap)``."""

    def __init__(self, gap: int) -> None:
        self.gap = gap

    fields: ClassVar[dict[str, tuple[str, float]]] = {"last": ("int64", -(2**61))}

    def notify(self, context: Any, time: int) -> None:
        if time >= context.last + self.gap:
            context.begin()
        context.end(time + self.gap)
        context.last = time


class Marks:
    """Forward context free: ``punctuation_window(mark)``."""

    fields: ClassVar[dict[str, tuple[str, float]]] = {"begun": ("int64", 0)}

    def notify(self, context: Any, time: int, mark: bool | None) -> None:
        if mark or not context.begun:
            context.begin(time)
            context.begun = 1


class Moved:
    """Forward context free: a window ends when the value is ``step`` or more away from the one that it began with."""

    fields: ClassVar[dict[str, tuple[str, float]]] = {"first": ("float64", 0), "begun": ("int64", 0)}

    def __init__(self, step: float) -> None:
        self.step = step

    def notify(self, context: Any, time: int, value: float | None) -> None:
        if value is not None and not (context.begun and abs(value - context.first) < self.step):
            context.begin(time)
            context.first, context.begun = value, 1


class Pauses:
    """Forward context free: windows meet in the middle of a pause of ``gap`` or more, which is known in hindsight."""

    def __init__(self, gap: int) -> None:
        self.gap = gap

    fields: ClassVar[dict[str, tuple[str, float]]] = {"last": ("int64", -(2**61))}

    def notify(self, context: Any, time: int) -> None:
        if context.last == -(2**61):
            context.begin(time)
        elif time >= context.last + self.gap:
            context.begin((context.last + time + 1) // 2)
        context.last = time


class LastRows:
    """Forward context aware: ``last(rows, every)``, where no two rows of a key have one time."""

    def __init__(self, rows: int, every: int) -> None:
        self.rows, self.every = rows, every

    def notify_context(self, context: Any, time: int) -> None:
        end = time // self.every * self.every + self.every
        for window in context.windows:
            if window[1] == end:
                context.remove(*window)
        context.add(context.rows[-self.rows :][0], end)

    def earliest(self, context: Any) -> int:
        return int(context.rows[-self.rows :][0])


class BeforeMarks:
    """Forward context aware: the last ``rows`` rows before each mark, in a window that ends where it is told."""

    fields: ClassVar[dict[str, tuple[str, float]]] = {"marked": ("int64", -(2**61))}

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def notify_context(self, context: Any, time: int, mark: bool | None) -> None:
        before = [row for row in context.rows if row < time][-self.rows :]
        if mark and before and context.marked != time:
            context.add(before[0], time)
            context.marked = time

    def earliest(self, context: Any) -> int:
        return int(context.rows[-self.rows :][0])


ALL = {
    "u_tumbling": Tumbling,
    "u_visits": Visits,
    "u_marks": Marks,
    "u_moved": Moved,
    "u_pauses": Pauses,
    "u_last": LastRows,
    "u_before": BeforeMarks,
}
