"""Other libraries' rolling windows over one column, as their users call them (``pip install winquery[bench]``)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: ``call(size)`` gives the window results of the column that it was made for.
Rolling = Callable[[int], Any]


class Mismatch(AssertionError):
    """Two ways to the same answer differ: nothing that was timed means anything."""


def rolling(function: str, column: Array) -> Mapping[str, Rolling]:
    """``sum`` or ``min`` of a column by library; a window that is not full yet has what there is.

    The column is in each library's own form already. numbagg has no minimum. Integers go through ``float64`` in all
    but polars. polars gets one thread, as all others have.
    """
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    try:
        import bottleneck
        import numbagg
        import pandas as pd
        import polars as pl
    except ImportError as error:
        raise ImportError(f"`{error.name}` is compared with, hint: pip install winquery[bench]") from error

    frame, series = pd.Series(column), pl.Series(column)
    moving = getattr(bottleneck, f"move_{function}")
    found: dict[str, Rolling] = {
        "bottleneck": lambda size: moving(column, size, min_count=1),
        "pandas": lambda size: getattr(frame.rolling(size, min_periods=1), function)(),
        "polars": lambda size: getattr(series, f"rolling_{function}")(size, min_samples=1),
    }
    if function == "sum":
        floats = column.astype(np.float64)
        found["numbagg"] = lambda size: numbagg.move_sum(floats, window=size, min_count=1)
    return found


def recalculated(function: str, column: Array, size: int, ends: Array) -> Array:
    """The window of ``size`` rows that ends at each row of ``ends``, from its rows alone, by NumPy."""
    rows = (column[max(0, end - size + 1) : end + 1] for end in ends)
    return np.array([getattr(np, function)(window) for window in rows])


def sample(rows: int, sizes: list[int], number: int = 24) -> Array:
    """Rows to check: the first, the last, those around full windows, and some between."""
    near = [end for size in sizes for end in (size - 2, size - 1, size)]
    spread = np.random.default_rng(5).integers(0, rows, number)
    ends = np.array([0, rows - 1, *near, *spread])
    return np.unique(ends[(ends >= 0) & (ends < rows)])


def same(what: str, found: Array, expected: Array) -> None:
    """Raise :class:`Mismatch` unless both are equal; of floats, nine digits and what cancels in a long sum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        equal = np.allclose(found, expected, rtol=1e-9, atol=1e-6 if np.asarray(found).dtype.kind == "f" else 0)
    if not equal:
        where = int(np.flatnonzero(~np.isclose(found, expected, rtol=1e-9, atol=1e-6))[0])
        raise Mismatch(f"{what}: {found[where]} at sample {where}, expected {expected[where]}")
