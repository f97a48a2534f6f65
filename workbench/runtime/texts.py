"""The kernels of text. Positions count characters, from 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from workbench.logical.expressions import Call
from workbench.logical.formats import group_pattern, like_pattern, rewrite
from workbench.runtime.values import Kernel, Value, by_value, null, nulls, plain


def _constants(kernel: Kernel) -> Kernel:
    """A kernel of Arrow's whose arguments from the second on are constants: NULL where one of them is."""

    def run(call: Call, value: Value, *constants: pa.Scalar) -> Value:
        fixed = [each.as_py() for each in constants]
        return nulls(call, value) if None in fixed else kernel(value, *fixed)

    return run


def _like(value: Value, pattern: str) -> Value:
    """Arrow's own LIKE stops at the end of a line; patterns without one have a quick way."""
    inner = pattern.strip("%")
    if set(inner) & set("%_\\"):
        return pc.match_substring_regex(value, like_pattern(pattern))
    kernels = {(True, True): pc.match_substring, (True, False): pc.ends_with, (False, True): pc.starts_with}
    return kernels.get((pattern.startswith("%"), pattern.endswith("%")), pc.equal)(value, inner)


def _substring(value: Value, position: int, count: int | None = None) -> Value:
    """Characters from ``position`` on, counted from 1, or from the end where it is negative."""
    if count is not None and count <= 0:
        return pc.utf8_slice_codeunits(value, 0, 0)
    if position < 0:
        stop = None if count is None or position + count >= 0 else position + count
        return pc.utf8_slice_codeunits(value, position, stop)
    start = max(position - 1, 0)
    return pc.utf8_slice_codeunits(value, start, None if count is None else start + count)


def _left(value: Value, count: int) -> Value:
    return pc.utf8_slice_codeunits(value, 0, max(count, 0))


def _right(value: Value, count: int) -> Value:
    return pc.utf8_slice_codeunits(value, -count) if count > 0 else pc.utf8_slice_codeunits(value, 0, 0)


def _concat_ws(call: Call, separator: pa.Scalar, *parts: Value) -> Value:
    """The parts that are not NULL, with the separator between them."""
    if not separator.is_valid:
        return null(call)
    led = [pc.coalesce(pc.binary_join_element_wise(separator, part, ""), "") for part in parts]
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*led, ""), len(separator.as_py()))


def _replace(value: Value, search: str, replacement: str = "") -> Value:
    return pc.replace_substring(value, search, replacement) if search else value


def _regexp_replace(value: Value, pattern: str, replacement: str) -> Value:
    return pc.replace_substring_regex(value, pattern, rewrite(replacement))


def _regexp_extract(value: Value, pattern: str, group: int = 1) -> Value:
    """The text of a group in the first match; empty without a match."""
    found = pc.struct_field(pc.extract_regex(value, group_pattern(pattern, group)), [0])
    return pc.if_else(pc.is_valid(value), pc.coalesce(found, ""), pa.scalar(None, pa.string()))


def _pad(text: str, width: int, fill: str) -> str:
    """What stands before or after ``text`` to make it ``width`` long."""
    missing = max(width - len(text), 0)
    return (fill * (missing // len(fill) + 1))[:missing] if fill else ""


def _lpad(text: str, width: int, fill: str = " ") -> str:
    return _pad(text, width, fill) + text[: max(width, 0)]


def _rpad(text: str, width: int, fill: str = " ") -> str:
    return text[: max(width, 0)] + _pad(text, width, fill)


def _cased(quick: Kernel, full: Callable[[str], str]) -> Kernel:
    """Upper or lower case. Arrow knows one character for one, and Spark, as Python, ``SS`` for ``\xdf``."""

    def run(call: Call, value: Value) -> Value:
        plain = pc.string_is_ascii(value)
        if (pc.all(plain) if isinstance(plain, pa.Array) else plain).as_py() in (True, None):
            return quick(value)
        return by_value(full)(call, value)

    return run


_lower, _upper = _cased(pc.utf8_lower, str.lower), _cased(pc.utf8_upper, str.upper)


def _initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def _ilike(call: Call, value: Value, pattern: pa.Scalar) -> Value:
    """``LIKE`` in lower case, which is what Spark takes it for."""
    if not pattern.is_valid:
        return nulls(call, value)
    return _like(_lower(replace(call, type=pa.string()), value), pattern.as_py().lower())


def _substring_index(text: str, delimiter: str, count: int) -> str:
    """All before the ``count``-th delimiter, or after it, counted from the end, where it is negative.

    Delimiters can overlap: ``aaa`` has two of ``aa``, as in Spark.
    """
    if not delimiter:
        return ""
    place = -1 if count > 0 else len(text)
    for _ in range(count):
        place = text.find(delimiter, place + 1)
        if place < 0:
            return text
    for _ in range(-count):
        place = text.rfind(delimiter, 0, place - 1 + len(delimiter))
        if place < 0:
            return text
    return text[:place] if count > 0 else text[place + len(delimiter) :] if count else ""


def _split_part(text: str, delimiter: str, number: int) -> str:
    parts = text.split(delimiter) if delimiter else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _translate(text: str, search: str, replacements: str) -> str:
    table: dict[int, str | None] = {}
    for place, character in enumerate(search):
        table.setdefault(ord(character), replacements[place] if place < len(replacements) else None)
    return text.translate(table)


def _trim(kernel: Kernel) -> Kernel:
    return _constants(lambda value, characters=" ": kernel(value, characters=characters) if characters else value)


_instr = by_value(lambda text, part: text.find(part) + 1)

KERNELS: dict[str, Kernel] = {
    "like": _constants(_like),
    "ilike": _ilike,
    "rlike": _constants(pc.match_substring_regex),
    "length": plain(pc.utf8_length),
    "octet_length": plain(pc.binary_length),
    "lower": _lower,
    "upper": _upper,
    "initcap": by_value(_initcap),
    "reverse": plain(pc.utf8_reverse),
    "trim": _trim(pc.utf8_trim),
    "btrim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "substring": _constants(_substring),
    "substring_index": by_value(_substring_index),
    "left": _constants(_left),
    "right": _constants(_right),
    "lpad": by_value(_lpad),
    "rpad": by_value(_rpad),
    "repeat": by_value(lambda text, times: text * max(times, 0)),
    "concat": lambda call, *parts: pc.binary_join_element_wise(*parts, "", null_handling="emit_null"),
    "concat_ws": _concat_ws,
    "replace": _constants(_replace),
    "translate": by_value(_translate),
    "split_part": by_value(_split_part),
    "instr": _instr,
    "locate": lambda call, part, text: _instr(call, text, part),
    "ascii": by_value(lambda text: ord(text[0]) if text else 0),
    "startswith": _constants(pc.starts_with),
    "endswith": _constants(pc.ends_with),
    "contains": _constants(pc.match_substring),
    "regexp_replace": _constants(_regexp_replace),
    "regexp_extract": _constants(_regexp_extract),
    "regexp_count": _constants(pc.count_substring_regex),
}
