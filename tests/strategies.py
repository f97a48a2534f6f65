"""Random streams and workloads for property tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import user_windows
from hypothesis import strategies as st

from workbench.algebra import AGGREGATES, Aggregate
from workbench.errors import QueryError
from workbench.language import parse_queries
from workbench.logical import (
    AggregateCall,
    AnyWindow,
    Backwards,
    Band,
    Calendar,
    Call,
    Cast,
    Column,
    ContextFree,
    CountWindow,
    Cumulating,
    EachRow,
    Expression,
    Fill,
    Frame,
    LastRows,
    Literal,
    MeasureWindow,
    Named,
    OverCall,
    Punctuation,
    Query,
    RangeFrame,
    RowsFrame,
    Session,
    Stream,
    UserGrid,
    Window,
    Workload,
)
from workbench.logical.expressions import operands
from workbench.logical.user_windows import WINDOW_TYPES, call_of, define
from workbench.logical.windows import CALENDAR_UNITS

SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
    ]
)
K, N, X, B, TS, D = (Column(SCHEMA.field(name).type, name) for name in ("k", "i", "x", "b", "ts", "d"))
#: An amount of money, made of the integers.
P = Call(
    pa.decimal128(9, 4),
    "multiply",
    (
        Cast(pa.decimal128(5, 2), Call(pa.int64(), "modulo", (N, Literal(pa.int64(), 1000)))),
        Literal(pa.decimal128(3, 2), Decimal("1.25")),
    ),
)
#: The same with more digits than an integer has; of these only some aggregates take all.
W = Cast(pa.decimal128(38, 20), P)
WIDE = ("count", "sum", "try_sum", "avg", "min", "max")
COLUMNS = (K, N, X, B, TS, D, P, W)

#: Values at the edges of a type beside ordinary ones. Floats are small multiples of 1/8, so sums are exact.
INTEGERS = st.one_of(st.none(), st.integers(-100, 100), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))
FLOATS = st.one_of(
    st.none(),
    st.integers(-800, 800).map(lambda n: n / 8),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), -0.0]),
)


def windows() -> st.SearchStrategy[Window]:
    """Windows of up to 20 s, with slides that need not divide them, and offsets."""

    def build(slide: int, extra: int, offset: int) -> Window:
        return Window((slide + extra) * SECOND, slide * SECOND, offset * SECOND)

    return st.builds(build, st.integers(1, 8), st.integers(0, 12), st.integers(0, 5))


def cumulating() -> st.SearchStrategy[Cumulating]:
    return st.builds(
        lambda step, steps, offset: Cumulating(step * steps * SECOND, step * SECOND, offset * SECOND),
        st.integers(1, 6),
        st.integers(1, 4),
        st.integers(0, 9),
    )


def bands() -> st.SearchStrategy[Band]:
    return st.builds(
        lambda start, size: Band(start * SECOND, (start + size) * SECOND), st.integers(-30, 30), st.integers(1, 30)
    )


def calendars() -> st.SearchStrategy[Calendar]:
    """Days and longer; the rows of :func:`streams` are around the beginning of 1970."""
    return st.builds(
        Calendar,
        st.sampled_from(CALENDAR_UNITS),
        st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
        st.integers(1, 3),
    )


def sessions() -> st.SearchStrategy[Session]:
    dynamic = Call(pa.string(), "case", (B, Literal(pa.string(), "2 seconds"), Literal(pa.string(), "5 seconds")))
    partly = Call(pa.string(), "case", (B, Literal(pa.string(), "3 seconds")))
    gaps = st.integers(1, 30).map(lambda quarters: quarters * SECOND // 4)
    return st.builds(Session, st.one_of(gaps, st.sampled_from([dynamic, partly])), st.booleans())


def counts() -> st.SearchStrategy[CountWindow]:
    return st.builds(lambda slide, extra: CountWindow(slide + extra, slide), st.integers(1, 5), st.integers(0, 7))


def lasts() -> st.SearchStrategy[LastRows]:
    return st.builds(
        lambda rows, every, offset: LastRows(rows, every * SECOND, offset * SECOND),
        st.integers(1, 8),
        st.integers(1, 9),
        st.integers(0, 4),
    )


def punctuations() -> st.SearchStrategy[Punctuation]:
    large = Call(pa.bool_(), "greater", (X, Literal(pa.float64(), 25.0)))
    return st.builds(Punctuation, st.sampled_from([B, large]))


#: Numbers that count up with time, as integers and doubles; some rows go back, or have none.
SECONDS = Call(pa.int64(), "unix_seconds", (TS,))
HALVES = Call(
    pa.float64(), "divide", (Cast(pa.float64(), Call(pa.int64(), "unix_millis", (TS,))), Literal(pa.float64(), 900.0))
)
JOLTED = Call(
    pa.int64(), "subtract", (SECONDS, Call(pa.int64(), "case", (B, Literal(pa.int64(), 3), Literal(pa.int64(), 0))))
)
GAPPED = Call(pa.float64(), "case", (Call(pa.bool_(), "is_not_null", (N,)), HALVES))


def measures() -> st.SearchStrategy[MeasureWindow]:
    """Windows along a number; of a double with one digit behind the point, where edges are no doubles."""

    def build(measure: Expression, slide: int, extra: int, offset: int) -> MeasureWindow:
        digits = int(pa.types.is_floating(measure.type))
        return MeasureWindow(measure, slide + extra, slide, offset, digits, Backwards.DROP)

    number = st.sampled_from([SECONDS, HALVES, JOLTED, GAPPED])
    return st.builds(build, number, st.integers(1, 30), st.integers(0, 40), st.integers(0, 5))


for _name, _class in user_windows.ALL.items():
    define(f"own_{_name}", _class)
#: Window types of a user's, by the names that plans know them by.
OWN = {name: WINDOW_TYPES[f"own_{name}"].name for name in user_windows.ALL}


def own_grids() -> st.SearchStrategy[AnyWindow]:
    """Windows of a user's that are context free."""

    def build(slide: int, extra: int, offset: int) -> AnyWindow:
        return call_of(OWN["u_tumbling"], (), [part * SECOND for part in (slide + extra, slide, offset)])

    return st.builds(build, st.integers(1, 8), st.integers(0, 12), st.integers(0, 5))


def own_rows() -> st.SearchStrategy[AnyWindow]:
    """Windows of a user's that depend on the rows: one after the other, by marks or values, and over one another."""
    visits = st.integers(1, 30).map(lambda quarters: call_of(OWN["u_visits"], (), (quarters * SECOND // 4,)))
    marks = st.just(call_of(OWN["u_marks"], (B,), ()))
    moved = st.sampled_from([1.5, 30.0]).map(lambda step: call_of(OWN["u_moved"], (X,), (step,)))
    pauses = st.integers(1, 30).map(lambda quarters: call_of(OWN["u_pauses"], (), (quarters * SECOND // 4,)))
    last = st.builds(
        lambda rows, every: call_of(OWN["u_last"], (), (rows, every * SECOND)), st.integers(1, 8), st.integers(1, 9)
    )
    before = st.integers(1, 8).map(lambda rows: call_of(OWN["u_before"], (B,), (rows,)))
    return st.one_of(visits, marks, moved, pauses, last, before)


#: Window types by name, each with how many levels a query may have of it.
TYPES: dict[str, tuple[st.SearchStrategy[Any], int]] = {
    "sliding": (windows(), 3),
    "cumulating": (cumulating(), 1),
    "band": (bands(), 1),
    "calendar": (calendars(), 1),
    "session": (sessions(), 1),
    "count": (counts(), 1),
    "last": (lasts(), 1),
    "punctuation": (punctuations(), 1),
    "measure": (measures(), 1),
    "own grid": (own_grids(), 1),
    "own rows": (own_rows(), 1),
}


#: Constants for the aggregates that take some; every one of them must be here.
CONSTANTS: dict[str, list[tuple[Any, ...]]] = {
    "histogram": [(-10, 10, 4), (0, 0.5, 1), ((-2.5, 0.0, 0.125, 50.0),)],
    "quantile": [
        (0.5,),
        ((0.0, 0.3, 1.0),),
        *((0.77, method) for method in ("linear", "lower", "higher", "nearest", "midpoint")),
    ],
    "approx_quantile": [(0.5,), ((0.0, 0.77, 1.0),)],
}


def constants(aggregate: Aggregate) -> list[tuple[Literal, ...]]:
    """The constants to try an aggregate with."""
    if aggregate.constant_from is None:
        return [()]
    return [tuple(map(literal, chosen)) for chosen in CONSTANTS[aggregate.name]]


def literal(value: Any) -> Literal:
    """A constant with its type; a tuple is an array of floats."""
    if isinstance(value, tuple):
        return Literal(pa.list_(pa.float64()), value)
    kinds = {int: pa.int32(), float: pa.float64(), str: pa.string()}
    return Literal(kinds[type(value)], value)


def calls_of(aggregate: Aggregate) -> list[AggregateCall]:
    """The aggregate over every column that fits, and over every pair or array of constants if it takes more.

    Plain ``sum`` and ``range`` of integers are left to tests of their own, since they may raise.
    """
    found = []
    least, most = aggregate.arity
    most = most if aggregate.constant_from is None else aggregate.constant_from
    for width in range(max(1, min(least, most)), most + 1):
        for columns, fixed in product(product(COLUMNS, repeat=width), constants(aggregate)):
            if aggregate.name in ("sum", "range") and columns[0] is N:
                continue
            if W in columns and aggregate.name not in WIDE:
                continue
            arguments = (*columns, *fixed)
            try:
                kind = aggregate.result_type(operands(arguments))
            except QueryError:  # the type does not fit the aggregate
                continue
            found.append(AggregateCall(kind, aggregate.name, arguments))
    assert found, f"no call of {aggregate.name} to test"
    return found


CALLS = {
    "count(*)": [AggregateCall(pa.int64(), "count", ())],
    **{aggregate.name: calls_of(aggregate) for aggregate in AGGREGATES.values()},
}


def calls(names: Sequence[str] = tuple(sorted(CALLS))) -> st.SearchStrategy[AggregateCall]:
    """Any of the aggregates over columns it fits."""
    return st.sampled_from(names).flatmap(lambda name: st.sampled_from(CALLS[name]))


def conditions() -> st.SearchStrategy[Expression | None]:
    """No filter, or one over a column with NULLs."""
    return st.sampled_from(
        [
            None,
            Call(pa.bool_(), "is_not_null", (N,)),
            Call(pa.bool_(), "greater", (X, Literal(pa.float64(), 0.0))),
            B,
        ]
    )


def fills(window: AnyWindow, values: Sequence[Named]) -> st.SearchStrategy[Fill | None]:
    """What windows without rows can be filled with, if they can be."""
    if not isinstance(window, ContextFree) or isinstance(window, UserGrid):
        return st.none()
    kinds = [value.expression.type for value in values]
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    return st.sampled_from([None, Fill.NULL, Fill.PREVIOUS, *([Fill.ZERO] if numbers else [])])


@st.composite
def workloads(
    draw: st.DrawFn,
    most: int = 3,
    names: Sequence[str] = tuple(sorted(CALLS)),
    types: Sequence[str] = ("sliding",),
) -> Workload:
    """One to ``most`` queries on one stream with a random watermark delay, of some aggregates or of all.

    ``types`` are the window types to choose from; with others than sliding windows, rows may be allowed to be late.
    """
    lateness = draw(st.sampled_from([0, 0, 4, 20])) * SECOND if len(types) > 1 else 0
    stream = Stream("s", SCHEMA, "ts", draw(st.integers(0, 12)) * SECOND, lateness)
    queries = []
    for number in range(draw(st.integers(1, most))):
        chosen = draw(st.lists(calls(names), min_size=1, max_size=4, unique=True))
        strategy, levels_at_most = TYPES[draw(st.sampled_from(types))]
        levels = draw(st.lists(strategy, min_size=1, max_size=levels_at_most, unique=True))
        keys = (Named("k", K),) if draw(st.booleans()) else ()
        values = tuple(Named(f"v{index}", call) for index, call in enumerate(chosen))
        fill = draw(fills(levels[0], values)) if len(types) > 1 else None
        queries.append(Query(f"q{number}", stream, draw(conditions()), keys, tuple(levels), values, None, fill))
    return Workload(stream, tuple(queries))


#: The rows themselves as values: a plain column, one with text, and an expression.
ROW_VALUES: list[Expression] = [N, X, K, Call(pa.bool_(), "is_null", (B,))]


#: Functions that stand before OVER alone, and what a user makes of them.
OVER_ITEMS = [
    "lag(x) OVER w", "lag(k, 2, '-') OVER w", "lag(i, 3, 7) OVER w", "lag(b, 1, x > 0) OVER w", "lag(d) OVER w",
    "lag(ts) OVER w", "lead(x) OVER w", "lead(i, 2, -1) OVER w", "row_number() OVER w", "rank() OVER w",
    "x - lag(x) OVER w", "CASE WHEN lag(k) OVER w = k THEN lag(x, 2) OVER w ELSE x END",
]  # fmt: skip


def over_items() -> list[Expression]:
    """The same, bound."""
    sql = f"SELECT {', '.join(f'{item} AS v{place}' for place, item in enumerate(OVER_ITEMS))} FROM s"
    (query,) = parse_queries(f"{sql} WINDOW w AS (ORDER BY ts)", {"s": Stream("s", SCHEMA, "ts", 0)}, name="q")
    return [named.expression for named in query.values]


OVER_VALUES = over_items()


def frames() -> st.SearchStrategy[Frame]:
    """By rows and by time, ending with the current row, as most do, before or behind it."""

    def between(kind: Callable[..., Frame], unit: int, ends: tuple[int, int]) -> Frame:
        until, size = ends
        return kind(None if size < 0 else (until + size) * unit, until * unit)

    ends = st.tuples(st.one_of(st.just(0), st.integers(-6, 12)), st.integers(-1, 9))
    longer = st.tuples(st.one_of(st.just(0), st.integers(-20, 20)), st.integers(-1, 40))
    rows = st.builds(between, st.just(RowsFrame), st.just(1), ends)
    return st.one_of(rows, st.builds(between, st.just(RangeFrame), st.just(SECOND // 4), longer))


@st.composite
def over_workloads(draw: st.DrawFn, most: int = 3, names: tuple[str, ...] = tuple(sorted(CALLS))) -> Workload:
    """OVER queries with several frames, some beside a query over the same fold that keeps rows for its windows."""
    stream = Stream("s", SCHEMA, "ts", draw(st.integers(0, 12)) * SECOND, draw(st.sampled_from([0, 0, 5])) * SECOND)
    queries = []
    for number in range(draw(st.integers(1, most))):
        chosen = draw(st.lists(st.tuples(calls(names), frames()), min_size=1, max_size=4, unique=True))
        keys = (Named("k", K),) if draw(st.booleans()) else ()
        row = draw(st.lists(st.sampled_from(ROW_VALUES), max_size=2, unique=True))
        values: list[Expression] = [OverCall(call.type, call, frame) for call, frame in chosen]
        values += draw(st.lists(st.sampled_from(OVER_VALUES), max_size=2, unique=True))
        where = draw(conditions())
        named = tuple(
            Named(f"v{place}", value)
            for place, value in enumerate(dict.fromkeys([*values, *row]))
            if value != K or not keys
        )
        queries.append(Query(f"q{number}", stream, where, keys, (EachRow(),), named))
        if draw(st.booleans()):
            counted = tuple(Named(f"v{place}", call) for place, (call, _) in enumerate(chosen))
            queries.append(Query(f"c{number}", stream, where, keys, (CountWindow(3, 2),), counted))
    return Workload(stream, tuple(queries))


#: Times around 1970, and so few of them that most rows share theirs with others.
APART = st.integers(-30 * SECOND, 40 * SECOND).map(lambda t: t // (SECOND // 4) * (SECOND // 4))
CLOSE = st.integers(-1, 4).map(lambda t: t * SECOND)


@st.composite
def streams(draw: st.DrawFn, most: int = 40, times: st.SearchStrategy[int] = APART) -> list[pa.Table]:
    """Rows in any order of event time, cut into micro-batches at random places."""
    row = st.fixed_dictionaries(
        {
            "ts": times,
            "k": st.sampled_from([None, "a", "b", "c", ""]),
            "i": INTEGERS,
            "x": FLOATS,
            "b": st.sampled_from([None, True, False]),
            "d": st.sampled_from([None, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]),
        }
    )
    rows: list[dict[str, Any]] = draw(st.lists(row, max_size=most))
    if draw(st.booleans()):
        rows.sort(key=lambda r: r["ts"])
    table = pa.Table.from_pylist(rows, SCHEMA)
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    bounds = [0, *cuts, len(rows)]
    return [table.slice(a, b - a) for a, b in pairwise(bounds)]
