"""The windows of a piece of the rows of a table: the frames of each row, and what they hold, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.algebra import AGGREGATES
from workbench.codegen.over import FrameKernel, SortedRows
from workbench.kernels.frames import frames_of
from workbench.logical import Frame, OverCall, RangeFrame, RowsFrame
from workbench.runtime.ordering import Ordering
from workbench.runtime.over_columns import room

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


@dataclass(frozen=True)
class Task:
    """The rows of a fold in order, with all that its frames need of them."""

    batch: pa.RecordBatch
    rows: SortedRows
    unit: int
    ordering: Ordering
    lifted: list[Fields | None]
    scans: dict[int, tuple[Fields, Fields]]
    large: frozenset[Frame]
    frames: dict[Frame, tuple[int, ...]]


class Windows:
    """The windows of one piece: the frames of its rows, and their partials, each made once."""

    def __init__(self, kernels: Sequence[FrameKernel], task: Task, begin: int, end: int) -> None:
        self._kernels = kernels
        self._task = task
        self._begin, self._end = begin, end
        self._bounds: dict[Frame, tuple[Array, Array]] = {}
        self._found: dict[tuple[Frame, int], Fields] = {}

    def lowered(self, over: OverCall, positions: Sequence[int]) -> pa.Array:
        """The values of an aggregate over a frame."""
        call, frame = over.call, over.frame
        if not frame.until and frame not in self._task.large and is_mean(self._kernels, self._task, over, positions):
            means = self._near(frame, positions[0], mean=True)
            if means is not None:
                return pa.array(means[0])
        fields = [self._partial(frame, position) for position in positions]
        return AGGREGATES[call.function].lower(fields, call.operands, call.type, str(call))

    def _near(self, frame: Frame, position: int, mean: bool = False) -> Fields | None:
        """One frame over a partial by the kernel that finds the frames by itself; None where array code must."""
        task, kernel, rows = self._task, self._kernels[position], self._task.lifted[position]
        assert rows is not None
        out = tuple(np.empty(self._end - self._begin, kind) for kind in kernel.kind.dtypes)
        by_time = isinstance(frame, RangeFrame), reach(frame, task.unit)
        return out if kernel.near(task.rows, by_time, rows, (self._begin, self._end), out, mean=mean) else None

    def _partial(self, frame: Frame, position: int) -> Fields:
        if (frame, position) not in self._found:
            rows = self._task.lifted[position]
            if rows is None:
                first, last = self._frame(frame)
                at = self._task.rows.at
                sizes = np.subtract(at[last], at[first], dtype=np.int64) if len(at) else last - first
                self._found[frame, position] = (sizes,)
            elif frame in self._task.large and frame.until:
                self._found[frame, position] = self._prefixes(frame, position)
            elif frame in self._task.large:
                self._shared(position)
            elif not frame.until and (near := self._near(frame, position)) is not None:
                self._found[frame, position] = near
            else:
                first, last = self._frame(frame)
                low, high = first[0], last[-1]
                some = tuple(column[low:high] for column in rows)
                kernel, bounds = self._kernels[position], (first - low, last - low)
                if frame.single:
                    self._found[frame, position] = kernel.single(*bounds, some)
                else:
                    compiled = None if frame.until else False
                    self._found[frame, position] = kernel.windows(*bounds, some, compiled=compiled)
        return self._found[frame, position]

    def _frame(self, frame: Frame) -> tuple[Array, Array]:
        if frame not in self._bounds:
            rows, unit = self._task.rows, self._task.unit
            back = None if frame.preceding is None else reach(frame, unit)
            piece = self._begin, self._end
            by_time, until = isinstance(frame, RangeFrame), _until(frame, unit)
            self._bounds[frame] = frames_of(rows.times, rows.runs, by_time, back, *piece, until=until)
        return self._bounds[frame]

    def _shared(self, position: int) -> None:
        """All large frames over a partial in one call."""
        task = self._task
        frames = [frame for frame in task.large if position in task.frames[frame] and not frame.until]
        out = self._large(frames, position, (self._begin, self._end))
        for place, frame in enumerate(frames):
            self._found[frame, position] = tuple(column[place] for column in out)

    def _prefixes(self, frame: Frame, position: int) -> Fields:
        """A frame from the first row of the key to an earlier one: what all rows up to that one make."""
        first, last = self._frame(frame)
        some = np.flatnonzero(last > first)
        out = self._kernels[position].kind.blank(len(first))
        if len(some):
            ends = last[some] - 1
            windows = self._large([RowsFrame(None)], position, (int(ends[0]), int(ends[-1]) + 1))
            for target, (column,) in zip(out, windows, strict=True):
                target[some] = column[ends - ends[0]]
        return out

    def _large(self, frames: Sequence[Frame], position: int, piece: tuple[int, int]) -> Fields:
        """The partials ``[frame, row]`` of the rows of a piece, from scans."""
        task, kernel, fields = self._task, self._kernels[position], self._task.lifted[position]
        assert fields is not None
        shape = len(frames), piece[1] - piece[0]
        out = tuple(room(shape[0] * shape[1], np.dtype(kind)).reshape(shape) for kind in kernel.kind.dtypes)
        kernel.shared(task.rows, reaches(frames, task.unit), fields, task.scans[position], piece, out)
        return out


def is_mean(kernels: Sequence[FrameKernel], task: Task, over: OverCall, positions: Sequence[int]) -> bool:
    """Whether an aggregate is the mean of floats without NULL, which a kernel divides by itself."""
    return (
        over.call.function == "avg"
        and kernels[positions[0]].kind.name == "sum_float"
        and task.lifted[positions[1]] is None
    )


def reaches(frames: Sequence[Frame], unit: int) -> tuple[Array, Array]:
    """Which frames go by time, and how far back each goes, as :meth:`FrameKernel.shared` wants them."""
    by_time = np.array([isinstance(frame, RangeFrame) for frame in frames])
    return by_time, np.array([reach(frame, unit) for frame in frames])


def _until(frame: Frame, unit: int) -> int:
    """How far before the row a frame ends, in rows or in units of time: a part of a unit is another whole one."""
    return -(-frame.until // (unit if isinstance(frame, RangeFrame) else 1))


def reach(frame: Frame, unit: int) -> int:
    """How far back in rows, or in units of time (of ``unit`` microseconds); -1: all rows of the key."""
    if frame.preceding is None:
        return -1
    return frame.preceding // (unit if isinstance(frame, RangeFrame) else 1)
