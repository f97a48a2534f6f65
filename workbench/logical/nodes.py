"""Stream, Query and Workload: the logical plan before anything is shared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from workbench.logical.expressions import Expression, Named
from workbench.logical.joins import Joined, conjunction, conjuncts, joins_of
from workbench.logical.measures import MeasureWindow
from workbench.logical.windows import AnyWindow, Window


class Store(Enum):
    """What is kept of slices for the windows to come (*General Stream Slicing* §5.4).

    ``LAZY``: the slices alone; a window is combined from them when it is told. ``EAGER``: a tree over the slices as
    well, kept up as they change. ``AUTO``: whatever costs least, which may also be scans of the slices.
    """

    AUTO = "auto"
    LAZY = "lazy"
    EAGER = "eager"


@dataclass(frozen=True)
class Stream:
    """One event stream: its schema, its time column and how far out of order its rows may come.

    ``time`` names a timestamp column; ``delay`` is the watermark's distance in microseconds behind the largest
    event time seen. A window that the watermark has passed is final; rows that come later still revise it for as long
    as its end is less than ``lateness`` behind the watermark, then they are late. Rows more than ``future`` ahead of
    the wall clock do not move the watermark (None: no limit). Where no row has come for ``idle`` microseconds of wall
    time (None: never), event time goes on with the clock from then on. ``store`` forces how windows are put together
    from slices (:class:`Store`). Two streams of one name are the same stream.
    """

    name: str
    schema: pa.Schema
    time: str
    delay: int
    lateness: int = 0
    future: int | None = None
    idle: int | None = None
    store: Store = Store.AUTO


class Fill(Enum):
    """What stands in windows without rows, where the value over no rows is NULL: counts stay 0 whatever is chosen.

    A key has results for all its windows from the first one with a row up to the last one that begins at or before
    the latest event time. ``PREVIOUS`` takes the value of the last window before that has a row.
    """

    NULL = "null"
    ZERO = "zero"
    PREVIOUS = "previous"


class Numerics(Enum):
    """How aggregates of floats are put together from slices.

    ``EXACT``: each window from its own rows alone. ``FAST``: windows may be differences of prefixes, which have seen
    other rows, so a result may be off by their rounding.
    """

    EXACT = "exact"
    FAST = "fast"


@dataclass(frozen=True)
class Query:
    """One statement: aggregates of the rows of ``stream`` that pass ``where``, by key and window.

    ``keys`` are the grouping expressions, ``windows`` the zoom levels from fine to coarse, ``values`` the result
    columns (expressions over aggregate calls and keys) in the order of the SELECT list, ``having`` a condition
    over the same. Result rows are identified by (query, level, keys, window). The one window of an OVER query
    is :class:`~workbench.logical.EachRow`: its keys are the partition, its values are over the row and its frames.
    With ``fill``, for context-free windows only, windows without rows have results too; ``having`` is asked of them
    as of others, over no rows. ``numerics`` is no part of the statement: it is asked for beside it.
    """

    name: str
    stream: Stream
    where: Expression | None
    keys: tuple[Named, ...]
    windows: tuple[AnyWindow, ...]
    values: tuple[Named, ...]
    having: Expression | None = None
    fill: Fill | None = None
    numerics: Numerics = Numerics.EXACT

    def __str__(self) -> str:
        levels = ", ".join(f"'{window.label}'" for window in self.windows)
        lines = [f"Query {self.name} on {self.stream.name}"]
        lines += [f"  with   {join}" for join in joins_of(self.where)]
        where = conjunction([each for each in conjuncts(self.where) if not isinstance(each, Joined)])
        shown = where if joins_of(self.where) else self.where
        if shown is not None:
            lines.append(f"  where  {shown}")
        if self.keys:
            lines.append(f"  by     {', '.join(map(str, self.keys))}")
        on_grid = all(isinstance(window, Window) for window in self.windows)
        first = self.windows[0]
        along = first.measure if isinstance(first, MeasureWindow) else self.stream.time
        lines.append(f"  {'zoom  ' if on_grid else 'window'} {along}: {levels}")
        lines.append(f"  values {', '.join(map(str, self.values))}")
        if self.having is not None:
            lines.append(f"  having {self.having}")
        if self.fill is not None:
            lines.append(f"  fill   {self.fill.value}")
        if self.numerics is not Numerics.EXACT:
            lines.append(f"  numerics {self.numerics.value}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Workload:
    """All queries on one stream: what one shared plan is made from."""

    stream: Stream
    queries: tuple[Query, ...]
