"""Constants with a grammar of their own: regular expressions, formats and units of time. Checked before a query runs.

Regular expressions are RE2's, which is Java's without look-around and back-references.
Their time is linear in the text.
Formats of times are Spark's letters, those that are the same in every locale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import QueryError, did_you_mean

#: Units of ``date_trunc`` by every name that Spark has for them.
UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month",
    "mon": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute",
    "second": "second", "millisecond": "millisecond", "microsecond": "microsecond",
}  # fmt: skip

#: Those of ``trunc``, which gives a date.
DATE_UNITS = {name: unit for name, unit in UNITS.items() if unit in ("year", "quarter", "month", "week")}

#: Letters of a format, and how many of them may stand in a row to be read; what is only written comes after.
_LETTERS = {"y": (4,), "M": (1, 2), "d": (1, 2), "H": (1, 2), "m": (1, 2), "s": (1, 2), "S": (1, 2, 3, 4, 5, 6)}
_WRITTEN = {**_LETTERS, "y": (2, 4), "M": (1, 2, 3, 4), "E": (1, 2, 3, 4)}

_OPENING = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?!\?)|\(\?P?<(?![=!])[^>]*>", re.DOTALL)


@dataclass(frozen=True)
class Piece:
    """A piece of a format: ``count`` times a ``letter``, or, without a letter, ``text`` as it stands."""

    letter: str
    count: int
    text: str = ""


def time_format(format: str, *, reading: bool) -> tuple[Piece, ...]:
    """The pieces of a format such as ``yyyy-MM-dd HH:mm:ss.SSS``; ``'T'`` and all that is no letter are themselves.

    Raises QueryError for letters that are not known, or that text cannot be read with.
    """
    known = _LETTERS if reading else _WRITTEN
    pieces = []
    for match in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'", format):
        letter = match[2]
        if letter is not None:
            count = len(match[0])
            if count not in known.get(letter, ()):
                raise QueryError(f"the time format has `{match[0]}`, which is not known", hint=_format_hint(reading))
            pieces.append(Piece(letter, count))
        elif match[0] == "'":
            raise QueryError("a quote in the time format is not closed", hint="write '' for a quote itself")
        else:
            text = match[0] if match[1] is None else match[1].replace("''", "'") or "'"
            pieces.append(Piece("", 0, text))
    return tuple(pieces)


def _format_hint(reading: bool) -> str:
    return "letters are yyyy, MM, dd, HH, mm, ss, SSS" + ("" if reading else ", yy, MMM, MMMM, E, EEEE")


def reading_pattern(pieces: tuple[Piece, ...]) -> str:
    """The regular expression of a whole text in a format; groups are named by their letters, each at most once."""
    letters = [piece.letter for piece in pieces if piece.letter]
    if len(set(letters)) < len(letters):
        raise QueryError("a letter of the time format is there twice")
    if "y" not in letters:
        raise QueryError("the time format has no year", hint="such as `yyyy-MM-dd HH:mm:ss`")
    parts = []
    for piece in pieces:
        # One letter takes a digit or two, two letters exactly two.
        digits = r"\d{1,2}" if piece.count == 1 and piece.letter != "S" else rf"\d{{{piece.count}}}"
        parts.append(f"(?P<{piece.letter}>{digits})" if piece.letter else re.escape(piece.text))
    return f"^{''.join(parts)}$"


def check_pattern(pattern: str) -> None:
    """Raise QueryError for a regular expression that cannot be read."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise QueryError(
            f"cannot read the regular expression '{pattern}': {reason}",
            hint=r"a backslash in text is written twice, such as '\\d+'; there is no look-around and no \\1",
        ) from None


def rewrite(replacement: str) -> str:
    """The text of ``regexp_replace`` as RE2 has it.

    Java writes a group as ``$1``, and what stands behind a backslash is itself; RE2 writes ``\\1``.
    """

    def ours(match: re.Match[str]) -> str:
        return rf"\{match[2]}" if match[2] else (match[1] or "").replace("\\", r"\\")

    return re.sub(r"\\(.)|\$(\d)|\\", ours, replacement)


def check_replacement(pattern: str, replacement: str) -> None:
    """Raise QueryError for a regular expression that cannot be read, or has no such group as the text names."""
    check_pattern(pattern)
    try:
        pc.replace_substring_regex(pa.array(["", "a"]), pattern, rewrite(replacement))
    except pa.ArrowInvalid as error:
        raise QueryError(
            f"'{replacement}' cannot replace what '{pattern}' finds: {error}", hint="`$1` is the first group"
        ) from None


def like_pattern(pattern: str) -> str:
    """The regular expression that matches what ``LIKE`` does: ``%`` any text, ``_`` any character, ``\\`` escapes."""
    parts, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            parts.append(re.escape(pattern[position]))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        position += 1
    return f"(?s)^{''.join(parts)}$"


def check_like(pattern: str) -> None:
    """Raise QueryError where an escape in a pattern of ``LIKE`` is followed by none of ``%``, ``_`` and itself."""
    if re.fullmatch(r"(?s:[^\\]|\\[%_\\])*", pattern) is None:
        raise QueryError(
            f"the pattern '{pattern}' of `LIKE` escapes nothing",
            hint=r"`\` stands before `%`, `_` or another `\`, and is itself written twice in SQL: '50\\%'",
        )


def escaped_like(pattern: str, escape: str) -> str:
    """The pattern of ``LIKE ... ESCAPE 'e'`` with the usual backslash in place of ``escape``."""
    if len(escape) != 1:
        raise QueryError(f"`ESCAPE` takes one character, got '{escape}'")
    marked = re.sub(f"{re.escape(escape)}(.?)", lambda match: f"\0{match[1]}", pattern, flags=re.DOTALL)
    plain = marked.replace("\\", "\\\\")
    return re.sub("\0(.?)", lambda match: "\\" + match[1] if match[1] in "%_\\" else match[1], plain)


def group_pattern(pattern: str, group: int) -> str:
    """``pattern`` with its ``group``-th group named ``g`` and no other group; 0 is all of it."""
    check_pattern(pattern)
    count = 0

    def opened(match: re.Match[str]) -> str:
        nonlocal count
        if not match[0].startswith("("):
            return match[0]
        count += 1
        return "(?P<g>" if count == group else "(?:"

    named = _OPENING.sub(opened, pattern)
    if not 0 <= group <= count:
        raise QueryError(f"the regular expression '{pattern}' has {count} groups, not {group}")
    return f"(?P<g>{named})" if group == 0 else named


def check_zone(name: str) -> None:
    """Raise QueryError for a time zone that does not exist."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise QueryError(f"unknown time zone '{name}'", hint="such as 'America/New_York'") from None


def unit_of(name: str, units: dict[str, str]) -> str:
    """The unit of time that a name stands for, in any case; raises QueryError for an unknown one."""
    if name.casefold() not in units:
        raise QueryError(f"unknown unit of time '{name}'", hint=did_you_mean(name, units, "unit"))
    return units[name.casefold()]
