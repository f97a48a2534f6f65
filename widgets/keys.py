"""Which keys a plot shows: the best of some order, or those picked by hand. Pure, and quick for 10,000 keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.results import QueryResults, Status, encode_keys

Array = npt.NDArray[Any]
Key = tuple[Any, ...]

#: Windows times keys that are read at most to put keys in order.
_CELLS = 2_000_000


def key_label(key: Key) -> str:
    """How a key is written in legends, on one line: its parts, ``NULL`` for a missing one, ``all`` for the empty key.

    A text of blanks stands in quotes, so that there is something to see.
    """
    return ", ".join(map(part_label, key)) or "all"


def part_label(part: Any) -> str:
    """How one part of a key, or a value that is no number, is written: as SQL has it, times in UTC."""
    if part is None:
        return "NULL"
    if isinstance(part, bool):
        return str(part).lower()
    if isinstance(part, Decimal):
        return f"{part:f}"
    text = str(part.replace(tzinfo=None) if isinstance(part, datetime) else part)
    return " ".join(text.splitlines()) if text.strip() else repr(text)


def short_label(label: str) -> str:
    """At most 28 characters of a label: long ones are as often alike in their beginning as in their end."""
    return label if len(label) <= 28 else f"{label[:14]}…{label[-13:]}"


def all_keys(results: QueryResults) -> list[Key]:
    """The keys of all levels, those of the coarsest first, in order of appearance."""
    keys: dict[Key, None] = {}
    for level in reversed(range(len(results.schema.levels))):
        keys |= dict.fromkeys(results.keys(level))
    return list(keys)


def find_keys(keys: Sequence[Key], text: str, limit: int) -> list[Key]:
    """The first ``limit`` keys whose label contains ``text``, whatever its case; those that begin with it first."""
    wanted = text.strip().casefold()
    labels = [key_label(key).casefold() for key in keys]
    hits = [position for position, label in enumerate(labels) if wanted in label]
    hits.sort(key=lambda position: not labels[position].startswith(wanted))
    return [keys[position] for position in hits[:limit]]


def rank_keys(results: QueryResults, limit: int, by: str | None = None, least: bool = False) -> list[Key]:
    """The ``limit`` first keys in some order, given back in order of appearance; all where there are not more.

    ``by`` names a value column: keys with the greatest mean of it come first, with ``least`` those with the least;
    a key without any value comes last. None: most windows with a result, then the greatest sum of the first integer
    column (a count, as a rule). Judged by the coarsest level, of its newest windows as many as keep the cost of a
    call below some hundredths of a second.
    """
    keys = all_keys(results)
    if len(keys) <= limit:
        return keys
    scores = _scores(results, len(keys), by)
    # Sorted by each column of the scores in turn; the order of appearance decides between equals.
    signs = 1 if least else -1
    order = sorted(scores, key=lambda key: tuple(signs * part if part == part else np.inf for part in scores[key]))
    best = set(order[:limit])
    return [key for key in keys if key in best]


def _scores(results: QueryResults, keys: int, by: str | None) -> dict[Key, tuple[float, ...]]:
    """What each key of the coarsest level is judged by, most important first."""
    level = len(results.schema.levels) - 1
    shape, extent = results.schema.levels[level], results.extent(level)
    if extent is None:
        return {}
    if not shape.regular:
        return _table_scores(results, level, by)
    since = extent[1] - shape.size - max(1, _CELLS // keys) * shape.slide
    series = results.series(level, since, values=[name for name in (by or _counter(results),) if name])
    if by is not None:
        parts = [_mean(series.values[by])]
    else:
        weights = [np.nansum(matrix, axis=0) for matrix in series.values.values()]
        parts = [(series.status != Status.ABSENT).sum(axis=0), *weights]
    return dict(zip(series.keys, zip(*(part.tolist() for part in parts), strict=True), strict=True))


def _table_scores(results: QueryResults, level: int, by: str | None) -> dict[Key, tuple[float, ...]]:
    """The same from rows: as matrices, windows with bounds of their own would need a row for each."""
    table, names = results.table(level), [name for name, _ in results.schema.keys]
    keys = [table[name].combine_chunks() for name in names]
    codes, distinct = encode_keys(keys)
    column = by or _counter(results)
    values = table[column].cast(pa.float64()).to_numpy() if column else np.zeros(len(codes))
    there = ~np.isnan(values)
    totals = np.bincount(codes[there], values[there], len(distinct))
    if by is None:
        parts = [np.bincount(codes, minlength=len(distinct)), totals]
    else:
        number = np.bincount(codes[there], minlength=len(distinct))
        parts = [np.where(number > 0, totals / np.maximum(number, 1), np.nan)]
    return dict(zip(distinct, zip(*(part.tolist() for part in parts), strict=True), strict=True))


def _counter(results: QueryResults) -> str | None:
    return next((name for name, kind in results.schema.values if pa.types.is_integer(kind)), None)


def _mean(values: Array) -> Array:
    """Column means of what is there, NaN where nothing is; sums near the largest float do not overflow."""
    there = ~np.isnan(values)
    number = there.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(there, values, 0.0) / np.maximum(number, 1)
        return np.where(number > 0, shares.sum(axis=0), np.nan)
