"""Finds out how a file of lines is written. What cannot be known is an error that names the readings."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import AmbiguousError, SourceError, did_you_mean
from workbench.feeds import clocks
from workbench.feeds.dialect import PLAIN, Dialect, LineOptions, number_pattern
from workbench.feeds.lines import content_of, fields_of, guess_json, header, line_blocks, open_lines, parse_csv
from workbench.feeds.times import TooFineError, stamps

#: What may stand between fields, and how many lines and bytes tell it.
_SEPARATORS = (",", ";", "\t", "|")
_LINES, _BYTES = 100, 1 << 22
#: The encoding of what is no UTF-8: that of Windows in western Europe and the Americas.
_WESTERN = "cp1252"
_BLANKS = " \u00a0\u202f'\u2019"
_POINT, _COMMA = number_pattern(".", f"[,{_BLANKS}]"), number_pattern(",", f"[.{_BLANKS}]")
#: Names of columns that count from 1970.
_TIMELY = re.compile(r"time|date|epoch|unix|stamp|when|zeit|datum|(?:^|_)(?:ts|at|t)(?:_|$)", re.IGNORECASE)
_APART = re.compile("^[+-]?[1-9]\\d{0,2}([ \u00a0\u202f'\u2019])\\d{3}")


def dialect_of(path: str, kind: str, times: Iterable[str], given: LineOptions) -> Dialect:
    """How a file of lines is written, as far as ``given`` does not say; ``times`` are columns that must be times.

    The first lines are looked at (4 MB); for times that can be read in two ways the last ones as well. Raises
    SourceError for options that mean nothing, and where several readings remain; OSError and ValueError for what
    cannot be read at all.
    """
    options = _checked(given)
    if kind != "csv":
        wrong = next((name for name in given if name != "time_format" and given[name] is not None), None)  # type: ignore[literal-required]
        if wrong is not None:
            raise SourceError(f"`{wrong}` has no meaning for JSON", hint=f"leave `{wrong}` out")
        return _with_times(path, PLAIN, _json_columns(path), times, given)
    dialect = replace(PLAIN, **options)
    if "encoding" not in options:
        dialect = replace(dialect, encoding=_encoding(path))
    lines = _first_lines(path, dialect.encoding)
    if "sep" not in options:
        dialect = replace(dialect, sep=_separator(path, lines))
    if "header" not in options:
        dialect = replace(dialect, header=not dialect.names and _has_names(fields_of(lines, dialect.sep)))
    if not dialect.header and not dialect.names:
        dialect = replace(dialect, names=tuple(header(path, dialect)))
    texts = _texts(path, dialect)
    dialect = _with_numbers(path, dialect, options, texts)
    return _with_times(path, dialect, texts, times, given)


def said(times: Iterable[str], given: LineOptions) -> Dialect:
    """The dialect that options describe, the rest as usual. Raises SourceError for those that mean nothing."""
    options = _checked(given)
    options.setdefault("header", "names" not in options)
    return replace(PLAIN, **options, times=_formats(times, given))


def _formats(times: Iterable[str], given: LineOptions) -> tuple[tuple[str, str], ...]:
    """Columns and formats as they are given."""
    said = given.get("time_format")
    formats = {} if said is None else dict(said) if isinstance(said, Mapping) else dict.fromkeys(times, said)
    for format in formats.values():
        clocks.check(format)
    return tuple(formats.items())


def _checked(given: LineOptions) -> dict[str, Any]:
    """The options that are given, as those of a dialect."""
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    found.pop("time_format", None)
    if "sep" in found:
        found["sep"] = {"\\t": "\t", "tab": "\t"}.get(found["sep"], found["sep"])
        if len(found["sep"]) != 1 or not found["sep"].isascii():
            raise SourceError(f"`sep` is one character, got {found['sep']!r}", hint="such as ';' or '\\t'")
    if found.get("decimal", ".") not in (".", ","):
        raise SourceError(f"`decimal` is '.' or ',', got {found['decimal']!r}")
    if found.get("thousands", "") not in ("", ".", ",", "'", " ") or (
        found.get("thousands") and found["thousands"] == found.get("decimal")
    ):
        raise SourceError(
            f"`thousands` is '.', ',', \"'\" or ' ', and not the decimal mark, got {found['thousands']!r}"
        )
    if "encoding" in found:
        try:
            "".encode(found["encoding"])  # some codecs are not of texts
        except LookupError:
            known = ("utf-8", "cp1252", "latin-1", "utf-16", "cp1250", "cp1251")
            hint = did_you_mean(found["encoding"], known, "encoding")
            raise SourceError(f"no encoding `{found['encoding']}`", hint=hint) from None
    if "names" in found:
        names = found["names"]
        listed = isinstance(names, Sequence) and not isinstance(names, str)
        if not listed or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
            raise SourceError(f"`names` is a list of different names, got {names!r}")
        found["names"] = tuple(names)
    return found


def _encoding(path: str) -> str:
    """That of the byte order mark, UTF-8 where all bytes fit, else that of Windows. Raises ValueError for neither."""
    with open_lines(path) as content:
        head = content.read(_BYTES)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        head.decode(_WESTERN)
        return _WESTERN
    return "utf-8"


def _first_lines(path: str, encoding: str) -> list[str]:
    with open_lines(path, encoding) as content:
        lines = [content.readline() for _ in range(_LINES)]
    wide = codecs.lookup(encoding).name.startswith("utf")
    return [line.decode("utf-8-sig" if wide else encoding) for line in lines if line.strip()]


def _separator(path: str, lines: list[str]) -> str:
    """What divides every line into as many fields. Raises SourceError where two characters do."""
    if not lines:
        return ","
    widths = {each: {len(fields) for fields in fields_of(lines, each)} for each in _SEPARATORS}
    even = [each for each, found in widths.items() if len(found) == 1 and max(found) > 1]
    if "\t" in even:
        return "\t"  # no text has tabs in it
    if len(even) > 1:
        counts = {each: f"{max(widths[each])} fields a line" for each in even}
        raise AmbiguousError(f"lines of `{path}` can be divided in several ways", "sep", counts)
    return even[0] if even else max(_SEPARATORS, key=lines[0].count)


def _has_names(rows: list[list[str]]) -> bool:
    """Whether the first line holds names: unless a number or a time stands there as in the lines below."""
    if len(rows) < 2:
        return not any(map(_is_value, rows[0] if rows else []))
    first, below = rows[0], rows[1]
    tops, values = list(map(_is_value, first)), list(map(_is_value, below))
    told = any(value and not top and text.strip() for text, top, value in zip(first, tops, values, strict=False))
    return told or not any(tops)


def _is_value(text: str) -> bool:
    """Whether a text is a number or a time rather than a name."""
    if re.match(_POINT, text.strip()) or re.match(_COMMA, text.strip()):
        return True
    column = pa.array([text.strip()])
    try:
        return bool(text.strip()) and stamps(column).null_count == 0
    except pa.ArrowInvalid:
        return bool(clocks.guesses(column))


def _texts(path: str, dialect: Dialect, *, last: bool = False) -> dict[str, Any]:
    """The columns of the first, or the last, block of a CSV file as texts, without those that are empty."""
    names = header(path, dialect)
    blocks = line_blocks(path, dialect, csv=True)
    block = deque(blocks, 1)[-1] if last else next(blocks, None)
    if block is None:
        return {}
    kinds = pa.schema([(name, pa.string()) for name in names])
    try:
        table = parse_csv(content_of(path, block, dialect), names, kinds, dialect)
    except pa.ArrowInvalid:
        return {}  # who reads the file tells of the line that does not fit
    columns = {name: pc.utf8_trim_whitespace(table[name].drop_null()) for name in names}
    return {name: column.filter(pc.not_equal(column, "")) for name, column in columns.items()}


def _with_numbers(path: str, dialect: Dialect, said: Mapping[str, Any], texts: Mapping[str, Any]) -> Dialect:
    """Decimal mark and mark of thousands, by the columns that can be read in one way alone."""
    if "decimal" in said and "thousands" in said:
        return dialect
    commas: dict[str, str] = {}
    points: dict[str, str] = {}
    either: dict[str, str] = {}
    apart = ""
    for name, column in texts.items():
        spaced = _APART.match(column[0].as_py()) if len(column) else None
        apart = apart or ("'" if spaced and spaced[1] in "'\u2019" else " " if spaced else "")
        as_comma, as_point = (_all(column, pattern) for pattern in (_COMMA, _POINT))
        marked = pc.index(pc.match_substring_regex(column, r"\d[.,]|[.,]\d"), True).as_py()
        if marked >= 0 and (as_comma or as_point):
            found = either if as_comma and as_point else commas if as_comma else points
            found[name] = column[marked].as_py()
    decimal = said.get("decimal") or _decimal(path, dialect.sep, commas, points, either)
    mark = "." if decimal == "," else ","
    numbers = (*(commas if decimal == "," else points), *either)
    grouped = any(pc.any(pc.match_substring(texts[name], mark)).as_py() for name in numbers)
    return replace(dialect, decimal=decimal, thousands=said.get("thousands", mark if grouped else apart))


def _decimal(
    path: str, sep: str, commas: Mapping[str, str], points: Mapping[str, str], either: Mapping[str, str]
) -> str:
    """The decimal mark that the numbers of a file show. Raises SourceError where it cannot be known."""
    if commas and points and sep != ",":
        (one, comma), (other, point) = next(iter(commas.items())), next(iter(points.items()))
        raise AmbiguousError(
            f"`{path}` has numbers like `{comma}` in the column `{one}` and like `{point}` in `{other}`",
            "decimal",
            {
                ",": f"`{one}` as numbers, `{other}` as texts",
                ".": f"`{other}` as numbers, `{one}` as texts",
            },
        )
    if commas or points:
        return "," if not points else "."
    for name, value in either.items():
        has_comma = "," in value
        if has_comma or sep == ";":
            whole, *rest = re.split(r"[.,]", value)
            fraction, grouped = f"{whole}.{''.join(rest)}", f"{whole}{''.join(rest)}"
            raise AmbiguousError(
                f"numbers like `{value}` of the column `{name}` of `{path}` can be read in two ways",
                "decimal",
                {",": fraction if has_comma else grouped, ".": grouped if has_comma else fraction},
            )
    return "."


def _all(column: Any, pattern: str) -> bool:
    return len(column) > 0 and bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


def _with_times(
    path: str, dialect: Dialect, columns: Mapping[str, Any], times: Iterable[str], given: LineOptions
) -> Dialect:
    """The formats of the columns of times: as they are given, or where they are not in ISO 8601, found out."""
    if given.get("time_format") is not None:
        return replace(dialect, times=_formats(times, given))
    found = []
    for name in times:
        column = columns.get(name)
        among = () if column is None else formats_of(column)
        if len(among) > 1:
            last = _texts(path, dialect, last=True).get(name)
            among = among if last is None else formats_of(last, among) or among
            if len(among) > 1:
                raise ambiguous(path, name, column, among)
        found += [(name, format) for format in among]
    return replace(dialect, times=tuple(found))


def _json_columns(path: str) -> dict[str, Any]:
    """The columns of the first block of JSON, without NULL."""
    block = next(line_blocks(path, PLAIN, csv=False), None)
    if block is None:
        return {}
    try:
        table = guess_json(content_of(path, block, PLAIN))
    except pa.ArrowInvalid:
        return {}  # who reads the file tells of the line that does not fit
    return {name: table[name].drop_null() for name in table.column_names}


def formats_of(column: Any, among: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The formats in which all values of a column are times; none where they are in ISO 8601, or no times."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return clocks.epochs(column)
    if not pa.types.is_string(kind) or not len(column):
        return ()
    if among is not None:
        return clocks.guesses(column, among)
    return () if _is_iso(column) else clocks.guesses(column) or clocks.epochs(column)


def _is_iso(column: Any) -> bool:
    """Whether all of some texts are times as in ISO 8601."""
    try:
        stamps(column)
    except TooFineError:
        return True  # which whoever reads it tells
    except pa.ArrowInvalid:
        return False
    return len(column) > 0


def ambiguous(path: str, name: str, column: Any, formats: tuple[str, ...]) -> AmbiguousError:
    """That times can be read in several ways, by the first one that shows it."""
    read = [clocks.read(column, each) for each in formats]
    shown = max(pc.index(pc.not_equal(read[0], read[1]), True).as_py(), 0)
    value, dates = column[shown].as_py(), [times[shown].as_py() for times in read]
    return AmbiguousError(
        f"times like `{value}` of the column `{name}` of `{path}` can be read in {len(formats)} ways",
        "time_format",
        {format: f"{date.day} {date:%B %Y}" for format, date in zip(formats, dates, strict=True)},
    )


def times_in(path: str, kind: str, dialect: Dialect, given: LineOptions) -> tuple[str, ...]:
    """The columns in which times may stand: texts that are all times come first, then numbers since 1970.

    With a ``time_format`` those that it reads. Of several that count from 1970, those whose names speak of a time.
    """
    columns = _texts(path, dialect) if kind == "csv" else _json_columns(path)
    said = given.get("time_format")
    if isinstance(said, Mapping):
        return tuple(said)
    if said is not None:
        return tuple(name for name, column in columns.items() if clocks.fits(column, said))
    texts, counted = [], []
    for name, column in columns.items():
        formats = formats_of(column)
        if formats and formats[0] in clocks.EPOCHS:
            counted.append(name)
        elif formats or (pa.types.is_string(column.type) and _is_iso(column)) or pa.types.is_timestamp(column.type):
            texts.append(name)
    named = [name for name in counted if _TIMELY.search(name)]
    return (*texts, *(named or (counted if len(counted) == 1 else ())))
