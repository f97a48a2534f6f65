"""The rows of a fold made ready for their frames: filtered, in order by key and time, lifted into partials.

Where rows come in order of time, a counting sort brings them into order. What is left is :mod:`~.over_blocks`'.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.codegen.kernels import choice
from workbench.codegen.over import CHUNK, FrameKernel
from workbench.kernels.frames import first_low
from workbench.logical import Expression, Frame, RangeFrame, RowsFrame
from workbench.plan import SharedPlan
from workbench.runtime.branches.over import frames_needed, over_users
from workbench.runtime.expressions import evaluate, evaluate_filter
from workbench.runtime.folding import Folder, micros
from workbench.runtime.keys import number_keys
from workbench.runtime.ordering import AsIs, Counted, Ordering, Permuted
from workbench.runtime.over_blocks import Block, Places, moment_blocks, row_blocks
from workbench.runtime.over_windows import Task, reach

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: Frames with more rows than this on average share scans.
_MANY = 2 * CHUNK
#: Moments by rows up to which rows of equal time are taken together.
_FEW = 0.7
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


class Reader:
    """Makes the rows of a fold ready, on the threads of ``pool``."""

    def __init__(
        self,
        plan: SharedPlan,
        fold: int,
        folder: Folder,
        kernels: Sequence[FrameKernel],
        pool: ThreadPoolExecutor,
        threads: int,
    ) -> None:
        self._plan, self._spec = plan, plan.folds[fold]
        self._frames = frames_needed(plan, over_users(plan, fold))
        self._by_rows = any(isinstance(frame, RowsFrame) for frame in self._frames)
        self._folder, self._kernels = folder, kernels
        self._pool, self._threads = pool, threads

    def read(self, batch: pa.RecordBatch, exact: bool) -> Task | None:
        """None without rows. ``exact``: peers are in their order even if no frame depends on it."""
        stream, spec = self._plan.stream, self._spec
        if batch.column(stream.time).null_count:
            batch = batch.filter(batch.column(stream.time).is_valid())
        if spec.where is not None:
            batch = batch.filter(evaluate_filter(spec.where, batch))
        if not len(batch):
            return None
        stamps = batch.column(stream.time)
        unit = _UNITS.get(stamps.type.unit)
        if unit is None:
            times, unit = micros(stamps, stream.time), 1
        else:
            times = stamps.view(pa.int64()).to_numpy()
        codes: Array | None = None
        if spec.keys:
            numbered, _ = number_keys([evaluate(named.expression, batch) for named in spec.keys], len(batch))
            codes = numbered.narrow()
        blocks = moment_blocks(self._pool, self._threads, times, np.array([0, len(times)]))
        columns = spec.columns if self._by_rows or exact else None
        ordering = self._order(batch, times, codes, columns, ascending=blocks is not None)
        times, runs = ordering.sorted(times), ordering.runs
        lifted = [
            None if each is None else tuple(ordering.sorted(column) for column in each)
            for each in self._folder.lift_rows(batch, len(batch))
        ]
        moments = self._united(times, runs, lifted, blocks if isinstance(ordering, AsIs) else None)
        found = moments or row_blocks(len(times))
        large = self._large(times, runs, lifted, unit, found[-1].high / len(times))
        places = Places(
            self._kernels,
            (times, runs, lifted),
            found,
            united=moments is not None,
            scanned={p for frame in large for p in self._frames[frame] if lifted[p] is not None},
            stepped=any(isinstance(frame, RangeFrame) for frame in large),
        )
        rows = places.fill(self._pool, self._threads)
        return Task(batch, rows, unit, ordering, places.values, places.scans, large, self._frames)

    def _order(
        self,
        batch: pa.RecordBatch,
        times: Array,
        codes: Array | None,
        columns: Sequence[Expression] | None,
        ascending: bool,
    ) -> Ordering:
        """The rows by key, time and, if there are any, ``columns``."""
        ordering: Ordering
        if ascending:
            ordering = AsIs(len(times)) if codes is None else Counted(self._pool, self._threads, codes)
        else:
            order, runs = np.argsort(times, kind="stable"), np.array([0, len(times)])
            if codes is not None:
                counted = Counted(self._pool, self._threads, codes[order])
                order, runs = order[counted.order], counted.runs
            ordering = Permuted(self._pool, self._threads, order, runs)
        if columns and _tied(ordering.sorted(times), ordering.runs):
            read = [pa.array(np.zeros(len(times), np.int8) if codes is None else codes), pa.array(times)]
            read += [evaluate(column, batch) for column in columns]
            every = pa.table(read, names=[*map(str, range(len(read)))])
            order = pc.sort_indices(every, [(name, "ascending") for name in every.column_names]).to_numpy()
            return Permuted(self._pool, self._threads, order.astype(np.int64), ordering.runs)
        return ordering

    def _united(
        self, times: Array, runs: Array, lifted: Sequence[Fields | None], known: list[Block] | None
    ) -> list[Block] | None:
        """The blocks of moments where these stand for the rows, as that saves a good part of the work.

        All frames go by time then, so peers have the same results, and in a frame are either all or none of them.
        """
        rows, some = len(times), times[: 1 << 16]
        few = 1 < rows < 1 << 31 and np.count_nonzero(np.diff(some)) <= _FEW * len(some)
        if self._by_rows or not few:
            return None
        if not all(k.unites(rows) for k, own in zip(self._kernels, lifted, strict=True) if own is not None):
            return None
        found = known or moment_blocks(self._pool, self._threads, times, runs)
        return found if found and found[-1].high <= _FEW * rows else None

    def _large(
        self, times: Array, runs: Array, lifted: Sequence[Fields | None], unit: int, share: float
    ) -> frozenset[Frame]:
        """The frames of many moments (``share``: of these to a row), which share scans, judged by some rows.

        Their partials have compiled kernels; one that ends before the row has no beginning.
        """
        if choice(None) == "generic":
            return frozenset()
        rows, found = np.linspace(0, len(times) - 1, 17).astype(int)[1:].tolist(), set[Frame]()
        for frame, needs in self._frames.items():
            if frame.until and frame.preceding is not None:
                continue
            if not all(lifted[p] is None or self._kernels[p].kind.compiled for p in needs):
                continue
            by_time, back = isinstance(frame, RangeFrame), reach(frame, unit)
            sizes = [row - first_low(times, runs, by_time, back, row) for row in rows]
            if np.mean(sizes) * share > _MANY:
                found.add(frame)
        return frozenset(found)


def _tied(times: Array, runs: Array) -> bool:
    """Whether two rows of one key have the same time; the rows stand by key and time."""
    same = times[1:] == times[:-1]
    same[runs[1:-1] - 1] = False
    return bool(same.any())
