"""OVER: aggregates over the frame of each row, ``agg(x) OVER (PARTITION BY k ORDER BY ts RANGE ...)``.

Meant as Spark's batch OVER is. A stream asks for more: rows are ordered by their event time, and no frame goes on for
ever, so that the watermark tells when a result is final, or rows behind it do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile

from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.language.clauses import check_key
from workbench.language.over_functions import bind_over_function, is_over_function, resolve_nulls
from workbench.language.sql import SqlText
from workbench.logical import AggregateCall, Expression, Frame, OverCall, RangeFrame, RowsFrame, Stream
from workbench.logical.functions import SQL_FUNCTIONS
from workbench.time import parse_duration

#: Binds a node over single rows, or an aggregate.
Bind = Callable[[exp.Expr], Expression]

_EXAMPLE = "`avg(x) OVER (ORDER BY {time} RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW)`"


def has_over(select: exp.Select) -> bool:
    """Whether a select item has an OVER."""
    return any(item.find(exp.Window) is not None for item in select.expressions)


class OverBinder:
    """The OVERs of one statement. Every fault is a QueryError that underlines it."""

    def __init__(self, text: SqlText, select: exp.Select, stream: Stream, row: Bind, aggregate: Bind) -> None:
        self._text = text
        self._stream = stream
        self._row = row
        self._aggregate = aggregate
        self._named: dict[str, exp.Window] = {}
        for window in select.args.get("windows") or []:
            if self._named.setdefault(window.this.name.casefold(), window) is not window:
                raise text.error(f"there are two windows `{window.this.name}`", window.this, hint="rename one")
        self._partition: tuple[Expression, ...] | None = None

    @property
    def keys(self) -> tuple[Expression, ...]:
        """What the query is partitioned by."""
        return self._partition or ()

    def call(self, node: exp.Window) -> Expression:
        """The aggregate over a frame that a node means, or what a function such as ``lag`` is of them."""
        for part in ("first", "exclude"):
            if node.args.get(part):
                raise self._text.error(f"`{part.upper()}` is not supported in OVER", node)
        call = resolve_nulls(self._text, node.this)
        name = call.name.casefold()
        if name in SQL_FUNCTIONS:
            raise self._text.error(f"`{call.name}` is not an aggregate, so it has no OVER", call)
        framed = not is_over_function(name)
        if framed:
            bound = self._aggregate(call)
        else:
            bound = bind_over_function(self._text, call, self._row, self._stream.time)
        partition, order, spec = self._parts(node, self._named)
        self._check_partition(node, partition)
        self._check_order(node, order)
        if framed:
            assert isinstance(bound, AggregateCall), bound
            return OverCall(bound.type, bound, self._frame(node, spec))
        if spec is not None:
            raise self._text.error(
                f"`{name}` has no frame: it is about single rows",
                node,
                hint="leave `ROWS` or `RANGE` out of its OVER",
            )
        return bound

    def _parts(
        self, node: exp.Window, named: Mapping[str, exp.Window]
    ) -> tuple[list[exp.Expr], exp.Expr | None, exp.Expr | None]:
        """Partition, order and frame, some of them from a named window, which can build on those before it."""
        found = node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec")
        name = node.args.get("alias")
        if name is None:
            return found
        folded = name.name.casefold()
        if folded not in named:
            hint = did_you_mean(name.name, named, "window") if named else "write `WINDOW w AS (...)`"
            raise self._text.error(f"unknown window `{name.name}`", name, hint=hint)
        before = dict(takewhile(lambda entry: entry[0] != folded, named.items()))
        base = self._parts(named[folded], before)
        return found[0] or base[0], found[1] or base[1], found[2] or base[2]

    def _check_partition(self, node: exp.Window, nodes: list[exp.Expr]) -> None:
        bound = [self._row(each) for each in nodes]
        for each, key in zip(nodes, bound, strict=True):
            check_key(self._text, each, key)
        keys = tuple(dict.fromkeys(bound))
        if self._partition is None:
            self._partition = keys
        if set(keys) != set(self._partition):
            raise self._text.error(
                "all OVERs of a query have one PARTITION BY",
                node,
                hint="write two queries; their rows are read once all the same",
            )

    def _check_order(self, node: exp.Window, order: exp.Expr | None) -> None:
        """Frames need an order, and the one that a stream has is its time."""
        time = self._stream.time
        if order is None:
            raise self._text.error(
                "OVER needs an ORDER BY: without one the frame is the whole stream, which has no end",
                node,
                hint=f"write `ORDER BY {time}`",
            )
        first = order.expressions[0]
        plain = len(order.expressions) == 1 and not first.args.get("desc")
        if plain and isinstance(first.this, exp.Column) and first.this.name.casefold() == time.casefold():
            self._row(first.this)
            return
        raise self._text.error(
            f"rows of `{self._stream.name}` come in the order of its time `{time}`, ascending, and in no other",
            order,
            hint=f"write `ORDER BY {time}`",
        )

    def _frame(self, node: exp.Window, spec: exp.Expr | None) -> Frame:
        """As in SQL: without a frame all rows up to the current one and its peers."""
        if spec is None:
            return RangeFrame(None)
        kind, start, end = spec.args.get("kind"), spec.args.get("start"), spec.args.get("end")
        if spec.args.get("exclude") or kind not in ("ROWS", "RANGE"):
            raise self._text.error(
                "a frame is given as `ROWS` or `RANGE`, and nothing is left out of it", node, hint=self._example
            )
        sides = spec.args.get("start_side"), spec.args.get("end_side")
        if end == "UNBOUNDED" and sides[1] == "FOLLOWING":
            raise self._text.error(
                "a frame up to the last row never ends, as the stream does not",
                node,
                hint="let it end with `CURRENT ROW`, or so many rows or so long behind it",
            )
        if end == "UNBOUNDED" or (start == "UNBOUNDED" and sides[0] == "FOLLOWING"):
            raise self._text.error("a frame beyond the first or the last row is empty", node, hint=self._example)
        first = None if start == "UNBOUNDED" else self._distance(kind, "start", start, sides[0])
        last = self._distance(kind, "end", end, sides[1])
        with self._text.at(node):
            return RowsFrame(first, last) if kind == "ROWS" else RangeFrame(first, last)

    def _distance(self, kind: str, bound: str, node: exp.Expr | str | None, side: str | None) -> int:
        """How far before the current row a bound of a frame is, in rows or microseconds; negative: behind it."""
        if not isinstance(node, exp.Expr):
            assert node in (None, "CURRENT ROW"), node
            return 0
        with self._text.at(node):
            distance = _whole(node, bound) if kind == "ROWS" else self._duration(node, bound)
        return -distance if side == "FOLLOWING" else distance

    def _duration(self, node: exp.Expr, bound: str) -> int:
        if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
            raise QueryError(f"the {bound} of a RANGE over time is an interval", hint=self._example)
        unit = node.args.get("unit")
        return parse_duration(node.this.this + (f" {unit.name}" if isinstance(unit, exp.Var) else ""))

    @property
    def _example(self) -> str:
        return f"such as {_EXAMPLE.format(time=self._stream.time)}"


def _whole(node: exp.Expr, bound: str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        return int(node.this)
    raise QueryError(
        f"the {bound} of ROWS is a whole number of rows", hint="such as `ROWS BETWEEN 9 PRECEDING AND CURRENT ROW`"
    )
