"""Build queries in Python. The builder writes SQL and binds it as every other: same queries, same errors.

>>> query(flights).where("dep_delay IS NOT NULL").group_by("carrier").zoom("15 minutes / 1 minute").select(
...     mean_delay=avg("dep_delay"), n=count()
... ).build("delays")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TypeAlias

import pyarrow as pa

from workbench.errors import QueryError, did_you_mean
from workbench.language.parse import parse_queries
from workbench.language.relations import Catalog
from workbench.language.sql import parse_expression
from workbench.logical import Literal, Numerics, Query, Stream
from workbench.logical.expressions import quote_name
from workbench.logical.joins import Kind, StaticTable

#: What a function can be given: an expression, SQL, or constants.
Argument: TypeAlias = "Expr | str | float | Sequence[float]"
Constant = bool | int | float | str | datetime | date | None


@dataclass(frozen=True, eq=False)
class Expr:
    """A piece of SQL, one expression long. Operators of Python make larger ones; constants become literals.

    Use ``&``, ``|`` and ``~`` for AND, OR and NOT, with brackets around comparisons, as in pandas.
    """

    sql: str

    def __str__(self) -> str:
        return self.sql

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value; combine conditions with `&`, `|` and `~`")

    def __add__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "+", other)

    def __radd__(self, other: Constant) -> Expr:
        return _infix(other, "+", self)

    def __sub__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "-", other)

    def __rsub__(self, other: Constant) -> Expr:
        return _infix(other, "-", self)

    def __mul__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "*", other)

    def __rmul__(self, other: Constant) -> Expr:
        return _infix(other, "*", self)

    def __truediv__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "/", other)

    def __rtruediv__(self, other: Constant) -> Expr:
        return _infix(other, "/", self)

    def __mod__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "%", other)

    def __neg__(self) -> Expr:
        return Expr(f"-({self})")

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return _infix(self, "=", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return _infix(self, "<>", other)

    __hash__ = object.__hash__

    def __lt__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "<", other)

    def __le__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "<=", other)

    def __gt__(self, other: Expr | Constant) -> Expr:
        return _infix(self, ">", other)

    def __ge__(self, other: Expr | Constant) -> Expr:
        return _infix(self, ">=", other)

    def __and__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "AND", other)

    def __or__(self, other: Expr | Constant) -> Expr:
        return _infix(self, "OR", other)

    def __invert__(self) -> Expr:
        return Expr(f"NOT ({self})")

    def is_null(self) -> Expr:
        """Whether the value is NULL."""
        return Expr(f"({self}) IS NULL")

    def is_not_null(self) -> Expr:
        """Whether the value is not NULL."""
        return Expr(f"({self}) IS NOT NULL")

    def isin(self, *values: Expr | Constant) -> Expr:
        """Whether the value is one of ``values``."""
        return Expr(f"({self}) IN ({', '.join(map(_operand, values))})")

    def over(self, *keys: Expr | str, order: Expr | str, frame: str = "") -> Expr:
        """The aggregate of each row's frame, of the rows with the same keys in the order of time.

        ``frame`` as in SQL: ``"ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING"``. :func:`lag` and the like have none.
        """
        parts = [f"PARTITION BY {', '.join(map(str, map(_fragment, keys)))}" if keys else ""]
        parts += [f"ORDER BY {_fragment(order)}", frame]
        return sql(f"{self} OVER ({' '.join(filter(None, parts))})")


def col(name: str) -> Expr:
    """A column, by its name."""
    return Expr(quote_name(name))


def sql(fragment: str) -> Expr:
    """An expression written in SQL. Raises QueryError unless it is exactly one expression."""
    if not isinstance(fragment, str):
        raise QueryError(f"expected an expression, or SQL as text, got {fragment!r}")
    text, _ = parse_expression(fragment)
    # From the first token to the last: a comment at the end must not swallow what the builder puts behind it.
    return Expr(text.sql[text.tokens[0].start : text.tokens[-1].end + 1])


def agg(function: str, *arguments: Argument) -> Expr:
    """Any function by its SQL name; text arguments are SQL, numbers and lists of numbers are constants."""
    return Expr(f"{quote_name(function)}({', '.join(map(_argument, arguments))})")


def count(argument: Expr | str | None = None) -> Expr:
    """``count(*)``, or the number of values that are not NULL."""
    return Expr("count(*)") if argument is None else agg("count", argument)


def _aggregate(name: str) -> Callable[[Expr | str], Expr]:
    def build(argument: Expr | str) -> Expr:
        return agg(name, argument)

    build.__name__ = name
    build.__doc__ = f"The aggregate ``{name}`` of an expression; text is SQL."
    return build


def _aggregate_of_two(name: str) -> Callable[[Expr | str, Expr | str], Expr]:
    def build(x: Expr | str, y: Expr | str) -> Expr:
        return agg(name, x, y)

    build.__name__ = name
    build.__doc__ = f"The aggregate ``{name}`` of two expressions; text is SQL."
    return build


approx_count_distinct = _aggregate("approx_count_distinct")
avg = _aggregate("avg")
bool_and = _aggregate("bool_and")
bool_or = _aggregate("bool_or")
corr = _aggregate_of_two("corr")
count_distinct = _aggregate("count_distinct")
count_if = _aggregate("count_if")
covar_pop = _aggregate_of_two("covar_pop")
covar_samp = _aggregate_of_two("covar_samp")
first = _aggregate("first")
first_value = _aggregate("first_value")
geometric_mean = _aggregate("geometric_mean")
kurtosis = _aggregate("kurtosis")
last = _aggregate("last")
last_value = _aggregate("last_value")
m4 = _aggregate("m4")
max_ = _aggregate("max")
max_by = _aggregate_of_two("max_by")
median = _aggregate("median")
min_ = _aggregate("min")
min_by = _aggregate_of_two("min_by")
mode = _aggregate("mode")
product = _aggregate("product")
range_ = _aggregate("range")
skewness = _aggregate("skewness")
stddev = _aggregate("stddev")
sum_ = _aggregate("sum")
try_sum = _aggregate("try_sum")
variance = _aggregate("variance")


def lag(x: Expr | str, rows: int = 1, default: Argument | None = None) -> Expr:
    """The value of the row so many rows before, in :meth:`Expr.over`; ``default`` where there is none, else NULL."""
    return agg("lag", x, rows, *([] if default is None else [default]))


def lead(x: Expr | str, rows: int = 1, default: Argument | None = None) -> Expr:
    """As :func:`lag`, of a row behind: the result waits until that row has come, or none can come any more."""
    return agg("lead", x, rows, *([] if default is None else [default]))


def row_number() -> Expr:
    """The number of the row among those of its key, from 1, in :meth:`Expr.over`."""
    return Expr("row_number()")


def rank() -> Expr:
    """1 and how many rows of the key are earlier in time, in :meth:`Expr.over`."""
    return Expr("rank()")


def quantile(x: Expr | str, q: float | Sequence[float], method: str = "linear") -> Expr:
    """The quantile at ``q`` in [0, 1], or a list of them; ``method`` says what lies between two rows."""
    constants = [] if method == "linear" else [Expr(_literal(method))]
    return agg("quantile", x, q, *constants)


def approx_quantile(x: Expr | str, q: float | Sequence[float]) -> Expr:
    """The quantile at ``q`` in [0, 1], or a list of them, from a sketch of bounded size."""
    return agg("approx_quantile", x, q)


def histogram(x: Expr | str, *bins: float | Sequence[float]) -> Expr:
    """Counts below, in and above bins: given as low, high and their number, or as a list of their edges."""
    return agg("histogram", x, *bins)


@dataclass(frozen=True, repr=False)
class QueryBuilder:
    """A query being built: every method gives a new one. :meth:`build` binds it."""

    stream: Stream
    _where: tuple[Expr, ...] = ()
    _keys: tuple[Expr, ...] = ()
    _window: str | None = None
    _items: tuple[tuple[str | None, Expr], ...] = ()
    _having: tuple[Expr, ...] = ()
    _fill: str | None = None
    _joins: tuple[tuple[str, StaticTable, Expr], ...] = ()
    _numerics: Numerics = Numerics.EXACT

    def join(self, table: StaticTable, on: Expr | str, how: Kind = "inner") -> QueryBuilder:
        """The rows beside those of a static table; ``how`` says whether a row without a partner stays."""
        word = {"inner": "JOIN", "left": "LEFT JOIN"}.get(how)
        if word is None:
            raise QueryError(f"no join `{how}`", hint="`inner` and `left` are")
        return replace(self, _joins=(*self._joins, (word, table, _fragment(on))))

    def where(self, condition: Expr | str) -> QueryBuilder:
        """Keep the rows for which the condition is true; several calls must all hold."""
        return replace(self, _where=(*self._where, _fragment(condition)))

    def group_by(self, *keys: Expr | str) -> QueryBuilder:
        """Add keys."""
        return replace(self, _keys=(*self._keys, *map(_fragment, keys)))

    def window(self, size: str, slide: str | None = None, offset: str | None = None) -> QueryBuilder:
        """One level: windows of ``size``, a new one every ``slide``, shifted by ``offset`` from the epoch."""
        if offset is not None and slide is None:
            slide = size
        durations = [each for each in (size, slide, offset) if each is not None]
        return self._with_window("window", durations)

    def zoom(self, *levels: str) -> QueryBuilder:
        """Several levels, each ``'size / slide'``, ``'size'`` or ``'size / slide + offset'``."""
        return self._with_window("zoom", list(levels))

    def form(self, name: str, *arguments: Argument) -> QueryBuilder:
        """Windows by any window form of SQL: text arguments are SQL, numbers are constants.

        Such as ``form("measure_window", "km", 10, 2.5)`` or ``form("session_window", "ts", "'10 minutes'")``.
        """
        return self._with_form(f"{quote_name(name)}({', '.join(map(_argument, arguments))})")

    def select(self, *items: Expr | str, **named: Expr | str) -> QueryBuilder:
        """Add result columns, those of ``named`` with their names, in the order in which they are written."""
        plain = [(None, _fragment(item)) for item in items]
        return replace(
            self, _items=(*self._items, *plain, *((name, _fragment(item)) for name, item in named.items()))
        )

    def having(self, condition: Expr | str) -> QueryBuilder:
        """Keep the results for which the condition is true; several calls must all hold."""
        return replace(self, _having=(*self._having, _fragment(condition)))

    def fill(self, what: str = "null") -> QueryBuilder:
        """Results for windows without rows: ``what`` is "null", "zero" or "previous"."""
        return replace(self, _fill=what)

    def numerics(self, how: str) -> QueryBuilder:
        """``"fast"`` lets aggregates of floats be differences of prefixes; see :func:`workbench.run`."""
        return replace(self, _numerics=numerics_of(how))

    def sql(self) -> str:
        """The statement as SQL."""
        items = [f"{item} AS {quote_name(name)}" if name else str(item) for name, item in self._items]
        keys = [*map(str, self._keys), *([self._window] if self._window else [])]
        clauses = [
            f"SELECT {', '.join(items) or '...'}",
            f"FROM {quote_name(self.stream.name)}",
            *(f"{word} {quote_name(table.name)} ON {on}" for word, table, on in self._joins),
            f"WHERE {_all_of(self._where)}" if self._where else "",
            f"GROUP BY {', '.join(keys)}" if keys else "",
            f"HAVING {_all_of(self._having)}" if self._having else "",
            f"FILL {quote_name(self._fill.upper())}" if self._fill is not None else "",
        ]
        return "\n".join(filter(None, clauses))

    def __repr__(self) -> str:
        return f"QueryBuilder on `{self.stream.name}`, which `workbench.run` starts:\n{self.sql()}"

    def build(self, name: str) -> Query:
        """The logical query; raises QueryError for everything that does not make sense."""
        if not self._items:
            raise QueryError("the query selects nothing", hint="call `select(n=count())`")
        catalog = Catalog({self.stream.name: self.stream}, {table.name: table for _, table, _ in self._joins})
        (bound,) = parse_queries(self.sql(), catalog, name=name)
        return replace(bound, numerics=self._numerics)

    def _with_window(self, form: str, durations: list[str]) -> QueryBuilder:
        return self._with_form(f"{form}({', '.join([quote_name(self.stream.time), *map(_literal, durations)])})")

    def _with_form(self, form: str) -> QueryBuilder:
        if self._window is not None:
            raise QueryError("a query has one window form", hint="give all levels in one `zoom(...)`")
        return replace(self, _window=form)


def numerics_of(name: str) -> Numerics:
    """What may be asked for beside a statement, by name. Raises QueryError for another one."""
    known = [each.value for each in Numerics]
    if name not in known:
        raise QueryError(f"no numerics `{name}`", hint=did_you_mean(name, known, "numerics"))
    return Numerics(name)


def query(stream: Stream) -> QueryBuilder:
    """Begin a query on a stream."""
    return QueryBuilder(stream)


def _fragment(value: Expr | str) -> Expr:
    return value if isinstance(value, Expr) else sql(value)


def _argument(value: Argument) -> str:
    if isinstance(value, Expr | str):
        return str(_fragment(value))
    if isinstance(value, Sequence):
        return f"array({', '.join(map(_literal, value))})"
    return _literal(value)


def _infix(left: object, operator: str, right: object) -> Expr:
    return Expr(f"{_operand(left)} {operator} {_operand(right)}")


def _operand(value: object) -> str:
    return f"({value})" if isinstance(value, Expr) else _literal(value)


def _literal(value: object) -> str:
    if value is not None and not isinstance(value, bool | int | float | str | date):
        raise TypeError(f"expected an expression or a constant, got `{type(value).__name__}`")
    return str(Literal(pa.null(), value))


def _all_of(conditions: tuple[Expr, ...]) -> str:
    return str(conditions[0]) if len(conditions) == 1 else " AND ".join(f"({each})" for each in conditions)
