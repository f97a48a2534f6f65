"""A shared plan over a streaming DataFrame of the user's: one Spark query from their source to our results.

The rows are folded where Spark has them (:class:`~workbench.spark.frames.ArrowFold`), and go through the same
stateful operator as those of our own sources. Beside them comes a second stream, a folder of signals: a signal starts
a micro-batch where the user's source is silent, and Spark's log keeps it in its place for a run after a crash.

The plan is part of the Spark query here, for tasks of a foreign source cannot be told of another one. So a change of
the plan stops that query and starts another one from the same checkpoint. A micro-batch that was under way runs again
there, by the plan that it began with: Spark may keep the state of either attempt, so the two must not differ. From
which micro-batch on a plan holds is written down before: docs/decisions/0006-dataframes-of-the-user.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException

from workbench.errors import EngineError
from workbench.plan import SharedPlan, carry
from workbench.runtime.folding import plan_columns
from workbench.runtime.wire import Report, encode_plan, signal
from workbench.spark.buckets import bucket_keys
from workbench.spark.epochs import Epochs
from workbench.spark.failure import root_cause
from workbench.spark.frames import (
    HANDING,
    MESSAGES,
    ArrowFold,
    FrameOptions,
    at_home_in,
    handing_over,
    map_rows,
    messages,
    rows_for,
)
from workbench.spark.fused import open_plan, without_tables
from workbench.spark.querying import QueryRunner
from workbench.spark.session import is_local, session_like, this_python

#: The name of the signal that ends the stream.
_END = "finish"


class SignalFolder:
    """Messages from the driver to all buckets, each a Parquet file that Spark reads as a stream."""

    def __init__(self, path: Path, keys: tuple[int, ...]) -> None:
        self.path = path
        self.keys = keys
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def forget_unread(self, checkpoint: Path) -> None:
        """Take back an end that Spark's log does not know: a stream that was stopped first goes on.

        Only while no query runs. What is in the log comes again, and stays.
        """
        end = self.path / f"{_END}.parquet"
        # Spark's log of files has a line for each with its whole address.
        name = f"{self.path.name}/{end.name}".encode()
        if not any(name in log.read_bytes() for log in checkpoint.glob("sources/*/*") if log.is_file()):
            end.unlink(missing_ok=True)

    def send(self, name: str, *, finish: bool = False) -> None:
        """A signal, once for each name: a micro-batch begins, and with ``finish`` it closes all windows."""
        aside = self.path / f".{name}"
        batch = messages(self.keys, [signal(finish=finish)] * len(self.keys))
        pq.write_table(pa.Table.from_batches([batch]), aside)
        aside.rename(self.path / f"{name}.parquet")


class FrameRunner(QueryRunner):
    """Runs one shared plan over a streaming DataFrame; see :class:`QueryRunner`.

    When the stream ends is not known, unless its trigger is ``"available_now"``: then all windows are final once
    everything that was there has been read.
    """

    def __init__(
        self,
        plan: SharedPlan,
        options: FrameOptions,
        on_reports: Callable[[list[Report]], None],
        checkpoint: Path | None = None,
    ) -> None:
        super().__init__(session_like(options.frame.sparkSession), plan, on_reports, checkpoint)
        self._options = options
        self._trigger = _trigger(options.trigger)
        self._swapping = threading.Lock()
        #: Whether the end was asked for, and whether the last query was started.
        self._asked = self._closing = False

    def change(self, plan: SharedPlan) -> int:
        """As :meth:`QueryRunner.change`; returns when the query of the new plan has started."""
        with self._swapping:
            if self._ending is not None or not self._query.isActive:
                carry(self._plan, plan)
                return self._version + 1
            version = super().change(plan)
            self._query.stop()
            self._epochs.begin(version)
            self._signals.send(f"plan-{version}")
            if self._ending is None:  # else a micro-batch has ended the stream meanwhile
                try:
                    self._again()
                except EngineError:
                    self._end("stopped")
                    raise
            return version

    def _launch(self, scratch: Path, lasting: Path) -> Any:
        self._folder = self._place(scratch)
        keys = bucket_keys(self._buckets)
        self._signals = SignalFolder(lasting / "winquery-signals", keys)
        self._signals.forget_unread(self._folder)
        self._frame = at_home_in(self._session, self._options.frame)
        self._epochs = Epochs(self._plans.path, self._folder)
        self._epochs.begin(self._version)
        return self._run()

    def _run(self) -> Any:
        """The Spark query of the plan, from where the checkpoint is."""
        needed = self._epochs.needed()
        plans = {first: self._plans.read(version) for version, first in needed.items()}
        opened = {version: open_plan(plans[first]) for version, first in needed.items()}
        names = dict.fromkeys(name for plan in opened.values() for name in plan_columns(plan))
        self._hand_over(names)
        fold = ArrowFold(plans, self._signals.keys, self._spool)
        rows = map_rows(rows_for(self._frame, names, self._plan.stream), fold, MESSAGES)
        signals = self._session.readStream.schema(MESSAGES).parquet(str(self._signals.path))
        given = {needed[v]: encode_plan(v, without_tables(plan)) for v, plan in opened.items()}
        return self._write(rows.union(signals), self._folder, given, **self._trigger)

    def _hand_over(self, names: Iterable[str]) -> None:
        """Settle in which batches Spark brings these columns to Python; where ours do not fit, as the user has it."""
        theirs, context = self._options.frame.sparkSession.conf, self._session.sparkContext
        schema = pa.schema([self._plan.stream.schema.field(name) for name in names])
        # On a cluster the messages of level 1 are no files: the same settings would put many of them into one batch.
        ours = handing_over(self._options.frame, schema) if is_local(context) else {}
        for name in HANDING:
            self._session.conf.set(name, ours.get(name, theirs.get(name)))

    def _again(self) -> None:
        try:
            with this_python(self._session.sparkContext):
                self._query = self._run()
        except PySparkException as error:
            raise EngineError(root_cause(str(error))) from error

    def _running(self) -> Any:
        with self._swapping:
            return self._query

    def _request_finish(self) -> None:
        self._asked = True
        self._signals.send(_END, finish=True)

    def _goes_on(self) -> bool:
        """At the end of what was available comes the end of the stream: all windows are closed.

        Not on a checkpoint that outlives the run, unless asked for: what is available next time goes on there.
        """
        with self._swapping:
            if self._query.isActive:
                return True
            available = "availableNow" in self._trigger and self._query.exception() is None
            if not available or self._ending is not None or self._closing:
                return False
            if self._checkpoint is not None and not self._asked:
                self._end("finished")
            elif self._checkpoint is not None or not self._closed_at_home():
                # A query of what is available reads no signal that came after its start.
                self._closing = True
                self._request_finish()
                self._again()
                return True
            return False

    def _closed_at_home(self) -> bool:
        """Whether the operators closed all windows where they are, which saves a Spark query.

        Their state would have gone with the run, so nobody needs a record of this micro-batch.
        """
        reports = self._homes.last_words(signal(finish=True))
        if reports is None:
            return False
        self._deliver(self._before[0] + 1, reports)
        return True


def _trigger(text: str | None) -> dict[str, Any]:
    """The arguments of Spark's ``trigger``."""
    if text is None:
        return {}
    return {"availableNow": True} if text == "available_now" else {"processingTime": text}
