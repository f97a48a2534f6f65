"""Level 1: rows into slice partials, inside one task (*LightSaber* §3, *General Stream Slicing* §5.2).

A task folds the record batches it reads and ends with one message for every bucket of keys, also for buckets
without rows, because every bucket must learn the latest event time of all tasks in the same micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from workbench.plan import SharedPlan
from workbench.runtime import wire
from workbench.runtime.folding import Cut, Folder, Rows, cut_batch, plan_columns
from workbench.runtime.fragmenting import fragments_of
from workbench.runtime.keyrange import KeyProfile
from workbench.runtime.learned import together
from workbench.time import LIMIT

Array = npt.NDArray[Any]

#: The one key of rows that have none.
_NO_KEYS = [pa.array([0], pa.int8())]
#: Folds of which a task tells what it has learned.
_TOLD = 32


class Level1:
    """Folds the rows of one task of one micro-batch; make a new one for each. ``buckets`` is fixed per plan.

    ``columns`` are the source columns it reads, the time column first. ``now`` is the wall clock in microseconds:
    rows that are further ahead of it than the stream allows do not move the watermark. ``dropped`` is set by whoever
    reads the rows: how many could not be read, and were left out. ``folders`` are those of tasks before in this
    process (:func:`folders_of`), which have learned from their rows; None to begin with nothing. ``horizon`` is
    :attr:`BucketOperator.horizon` before this micro-batch; None where it is not known, which costs more for sessions.
    """

    def __init__(
        self,
        plan: SharedPlan,
        buckets: int,
        now: int | None = None,
        folders: Sequence[Folder] | None = None,
        horizon: int | None = None,
    ) -> None:
        self.plan = plan
        future = plan.stream.future
        self._limit = LIMIT if now is None or future is None else now + future
        self.buckets = buckets
        self.columns = plan_columns(plan)
        self._horizon = horizon if any(fold.gaps for fold in plan.folds) else None
        self._tasks = [_Task(folder, self._horizon) for folder in folders or folders_of(plan)]
        self._parts: list[list[tuple[dict[str, Any], list[pa.RecordBatch]]]] = [[] for _ in range(buckets)]
        self._rows = self._ahead = 0
        self.dropped = 0
        self._max_event: int | None = None
        self._before = [task.folder.learned() for task in self._tasks]

    def fold(self, batch: pa.RecordBatch) -> None:
        """Take in rows; cost proportional to them, nothing of them is kept but partials.

        Rows without an event time belong to no window: they are counted as rows and change nothing else.
        """
        self._rows += len(batch)
        cut = cut_batch(batch.select(list(self.columns)), self.plan)
        if not len(cut.batch):
            return
        self._move(cut)
        for index, task in enumerate(self._tasks):
            for bucket, tables in task.fold(cut, self.buckets):
                self._parts[bucket].append(({"fold": index}, tables))

    def _move(self, cut: Cut) -> None:
        """Note the latest event time, of the rows that are not too far ahead."""
        latest = cut.latest
        if latest > self._limit:
            times = cut.times()
            near = times[times <= self._limit]
            self._ahead += len(times) - len(near)
            if not len(near):
                return
            latest = int(near.max())
        self._max_event = latest if self._max_event is None else max(self._max_event, latest)

    def messages(self, *, finish: bool = False, passed: int = 0) -> list[bytes]:
        """One message for each bucket ``0 .. buckets - 1``.

        ``finish`` says that no row will ever follow, ``passed`` how far event time has gone on behind the latest row,
        in microseconds, while the stream was idle.
        """
        messages = []
        for bucket, parts in enumerate(self._parts):
            header = {
                "rows": self._rows,
                "max_event": self._max_event,
                "ahead": self._ahead,
                "dropped": self.dropped,
                "finish": finish,
                "horizon": self._horizon,
                "passed": passed,
                "folds": [head["fold"] for head, _ in parts],
                # One bucket tells for all.
                "learned": {} if bucket else self._learned(),
            }
            messages.append(wire.pack(wire.Kind.SLICES, header, [t for _, tables in parts for t in tables]))
        return messages

    def _learned(self) -> dict[str, dict[str, Any]]:
        """What the folds of this task have seen of their rows, of the first few folds."""
        pairs = list(zip(self._tasks, self._before, strict=True))[:_TOLD] if self._rows else []
        learned = together([{task.folder.subject: task.folder.learned().since(then)} for task, then in pairs])
        return {subject: each.written() for subject, each in learned.items()}


def folders_of(plan: SharedPlan) -> list[Folder]:
    """What folds rows by a plan, to be kept for as long as its tasks come to a process."""
    return [Folder(fold) for fold in plan.folds]


class _Task:
    """One fold of the plan, its (slice, key) partials shared out to buckets."""

    def __init__(self, folder: Folder, horizon: int | None) -> None:
        self.folder = folder
        self._horizon = horizon
        self._fields = [field for kind in self.folder.kinds for field in kind.fields]

    def fold(self, cut: Cut, buckets: int) -> list[tuple[int, list[pa.RecordBatch]]]:
        """For each bucket with rows, a table of its keys and a table of its entries.

        Entries are (slice, key) partials; with gaps the fragments of these, with first row and ends; or rows.
        """
        rows = self.folder.read(cut)
        if not len(rows):
            return []
        keys = rows.keys or _NO_KEYS
        learned = self.folder.learned_keys
        if rows.codes is not None:
            learned.sample(rows.codes.rows, len(rows))
        if rows.columns is not None and rows.times is not None:
            code = np.zeros(len(rows), np.int64) if rows.codes is None else rows.codes.rows()
            return split(code, keys, rows.times, rows.columns, buckets, learned)
        if self.folder.spec.gaps:
            found = fragments_of(self.folder, rows, self._horizon)
            starts, code, bounds, fields = found.starts, found.codes, [found.firsts, *found.ends], found.fields
        else:
            cells, fields = self._cells(rows, len(keys[0]))
            place = cells // len(keys[0])
            code = cells - place * len(keys[0])  # np.divmod takes ten times as long
            starts, bounds = rows.slices.starts[place], []
        columns = [field.to_arrow(cells) for field, cells in zip(self._fields, fields, strict=True)]
        return split(code, keys, starts, [*map(pa.array, bounds), *columns], buckets, learned)

    def _cells(self, rows: Rows, width: int) -> tuple[Array, list[Array]]:
        """The cells ``slice * width + key`` that have rows, and their partials.

        Few cells: every cell is a group, nothing is sorted.
        """
        cells = len(rows.slices.starts) * width
        if rows.codes is None or cells <= max(4 * len(rows), 1 << 16):
            found, partials = np.arange(cells), self.folder.blank(cells)
            self.folder.fold(rows, None, width, partials)
        else:
            found, group = np.unique(rows.slices.positions() * width + rows.codes.rows(), return_inverse=True)
            partials = self.folder.blank(len(found))
            self.folder.fold_cells(group, rows.inputs, partials)
        present = np.flatnonzero(partials[0][0])
        return found[present], [field[present] for fields in partials for field in fields]


def split(
    code: Array,
    keys: list[pa.Array],
    times: Array,
    columns: Sequence[pa.Array],
    buckets: int,
    learned: KeyProfile | None = None,
) -> list[tuple[int, list[pa.RecordBatch]]]:
    """Entries by bucket: a table of the bucket's keys, and one of time, place among these, and further columns.

    ``learned`` is what is known of the keys of batches before.
    """
    if not len(code):
        return []
    if keys is _NO_KEYS:
        own = [pa.array(times), pa.array(np.zeros(len(code), np.int32)), *columns]
        return [(_bucket_without_keys(buckets), [_named(keys), _named(own)])]
    used = np.flatnonzero(np.bincount(code, minlength=len(keys[0])))
    table = _named([column.take(pa.array(used)) for column in keys])
    bucket_of = np.full(len(keys[0]), -1)
    if buckets == 1:
        bucket_of[used] = 0
    else:
        hashed = partial(key_buckets, buckets=buckets)
        bucket_of[used] = (learned or KeyProfile()).buckets(table, buckets, hashed)
    out = []
    for bucket in range(buckets):
        mine = np.flatnonzero(bucket_of[used] == bucket)
        if not len(mine):
            continue
        rank = np.zeros(len(bucket_of), np.int32)
        rank[used[mine]] = np.arange(len(mine))
        own = [pa.array(times), pa.array(rank[code]), *columns]
        if buckets > 1:
            entry = pa.array(np.flatnonzero(bucket_of[code] == bucket))
            own = [column.take(entry) for column in own]
        out.append((bucket, [table.take(pa.array(mine)), _named(own)]))
    return out


def _named(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    return pa.record_batch(columns, names=[*map(str, range(len(columns)))])


@cache
def _bucket_without_keys(buckets: int) -> int:
    return int(key_buckets(_named(_NO_KEYS), buckets)[0])


def key_buckets(keys: pa.RecordBatch, buckets: int) -> Array:
    """The bucket of each key: a hash that is the same in every process and on every machine.

    NULL, NaN and both zeros have one place each, whatever their bits.
    """
    mixed = np.zeros(len(keys), np.uint64)
    for column in keys.columns:
        if pa.types.is_floating(column.type):
            values = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
            values = np.where(np.isnan(values), np.nan, values + 0.0)
            hashed = pd.util.hash_array(values)
        else:
            texts = column.cast(pa.string()).fill_null("\0null").to_numpy(zero_copy_only=False)
            hashed = pd.util.hash_array(texts, categorize=False)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashed
    mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(buckets)).astype(np.int64)
