"""Window forms of GROUP BY, from text to the window types of :mod:`workbench.logical.windows`.

``window`` and ``session_window`` are Spark's, and mean what they mean there; the others are ours. :data:`EXAMPLES`
has one of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.language.literals import moment
from workbench.language.sql import SqlText
from workbench.logical import (
    AnyWindow,
    Backwards,
    Band,
    Calendar,
    CountWindow,
    Cumulating,
    Expression,
    LastRows,
    Literal,
    MeasureWindow,
    Punctuation,
    Session,
    Stream,
    Window,
    require_few,
)
from workbench.logical.types import is_number, type_name
from workbench.logical.user_windows import WINDOW_TYPES, Constant, Micros, call_of
from workbench.time import MICROSECOND, parse_duration

_LEVEL = re.compile(r"(?P<size>[^/+]*)(?:/(?P<slide>[^/+]*))?(?:\+(?P<offset>[^/]*))?")
_CALENDAR = re.compile(r"\s*(?:(?P<count>[+-]?\d+)\s+)?(?P<unit>[A-Za-z]+?)s?\s*(?:\bin\s+(?P<zone>\S+))?\s*")

#: Binds an expression over the rows of the stream.
Bind = Callable[[exp.Expr], Expression]


def is_form(node: exp.Expr) -> bool:
    """Whether ``node`` is a call of a window form."""
    return isinstance(node, exp.Anonymous) and node.name.casefold() in window_forms()


def window_forms() -> tuple[str, ...]:
    """The names of all window forms, those of a user's among them."""
    return (*FORMS, *WINDOW_TYPES)


def bind_form(text: SqlText, node: exp.Expr, stream: Stream, bind: Bind) -> tuple[AnyWindow, ...]:
    """The windows of one form, from fine to coarse. Raises QueryError that underlines what is wrong."""
    name, call = node.name.casefold(), _Call(text, node, stream, bind)
    if name in WINDOW_TYPES:
        return (_user(call),)
    form, least, most = _FORMS[name]
    if not least <= len(call.arguments) <= most:
        raise text.error(f"`{name}` {_ARGUMENTS[name]}", node, hint=f"such as `{EXAMPLES[name]}`")
    windows = tuple(form(call))
    with text.at(node):
        for window in windows:
            require_few(window)
    return windows


def refuse_form(text: SqlText, node: exp.Expr, clause: str) -> QueryError:
    """The error for a window form that stands where none can be."""
    name = node.name.casefold()
    if clause == "GROUP BY":
        hint = "it is an entry of its own, with a comma before it"
        return text.error(f"the window form `{name}` cannot be a part of an expression", node, hint=hint)
    return text.error(f"the window form `{name}` cannot be used in {clause}", node, hint="it goes to GROUP BY, once")


@dataclass(frozen=True)
class _Call:
    """One call of a form, and how its arguments are read."""

    text: SqlText
    node: exp.Expr
    stream: Stream
    bind: Bind

    @property
    def arguments(self) -> Sequence[exp.Expr]:
        """The arguments as they stand."""
        found: list[exp.Expr] = self.node.expressions
        return found

    def time(self) -> None:
        """The first argument must be the time column of the stream."""
        node, form, stream = self.arguments[0], self.node.name.casefold(), self.stream
        if not isinstance(node, exp.Column):
            quoted = isinstance(node, exp.Literal) and node.is_string and node.this == stream.time
            hint = "a column stands without quotes" if quoted else None
            raise self.text.error(f"`{form}` needs the time column `{stream.time}` first", node, hint=hint)
        if node.table and node.table.casefold() != stream.name.casefold():
            hint = f"`{stream.name}.{stream.time}` is"
            raise self.text.error("this is not the time of the stream", node, hint=hint)
        name = next((n for n in stream.schema.names if n.casefold() == node.name.casefold()), None)
        if name is None:
            hint = did_you_mean(node.name, stream.schema.names, "column")
            raise self.text.error(f"unknown column `{node.name}` in `{stream.name}`", node, hint=hint)
        kind = stream.schema.field(name).type
        if not pa.types.is_timestamp(kind):
            raise self.text.error(
                f"`{form}` needs a timestamp, but `{name}` is `{type_name(kind)}`",
                node,
                hint=None if name == stream.time else _other_time(stream, name),
            )
        if name != stream.time:
            raise self.text.error(
                f"`{name}` is not the time column of `{stream.name}`",
                node,
                hint=f"write `{stream.time}`, or make a source with `{name}` as its time",
            )

    def duration(self, place: int) -> int:
        """A duration in microseconds."""
        node = self.arguments[place]
        with self.text.at(node):
            if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
                unit = node.args.get("unit")
                return parse_duration(node.this.this + (f" {unit.name}" if isinstance(unit, exp.Var) else ""))
            return parse_duration(self.string(place))

    def string(self, place: int, what: str = "a duration", example: str = "'10 minutes'") -> str:
        """A text in quotes."""
        node = self.arguments[place]
        if isinstance(node, exp.Literal) and node.is_string:
            return str(node.this)
        raise self.text.error(f"expected {what} in quotes", node, hint=f"such as {example}")

    def decimal(self, place: int) -> Decimal:
        """A number as it is written, digit by digit."""
        node, sign = self.arguments[place], 1
        if isinstance(node, exp.Neg):
            node, sign = node.this, -1
        if isinstance(node, exp.Literal) and not node.is_string:
            return sign * Decimal(node.this)
        raise self.text.error("expected a number", self.arguments[place], hint="such as `10` or `2.5`")

    def constant(self, place: int) -> Constant:
        """A number, a text, a boolean or a duration."""
        node = self.arguments[place]
        if isinstance(node, exp.Interval):
            return Micros(self.duration(place))
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal) and node.is_string:
            return str(node.this)
        with self.text.at(node):
            number = self.decimal(place)
        return float(number) if set(str(number)) & set(".eE") else int(number)

    def whole(self, place: int) -> int:
        """A number of rows."""
        node, sign = self.arguments[place], 1
        if isinstance(node, exp.Neg):
            node, sign = node.this, -1
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            if int(node.this) > _MOST_ROWS:
                raise self.text.error(f"no window has more than {_MOST_ROWS:,} rows", self.arguments[place])
            return sign * int(node.this)
        raise self.text.error("expected a whole number of rows", self.arguments[place], hint="such as `100`")


def _window(call: _Call) -> list[AnyWindow]:
    call.time()
    durations = [call.duration(place) for place in range(1, len(call.arguments))]
    size, slide, offset = (*durations, *[durations[0], 0][len(durations) - 1 :])
    with call.text.at(call.arguments[min(2, len(call.arguments) - 1)] if size > 0 else call.arguments[1]):
        return [Window(size, slide, offset)]


def _zoom(call: _Call) -> list[AnyWindow]:
    call.time()
    windows: list[Window] = []
    for place in range(1, len(call.arguments)):
        with call.text.at(call.arguments[place]):
            window = parse_level(call.string(place))
            if window in windows:
                raise QueryError(f"the level `{window.label}` is there twice", hint="name every level once")
        windows.append(window)
    return [*sorted(windows, key=lambda window: (window.size, window.slide, window.offset))]


def _session(call: _Call) -> list[AnyWindow]:
    call.time()
    node, joins = call.arguments[1], call.node.name.casefold() == "session_window"
    if isinstance(node, (exp.Literal, exp.Interval)):
        with call.text.at(node):
            return [Session(call.duration(1), joins)]
    gap = call.bind(node)
    if not pa.types.is_string(gap.type):
        raise call.text.error(
            f"the gap of a session is a duration or gives one as text, got `{type_name(gap.type)}`",
            node,
            hint="such as `CASE WHEN vip THEN '1 hour' ELSE '10 minutes' END`",
        )
    return [Session(gap, joins)]


def _count(call: _Call) -> list[AnyWindow]:
    size, slide = (call.whole(0), call.whole(len(call.arguments) - 1))
    with call.text.at(call.arguments[-1] if size > 0 else call.arguments[0]):
        return [CountWindow(size, slide)]


def _punctuation(call: _Call) -> list[AnyWindow]:
    condition = call.bind(call.arguments[0])
    if condition.type != pa.bool_():
        raise call.text.error(
            f"`punctuation_window` needs a condition, got `{type_name(condition.type)}`",
            call.arguments[0],
            hint=f"such as `{EXAMPLES['punctuation_window']}`",
        )
    return [Punctuation(condition)]


def _last(call: _Call) -> list[AnyWindow]:
    rows, every = call.whole(0), call.duration(1)
    with call.text.at(call.arguments[1] if rows > 0 else call.arguments[0]):
        return [LastRows(rows, every, call.duration(2) if len(call.arguments) > 2 else 0)]


def _measure(call: _Call) -> list[AnyWindow]:
    measure = call.bind(call.arguments[0])
    if isinstance(measure, Literal):
        raise call.text.error("a constant is no measure", call.arguments[0], hint="name a column that counts up")
    places = list(range(1, len(call.arguments)))
    last, backwards = call.arguments[-1], Backwards.ERROR
    if len(places) > 1 and isinstance(last, exp.Literal) and last.is_string:
        known = [each.value for each in Backwards]
        if last.this not in known:
            hint = did_you_mean(last.this, known, "word")
            raise call.text.error(f"cannot treat rows that go back as '{last.this}'", last, hint=hint)
        backwards = Backwards(last.this)
        places.pop()
    numbers = [call.decimal(place) for place in places[:3]]
    if len(places) > 3:
        raise call.text.error("expected 'error' or 'drop' in quotes", last, hint=f"such as {_MEASURE_DROP}")
    size, slide, offset = (*numbers, *[numbers[0], Decimal(0)][len(numbers) - 1 :])
    wrong = min(2, places[-1]) if size > 0 else 1
    with call.text.at(call.arguments[wrong if is_number(measure.type) else 0]):
        return [MeasureWindow.of(measure, size, slide, offset, backwards)]


def _cumulate(call: _Call) -> list[AnyWindow]:
    call.time()
    size, step = call.duration(1), call.duration(2)
    with call.text.at(call.arguments[2] if size > 0 else call.arguments[1]):
        return [Cumulating(size, step, call.duration(3) if len(call.arguments) > 3 else 0)]


def _band(call: _Call) -> list[AnyWindow]:
    call.time()
    bounds = []
    for place in (1, 2):
        with call.text.at(call.arguments[place]):
            literal = moment(call.string(place, "a time", "'2013-01-31 10:15:00'"), pa.timestamp("us"))
        assert isinstance(literal.value, datetime)
        since = literal.value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        bounds.append(((since.days * 86_400) + since.seconds) * 1_000_000 + since.microseconds * MICROSECOND)
    with call.text.at(call.arguments[2]):
        return [Band(*bounds)]


def _calendar(call: _Call) -> list[AnyWindow]:
    call.time()
    unit = call.string(1, "a calendar unit", "'1 month'")
    zone = call.string(2, "a time zone", "'Europe/Berlin'") if len(call.arguments) > 2 else "UTC"
    with call.text.at(call.arguments[1]):
        parts = _CALENDAR.fullmatch(unit)
        if parts is None or parts["zone"]:
            raise QueryError(f"cannot read the calendar unit '{unit}'", hint="such as '1 month' or '2 weeks'")
        window = Calendar(parts["unit"].casefold(), count=int(parts["count"] or 1))
    with call.text.at(call.arguments[-1]):
        return [Calendar(window.unit, zone, window.count)]


def parse_level(level: str) -> Window:
    """One zoom level from ``'size'``, ``'size / slide'`` or ``'size / slide + offset'``; inverse to Window.label."""
    if not isinstance(level, str):
        raise QueryError(f"a level is text such as '1 hour / 5 minutes', got {level!r}")
    parts = _LEVEL.fullmatch(level)
    if parts is None:
        raise QueryError(f"cannot read the zoom level '{level}'", hint=f"such as `{EXAMPLES['zoom']}`")
    size = parse_duration(parts["size"])
    slide = size if parts["slide"] is None else parse_duration(parts["slide"])
    return Window(size, slide, 0 if parts["offset"] is None else parse_duration(parts["offset"]))


def _user(call: _Call) -> AnyWindow:
    """A window type of a user's: what it reads of a row, then its constants."""
    entry = WINDOW_TYPES[call.node.name.casefold()]
    nodes = call.arguments
    if len(nodes) < entry.values:
        raise call.text.error(
            f"`{entry.plain}` reads {entry.values} values of each row, got {len(nodes)}",
            call.node,
            hint="what its class takes behind `time` comes first, then the constants of `__init__`",
        )
    arguments = [call.bind(node) for node in nodes[: entry.values]]
    for node, argument in zip(nodes, arguments, strict=False):
        if isinstance(argument, Literal):
            raise call.text.error(f"`{entry.plain}` reads a value of each row here, got a constant", node)
    constants = [call.constant(place) for place in range(entry.values, len(nodes))]
    with call.text.at(call.node):
        return call_of(entry.name, arguments, constants)


def _other_time(stream: Stream, name: str) -> str:
    """What to write where ``name`` cannot be the time."""
    hint = f"the time column of `{stream.name}` is `{stream.time}`"
    if is_number(stream.schema.field(name).type):
        hint += f"; windows along a number are `measure_window({name}, 10)`"
    return hint


_MANY = 1 << 10
_MOST_ROWS = 1_000_000_000
_MEASURE_DROP = "`measure_window(km, 10, 1, 0, 'drop')`"

#: What reads a form, and the least and the largest number of its arguments.
_FORMS: dict[str, tuple[Callable[[_Call], list[AnyWindow]], int, int]] = {
    "window": (_window, 2, 4),
    "zoom": (_zoom, 2, _MANY),
    "session_window": (_session, 2, 2),
    "gap_window": (_session, 2, 2),
    "count_window": (_count, 1, 2),
    "punctuation_window": (_punctuation, 1, 1),
    "last": (_last, 2, 3),
    "measure_window": (_measure, 2, 5),
    "cumulate_window": (_cumulate, 3, 4),
    "band_window": (_band, 3, 3),
    "calendar_window": (_calendar, 2, 3),
}

_ARGUMENTS = {
    "window": "takes the time column, a size and, if you like, slide and offset",
    "zoom": "takes the time column and one level or more",
    "session_window": "takes the time column and a gap",
    "gap_window": "takes the time column and a gap",
    "count_window": "takes a number of rows and, if you like, a slide in rows",
    "punctuation_window": "takes the condition of the rows that begin a window",
    "last": "as a window takes a number of rows, the time between two windows and, if you like, an offset",
    "measure_window": "takes a number that counts up, a size and, if you like, slide, offset and 'error' or 'drop'",
    "cumulate_window": "takes the time column, a size, a step that divides it and, if you like, an offset",
    "band_window": "takes the time column, a start and an end",
    "calendar_window": "takes the time column, a calendar unit and, if you like, a time zone",
}

#: One example of each form.
EXAMPLES = {
    "window": "window(ts, '10 minutes', '1 minute')",
    "zoom": "zoom(ts, '15 minutes / 1 minute', '1 day / 1 hour')",
    "session_window": "session_window(ts, '30 minutes')",
    "gap_window": "gap_window(ts, '30 minutes')",
    "count_window": "count_window(100, 10)",
    "punctuation_window": "punctuation_window(event = 'start')",
    "last": "last(100, '1 minute')",
    "measure_window": "measure_window(km, 10, 1)",
    "cumulate_window": "cumulate_window(ts, '1 day', '1 hour')",
    "band_window": "band_window(ts, '2013-01-01', '2013-02-01')",
    "calendar_window": "calendar_window(ts, '1 month', 'Europe/Berlin')",
}

#: The names of all window forms.
FORMS = tuple(_FORMS)
