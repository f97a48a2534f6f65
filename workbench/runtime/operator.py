"""Levels 2 and 3: slice partials into windows, for one bucket of keys, free of any host.

Bytes in, bytes out: the same object runs inside Spark's stateful operator, in the in-process engine and in tests.
One call of :meth:`BucketOperator.apply` is one micro-batch: the entries of all its tasks are handed to the branches
(:mod:`workbench.runtime.branches`), the watermark moves, and every window it has passed is emitted as final, in the
same micro-batch; open windows that got rows are emitted as provisional, final ones that a late row has changed as
revised.

A row is late for a window that nothing may change any more: it changes nothing there, is counted for the query, and
still counts in the longer windows that are open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from workbench.logical import ContextFree, EachRow, Session
from workbench.plan import SharedPlan
from workbench.runtime import wire
from workbench.runtime.assembling import Assembler
from workbench.runtime.branches.base import Branch, Clock
from workbench.runtime.branches.context import ContextWindows
from workbench.runtime.branches.grids import SliceWindows
from workbench.runtime.branches.over import RowResults
from workbench.runtime.branches.sessions import SessionWindows
from workbench.runtime.state import BucketState, StateChanges
from workbench.time import LIMIT


class BucketOperator:
    """The operator of one bucket. Feed every micro-batch to :meth:`apply`, keep what :meth:`changes` says."""

    def __init__(self, plan: SharedPlan) -> None:
        self.plan = plan
        self._assembler = Assembler(plan)
        self._start()

    def _start(self) -> None:
        """The state before the first row."""
        self._folds = [_branches(self.plan, fold, self._assembler) for fold in range(len(self.plan.folds))]
        self.state = BucketState([branch for branches in self._folds for branch in branches])

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
        self._start()
        if meta is not None:
            self.state.restore(meta, blocks)

    def changes(self) -> StateChanges:
        """What to write since the last call; call it once after each :meth:`apply`."""
        return self.state.snapshot()

    def apply(self, payloads: Iterable[bytes]) -> bytes:
        """One micro-batch: the messages of all its tasks to this bucket, in any order; returns a report."""
        state = self.state
        messages = [wire.unpack(wire.Kind.SLICES, payload) for payload in payloads]
        clock = self._tick([header for header, _ in messages])
        late = dict.fromkeys(range(len(self.plan.queries)), 0)
        for header, tables in messages:
            self._hand_out(header["folds"], tables, clock, late)
        results = [result for branch in state.branches for result in branch.advance(clock, late)]
        return wire.encode_report(
            wire.Report(
                rows=sum(header["rows"] for header, _ in messages),
                ahead=sum(header["ahead"] for header, _ in messages),
                watermark=state.max_event if clock.finish else state.watermark,
                max_event=state.max_event,
                late={self.plan.queries[query].query.name: count for query, count in late.items()},
                slices=sum(branch.slices for branch in state.branches),
                tuples=sum(branch.tuples for branch in state.branches),
                state_bytes=sum(branch.nbytes for branch in state.branches),
                finished=clock.finish,
                results=results,
            )
        )

    def _tick(self, headers: list[dict[str, Any]]) -> Clock:
        """Move the watermark: the largest event time of all tasks less the delay, never back."""
        state, stream = self.state, self.plan.stream
        before = -LIMIT if state.watermark is None else state.watermark
        events = [header["max_event"] for header in headers if header["max_event"] is not None]
        if events:
            state.max_event = max(events if state.max_event is None else [*events, state.max_event])
        finish = any(header["finish"] for header in headers)
        newest = -LIMIT if state.max_event is None else state.max_event
        after = LIMIT if finish else max(before, newest - stream.delay)
        state.watermark = after if after > -LIMIT else None
        return Clock(before, after, newest, stream.lateness, finish)

    def _hand_out(self, folds: list[int], tables: list[pa.RecordBatch], clock: Clock, late: dict[int, int]) -> None:
        for fold, keys, entries in zip(folds, tables[::2], tables[1::2], strict=True):
            for branch in self._folds[fold]:
                branch.take(keys, entries, clock, late)


def _branches(plan: SharedPlan, fold: int, assembler: Assembler) -> list[Branch]:
    """What looks after the windows over a fold."""
    assemblies = plan.of_fold(fold)
    if plan.folds[fold].columns is not None:
        rows: list[Branch] = []
        if any(not isinstance(each.window, EachRow) for each in assemblies):
            rows.append(ContextWindows(plan, fold, assembler))
        if any(isinstance(each.window, EachRow) for each in assemblies):
            rows.append(RowResults(plan, fold))
        return rows
    branches: list[Branch] = [SessionWindows(plan, each) for each in assemblies if isinstance(each.window, Session)]
    if any(isinstance(each.window, ContextFree) for each in assemblies):
        branches.append(SliceWindows(plan, fold, assembler))
    return branches
