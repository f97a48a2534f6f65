"""Quantiles, mode and distinct counts: exact, from sorted runs of all values (:mod:`workbench.algebra.runs`).

NaN is a value: the greatest one. A quantile of a window with a NaN is NaN, whatever the quantile; ``mode`` and
``count_distinct`` take NaN as one value like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.algebra import runs
from workbench.algebra.aggregates import (
    Aggregate,
    Family,
    Operands,
    Part,
    double,
    flavour,
    number,
    ordered,
    values_array,
)
from workbench.algebra.partials import Array, Fields
from workbench.algebra.runs import Run
from workbench.errors import QueryError, did_you_mean

KINDS = runs.KINDS

#: What a quantile is where it falls between two rows: a rank ``q * (n - 1)`` with a fraction.
METHODS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "linear": lambda low, high, part: np.where((part == 0) | (low == high), low, low * (1 - part) + high * part),
    "lower": lambda low, high, part: low,
    "higher": lambda low, high, part: high,
    "nearest": lambda low, high, part: low,  # its rank is whole already
    "midpoint": lambda low, high, part: np.where(low == high, low, low / 2 + high / 2),
}


def fractions(operands: Operands) -> tuple[float, ...]:
    """The quantiles that are asked for, each in [0, 1]."""
    given = operands.constant(1)
    found = given if isinstance(given, tuple) else (given,)
    for q in found:
        if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
            given_as = operands.texts[1] if operands.texts else q
            raise QueryError(f"a quantile must be a number from 0 to 1, got `{given_as}`", hint="the median is 0.5")
    return found


def quantile_type(operands: Operands) -> pa.DataType:
    """``double``, or a list of it for an array of quantiles."""
    number(operands)
    fractions(operands)
    return pa.list_(pa.float64()) if isinstance(operands.constant(1), tuple) else pa.float64()


def _exact_type(operands: Operands) -> pa.DataType:
    method = operands.constant(2, "linear")
    if method not in METHODS:
        raise QueryError(f"unknown way to interpolate `{method}`", hint=did_you_mean(str(method), METHODS))
    return quantile_type(operands)


def _run_parts(operands: Operands) -> tuple[Part, ...]:
    return (Part(f"runs_{flavour(operands.types[0])}"),)


#: Values looked at in one go: enough to make the calls cheap, few enough to be no burden on memory.
_AT_ONCE = 1 << 22


def quantiles(runs: Sequence[Run], q: Array, method: str) -> Array:
    """Quantiles of runs that are not empty, ``[run, q]``: by rank ``q * (n - 1)`` of each one's sorted rows."""
    values = np.concatenate([run.values for run in runs])
    ends = np.cumsum(np.concatenate([run.counts for run in runs]))
    last = np.cumsum([len(run.counts) for run in runs]) - 1  # where each run ends
    before = np.concatenate(([0], ends[last[:-1]]))[:, None]  # rows of all earlier runs
    rank = q * (ends[last][:, None] - before - 1)
    if method == "nearest":
        rank = np.rint(rank)
    below = np.floor(rank)
    low, high = (
        values[np.searchsorted(ends, before + side.astype(np.int64), side="right")].astype(np.float64)
        for side in (below, np.ceil(rank))
    )
    with np.errstate(invalid="ignore"):
        found = METHODS[method](low, high, rank - below)
    found[values[last] != values[last]] = np.nan
    return found


def listed(found: Array, empty: Array, kind: pa.DataType) -> pa.Array:
    """Quantiles ``[row, q]`` as a column: of lists, or of the only one of each row; NULL where ``empty``."""
    if not pa.types.is_list(kind):
        return pa.array(found[:, 0], mask=empty)
    offsets = np.arange(len(found) + 1, dtype=np.int32) * found.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(found.ravel()), type=kind, mask=pa.array(empty))


def _quantiles(cells: Array, q: tuple[float, ...], method: str, kind: pa.DataType) -> pa.Array:
    wanted = np.array(q, np.float64)
    sizes = np.array([len(run.counts) for run in cells], np.int64)
    found = np.zeros((len(cells), len(q)))
    chosen = np.flatnonzero(sizes)
    # Neighbours whose values fall into the same piece of _AT_ONCE go together.
    pieces = np.flatnonzero(np.diff(np.cumsum(sizes[chosen]) // _AT_ONCE)) + 1
    for part in np.split(chosen, pieces) if len(chosen) else ():
        found[part] = quantiles(cells[part].tolist(), wanted, method)
    return listed(found, sizes == 0, kind)


def _lower_quantile(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    return _quantiles(fields[0][0], fractions(operands), operands.constant(2, "linear"), kind)


def _lower_median(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    return _quantiles(fields[0][0], (0.5,), "linear", kind)


def _lower_mode(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    """The first of the most frequent values is the smallest of them."""
    cells: list[Run] = fields[0][0].tolist()
    empty = np.array([not len(run.counts) for run in cells], np.bool_)
    best: list[Any] = [0 if none else run.values[run.counts.argmax()] for run, none in zip(cells, empty, strict=True)]
    values = np.empty(len(best), {"int": "int64", "float": "float64", "text": "object"}[flavour(kind)])
    values[:] = best
    return values_array(values, empty, kind)


def _count_type(operands: Operands) -> pa.DataType:
    ordered(operands)
    return pa.int64()


def _lower_distinct(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    return pa.array([len(run.counts) for run in fields[0][0]], kind)


_ONE, _HOLISTIC = (1, 1), Family.HOLISTIC
AGGREGATES = (
    Aggregate("median", _ONE, _HOLISTIC, double, _run_parts, _lower_median),
    Aggregate("quantile", (2, 3), _HOLISTIC, _exact_type, _run_parts, _lower_quantile, constant_from=1),
    Aggregate("mode", _ONE, _HOLISTIC, ordered, _run_parts, _lower_mode),
    Aggregate("count_distinct", _ONE, _HOLISTIC, _count_type, _run_parts, _lower_distinct),
)
ALIASES = {"percentile": "quantile"}
