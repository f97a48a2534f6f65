"""Window forms of GROUP BY.

``window(ts, size[, slide[, offset]])`` as in Spark, and ``zoom(ts, 'size / slide + offset', ...)`` for many levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from workbench.errors import QueryError, did_you_mean
from workbench.language.sql import SqlText
from workbench.logical import Stream, Window
from workbench.logical.types import type_name
from workbench.time import parse_duration

#: Forms of the design that are still to come, and the nearest thing that works.
_LATER = {
    "session_window": "`window(ts, size, slide)` works, with a size near the length of a session",
    "count_window": "`window(ts, size, slide)` works: windows of time instead of a number of rows",
    "punctuation_window": "`window(ts, size)` works: windows of time instead of marked ends",
    "last": "`window(ts, size, every)` works: windows of time instead of a number of rows",
}
_LEVEL = re.compile(r"(?P<size>[^/+]*)(?:/(?P<slide>[^/+]*))?(?:\+(?P<offset>[^/]*))?")


def is_form(node: exp.Expr) -> bool:
    """Whether ``node`` is a call of a window form, supported or not."""
    return isinstance(node, exp.Anonymous) and node.name.casefold() in FORMS


def bind_form(text: SqlText, node: exp.Expr, stream: Stream) -> tuple[Window, ...]:
    """The windows of one form, from fine to coarse. Raises QueryError that underlines what is wrong."""
    name = node.name.casefold()
    if name in _LATER:
        raise refuse_form(text, node, "GROUP BY")
    arguments = node.expressions
    if len(arguments) < 2:
        raise text.error(f"`{name}` needs the time column and a size", node, hint=_EXAMPLES[name])
    _check_time(text, arguments[0], stream, name)
    windows = _SUPPORTED[name](text, node, arguments[1:])
    return tuple(sorted(windows, key=lambda window: (window.size, window.slide, window.offset)))


def refuse_form(text: SqlText, node: exp.Expr, clause: str) -> QueryError:
    """The error for a window form that does not exist yet, or that stands where none can be."""
    name = node.name.casefold()
    if name in _LATER:
        return text.error(f"`{name}` is not supported yet", node, hint=_LATER[name])
    return text.error(f"the window form `{name}` cannot be used in {clause}", node, hint="it goes to GROUP BY, once")


def _window(text: SqlText, node: exp.Expr, arguments: list[exp.Expr]) -> list[Window]:
    if len(arguments) > 3:
        raise text.error("`window` takes a time column, size, slide and offset, no more", node)
    durations = [_duration(text, argument) for argument in arguments]
    size, slide, offset = (*durations, *[durations[0], 0][len(durations) - 1 :])
    with text.at(arguments[min(1, len(arguments) - 1)] if size > 0 else arguments[0]):
        return [Window(size, slide, offset)]


def _zoom(text: SqlText, node: exp.Expr, arguments: list[exp.Expr]) -> list[Window]:
    windows: list[Window] = []
    for argument in arguments:
        with text.at(argument):
            window = parse_level(_string(argument))
            if window in windows:
                raise QueryError(f"the level `{window.label}` is there twice", hint="name every level once")
        windows.append(window)
    return windows


def parse_level(level: str) -> Window:
    """One zoom level from ``'size'``, ``'size / slide'`` or ``'size / slide + offset'``; inverse to Window.label."""
    parts = _LEVEL.fullmatch(level)
    if parts is None:
        raise QueryError(f"cannot read the zoom level '{level}'", hint=_EXAMPLES["zoom"])
    size = parse_duration(parts["size"])
    slide = size if parts["slide"] is None else parse_duration(parts["slide"])
    return Window(size, slide, 0 if parts["offset"] is None else parse_duration(parts["offset"]))


def _check_time(text: SqlText, node: exp.Expr, stream: Stream, form: str) -> None:
    """The first argument must be the time column of the stream."""
    if not isinstance(node, exp.Column):
        raise text.error(f"`{form}` needs the time column `{stream.time}` first", node)
    name = next((n for n in stream.schema.names if n.casefold() == node.name.casefold()), None)
    if name is None:
        hint = did_you_mean(node.name, stream.schema.names, "column")
        raise text.error(f"unknown column `{node.name}` in `{stream.name}`", node, hint=hint)
    kind = stream.schema.field(name).type
    if not pa.types.is_timestamp(kind):
        raise text.error(
            f"`{form}` needs a timestamp, but `{name}` is `{type_name(kind)}`",
            node,
            hint=None if name == stream.time else f"the time column of `{stream.name}` is `{stream.time}`",
        )
    if name != stream.time:
        raise text.error(
            f"`{name}` is not the time column of `{stream.name}`",
            node,
            hint=f"write `{stream.time}`, or make a source with `{name}` as its time",
        )


def _duration(text: SqlText, node: exp.Expr) -> int:
    with text.at(node):
        if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
            unit = node.args.get("unit")
            return parse_duration(node.this.this + (f" {unit.name}" if isinstance(unit, exp.Var) else ""))
        return parse_duration(_string(node))


def _string(node: exp.Expr) -> str:
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    raise QueryError("expected a duration in quotes", hint="such as '10 minutes'")


_SUPPORTED: dict[str, Callable[[SqlText, exp.Expr, list[exp.Expr]], list[Window]]] = {
    "window": _window,
    "zoom": _zoom,
}
_EXAMPLES = {
    "window": "such as `window(ts, '10 minutes', '1 minute')`",
    "zoom": "such as `zoom(ts, '15 minutes / 1 minute', '1 day / 1 hour')`",
}

#: The names of all window forms.
FORMS = (*_SUPPORTED, *_LATER)
