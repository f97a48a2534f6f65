"""The functions of :mod:`workbench` for scripts and cells that need no plot."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from keyword import iskeyword
from types import ModuleType
from typing import Any, TypeAlias

from workbench.errors import QueryError
from workbench.language import register_aggregate, register_window_type
from workbench.language.builder import QueryBuilder, numerics_of
from workbench.language.builder import query as build_query
from workbench.logical import MeasureWindow, Query
from workbench.logical.joins import StaticTable
from workbench.results.shapes import no_time_axis, nothing_to_plot, plottable
from workbench.session import LiveQuery, Source
from workbench.session import default_session as default_session
from workbench.session.columns import Columns
from workbench.session.live import PlanText
from workbench.session.sources import Data

#: SQL text, a query, or one being built.
Asked: TypeAlias = str | Query | QueryBuilder


def source(
    name: str,
    data: Data,
    *,
    time: str | None = None,
    arrival: str | None = None,
    replay: str | float = "max",
    delay: str | None = None,
    lateness: str | None = None,
    future: str | None = None,
    idle: str | None = None,
    max_rows: int | None = None,
    format: str | None = None,
    schema: Columns | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    names: Sequence[str] | None = None,
    header: bool | None = None,
    time_format: str | Mapping[str, str] | None = None,
    follow: bool = False,
    trigger: str | None = None,
    level1: str = "auto",
    store: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
) -> Source:
    """Define a stream of events under a name that SQL can use.

    ``data``: a data set of :mod:`workbench.datasets`, files (a path, a pattern, a folder, a list), or a table in
    memory, of pandas, Arrow, or what hands out Arrow data, such as polars and DuckDB.
    Files are Parquet, Arrow IPC, CSV or JSON lines, as their endings or ``format`` say; ``schema`` declares their
    columns (an Arrow schema, or ``"ts TIMESTAMP, key STRING"``), where they are not to be found out. With ``follow``
    the folder is one that grows: files that appear later are read once each, in order, until the query is stopped;
    docs/sources.md says how to put them there.

    How CSV is written is found out, and this says what was found; what can be read in two ways is an error that
    names both. ``sep`` stands between fields, ``decimal`` before fractions, ``thousands`` between thousands;
    ``encoding`` is UTF-8, else cp1252; ``names`` are those of a file without a line of names, which ``header`` says
    (with both, they take the place of that line). ``time_format`` reads times that are not in ISO 8601, in JSON too:
    ``'dd.MM.yyyy HH:mm'``, ``'%d.%m.%Y'``, ``'epoch ms'``, or a dictionary of several by column.

    ``time`` names the timestamp column that windows are about; ``arrival`` the one that says when a row came in (rows
    must stand in its order; left out, they come in file order). ``replay`` is the speed: ``'1 day/s'``, ``'60x'`` or
    ``'max'``; ``'backfill'`` reads a recording in one Spark job instead of a stream: nothing is late, all results
    come at its end, and are final. ``max_rows`` bounds a micro-batch; left out, the first has 100,000 rows, and each
    further one three times as many as all before it, up to 8 million.

    ``delay`` is how far behind the latest row the watermark stays; a window that it has passed is final. Rows that
    come later than that still revise final results for as long as ``lateness`` says (by default not at all); then
    they are late: they are counted and change nothing. ``future`` is for clocks that go wrong: rows whose event time
    is further ahead of the wall clock than that count in their windows, but do not move the watermark. ``idle`` is
    for streams that fall silent: where no row has come for so long, event time goes on with the clock (at the speed
    of a replay), so that open windows close.

    ``data`` may also be a Spark DataFrame of your own session. A streaming one runs as one Spark query, with
    ``trigger`` as Spark has it: micro-batch after micro-batch, every ``'5 seconds'``, or ``'available_now'``, which
    reads all that is there and then ends the stream. A batch one, or a table, is read once, all windows final.
    ``level1`` forces how its rows become partials: ``'arrow'``, ``'tungsten'``, or by cost (docs/spark.md).

    ``store`` forces how windows are put together from slices: ``'lazy'``, from the slices alone; ``'eager'``, with a
    tree over them that is kept up to date; or by cost. Results are equal; ``explain()`` tells which one it is.

    ``checkpoint`` is a folder in which state and results are kept: the next run, in this process or another one, goes
    on where this one ends, by a stop or a crash, and has the results from before (docs/operations.md).

    Defining a source again ends the queries of the older one. Raises SourceError for data that does not fit.
    """
    return default_session().source(
        name,
        data,
        time=time,
        arrival=arrival,
        replay=replay,
        delay=delay,
        lateness=lateness,
        future=future,
        idle=idle,
        max_rows=max_rows,
        format=format,
        schema=schema,
        sep=sep,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        names=names,
        header=header,
        time_format=time_format,
        follow=follow,
        trigger=trigger,
        level1=level1,
        store=store,
        checkpoint=checkpoint,
    )


def sources() -> dict[str, Source]:
    """The sources of this session by name."""
    return default_session().sources


def table(name: str, data: Data) -> StaticTable:
    """Define a static table, with which SQL can join the rows of a stream: ``FROM stream JOIN name ON ...``.

    ``data``: a table in memory, or Parquet files (a path, a pattern, a folder, a list). The rows are copied and
    travel with the plan to every task, so they are bounded (32 MiB). Defining a table again changes no query that
    runs.
    """
    return default_session().table(name, data)


def tables() -> dict[str, StaticTable]:
    """The static tables of this session by name."""
    return default_session().tables


def aggregate(name: str | type, cls: type | None = None) -> Any:
    """Define an aggregate in Python; it works in SQL and in the builder like the built-in ones.

    As ``@workbench.aggregate`` over a class (its name, folded, is the aggregate's), ``@workbench.aggregate("name")``
    or ``workbench.aggregate("name", cls)``::

        @workbench.aggregate
        class rms:
            fields = {"n": ("int64", 0), "squares": ("float64", 0.0)}
            def lift(x): return 1, x * x
            def combine(a, b): return a.n + b.n, a.squares + b.squares
            def lower(state): return (state.squares / state.n) ** 0.5

    ``fields`` are the fields of a partial: NumPy type (``int64`` or ``float64``) and identity. ``lift(*values)``
    gives the partial of one row, ``combine(a, b)`` that of two neighbouring runs of rows, both as tuples;
    ``lower(state)`` the result (None for NULL). Optional: ``invert(total, prefix)``, ``commutative`` and
    ``idempotent`` (claims that are checked), ``rounding`` (the inverse is not exact, and is for queries that ask for
    ``numerics='fast'``), ``inputs`` (types of the values, ``float64`` by default), ``result``
    (``double``, ``bigint``, ``boolean``, ``string``),
    ``examples`` (values to test with, as tuples for several arguments).

    Rows of an aggregate that is not commutative (found by trial, and told by ``explain``) are kept until no earlier
    one can come, and combined in order of time; rows of equal time in the order of the values that the query reads.

    Rows where a value is NULL are left out; a window without any gives NULL. The laws of a monoid are tried on the
    examples and on values of our own; a broken one raises QueryError with the counterexample. Functions that numba
    can compile run compiled, with its arithmetic (integers wrap, division by zero gives inf or NaN); the others run
    in Python, which ``explain`` tells, with the reason. Defining costs a second of compilation.
    """
    return _defined(register_aggregate, "an aggregate", name, cls)


def window_type(name: str | type, cls: type | None = None) -> Any:
    """Define a window type in Python; it works in SQL and in the builder like the built-in forms.

    As ``@workbench.window_type`` over a class (its name, folded, is the form's), ``@workbench.window_type("name")``
    or ``workbench.window_type("name", cls)``::

        @workbench.window_type
        class moved:                                # SQL: moved(km, 2.5)
            fields = {"since": ("float64", 0.0), "open": ("int64", 0)}
            def __init__(self, distance): self.distance = distance
            def notify(self, context, time, km):
                if not context.open or km >= context.since + self.distance:
                    context.begin(time)
                    context.since, context.open = km, 1

    A class has one of three interfaces (docs/windows.md). ``next_edge(time)`` and ``trigger(after, until)`` are for
    windows that are known without any row: the first edge after a time, and the windows that end in between.
    ``notify(context, time, *values)`` is called for the rows of a key in order of time, and begins and ends windows
    that follow one another. ``notify_context(context, time, *values)`` adds and removes windows wherever they are,
    and ``earliest(context)`` tells where the first one may begin that is still to come. Arguments in SQL are first
    what ``values`` are of a row, then the constants of ``__init__``; a duration comes as microseconds, as times do.

    ``fields`` are what is kept of a key from row to row, as attributes of the context: type (``int64`` or
    ``float64``) and first value. Raises QueryError for a class that lacks something.
    """
    return _defined(register_window_type, "a window type", name, cls)


def _defined(register: Callable[[str, type], None], what: str, name: str | type, cls: type | None) -> Any:
    """``register`` a class by its own name, or by another; with a name alone, what decorates a class."""
    if isinstance(name, str) and cls is None:
        return partial(_defined, register, what, name)
    made = name if cls is None else cls
    if not isinstance(made, type):
        raise QueryError(f"{what} is a class, got {made!r}", hint="see the example in its help")
    register(made.__name__ if cls is None else str(name), made)
    return made


def query(source: Source | str) -> QueryBuilder:
    """Begin building a query in Python: ``query("flights").group_by("carrier").zoom("1 hour").select(n=count())``."""
    if isinstance(source, str):
        known = default_session().sources
        if source not in known:
            raise QueryError(f"no source `{source}`", hint=f"sources: {', '.join(known) or 'none yet'}")
        source = known[source]
    if not isinstance(source, Source):
        raise QueryError(f"expected a source or its name, got {_called(source)}", hint="`workbench.source` makes one")
    return build_query(source.stream)


def run(
    asked: Asked,
    *,
    name: str = "query",
    source: Source | str | None = None,
    parameters: Mapping[str, object] | None = None,
    history: bool | None = None,
    numerics: str | None = None,
) -> LiveQuery:
    """Start one query and return its handle at once. ``name`` identifies it: a running one of that name is replaced.

    ``source`` is needed only where the SQL leaves it open; ``parameters`` are the values of ``{{name}}`` in it.

    Where other queries run on the source already, the query still gets all its rows (``history``): the plan starts
    anew and catches up. With ``history=False`` it joins the running plan at once and tells the windows that begin
    from then on; a window that was partly missed is never shown. That is also what happens where nobody says and the
    source is a streaming DataFrame, of which nobody knows whether it can be read again. Raises QueryError before
    anything starts.

    ``numerics='fast'`` lets aggregates of floats be differences of prefixes: less work where windows are long and
    many, and results that are rounded as sums of more values than their own (docs/kernels.md); ``explain()`` tells
    where it is in force. By default (``'exact'``) a result depends on the rows of its window alone.
    """
    if not isinstance(history, bool | None):
        raise QueryError(f"`history` is True, False or None, got {history!r}")
    queries = bind(asked, name, source, single=True, parameters=parameters, numerics=numerics)
    (handle,) = default_session().start(queries, history=history)
    return handle


def explain(
    asked: Asked,
    *,
    name: str = "query",
    source: Source | str | None = None,
    parameters: Mapping[str, object] | None = None,
    numerics: str | None = None,
) -> str:
    """The shared plan that a query would run in, as text. Starts nothing, needs no Java."""
    queries = bind(asked, name, source, parameters=parameters, numerics=numerics)
    return PlanText(default_session().explain(queries))


def require_picture(queries: Sequence[Query]) -> None:
    """Raises QueryError for a query without a picture: along another measure than time, or without a number."""
    for query in queries:
        values = [(named.name, named.expression.type) for named in query.values]
        if not plottable(values):
            raise nothing_to_plot(values)
        for window in query.windows:
            if isinstance(window, MeasureWindow):
                raise no_time_axis(window.label)


def queries() -> list[LiveQuery]:
    """The handles of all running queries, with those that go on from a checkpoint though their cells have not run."""
    return default_session().queries()


def stop_all() -> None:
    """Stop every running query of this session. Spark itself stays up for the next one."""
    default_session().stop_all()


def bind(
    asked: Asked,
    name: str,
    source: Source | str | None,
    *,
    single: bool = False,
    snippets: Collection[str] = (),
    parameters: Mapping[str, object] | None = None,
    numerics: str | None = None,
) -> tuple[Query, ...]:
    """The queries that are meant; ``single`` refuses more than one, without ``numerics`` they keep theirs."""
    if not isinstance(asked, str | Query | QueryBuilder):
        raise QueryError(
            f"a query is SQL as text, or built by `workbench.query(...)`, got {_called(asked)}",
            hint="the rows it is about come from `workbench.source`",
        )
    if not isinstance(name, str) or not name:
        raise QueryError(f"the name of a query is text, got {name!r}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise QueryError(f"`parameters` is a dictionary of values by name, got {_called(parameters)}")
    if numerics is not None:
        wanted = numerics_of(numerics)
        queries = bind(asked, name, source, single=single, snippets=snippets, parameters=parameters)
        return tuple(replace(query, numerics=wanted) for query in queries)
    if isinstance(asked, Query):
        return (asked,)
    if isinstance(asked, QueryBuilder):
        return (asked.build(name),)
    default = source.name if isinstance(source, Source) else source
    found = default_session().parse(asked, name=name, source=default, snippets=snippets, parameters=parameters)
    if single and len(found) != 1:
        raise QueryError(f"expected one statement, got {len(found)}", hint="start them one by one")
    return found


def check_variable(name: str, variables: Mapping[str, object]) -> None:
    """Raises QueryError for what cannot name a query and, among the variables of a notebook, its handle.

    A handle in the place of a module, ``workbench`` itself perhaps, would break every cell that comes later.
    """
    if not name.isidentifier() or iskeyword(name):
        hint = "it is a word of Python" if iskeyword(name) else "use letters, digits and `_`"
        raise QueryError(f"`{name}` cannot name a query", hint=hint)
    if isinstance(variables.get(name), ModuleType):
        raise QueryError(f"`{name}` is a module in this notebook", hint="take another name for the query")


def _called(given: object) -> str:
    """What somebody gave by mistake, in a word or two."""
    return "None" if given is None else f"a `{type(given).__name__}`"
