"""Evaluate bound expressions over columns of Arrow data: the one meaning of every scalar function.

Whole columns at a time; a row that a condition guards (``CASE``, ``coalesce``, ``AND``, ``OR``) never raises, as in
a row-by-row engine: ``CASE WHEN n > 0 THEN x / n END`` works. Faults of the data are DataErrors that name the
expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import DataError
from workbench.logical.expressions import Call, Cast, Column, Expression, Field, Literal
from workbench.logical.joins import Joined, TableColumn
from workbench.runtime.casts import cast, try_cast
from workbench.runtime.functions import KERNELS
from workbench.runtime.values import Value

#: Functions whose value can be other than NULL where an argument is, so that they always need them all.
_ASKS_ALL = {"null_safe_equal", "least", "greatest", "concat", "concat_ws"}
#: Functions that look at their last argument first.
_RIGHT_FIRST = {"divide", "try_divide", "modulo", "pmod", "div"}

Columns: TypeAlias = "pa.RecordBatch | Mapping[Expression, pa.Array]"


def evaluate(expression: Expression, columns: Columns, length: int | None = None) -> pa.Array:
    """The values of ``expression``, one per row, of the type ``expression.type``.

    ``columns`` is a batch whose columns the Column leaves name, or a mapping of already computed arrays for any
    sub-expressions: after aggregation the aggregate calls and the keys are looked up there. A sub-expression that
    is in the mapping is not computed again. ``length`` is needed only for a mapping without an entry.

    Raises DataError for overflow, division by zero and failed conversions.
    """
    rows = Evaluation.of(columns, length)
    value = rows.value(expression)
    return value if isinstance(value, pa.Array) else pa.repeat(value, rows.length)


def evaluate_filter(expression: Expression, columns: Columns, length: int | None = None) -> pa.BooleanArray:
    """The rows where a condition is true, as a mask without NULL: NULL counts as false."""
    return pc.fill_null(evaluate(expression, columns, length), False)


@dataclass
class Evaluation:
    """Some rows and everything already computed for them."""

    length: int
    known: dict[Expression, Value]
    batch: pa.RecordBatch | None = field(default=None)

    @staticmethod
    def of(columns: Columns, length: int | None) -> Evaluation:
        if isinstance(columns, pa.RecordBatch):
            return Evaluation(columns.num_rows, {}, columns)
        if length is None:
            length = len(next(iter(columns.values())))
        return Evaluation(length, dict(columns))

    def value(self, expression: Expression) -> Value:
        """A scalar stands for the same value in every row."""
        if expression not in self.known:
            self.known[expression] = self._compute(expression)
        return self.known[expression]

    def _compute(self, expression: Expression) -> Value:
        if isinstance(expression, Literal):
            return pa.scalar(expression.value, expression.type)
        if isinstance(expression, Column | TableColumn) and self.batch is not None:
            return cast(self.batch.column(expression.stored), expression.type, str(expression))
        if isinstance(expression, Field):
            return pc.struct_field(self.value(expression.argument), expression.name)
        if isinstance(expression, Joined):
            return pa.scalar(True)
        if isinstance(expression, Cast):
            convert = try_cast if expression.safe else cast
            return convert(self.value(expression.argument), expression.type, str(expression))
        if isinstance(expression, Call):
            return self._call(expression)
        raise KeyError(f"no column was given for {expression}")

    def _call(self, call: Call) -> Value:
        if call.function in ("and", "or"):
            return self._connect(call)
        if call.function == "case":
            return self._case(call.arguments, call.type)
        if call.function == "coalesce":
            return self._coalesce(call)
        if call.function == "nvl2":
            return self._case((Call(pa.bool_(), "is_not_null", call.arguments[:1]), *call.arguments[1:]), call.type)
        # A division by zero is found before what is divided is looked at.
        order = -1 if call.function in _RIGHT_FIRST else 1
        arguments: list[Value] = []
        for argument in call.arguments[::order]:
            arguments.append(self._argument(call, argument, arguments))
        return KERNELS[call.function](call, *arguments[::order])

    def _argument(self, call: Call, argument: Expression, before: list[Value]) -> Value:
        """An argument of a call, which no row is asked about where those ``before`` it tell the result already."""
        try:
            return self.value(argument)
        except DataError:
            if not before or call.function in _ASKS_ALL:
                raise
        asked = pc.is_nan(before[0]) if call.function == "nanvl" else pc.is_valid(before[0])
        for value in before[1:]:
            same = KERNELS["equal"](call, before[0], value) if call.function == "in" else pc.is_null(value)
            asked = pc.and_(asked, pc.invert(pc.fill_null(same, False)))
        return self.guarded(argument, pc.fill_null(asked, False))

    def _connect(self, call: Call) -> Value:
        """Kleene AND and OR; the right side counts only where the left side does not decide."""
        is_and = call.function == "and"
        left = self.value(call.arguments[0])
        undecided = pc.fill_null(left if is_and else pc.invert(left), True)
        right = self.guarded(call.arguments[1], undecided)
        return pc.and_kleene(left, right) if is_and else pc.or_kleene(left, right)

    def _case(self, arguments: tuple[Expression, ...], kind: pa.DataType) -> Value:
        open_rows: Value = pa.scalar(True)
        branches: list[tuple[Value, Value]] = []
        for condition, value in zip(arguments[0::2], arguments[1::2], strict=False):
            holds = pc.and_(open_rows, pc.fill_null(self.guarded(condition, open_rows), False))
            branches.append((holds, self.guarded(value, holds)))
            open_rows = pc.and_not(open_rows, holds)
        result: Value = pa.scalar(None, kind)
        if len(arguments) % 2:
            result = self.guarded(arguments[-1], open_rows)
        for holds, value in reversed(branches):
            result = pc.if_else(holds, value, result)
        return result

    def _coalesce(self, call: Call) -> Value:
        result = self.value(call.arguments[0])
        for argument in call.arguments[1:]:
            missing = pc.is_null(result)
            result = pc.if_else(missing, self.guarded(argument, missing), result)
        return result

    def guarded(self, expression: Expression, mask: Value) -> Value:
        """The values of ``expression`` where ``mask`` is true; anything elsewhere, and no error from there.

        Most expressions raise nowhere, so all rows are tried first and the chosen ones alone only after an error.
        """
        try:
            return self.value(expression)
        except DataError:
            chosen = mask if isinstance(mask, pa.Array) else pa.repeat(mask, self.length)
        picked = self._pick(chosen)
        if picked.length == 0:
            return pa.scalar(None, expression.type)
        few = picked.value(expression)
        if isinstance(few, pa.Scalar):
            return few
        place = pc.subtract(pc.cumulative_sum(pc.cast(chosen, pa.int64())), 1)
        return few.take(pc.if_else(chosen, place, pa.scalar(None, pa.int64())))

    def only(self, mask: pa.Array, expressions: Iterable[Expression]) -> Evaluation:
        """The rows that a mask without NULL keeps, with what some expressions need of them and no more."""
        known: dict[Expression, Value] = {}
        names: set[str] = set()
        waiting = list(expressions)
        while waiting:
            node = waiting.pop()
            if node in self.known:
                known[node] = self.known[node]
            elif isinstance(node, Column | TableColumn):
                names.add(node.stored)
            else:
                waiting += node.children
        batch = None if self.batch is None or not names else self.batch.select(sorted(names))
        return Evaluation(self.length, known, batch)._pick(mask)

    def _pick(self, mask: pa.Array) -> Evaluation:
        known = {
            expression: value.filter(mask) if isinstance(value, pa.Array) else value
            for expression, value in self.known.items()
        }
        batch = None if self.batch is None else self.batch.filter(mask)
        return Evaluation(pc.sum(mask, min_count=0).as_py(), known, batch)
