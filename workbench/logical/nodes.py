"""Stream, Window, Query and Workload: the logical plan before anything is shared."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from workbench.errors import QueryError
from workbench.logical.expressions import Expression, Named
from workbench.logical.joins import Joined, conjunction, conjuncts, joins_of
from workbench.time import format_duration


@dataclass(frozen=True)
class Stream:
    """One event stream: its schema, its time column and how far out of order its rows may come.

    ``time`` names a timestamp column; ``delay`` is the watermark's distance in microseconds behind the largest
    event time seen. Two streams of one name are the same stream.
    """

    name: str
    schema: pa.Schema
    time: str
    delay: int


@dataclass(frozen=True)
class Window:
    """A sliding window over event time: ``[start, start + size)`` for every ``start = offset + k * slide``.

    All three in microseconds; ``slide == size`` is a tumbling window. ``size >= slide > 0``; anything else is
    refused, because rows would fall between the windows. Half-open: a row at ``end`` belongs to the next window.
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise QueryError(
                f"the window size must be positive, got `{format_duration(self.size)}`",
                hint="write it as 'size / slide', such as '10 minutes / 1 minute'",
            )
        if self.slide <= 0:
            raise QueryError(
                f"the window slide must be positive, got `{format_duration(self.slide)}`",
                hint="leave the slide out for windows that follow one another without overlap",
            )
        if self.slide > self.size:
            raise QueryError(
                f"the slide `{format_duration(self.slide)}` is longer than the window "
                f"`{format_duration(self.size)}`, so rows between two windows would be lost",
                hint="make the slide at most as long as the window",
            )
        object.__setattr__(self, "offset", self.offset % self.slide)

    @property
    def label(self) -> str:
        """Its name as a zoom level: ``'15 minutes / 1 minute'``, or just the size of a tumbling window."""
        text = format_duration(self.size)
        if self.slide != self.size:
            text += f" / {format_duration(self.slide)}"
        if self.offset:
            text += f" + {format_duration(self.offset)}"
        return text


@dataclass(frozen=True)
class Query:
    """One statement: aggregates of the rows of ``stream`` that pass ``where``, by key and window.

    ``keys`` are the grouping expressions, ``windows`` the zoom levels from fine to coarse, ``values`` the result
    columns (expressions over aggregate calls and keys) in the order of the SELECT list, ``having`` a condition
    over the same. Result rows are identified by (query, level, keys, window start).
    """

    name: str
    stream: Stream
    where: Expression | None
    keys: tuple[Named, ...]
    windows: tuple[Window, ...]
    values: tuple[Named, ...]
    having: Expression | None = None

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
        lines.append(f"  zoom   {self.stream.time}: {levels}")
        lines.append(f"  values {', '.join(map(str, self.values))}")
        if self.having is not None:
            lines.append(f"  having {self.having}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Workload:
    """All queries on one stream: what one shared plan is made from."""

    stream: Stream
    queries: tuple[Query, ...]
