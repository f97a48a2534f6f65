"""Levels 2 and 3: slice partials into windows, for one bucket of keys, free of any host.

Bytes in, bytes out: the same object runs inside Spark's stateful operator, in the in-process engine and in tests.
One call of :meth:`BucketOperator.apply` is one micro-batch: the entries of all its tasks are handed to the branches
(:mod:`workbench.runtime.branches`), the watermark moves, and every window it has passed is emitted as final, in the
same micro-batch; open windows that got rows are emitted as provisional, final ones that a late row has changed as
revised.

A row is late for a window that nothing may change any more: it changes nothing there, is counted for the query, and
still counts in the longer windows that are open.

:meth:`BucketOperator.change` puts another plan in place between two micro-batches. What is the same in both goes on.
What is new has not seen the rows so far, so it tells the windows that start behind the latest of them::

    rows so far   . ..  . .  |                                  the latest row: all that come later are seen
    new windows   [------------------)                          partly seen: never told
                             [------------------)               wholly seen: told as any other
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from workbench.errors import EngineError
from workbench.logical import ContextFree, EachRow, Session, Stream
from workbench.plan import Assembly, SharedPlan, carry
from workbench.runtime import wire
from workbench.runtime.assembling import Assembler
from workbench.runtime.branches.base import Branch, Clock, Work
from workbench.runtime.branches.context import ContextWindows
from workbench.runtime.branches.grids import SliceWindows
from workbench.runtime.branches.sessions import SessionWindows
from workbench.runtime.learned import Learned, read_learned, together
from workbench.runtime.state import BucketState, StateChanges
from workbench.time import LIMIT


class BucketOperator:
    """The operator of one bucket. Feed every micro-batch to :meth:`apply`, keep what :meth:`changes` says."""

    def __init__(self, plan: SharedPlan, version: int = 1) -> None:
        self._start(plan, version)

    def _start(self, plan: SharedPlan, version: int) -> None:
        """The state before the first row."""
        self.plan = plan
        self._assembler = Assembler(plan)
        self._folds = [_branches(plan, fold, self._assembler) for fold in range(len(plan.folds))]
        self.state = BucketState([branch for branches in self._folds for branch in branches], version)

    @property
    def token(self) -> str:
        """The version of the state: random, new after every :meth:`changes`."""
        return self.state.token

    @property
    def version(self) -> int:
        """The version of the plan."""
        return self.state.plan

    @property
    def horizon(self) -> int:
        """The watermark less the allowed lateness: what ended by then changes no more."""
        return horizon_of(self.plan.stream, self.state.watermark)

    @staticmethod
    def version_of(meta: bytes) -> int:
        """The version of the plan that a written head belongs to."""
        return int(wire.unpack(wire.Kind.STATE_META, meta)[0]["plan"])

    @staticmethod
    def token_of(meta: bytes) -> str:
        """The version that a written head belongs to."""
        return str(wire.unpack(wire.Kind.STATE_META, meta)[0]["token"])

    def load(self, meta: bytes | None, blocks: Iterable[bytes]) -> None:
        """Start from written state; ``meta`` None means from nothing.

        Raises EngineError for the state of another version of the plan: load that, then :meth:`change`.
        """
        self._start(self.plan, self.version)
        if meta is not None:
            self.state.restore(meta, blocks)
            self._begin()

    def change(self, plan: SharedPlan, version: int) -> None:
        """Go on with another plan from the next micro-batch on.

        Queries and levels of both plans go on untouched; those that are gone leave nothing behind. A level that is
        new is told where all of a window was seen, provisional or final: from the first start behind the latest row
        on (a row too far in the future counts as one that will come). Sessions begin once no earlier row could be in
        them; windows of the last rows once they are full; windows between marks with the first mark; counting of
        rows begins at the change. A level whose windows and partials another query had already loses nothing.

        Compile ``plan`` with ``running`` set to the old one. Raises QueryError for a plan that cannot go on, and
        leaves all as it is. Cost: proportional to the state, all of which is to be written anew.
        """
        carried, older, before = carry(self.plan, plan), self._folds, self.state
        self._start(plan, version)
        for origin, partials, branches in zip(carried.folds, carried.partials, self._folds, strict=True):
            for branch in branches:
                same = [] if origin is None else [b for b in older[origin] if _subject(b) == _subject(branch)]
                if same:
                    branch.adopt(same[0], partials)
        state = self.state
        state.watermark, state.max_event, state.token, state.afresh = before.watermark, before.max_event, "", True
        now = None if before.max_event is None else before.max_event + 1
        for place, source in carried.windows.items():
            begun = now if source is None else before.since.get(source)
            if begun is not None:
                state.since[place] = begun
        self._begin()

    def _begin(self) -> None:
        """Bring into force when windows began, and from where on queries are told of them."""
        since, told = self.state.since, {}
        for place, assembly in enumerate(self.plan.assemblies):
            for query, level in assembly.users:
                entry = self.plan.queries[query]
                read = {0}.union(*(ingredient.partials for ingredient in entry.ingredients))
                times = [since[place, partial] for partial in read if (place, partial) in since]
                if times:
                    told[entry.query.name, level] = max(times) + _reach(assembly)
        for fold, branches in enumerate(self._folds):
            begun = {
                assembly.window: since[place, 0]
                for place, assembly in enumerate(self.plan.assemblies)
                if assembly.fold == fold and (place, 0) in since
            }
            for branch in branches:
                branch.begin(begun, told)

    def changes(self) -> StateChanges:
        """What to write since the last call; call it once after each :meth:`apply`."""
        return self.state.snapshot()

    def apply(self, payloads: Iterable[bytes]) -> bytes:
        """One micro-batch: the messages of all its tasks to this bucket, in any order; returns a report."""
        state = self.state
        messages = [wire.unpack(wire.Kind.SLICES, payload) for payload in payloads]
        self._check_horizon([header for header, _ in messages])
        clock = self._tick([header for header, _ in messages])
        late: Counter[int] = Counter()
        for header, tables in messages:
            self._hand_out(header["folds"], tables, clock, late)
        results = [result for branch in state.branches for result in branch.advance(clock, late)]
        work = sum((branch.work for branch in state.branches), Work())
        for branch in state.branches:
            branch.forget()
        return wire.encode_report(
            wire.Report(
                rows=sum(header["rows"] for header, _ in messages),
                ahead=sum(header["ahead"] for header, _ in messages),
                dropped=sum(header.get("dropped", 0) for header, _ in messages),
                watermark=state.max_event if clock.finish else state.watermark,
                max_event=state.max_event,
                backward={
                    self.plan.queries[query].query.name: found
                    for branch in state.branches
                    for query, found in branch.backward.items()
                },
                late={self.plan.queries[query].query.name: count for query, count in late.items() if count},
                slices=sum(branch.slices for branch in state.branches),
                merges=work.merges,
                splits=work.splits,
                recomputations=work.recomputations,
                tuples=sum(branch.tuples for branch in state.branches),
                keys=max((len(branch.table) for branch in state.branches), default=0),
                state_bytes=sum(branch.nbytes for branch in state.branches),
                finished=clock.finish,
                plan=self.version,
                learned=_learned([header for header, _ in messages]),
                bundles=results,
            )
        )

    def _check_horizon(self, headers: list[dict[str, Any]]) -> None:
        """A task that was told of another horizon may have put late rows together with others."""
        for header in headers:
            told = header.get("horizon")
            if told not in (None, self.horizon):
                raise EngineError(f"late rows were cut off at {told}, where the operator is at {self.horizon}")

    def _tick(self, headers: list[dict[str, Any]]) -> Clock:
        """Move the watermark: the largest event time of all tasks less the delay, never back.

        Time that has passed while the stream was idle counts from the largest event time on.
        """
        state, stream = self.state, self.plan.stream
        before = -LIMIT if state.watermark is None else state.watermark
        events = [header["max_event"] for header in headers if header["max_event"] is not None]
        if events:
            state.max_event = max(events if state.max_event is None else [*events, state.max_event])
        finish = any(header["finish"] for header in headers)
        newest = -LIMIT
        if state.max_event is not None:
            passed = max((header.get("passed", 0) for header in headers), default=0)
            # Time that has passed in silence has passed for good, also when rows of before come again.
            newest = max(state.max_event + passed, before + stream.delay)
        after = LIMIT if finish else max(before, newest - stream.delay)
        state.watermark = after if after > -LIMIT else None
        return Clock(before, after, newest, stream.lateness, finish)

    def _hand_out(self, folds: list[int], tables: list[pa.RecordBatch], clock: Clock, late: dict[int, int]) -> None:
        for fold, keys, entries in zip(folds, tables[::2], tables[1::2], strict=True):
            for branch in self._folds[fold]:
                branch.take(keys, entries, clock, late)


def horizon_of(stream: Stream, watermark: int | None) -> int:
    """A watermark, None before the first row, less the allowed lateness."""
    return (-LIMIT if watermark is None else watermark) - stream.lateness


def _learned(headers: list[dict[str, Any]]) -> dict[str, Learned]:
    """What all tasks of a micro-batch have learned of their rows."""
    told = [header.get("learned", {}) for header in headers]
    return together([{subject: read_learned(each) for subject, each in own.items()} for own in told])


def _subject(branch: Branch) -> tuple[type, object]:
    """What tells the branches over one fold apart."""
    return type(branch), branch.window


def _reach(assembly: Assembly) -> int:
    """How long behind a row of its own a window may begin and still be one with it: sessions do."""
    window = assembly.window
    return window.gap + window.joins - 1 if isinstance(window, Session) and isinstance(window.gap, int) else 0


def _branches(plan: SharedPlan, fold: int, assembler: Assembler) -> list[Branch]:
    """What looks after the windows over a fold."""
    assemblies = plan.of_fold(fold)
    if plan.folds[fold].columns is not None:
        rows: list[Branch] = []
        if any(not isinstance(each.window, EachRow) for each in assemblies):
            rows.append(ContextWindows(plan, fold, assembler))
        if any(isinstance(each.window, EachRow) for each in assemblies):
            # Here, as it loads the compiler, which a session that only plans and shows has no need of.
            from workbench.runtime.branches.over import RowResults

            rows.append(RowResults(plan, fold))
        return rows
    branches: list[Branch] = [SessionWindows(plan, each) for each in assemblies if isinstance(each.window, Session)]
    if any(isinstance(each.window, ContextFree) for each in assemblies):
        branches.append(SliceWindows(plan, fold, assembler))
    return branches
