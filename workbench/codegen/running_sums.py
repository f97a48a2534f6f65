"""Sums over the last rows by a running sum for each window, and the rows themselves instead of a ring of partials."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.codegen.kernels import sealed
from workbench.plan.cost import PIECE

Array = npt.NDArray[Any]

#: A sum of floats is computed afresh after so many times the rows of its window, and after at least so many pieces: a
#: quarter of an addition a row.
_WINDOWS, _PIECES = 4, 16


class Rows:
    """The last ``reach`` rows of a sequence that comes in batches.

    Batches that nobody may write to, as the columns of Arrow, are kept as they are; others, and short ones, are
    copied.
    """

    def __init__(self, reach: int, dtype: npt.DTypeLike) -> None:
        self._reach, self._dtype = reach, np.dtype(dtype)
        self._parts: deque[Array] = deque()
        self._held = 0
        #: The block that is filled now, and how far.
        self._block, self._used = np.empty(0, dtype), 0

    def leaving(self, size: int, batch: Array) -> Iterator[tuple[int, int, Array]]:
        """What leaves a window of ``size`` rows as those of the next batch come, in pieces ``(low, high, rows)``.

        ``rows`` leave as ``batch[low:high]`` comes; zeros where there was none yet. They are as
        :func:`~workbench.codegen.kernels.sealed` as ``batch`` is::

            held rows   |----part----|-------part-------|     batch |=========|
            leaving                      |rows||--------rows-------|
        """
        n, low, start = len(batch), 0, -self._held
        if -size < start:
            low = min(n, start + size)
            yield 0, low, sealed(np.zeros(low, self._dtype))
        for part in self._parts:
            end = start + len(part)
            if low < n and low - size < end:
                high = min(n, end + size)
                yield low, high, part[low - size - start : high - size - start]
                low = high
            if low == n:
                return
            start = end
        if low < n:
            yield low, n, batch[low - size : n - size]

    def last(self, size: int) -> Iterator[Array]:
        """The last ``size`` rows, or all there are, in pieces, oldest first."""
        skipped = max(0, self._held - size)
        for part in self._parts:
            if skipped < len(part):
                yield part[skipped:]
            skipped = max(0, skipped - len(part))

    def append(self, batch: Array) -> None:
        """The batch has come. What no window reaches any more is let go."""
        if len(batch) >= PIECE and not batch.flags.writeable:
            self._parts.append(batch)
            self._used = len(self._block)
        else:
            self._copy(batch)
        self._held += len(batch)
        while self._parts and self._held - len(self._parts[0]) >= self._reach:
            self._held -= len(self._parts.popleft())

    def _copy(self, batch: Array) -> None:
        """Into blocks of their own, so that many short batches are few parts."""
        while len(batch):
            if self._used == len(self._block):
                self._block, self._used = np.empty(max(PIECE, len(batch)), self._dtype), 0
                self._parts.append(self._block[:0])
            taken = min(len(batch), len(self._block) - self._used)
            self._block[self._used : self._used + taken] = batch[:taken]
            self._used += taken
            self._parts[-1] = sealed(self._block[: self._used])
            batch = batch[taken:]


class RunningSums:
    """The sums of the windows ``sizes`` (in rows, sliding by one) over a sequence of numbers of one type.

    Of integers a sum is exact where it fits into the type, modulo its width where not. Of ``float64`` (fast numerics)
    it is off by the rounding of the additions since it was last computed afresh, at most ``period`` rows of a window
    and a batch ago: for each of them 1.2e-16 of the largest sum of absolute values in a window meanwhile. Windows
    behind a value of 1e90 are wrong until then. NaN and infinities leave nothing behind.

    The state is the rows of the largest window. Read-only batches are kept without a copy, and must not change.
    """

    def __init__(self, sizes: Sequence[int], dtype: npt.DTypeLike = np.float64) -> None:
        # Only here, as it brings in numba.
        from workbench.kernels import rolling

        self.sizes = tuple(map(int, sizes))
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"a window has at least 1 row, got {list(self.sizes)}")
        self.dtype = np.dtype(dtype)
        if self.dtype.kind != "i" and self.dtype != np.float64:
            raise TypeError(f"running sums are of integers or of float64, got `{self.dtype}`")
        self.periods = tuple(max(_WINDOWS * size, _PIECES * PIECE) for size in self.sizes)
        self._rows = Rows(max(self.sizes), self.dtype)
        self._totals = np.zeros(len(self.sizes), self.dtype)
        self._state: tuple[Any, ...] = (self._totals,)
        self._running: Callable[..., None] = rolling.running_integers
        if self.dtype.kind == "f":
            self._state = self._totals, np.zeros(len(self.sizes), np.int64), PIECE
            self._running = rolling.running_floats
        self._finite_sum: Callable[[Array], float] = rolling.finite_sum
        self._since = [0 for _ in self.sizes]

    def push(self, values: Array, out: Array | None = None, past: bool = False) -> Array:
        """The sums that end at each of the next rows, ``[window, row]``, in ``out`` where it is given.

        ``past``: written past the caches, which is faster where ``out`` is a part of an array that is larger than
        these, and slower where the sums are read soon.
        """
        values = np.ascontiguousarray(values, self.dtype)
        comes = sealed(values)
        if out is None:
            out = np.empty((len(self.sizes), len(values)), self.dtype)
        for q, size in enumerate(self.sizes):
            for low, high, leaves in self._rows.leaving(size, comes):
                self._running(comes[low:high], leaves, out[q, low:high], q, past, *self._state)
        self._rows.append(values)
        if self.dtype.kind == "f":
            self._refresh(len(values))
        return out

    def _refresh(self, rows: int) -> None:
        """Compute the sums that are due afresh, from the rows of their windows."""
        for q, size in enumerate(self.sizes):
            self._since[q] += rows
            if self._since[q] >= self.periods[q]:
                self._since[q] = 0
                self._totals[q] = sum(map(self._finite_sum, self._rows.last(size)))
