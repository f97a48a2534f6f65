"""Sums of floats over the last rows for ``numerics='fast'``: a running sum and what leaves taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.codegen.kernels import sealed
from workbench.plan.cost import PIECE

Array = npt.NDArray[Any]

#: A sum is computed afresh after so many times the rows of its window, and after at least so many pieces: a quarter
#: of an addition a row.
_WINDOWS, _PIECES = 4, 16


class FloatSums:
    """The sums of the windows ``sizes`` (in rows, sliding by one) over a sequence of floats; not exact.

    A sum is off by the rounding of the additions since it was last computed afresh, which is at most ``period`` rows
    ago, of its window: so by less than ``2 * (period + size)`` times 1.2e-16 times the largest sum of absolute values
    in a window meanwhile. Windows behind a value of 1e90 are wrong until then. NaN and infinities leave nothing
    behind. The state is a ring of as many rows as the largest window has.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        # Only here, as it brings in numba.
        from workbench.kernels.rolling import rolling_sums

        self.sizes = tuple(map(int, sizes))
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"a window has at least 1 row, got {list(self.sizes)}")
        self.periods = tuple(max(_WINDOWS * size, _PIECES * PIECE) for size in self.sizes)
        count, places = len(self.sizes), (-(-max(self.sizes) // PIECE) + 1) * PIECE
        ring = np.zeros(places + PIECE)
        numbers = [np.zeros(count, np.int64) for _ in range(2)]
        limits = [np.array(each, np.int64) for each in (self.sizes, self.periods)]
        self._push = rolling_sums
        self._state = (ring, np.zeros(1, np.int64), np.zeros(count), *numbers, *limits, PIECE)

    def push(self, values: Array, out: Array | None = None) -> Array:
        """The sums that end at each of the next rows, ``[window, row]``, in ``out`` where it is given."""
        if out is None:
            out = np.empty((len(self.sizes), len(values)))
        self._push(sealed(np.asarray(values, np.float64)), *self._state, out)
        return out
