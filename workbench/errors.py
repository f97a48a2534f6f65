"""Errors that a user meets. A leaf: imports nothing of the project.

Every error says what came, what was expected and what to do: lower case, names in backticks, a hint where
one helps, the place in the SQL underlined where there is one. They are raised before any Spark job starts
wherever the fault can be seen by then.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A half-open range of character positions ``[start, end)`` in a piece of SQL text."""

    start: int
    end: int


class WorkbenchError(Exception):
    """Base of every error that is the user's to mend; the notebook shows it without a traceback.

    ``message`` is one sentence, ``hint`` an optional second line, ``sql`` and ``span`` the text and the place
    to underline. ``str(error)`` is the whole: message, underlined text, hint.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, sql: str | None = None, span: Span | None = None
    ) -> None:
        self.message = message
        self.hint = hint
        self.sql = sql
        self.span = span
        super().__init__(message)

    def __str__(self) -> str:
        parts = [self.message]
        if self.sql is not None and self.span is not None:
            parts.append(underline(self.sql, self.span))
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it: the message alone, since the fault is not in the code above it."""
        return [f"{type(self).__name__}: {self}"]


class QueryError(WorkbenchError):
    """The SQL or the builder asks for something that does not exist or does not make sense."""


class SourceError(WorkbenchError):
    """A source cannot be read, or does not have the shape that was announced."""


class AmbiguousError(SourceError):
    """A file can be read in several ways: ``option`` says which, ``readings`` has its values and what each reads."""

    def __init__(self, message: str, option: str, readings: dict[str, str]) -> None:
        self.option = option
        self.readings = readings
        said = ", ".join(f"`{option}={value!r}` reads {what}" for value, what in readings.items())
        super().__init__(message, hint=f"say which one it is: {said}")


class DataError(WorkbenchError):
    """A row of the stream breaks the rules of a query (overflow, division by zero, an impossible time)."""


class EngineError(WorkbenchError):
    """Spark, Java or a worker cannot do what was asked."""


def underline(sql: str, span: Span) -> str:
    """The lines of ``sql`` that ``span`` touches, numbered, each with carets below the touched characters."""
    shown = []
    position = 0
    for number, whole in enumerate(sql.splitlines(keepends=True) or [""], start=1):
        line = whole.rstrip("\r\n")
        first, last = max(span.start, position), min(max(span.end, span.start + 1), position + len(line))
        if first < last or (first == last == position + len(line) and span.start == first):
            prefix = f"{number:>4} | "
            shown.append(prefix + line)
            shown.append(" " * (len(prefix) + first - position) + "^" * max(1, last - first))
        position += len(whole)
    return "\n".join(shown)


def did_you_mean(name: object, choices: Iterable[str], noun: str = "one") -> str:
    """A hint for a name that is not among ``choices``: the nearest one, or the list of them."""
    known = sorted(set(choices))
    by_fold = {choice.casefold(): choice for choice in known}
    near = difflib.get_close_matches(str(name).casefold(), list(by_fold), n=1, cutoff=0.6)
    if near:
        return f"did you mean `{by_fold[near[0]]}`?"
    if not known:
        return f"there is no {noun} yet"
    listed = ", ".join(f"`{choice}`" for choice in known[:12])
    return f"known: {listed}" + (", ..." if len(known) > 12 else "")
