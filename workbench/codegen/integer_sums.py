"""Sums of integers over the last rows, exact, in the narrowest arithmetic that each batch allows.

Modular arithmetic makes a difference of prefix sums exact whenever the window's own sum fits, however often the
prefixes have wrapped. So 32 bits are enough while the largest value of the last rows times the largest window stays
below 2**31, and 64 bits below 2**63; a batch that breaks the bound is computed in the next width, and later ones in
the narrow one again once the large values have left all windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.algebra import PARTIALS
from workbench.codegen.row_windows import Differences
from workbench.kernels.combine import lift_wide

Array = npt.NDArray[Any]

#: Widths in bits, from narrow to wide; 128 bits are two words.
_WIDTHS = (32, 64, 128)


class IntegerSums:
    """The sums of the windows ``sizes`` (in rows, sliding by one) over a sequence of integers.

    ``width`` is the arithmetic of the last batch in bits. The state is a ring of as many prefix sums as the largest
    window has rows; a change of width costs one pass over it.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(map(int, sizes))
        self._longest = max(self.sizes)
        self._peaks: deque[tuple[int, int]] = deque()  # (rows, largest absolute value) of the batches still in reach
        self._rows = 0
        self.width = 32
        self._kernel = self._make(32)

    def push(self, values: Array) -> tuple[Array, Array | None]:
        """The sums that end at each of the next rows, ``[window, row]``, int32 or int64 as the batch allows.

        The second array is None where all sums fit into 64 bits, else it tells which do; the others are not valid.
        """
        width = self._needed(values)
        if width != self.width:
            self._change(width)
        shape = (len(self.sizes), len(values))
        if width < 128:
            sums = np.empty(shape, f"int{width}")
            self._kernel.push((np.ascontiguousarray(values, sums.dtype),), (sums,))
            return sums, None
        low, high = np.empty(shape, np.uint64), np.empty(shape, np.int64)
        self._kernel.push(_wide(values.astype(np.int64)), (low, high))
        sums = low.view(np.int64)
        return sums, high == sums >> np.int64(63)

    def _needed(self, values: Array) -> int:
        """The width in which every window that ends in this batch is exact."""
        if not len(values):
            return self.width
        peak = max(-int(values.min()), int(values.max()))
        self._peaks.append((len(values), peak))
        self._rows += len(values)
        while self._rows - self._peaks[0][0] >= len(values) + self._longest - 1:
            self._rows -= self._peaks.popleft()[0]
        bound = max(peak for _, peak in self._peaks) * self._longest
        return next(width for width in _WIDTHS if bound < 1 << (width - 1))

    def _change(self, width: int) -> None:
        """Go on in another width, from the values that the ring still tells."""
        fields = self._kernel.recent()
        values = fields[0].view(np.int64) if len(fields) > 1 else fields[0]
        self.width, self._kernel = width, self._make(width)
        if width < 128:
            self._kernel.refill((values.astype(f"int{width}"),))
        else:
            self._kernel.refill(_wide(values.astype(np.int64)))

    def _make(self, width: int) -> Differences:
        if width < 128:
            return Differences(PARTIALS["count"], self.sizes, [f"int{width}"])
        return Differences(PARTIALS["sum_int"], self.sizes, PARTIALS["sum_int"].dtypes)


def _wide(values: Array) -> tuple[Array, Array]:
    low, high = lift_wide(values)
    return low, high
