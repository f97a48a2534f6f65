"""The handle of a running query: what a notebook cell leaves behind."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from workbench.errors import QueryError, did_you_mean
from workbench.language import parse_level, sql_of
from workbench.logical import MeasureWindow, Numerics, Query, UserContext
from workbench.plan import PlanView, SharedPlan
from workbench.results import QueryResults, Status
from workbench.runtime.learned import Learned, subject_of
from workbench.session.card import card_html
from workbench.session.frames import explained
from workbench.session.launch import raise_failure, spark_of
from workbench.session.sources import source_arguments
from workbench.session.status import QueryStatus
from workbench.spark.failure import worker_trace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from workbench.session.stream import SharedStream
    from workbench.spark.progress import Progress


#: How often an awaited query is looked at, seconds.
_LOOK = 0.1


@dataclass(frozen=True)
class LastWord:
    """How a query was doing when another one took its name, and the plan that it ran in."""

    progress: Progress
    plan: SharedPlan


class LiveQuery:
    """A query of the shared plan of its source. It keeps running while other cells run.

    The same handle stays valid after :meth:`stop`, and where a newer query takes its name: its last results and its
    status remain.
    """

    def __init__(self, query: Query, results: QueryResults, stream: SharedStream) -> None:
        self.query = query
        self._results = results
        self._stream = stream
        self._left: LastWord | None = None

    @property
    def name(self) -> str:
        """The query's name, one of a kind in a session."""
        return self.query.name

    @property
    def store(self) -> QueryResults:
        """Where the results are kept, for plots."""
        return self._results

    def results(self, level: int | str | None = None, *, status: str | None = None, format: str = "pandas") -> Any:
        """The windows kept so far: one row a window and key, all levels or one (by position or label).

        Columns: level, keys, window_start, window_end (exclusive; UTC, or numbers of a measure), values, status
        (``provisional`` while the window is open, ``final``, ``revised``) and revision. ``status`` keeps one kind.
        ``format`` is ``'pandas'``, ``'arrow'`` or ``'spark'``, a DataFrame. Cost: a copy of what is kept.
        """
        wanted = None
        if status is not None:
            names = [member.name.lower() for member in Status if member]
            if status not in names:
                raise QueryError(f"no status `{status}`", hint=did_you_mean(status, names))
            wanted = Status[status.upper()]
        table: pa.Table = self._results.table(level, wanted)
        if format == "arrow":
            return table
        if format == "spark":
            return spark_of(self._stream.source).createDataFrame(table)
        if format != "pandas":
            raise QueryError(f"no format `{format}`", hint="formats are `pandas`, `arrow` and `spark`")
        return table.to_pandas()

    def to_spark(
        self,
        target: str | os.PathLike[str] | Callable[[DataFrame, int], object] | None = None,
        *,
        format: str = "parquet",
        status: Literal["final", "all"] = "final",
        **options: Any,
    ) -> None:
        """Write the results to Spark too: those kept so far at once, as batch -1, then those of each micro-batch.

        ``target`` is a folder for a ``format`` of files (``parquet``, ``orc``, ``json``, ``csv``), where each
        micro-batch has a folder ``batch=<number>`` that is written over if it comes twice; a table's name for
        ``format="table"``, which gets the number as a column; nothing for ``format="console"``; or a function that is
        called with a DataFrame and the number. ``options`` are those of Spark's writer. The columns are those of
        :meth:`results`, and ``window_number`` where the start does not tell the windows of a key apart.
        ``status="final"`` leaves provisional results out; what revises a final one comes with a higher ``revision``,
        and in a stream with allowed lateness a row of status ``absent`` takes one back.

        An error in the sink ends the stream. Where the plan starts anew (:func:`workbench.run`), all results are told
        again; what a folder holds of the run before goes when the first of them comes.
        """
        from workbench.spark.sinks import SparkSink

        stream = self.query.stream
        place = os.fspath(target) if isinstance(target, str | os.PathLike) else target
        self._require_name()
        session = spark_of(self._stream.source)
        untimed = any(isinstance(window, MeasureWindow | UserContext) for window in self.query.windows)
        lateness = None if stream.lateness and untimed else stream.lateness
        sink = SparkSink(session, self._results, place, format, status, lateness, options)
        self._stream.attach(self.name, sink)

    def add_level(self, level: str) -> None:
        """Add a zoom level, such as ``'1 minute / 5 seconds'``, to the query as it runs.

        The results there are stay; those of the new level come as the stream is caught up with. Raises QueryError
        for a level that is there already or cannot be read, or when the query has been stopped.
        """
        self._require_name()
        try:
            self._stream.add_level(self.name, parse_level(level))
        finally:  # an interruption may come when the level is there already
            self.query = next((each for each in self._stream.queries if each.name == self.name), self.query)

    def sql(self) -> str:
        """The query as SQL, with the levels it has now."""
        return sql_of(self.query)

    def python(self) -> str:
        """Python that defines the source, runs the query and shows its dashboard, as far as files tell the source."""
        call = ", ".join([f'"{self._stream.source.name}"', *source_arguments(self._stream.source)])
        missing = "# data: what the source was made of\n" if ", data" in call else ""
        asked = self.query.numerics
        numerics = "" if asked is Numerics.EXACT else f', numerics="{asked.value}"'
        return (
            f"import workbench\n\n{missing}workbench.source({call})\n"
            f'workbench.dashboard("""\n{self.sql()}\n""", name="{self.name}"{numerics})\n'
        )

    def plan(self) -> PlanView:
        """The shared plan that this query is part of, as a picture; ``explain()`` gives it as text."""
        return PlanView(self._plan())

    def explain(self) -> str:
        """The shared plan that this query is part of."""
        return PlanText(explained(self._stream.source, self._plan()))

    def progress(self) -> Progress:
        """How the plan that this query is part of is doing; never waits."""
        return self._stream.progress(self.name) if self._left is None else self._left.progress

    def status(self) -> QueryStatus:
        """How the query is doing now, printed one fact a line; never waits."""
        progress = self.progress()
        backward, gone_back = progress.backward.get(self.name, (0, None))
        windows = {
            level.label: {status.name.lower(): n for status, n in self._results.counts(index).items()}
            for index, level in enumerate(self._results.schema.levels)
        }
        return QueryStatus(
            query=self.name,
            state=progress.state,
            rows=progress.rows,
            rows_per_s=progress.rows_per_s,
            batches=progress.batches,
            batch_seconds=progress.batch_seconds,
            watermark=progress.watermark,
            max_event=progress.max_event,
            late=progress.late.get(self.name, 0),
            backward=backward,
            ahead=progress.ahead,
            dropped=progress.dropped,
            windows=windows,
            slices=progress.slices,
            tuples=progress.tuples,
            state_bytes=progress.state_bytes,
            keys=progress.keys,
            error=progress.error,
            resumed=progress.resumed,
            gone_back=gone_back,
            merges=progress.merges,
            splits=progress.splits,
            recomputations=progress.recomputations,
            learned=self._learned(progress),
            background=() if self._left is not None else self._stream.background,
        )

    def _learned(self, progress: Progress) -> tuple[Learned, ...]:
        """What tasks have seen of the rows of the folds of this query."""
        if not progress.learned:
            return ()
        plan = self._plan()
        place = next(number for number, entry in enumerate(plan.queries) if entry.query.name == self.name)
        folds = {each.fold for each in plan.assemblies if any(query == place for query, _ in each.users)}
        subjects = dict.fromkeys(subject_of(plan.folds[fold]) for fold in sorted(folds))
        return tuple(progress.learned[subject] for subject in subjects if subject in progress.learned)

    def traceback(self) -> str | None:
        """Where in Python a failed query failed: the traceback of the worker. None where there is none to show.

        What Spark and Java say beside it is in ``progress().details``.
        """
        details = self.progress().details
        if details is None:
            return None
        trace = worker_trace(details)
        return None if trace is None else PlanText(trace)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the stream has ended and all windows are final; False when ``timeout`` seconds passed first.

        Raises EngineError when the query failed.
        """
        return self._left is not None or self._stream.wait(self.name, timeout)

    def __await__(self) -> Generator[Any, None, QueryStatus]:
        """``await query`` in a cell: until the stream has ended, with its last status; other tasks go on meanwhile.

        Raises EngineError when the query failed. An interrupted cell only stops waiting.
        """

        async def ended() -> QueryStatus:
            while not self.wait(0):
                await asyncio.sleep(_LOOK)
            return self.status()

        return ended().__await__()

    def wait_for_results(self, timeout: float = 60.0) -> bool:
        """Wait until there is a first result; False when ``timeout`` seconds passed or the stream ended without one.

        Raises EngineError when the query failed.
        """
        changed = threading.Event()
        cancel = self._results.subscribe(changed.set)
        deadline = time.monotonic() + timeout
        try:
            while not self._results.version:
                progress = self.progress()
                raise_failure(progress)
                left = deadline - time.monotonic()
                if left <= 0 or progress.state in ("finished", "stopped"):
                    return bool(self._results.version)
                changed.wait(min(left, 0.25))
            return True
        finally:
            cancel()

    def stop(self, *, finish: bool = False) -> None:
        """Leave the shared plan; the stream ends with its last query. Stopping twice does nothing.

        ``finish`` ends the stream first: one more micro-batch makes all its windows final. That is for a stream whose
        end nobody else can tell. Raises QueryError where other queries would end with it.
        """
        if self._left is not None:
            return
        if finish:
            self._stream.finish(self.name)
        self._stream.remove(self.name)

    @property
    def in_background(self) -> bool:
        """Whether the query goes on from an earlier run on the checkpoint, and its cell has not run in this one."""
        return self._left is None and self.name in self._stream.background

    def last_word(self) -> LastWord:
        """How the query is doing, and by which plan, should it end now."""
        progress = self.progress()
        ended = progress.state in ("finished", "failed")
        return LastWord(progress if ended else replace(progress, state="stopped"), self._plan())

    def leave(self, last: LastWord) -> None:
        """A newer query has its name: from now on the handle stands for what it was, not for that one."""
        self._left = self._left or last

    def _plan(self) -> SharedPlan:
        return self._stream.plan_of(self.name) if self._left is None else self._left.plan

    def _require_name(self) -> None:
        """Raises QueryError where a newer query goes by the name."""
        if self._left is not None:
            raise QueryError(f"a newer query has taken the name `{self.name}`", hint="use the handle of that one")

    def __repr__(self) -> str:
        return str(self.status())

    def _repr_html_(self) -> str:
        """What a notebook shows of the handle: the query, how it is doing, and what can be done with it."""
        try:
            text = self.sql()
        except QueryError:  # a query of the builder that SQL has no words for
            text = str(self.query)
        schema = self._results.schema
        drawable = bool(schema.numeric) and all(level.unit is None for level in schema.levels)
        return card_html(self.status(), self.query.stream.name, text, drawable=drawable)


class PlanText(str):
    """Text that a notebook shows as it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
