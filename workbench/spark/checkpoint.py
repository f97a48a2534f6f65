"""A checkpoint that outlives the run: whose it is now, what it was made with, and the results that it led to.

Beside Spark's own folders lie ``winquery.json`` (the format and the number of buckets, which the state relies on),
``winquery-plans`` (:class:`~workbench.spark.fused.PlanFolder`), ``winquery-results``
(:class:`~workbench.spark.record.Record`) and ``winquery.lock``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from workbench.errors import EngineError
from workbench.plan import SharedPlan, passage
from workbench.results import ResultBatch, ResultBundle
from workbench.runtime.wire import VERSION, Report
from workbench.spark.fused import PlanFolder, open_plan
from workbench.spark.record import Record

#: The folder of plans in a checkpoint.
PLANS = "winquery-plans"
_FACTS = "winquery.json"
_ELSEWHERE = "give every run a checkpoint folder of its own, or stop the other one first"


class Checkpoint:
    """One run's hold on a checkpoint folder, from :meth:`open` to :meth:`close`.

    ``buckets`` is the number that its state is cut into: the one it was begun with, whatever this machine would take.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = Record(path / "winquery-results")
        self.buckets = 0
        self._lock: IO[str] | None = None

    def open(self, buckets: int) -> None:
        """Take the folder, making it where it is missing; a new one begins with ``buckets``.

        Raises EngineError where another run holds it, where it cannot be written, or where it was written by another
        program or another format.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(self.path / "winquery.lock")
        except OSError as error:
            raise EngineError(f"the checkpoint folder `{self.path}` cannot be used: {error.strerror}") from None
        try:
            self.buckets = self._buckets(buckets)
        except OSError as error:
            self.close()
            raise EngineError(f"the checkpoint folder `{self.path}` cannot be used: {error.strerror}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others have it. The lock file stays, as whoever waits for it holds it open; it says nothing then."""
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.close()
            self._lock = None

    def led_to(self, plans: PlanFolder, plan: SharedPlan) -> Iterator[tuple[int, list[Report]]]:
        """The results of earlier runs, oldest first, of the queries of ``plan``; by micro-batch, or by several."""
        for batch, reports in self.record.read():
            fit = self.fit(plans, plan, reports)
            yield batch, [replace(report, batch=batch) for report in fit]

    def fit(self, plans: PlanFolder, plan: SharedPlan, reports: list[Report]) -> list[Report]:
        """Reports of plans of an earlier run with what belongs to queries of ``plan``: see :func:`fitted`."""
        opened = {version: kept_plan(plans, version) for version in {report.plan for report in reports}}
        return [fitted(report, opened[report.plan], plan) for report in reports]

    def resumed(self, plans: PlanFolder, plan: SharedPlan) -> str | None:
        """What goes on in ``plan`` of the one that ran last, and what begins; None where none has come to results.

        A plan may have been published, and the run have ended before a micro-batch by it was through.
        """
        ran = self.record.newest_plan()
        return None if ran is None else str(passage(kept_plan(plans, ran), plan))

    def _buckets(self, usual: int) -> int:
        file = self.path / _FACTS
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if (self.path / "offsets").exists():
                raise EngineError(
                    f"`{self.path}` is the checkpoint of another streaming query, not one of winquery",
                    hint="name a folder that is empty or does not exist",
                ) from None
            aside = file.with_name(f".{file.name}.new")
            aside.write_text(json.dumps({"format": VERSION, "buckets": usual}), encoding="utf-8")
            os.replace(aside, file)
            return usual
        except ValueError:
            raise EngineError(f"`{file}` cannot be read, so the checkpoint is damaged", hint=_AFRESH) from None
        if facts.get("format") != VERSION:
            raise EngineError(
                f"the checkpoint `{self.path}` has format {facts.get('format')}, this winquery reads {VERSION}",
                hint=_AFRESH,
            )
        return int(facts["buckets"])


def last_plan(checkpoint: Path) -> SharedPlan | None:
    """The plan that ran last on a checkpoint, or was about to; takes nothing and changes nothing.

    None where there is none that :meth:`Checkpoint.open` would take up: it says why. Raises EngineError as
    :func:`kept_plan` does.
    """
    plans = PlanFolder(checkpoint / PLANS)
    try:
        facts = json.loads((checkpoint / _FACTS).read_text(encoding="utf-8"))
        newest = plans.newest()
    except (OSError, ValueError):
        return None
    return kept_plan(plans, newest) if newest and facts.get("format") == VERSION else None


def kept_plan(plans: PlanFolder, version: int) -> SharedPlan:
    """A plan of an earlier run. Raises EngineError where it is not one of this version of winquery."""
    try:
        return open_plan(plans.read(version))
    except Exception as error:  # whatever unpickling gives: modules, names and arguments may all have changed
        raise EngineError(
            f"plan {version} of the checkpoint `{plans.path.parent}` cannot be read: {type(error).__name__}: {error}",
            hint=_AFRESH,
        ) from error


def fitted(report: Report, old: SharedPlan, new: SharedPlan) -> Report:
    """A report of an older plan with what belongs to queries of the new one: the same but for their levels."""
    before = {entry.query.name: entry.query for entry in old.queries}
    now = {entry.query.name: entry.query for entry in new.queries}
    kept = going_on(old, new)
    bundles = []
    for name, batch in report.results:
        if name in kept:
            window, windows = before[name].windows[batch.level], now[name].windows
            if window in windows:
                fit = ResultBatch(windows.index(window), batch.columns, batch.low, batch.high)
                bundles.append(ResultBundle.of(name, fit))
    late = {name: count for name, count in report.late.items() if name in kept}
    backward = {name: told for name, told in report.backward.items() if name in kept}
    return replace(report, late=late, backward=backward, bundles=bundles)


def going_on(old: SharedPlan, new: SharedPlan) -> set[str]:
    """The names of the queries that are in both plans the same, but perhaps for their levels."""
    before = {entry.query.name: entry.query for entry in old.queries}
    queries = [entry.query for entry in new.queries if entry.query.name in before]
    return {query.name for query in queries if replace(before[query.name], windows=query.windows) == query}


_AFRESH = "start with a new checkpoint folder, or with the version of winquery that wrote this one"


def _locked(path: Path) -> IO[str]:
    """The file, locked by this process until it is closed or the process ends, however that comes about."""
    file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - it is open for as long as the lock is held
    try:
        _lock(file)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "another run"
        file.close()
        raise EngineError(
            f"the checkpoint `{path.parent}` is in use by {holder}: two runs on one would spoil it", hint=_ELSEWHERE
        ) from None
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file


def _lock(file: IO[str]) -> None:
    """Raises OSError where somebody else has the lock."""
    if sys.platform == "win32":
        import msvcrt

        # A byte behind the text: others may read what is not locked.
        file.seek(1 << 20)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
