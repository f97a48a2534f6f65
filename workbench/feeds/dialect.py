"""How a file of lines is written: what stands between fields and in numbers, the encoding, names and times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from workbench.feeds import clocks
from workbench.feeds.times import from_text, is_text

#: Texts of numbers that stand for none, or for no finite one; pyarrow reads them so too.
_NOT_FINITE = r"[+-]?(?:nan|inf|infinity)"
#: Marks between thousands, with those that look like them.
_ALIKE = {" ": "[ \u00a0\u202f]", "'": "['\u2019]"}


class LineOptions(TypedDict, total=False):
    """What a user says about files of lines; what is left out is found out. See :func:`workbench.source`."""

    sep: str | None
    decimal: str | None
    thousands: str | None
    encoding: str | None
    names: Sequence[str] | None
    header: bool | None
    time_format: str | Mapping[str, str] | None


@dataclass(frozen=True)
class Dialect:
    """``sep`` stands between fields, ``decimal`` before fractions, ``thousands`` (perhaps nothing) between thousands.

    ``names`` are those of the columns: of a file without a ``header`` line, or in place of its own (empty: its own).
    ``times`` are columns and their formats (of :mod:`workbench.feeds.clocks`); other times are as in ISO 8601.
    """

    sep: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    names: tuple[str, ...] = ()
    header: bool = True
    times: tuple[tuple[str, str], ...] = ()

    def options(self) -> dict[str, Any]:
        """The options that say the same, those that are as usual left out."""
        said = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "times"}
        found = {name: value for name, value in said.items() if value != getattr(PLAIN, name)}
        if self.names:
            found["names"] = list(self.names)
            found.pop("header", None)  # who gives names to a file says that it has none
            if self.header:
                found["header"] = True
        formats = dict(self.times)
        if formats:
            one = set(formats.values()) if len(formats) == 1 else ()
            found["time_format"] = next(iter(one), formats)
        return found

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options().items())

    def stored(self, wanted: pa.Schema, *, csv: bool) -> pa.Schema:
        """The types in which a reader gives columns that become ``wanted`` by :meth:`value`."""
        return pa.schema([(field.name, self._stored(field, csv)) for field in wanted])

    def _stored(self, field: pa.Field, csv: bool) -> pa.DataType:
        if is_text(field.type):
            # pyarrow's readers insist on a zone, or on none, and know no dates in JSON.
            format = None if csv else dict(self.times).get(field.name)
            counted = pa.float64() if format == "epoch s" else pa.int64()
            return counted if format in clocks.EPOCHS else pa.string()
        return pa.string() if self.thousands and csv and _is_number(field.type) else field.type

    def value(self, column: Any, field: pa.Field) -> Any:
        """A column of a reader as the stream has it. Raises pyarrow's ArrowInvalid for a text that does not fit."""
        format = dict(self.times).get(field.name)
        if format is not None:
            return clocks.read(column, format).cast(field.type)
        if is_text(field.type):
            return from_text(column, field.type)
        if pa.types.is_string(column.type) and _is_number(field.type):
            return self.numbers(column).cast(field.type)
        return column

    def numbers(self, texts: Any) -> Any:
        """Texts of numbers with marks between thousands as pyarrow casts them. Raises ArrowInvalid for others."""
        texts = pc.utf8_trim_whitespace(texts)
        pattern = number_pattern(self.decimal, _alike(self.thousands))
        wrong = texts.filter(pc.invert(pc.match_substring_regex(texts, pattern)))
        if len(wrong):
            raise pa.ArrowInvalid(f"CSV conversion error: invalid value '{wrong[0]}'")
        plain = pc.replace_substring_regex(texts, _alike(self.thousands), "")
        return pc.replace_substring(plain, self.decimal, ".")


#: Commas, points, UTF-8, ISO 8601.
PLAIN = Dialect()


def number_pattern(decimal: str, between: str) -> str:
    """The regular expression of a number; ``between`` is that of what may stand between thousands, each or none."""
    grouped = rf"[1-9]\d{{0,2}}(?:{between}\d{{3}})+|" if between else ""
    mark = re.escape(decimal)
    return rf"(?i)^(?:[+-]?(?:(?:{grouped}\d+)(?:{mark}\d*)?|{mark}\d+)(?:e[+-]?\d+)?|{_NOT_FINITE})$"


def _alike(thousands: str) -> str:
    return _ALIKE.get(thousands, re.escape(thousands))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
