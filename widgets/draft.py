"""A query being put together by hand: what is chosen, and the SQL and the cell that follow. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as is_

from workbench.language.binder import RESULT_COLUMNS
from workbench.language.builder import Expr, agg, col, count, query
from workbench.logical import Stream, Window
from workbench.logical.types import is_numeric, is_temporal, language_type
from workbench.time import DAY, HOUR, MINUTE, SECOND

#: Durations of the sliders: about the same distance from each to the next on a logarithmic axis.
DURATIONS = (
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 30)),
)

_QUANTILES = {"p10": 0.1, "p90": 0.9, "p99": 0.99}
#: Aggregates on offer by name, and which columns they take, by their type in the language.
FUNCTIONS: dict[str, Callable[[pa.DataType], bool]] = {
    "count": lambda kind: True,
    **dict.fromkeys(("avg", "sum", "median", "stddev", *_QUANTILES), is_numeric),
    **dict.fromkeys(
        ("min", "max", "first", "last", "count_distinct"),
        lambda kind: is_numeric(kind) or is_temporal(kind) or is_.is_string(kind) or is_.is_boolean(kind),
    ),
}


@dataclass(frozen=True)
class Value:
    """One result column: an aggregate of a column; ``count`` counts rows, whatever the column."""

    function: str
    column: str

    @property
    def name(self) -> str:
        """Its name in the result."""
        return "n" if self.function == "count" else f"{self.function}_{self.column}"

    def expression(self) -> Expr:
        """The aggregate call."""
        if self.function == "count":
            return count()
        if self.function in _QUANTILES:
            return agg("quantile", col(self.column), _QUANTILES[self.function])
        return agg(self.function, col(self.column))


@dataclass(frozen=True)
class Draft:
    """What is chosen. ``levels`` are (slide, size) in microseconds, ``where`` is SQL or empty."""

    stream: Stream
    keys: tuple[str, ...] = ()
    values: tuple[Value, ...] = (Value("count", ""),)
    levels: tuple[tuple[int, int], ...] = ((MINUTE, 15 * MINUTE),)
    where: str = ""

    def sql(self) -> str:
        """The statement. Raises QueryError where ``where`` is no expression."""
        made = query(self.stream).group_by(*map(col, self.keys)).zoom(*self._labels())
        if self.where.strip():
            made = made.where(self.where)
        taken = {name.casefold() for name in RESULT_COLUMNS}
        for key in self.keys:
            name = _free(key, taken)
            made = made.select(col(key)) if name == key else made.select(**{name: col(key)})
        named = {value.name: value.expression() for value in self.values}
        for name, expression in named.items():
            made = made.select(**{_free(name, taken): expression})
        return made.sql()

    def cell(self, name: str) -> str:
        """A notebook cell that runs the statement and shows it live."""
        return f"%%winquery {name} --source {self.stream.name} --live\n{self.sql()}"

    def _labels(self) -> list[str]:
        """The levels as text, each once, from fine to coarse."""
        chosen = sorted({(size, slide) for slide, size in self.levels})
        return [Window(size, slide).label for size, slide in chosen]


def _free(name: str, taken: set[str]) -> str:
    """A name of a result column, or one like it where that is taken, whatever the case; it is taken then."""
    while name.casefold() in taken:
        name += "_"
    taken.add(name.casefold())
    return name


def columns_for(function: str, stream: Stream) -> list[str]:
    """The columns of a stream that an aggregate takes: measured values first, the time column last."""
    fits = FUNCTIONS[function]
    fields = [field for field in stream.schema if fits(language_type(field.type))]
    measured = [is_.is_floating(field.type) or is_.is_decimal(field.type) for field in fields]
    ranked = sorted(zip(fields, measured, strict=True), key=lambda each: (each[0].name == stream.time, not each[1]))
    return [field.name for field, _ in ranked]


def likely_keys(stream: Stream) -> list[str]:
    """The columns that are worth grouping by: text, integers, booleans and dates, in that order."""
    order = (is_.is_string, is_.is_boolean, is_.is_integer, is_.is_date)
    place = {
        field.name: next((n for n, holds in enumerate(order) if holds(language_type(field.type))), None)
        for field in stream.schema
    }
    found = [(at, name) for name, at in place.items() if at is not None and name != stream.time]
    return [name for _, name in sorted(found, key=lambda pair: pair[0])]
