"""What a user's context-aware window type is called with (*General Stream Slicing* §5.4.2), for the rows of one key.

The same replay serves the operator, which begins with what it has settled, and the oracle, which begins with nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from workbench.logical import UserContext
from workbench.logical.user_windows import FIELD_TYPES, Definition, whole
from workbench.time import LIMIT

#: When a window closes that no watermark closes.
NEVER = 2 * LIMIT - 1


@dataclass
class Memory:
    """What is known of a key: its fields, its windows, the time of the row before, and of this one.

    A window is ``[start, end, closes]``, final once the watermark has come to ``closes``. That is its end, or, where
    a row has told of that in hindsight, behind this row, as one between the two may still come and say otherwise.

    ``rows`` are the times of rows that windows may still begin at, for those that are added and removed.
    """

    values: dict[str, Any]
    windows: list[list[int]] = field(default_factory=list)
    before: int = -LIMIT
    time: int = -LIMIT
    rows: list[int] = field(default_factory=list)

    def copy(self) -> Memory:
        """One that changes on its own."""
        windows = [[*window] for window in self.windows]
        return Memory({**self.values}, windows, self.before, self.time, [*self.rows])


class Context:
    """What a user's class is called with: the fields as attributes, and how it tells of windows."""

    _memory: Memory
    _types: dict[str, str]

    def __init__(self, definition: Definition, memory: Memory) -> None:
        object.__setattr__(self, "_memory", memory)
        object.__setattr__(self, "_types", {name: kind for name, kind, _ in definition.fields})

    def __getattr__(self, name: str) -> Any:
        if name not in self._types:
            raise AttributeError(f"`{name}` is none of the `fields`: {', '.join(self._types) or 'there are none'}")
        return self._memory.values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._types:
            raise AttributeError(f"`{name}` is none of the `fields`: {', '.join(self._types) or 'there are none'}")
        self._memory.values[name] = FIELD_TYPES[self._types[name]](value)


class Following(Context):
    """For ``notify``: windows that follow one another."""

    def begin(self, time: int | None = None) -> None:
        """A window begins with this row, or between it and the row before; the one before ends there."""
        memory = self._memory
        start = memory.time if time is None else _moment(time)
        if not (memory.before < start <= memory.time or start == memory.time):
            raise ValueError(f"a window cannot begin at {start}, which is not between the row before and this one")
        if memory.windows:
            last = memory.windows[-1]
            if last[0] == start:
                return
            if start < last[1] <= memory.time:
                raise ValueError(f"a window cannot begin at {start}: the one before has ended at {last[1]} already")
            if start < last[1]:
                last[1:] = start, _closes(start, memory)
        memory.windows.append([start, NEVER, NEVER])

    def end(self, time: int) -> None:
        """The window that is open ends then, unless a later row says otherwise or begins another one before."""
        end, memory = _moment(time), self._memory
        if end <= memory.time:
            raise ValueError(f"a window cannot end at {end}, at or before the row that says so")
        if not memory.windows or memory.windows[-1][1] <= memory.time:
            raise ValueError("no window is open: the last one has ended, or none has begun")
        memory.windows[-1][1:] = end, end


class Adding(Context):
    """For ``notify_context``: windows that begin and end anywhere."""

    @property
    def rows(self) -> list[int]:
        """The times of the rows of the key so far, this one the last, back to what ``earliest`` said."""
        return self._memory.rows

    @property
    def windows(self) -> list[tuple[int, int]]:
        """The windows that may still change, which are those that end after this row, as (start, end)."""
        return [(start, end) for start, end, _ in self._memory.windows if end > self._memory.time]

    def add(self, start: int, end: int) -> None:
        """There is a window ``[start, end)``."""
        first, last, windows = _moment(start), _moment(end), self._memory.windows
        if first >= last:
            raise ValueError(f"a window cannot end at {end}, before it starts at {start}")
        if any(last == other for _, other, _ in windows):
            raise ValueError(f"there is a window that ends at {end} already; no two windows of a key end together")
        windows.append([first, last, _closes(last, self._memory)])

    def remove(self, start: int, end: int) -> None:
        """There is no window ``[start, end)`` after all."""
        if (start, end) not in self.windows:
            raise ValueError(f"there is no window ({start}, {end}) to remove, or it has ended at this row")
        self._memory.windows = [window for window in self._memory.windows if window[:2] != [start, end]]


def _closes(end: int, memory: Memory) -> int:
    """When a window is final of which the row that is gone through says that it ends there."""
    return end if end >= memory.time else memory.time + 1


def _moment(time: Any) -> int:
    """A time of a user's as int; raises for what is none."""
    moment = whole(time)
    if not -LIMIT <= moment <= LIMIT:
        raise ValueError(f"`{time}` is no time: it is too far from 1970")
    return moment


def follows(window: UserContext) -> bool:
    """Whether windows follow one another: a class with ``notify``."""
    return window.definition.kind == "forward context free"


def fresh(window: UserContext) -> Memory:
    """What is known of a key without rows."""
    return Memory({name: first for name, _, first in window.definition.fields})


def notify(window: UserContext, memory: Memory, rows: Iterable[tuple[Any, ...]]) -> None:
    """Go through rows (time, values...) of a key, in order of time. Raises DataError where the class fails."""
    kind, method = (Following, "notify") if follows(window) else (Adding, "notify_context")
    context = kind(window.definition, memory)
    for time, *values in rows:
        memory.time = time
        if kind is Adding:
            memory.rows.append(time)
        window.call(method, context, time, *values)
        memory.before = time


def earliest(window: UserContext, memory: Memory) -> int:
    """Where the first window that is still to come may begin; -LIMIT: anywhere."""
    found = window.call("earliest", Adding(window.definition, memory))
    if found is None:
        return -LIMIT
    return max(window.number(found, "earliest"), -LIMIT)


def spans(window: UserContext, memory: Memory) -> list[tuple[int, int, int]]:
    """The windows of a key as (start, end, closes), in order: by start those that follow one another, else by end."""
    found = [(start, end, closes) for start, end, closes in memory.windows]
    return found if follows(window) else sorted(found, key=lambda each: each[1])
