"""Levels 2 and 3: slice partials into windows, for one bucket of keys, free of any host.

Bytes in, bytes out: the same object runs inside Spark's stateful operator, in the in-process engine and in tests.
One call of :meth:`BucketOperator.apply` is one micro-batch: the partials of all its tasks are merged into the
slice store, the watermark moves, and every window it has passed is emitted as final, in the same micro-batch;
open windows that got rows are emitted as provisional.

A row is late for a window whose final result is out: it changes nothing there, is counted for the query, and still
counts in the longer windows that are open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.plan import Assembly, SharedPlan
from workbench.results import Status
from workbench.runtime import wire
from workbench.runtime.assembling import Assembler, Emitted, emit
from workbench.runtime.state import BucketState, StateChanges
from workbench.runtime.windows import last_closed, touched, windows_of
from workbench.time import LIMIT

Array = npt.NDArray[Any]


class BucketOperator:
    """The operator of one bucket. Feed every micro-batch to :meth:`apply`, keep what :meth:`changes` says."""

    def __init__(self, plan: SharedPlan) -> None:
        self.plan = plan
        self.state = BucketState.fresh(plan)
        self._assembler = Assembler(plan)

    @property
    def token(self) -> str:
        """The version of the state: random, new after every :meth:`changes`."""
        return self.state.token

    @staticmethod
    def token_of(meta: bytes) -> str:
        """The version that a written head belongs to."""
        return str(wire.unpack(wire.Kind.STATE_META, meta)[0]["token"])

    def load(self, meta: bytes | None, blocks: Iterable[bytes]) -> None:
        """Start from written state; ``meta`` None means from nothing."""
        self.state = BucketState.fresh(self.plan)
        if meta is not None:
            self.state.restore(meta, blocks)

    def changes(self) -> StateChanges:
        """What to write since the last call; call it once after each :meth:`apply`."""
        return self.state.snapshot()

    def apply(self, payloads: Iterable[bytes]) -> bytes:
        """One micro-batch: the messages of all its tasks to this bucket, in any order; returns a report."""
        state = self.state
        messages = [wire.unpack(wire.Kind.SLICES, payload) for payload in payloads]
        before = -LIMIT if state.watermark is None else state.watermark
        changed, late = self._merge(messages, before)
        finish = any(header["finish"] for header, _ in messages)
        events = [header["max_event"] for header, _ in messages if header["max_event"] is not None]
        if events:
            state.max_event = max(events if state.max_event is None else [*events, state.max_event])
        after = before
        if finish:
            after = LIMIT
        elif state.max_event is not None:
            after = max(before, state.max_event - self.plan.stream.delay)
        results = [
            result
            for fold in range(len(self.plan.folds))
            for result in self._emit(fold, changed[fold], before, after)
        ]
        state.watermark = after if after > -LIMIT else None
        self._evict(after)
        return wire.encode_report(
            wire.Report(
                rows=sum(header["rows"] for header, _ in messages),
                watermark=state.max_event if finish else state.watermark,
                max_event=state.max_event,
                late=late,
                slices=sum(len(store.starts) for store in state.stores),
                state_bytes=sum(store.nbytes for store in state.stores),
                finished=finish,
                results=results,
            )
        )

    def _merge(
        self, messages: list[tuple[dict[str, Any], list[pa.RecordBatch]]], watermark: int
    ) -> tuple[list[Array], dict[str, int]]:
        """Merge all entries; returns the changed slices by fold, and the late rows by query."""
        touched_by: list[list[Array]] = [[] for _ in self.plan.folds]
        late = {entry.query.name: 0 for entry in self.plan.queries}
        for header, tables in messages:
            for fold, keys, entries in zip(header["folds"], tables[::2], tables[1::2], strict=True):
                store = self.state.stores[fold]
                starts, codes = (column.to_numpy() for column in entries.columns[:2])
                fields = store.from_arrow(entries.columns[2:])
                self._count_late(fold, starts, fields[0], watermark, late)
                numbers = store.number_keys(keys)[codes]
                useful = starts >= self._open_from(fold, watermark)
                if not useful.all():
                    starts, numbers = starts[useful], numbers[useful]
                    fields = [column[useful] for column in fields]
                if len(starts):
                    store.merge(starts, numbers, fields)
                    self.state.touch(fold, starts)
                    touched_by[fold].append(starts)
        changed = [np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64) for parts in touched_by]
        return changed, late

    def _open_from(self, fold: int, watermark: int) -> int:
        """The start of the earliest window over a fold that is still open: slices before it are of no more use."""
        return min(
            assembly.window.offset + (last_closed(assembly.window, watermark) + 1) * assembly.window.slide
            for assembly in self.plan.assemblies
            if assembly.fold == fold
        )

    def _count_late(self, fold: int, starts: Array, rows: Array, watermark: int, late: dict[str, int]) -> None:
        missed: dict[int, Array] = {}
        for assembly in self.plan.assemblies:
            if assembly.fold == fold:
                first, _ = windows_of(assembly.window, starts)
                closed = first <= last_closed(assembly.window, watermark)
                for query, _ in assembly.users:
                    missed[query] = missed.get(query, False) | closed
        for query, mask in missed.items():
            late[self.plan.queries[query].query.name] += int(rows[mask].sum())

    def _emit(self, fold: int, changed: Array, before: int, after: int) -> Emitted:
        """Results of all windows over a fold: final where the watermark has passed, provisional where rows came."""
        chosen = [
            (assembly, self._chosen(assembly, changed, before, after))
            for assembly in self.plan.assemblies
            if assembly.fold == fold
        ]
        chosen = [(assembly, numbers) for assembly, numbers in chosen if len(numbers)]
        if not chosen:
            return []
        store = self.state.stores[fold]
        partials, keys = self._assembler.assemble(fold, chosen, store), store.key_arrays()
        results: Emitted = []
        for place, (assembly, numbers) in enumerate(chosen):
            own = {index: partials[place, index] for index in assembly.partials}
            status = self._status(assembly, numbers, after)
            results += emit(self.plan, assembly, numbers, own, keys, status)
        return results

    def _chosen(self, assembly: Assembly, changed: Array, before: int, after: int) -> Array:
        """The windows to emit by number: those that the watermark has passed now, then open ones that got rows."""
        store, window = self.state.stores[assembly.fold], assembly.window
        closed = last_closed(window, after)
        final = touched(window, store.starts, last_closed(window, before) + 1, closed)
        newest = -LIMIT if self.state.max_event is None else self.state.max_event
        # Of the windows still open in event time only the next to end: it is the moving end of a plot.
        return np.concatenate([final, touched(window, changed, closed + 1, last_closed(window, newest) + 1)])

    def _status(self, assembly: Assembly, numbers: Array, after: int) -> Array:
        final = numbers <= last_closed(assembly.window, after)
        return np.where(final, Status.FINAL, Status.PROVISIONAL).astype(np.int8)

    def _evict(self, watermark: int) -> None:
        for fold, store in enumerate(self.state.stores):
            store.evict(self._open_from(fold, watermark))
