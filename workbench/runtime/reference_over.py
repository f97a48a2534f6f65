"""The oracle of OVER: the frame of every row, found by looking at all rows of its key, as its definition says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from workbench.logical import Expression, OverCall, Query, RangeFrame, over_calls
from workbench.runtime.reference_windows import Arrival, Row, content
from workbench.runtime.textbook import recompute

#: Values by (level, key, time, time, which of the rows of this time and key).
Answer = dict[tuple[int, tuple[Any, ...], int, int, int], tuple[Any, ...]]
Scalar = Callable[[Expression, dict[Expression, Any]], Any]


def each_row(query: Query, arrivals: Sequence[Arrival], scalar: Scalar) -> tuple[Answer, int]:
    """The result of every row that is not late, and how many are. ``scalar`` evaluates over computed values."""
    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    late = 0
    for arrival in arrivals:
        for row in arrival.rows:
            if row.time < arrival.watermark - query.stream.lateness:
                late += 1
            else:
                by_key[row.key].append(row)
    answer: Answer = {}
    seen: Counter[Any] = Counter()
    for key, rows in by_key.items():
        rows.sort(key=lambda row: (row.time, content(row)))
        for position, row in enumerate(rows):
            computed = row.values | dict(zip((named.expression for named in query.keys), key, strict=True))
            for named in query.values:
                for over in over_calls(named.expression):
                    computed[over] = _aggregate(over, rows, position)
            place = 0, key, row.time, row.time
            answer[*place, seen[place]] = tuple(scalar(named.expression, computed) for named in query.values)
            seen[place] += 1
    return answer, late


def _aggregate(over: OverCall, rows: list[Row], position: int) -> Any:
    values = [
        (row.time, tuple(row.values[argument] for argument in over.call.arguments))
        for row in _frame(over, rows, position)
    ]
    return recompute(over.call.function, over.call.operands, values)


def _frame(over: OverCall, rows: list[Row], position: int) -> Iterable[Row]:
    now, reach, until = rows[position].time, over.frame.preceding, over.frame.until
    for place, row in enumerate(rows):
        if isinstance(over.frame, RangeFrame):
            inside = row.time <= now - until and (reach is None or row.time >= now - reach)
        else:
            inside = place <= position - until and (reach is None or place >= position - reach)
        if inside:
            yield row
