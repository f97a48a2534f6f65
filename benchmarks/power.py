"""The column that the papers' experiments run on: the power readings of a machine, DEBS 2012 Grand Challenge."""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FILE = "manufacturing-debs2012.txt.gz"
#: The first of three power readings; before it are the time stamp and the message's number.
COLUMN = 2


def folder() -> Path:
    """``$WINQUERY_DATA``, else ``shared/data`` beside the repository."""
    named = os.environ.get("WINQUERY_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


@cache
def _readings() -> tuple[Array, str]:
    path = folder() / FILE
    if not path.exists():
        steps = np.random.default_rng(2012).integers(-8, 9, 17_000)
        return 13_000 + steps.cumsum(), "random walk (no readings found, see WINQUERY_DATA)"
    with gzip.open(path, "rt") as lines:
        return np.array([int(line.split()[COLUMN]) for line in lines], np.int64), "DEBS 2012 power readings"


def readings(rows: int) -> Array:
    """``rows`` readings as int64, the file over and over; a random walk of the same kind where there is no file."""
    return np.resize(_readings()[0], rows)


def random(rows: int) -> Array:
    """Independent uniform values of the same range."""
    return np.random.default_rng(7).integers(0, 20_000, rows)


def about() -> dict[str, str]:
    """What :func:`readings` are, for the lines of results."""
    return {"data": _readings()[1]}
