"""Result columns of a table of frames: filled piece by piece by threads, by moment or by row, in any order."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.codegen.over import sealed
from workbench.kernels.peers import spread
from workbench.runtime.ordering import AsIs, Ordering

Array = npt.NDArray[Any]


class Output:
    """A result column that is filled piece by piece, in order of key and time, or that is there: ``values``."""

    def __init__(self, kind: pa.DataType, rows: int, ordering: Ordering, values: Array | None = None) -> None:
        self._kind = kind
        self._ordering = ordering
        self._values = values
        self.open = values is None
        if values is None and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            self._values = room(rows, np.dtype(kind.to_pandas_dtype()))
        self._valid: Array | None = None
        self._pieces: dict[int, pa.Array] = {}
        self._lock = Lock()

    def put(self, begin: int, end: int, values: pa.Array, at: Array) -> None:
        """The values of the rows ``[begin, end)`` in order of key and time, or of the moments that begin ``at``."""
        if self._values is None:
            self._pieces[begin] = of_rows(values.cast(self._kind), at)
            return
        if values.null_count:
            with self._lock:
                if self._valid is None:
                    self._valid = np.ones(len(self._values), np.bool_)
            _write(self._valid[begin:end], values.is_valid().to_numpy(zero_copy_only=False), at)
            values = values.fill_null(0)
        _write(self._values[begin:end], values.to_numpy(), at)

    def array(self) -> pa.Array:
        """The whole column, in the order of the table."""
        if self._values is not None:
            values, valid = self._restored(self._values), self._valid
            return pa.array(values, self._kind, mask=None if valid is None else ~self._restored(valid))
        column = pa.concat_arrays([self._pieces[begin] for begin in sorted(self._pieces)])
        order = self._ordering.order
        if order is None:
            return column
        back = np.empty(len(column), np.int64)
        back[order] = np.arange(len(column))
        return column.take(pa.array(back))

    def _restored(self, column: Array) -> Array:
        if isinstance(self._ordering, AsIs):
            return column
        out = room(len(column), column.dtype)
        self._ordering.restored(column, out)
        return out


def _write(target: Array, values: Array, at: Array) -> None:
    if len(at):
        spread(sealed(values), sealed(at), target)
    else:
        target[:] = values


def of_rows(values: pa.Array, at: Array) -> pa.Array:
    """The values of rows, from those of the moments that begin ``at``, if there are any."""
    return values.take(pa.array(np.repeat(np.arange(len(values)), np.diff(at)))) if len(at) else values


def room(rows: int, dtype: Any) -> Array:
    """An array in memory that Arrow keeps at hand when it is freed: fresh pages would cost more than the windows."""
    return np.frombuffer(pa.allocate_buffer(rows * np.dtype(dtype).itemsize), dtype)
