"""Checkpoints without a Spark: who may use one, what it says about itself, and the results kept beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import starmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.spark.events import SQL, STREAM, make_plan
from workbench.errors import EngineError, QueryError
from workbench.language import parse_queries
from workbench.logical import Workload
from workbench.plan import SharedPlan, compile_workload, passage
from workbench.results import ResultBatch, ResultBundle, Status
from workbench.runtime import BucketOperator, wire
from workbench.runtime.wire import Report, encode_report
from workbench.spark import record
from workbench.spark.checkpoint import Checkpoint, fitted, kept_plan
from workbench.spark.fused import PlanFolder
from workbench.spark.record import Record
from workbench.spark.runner import StreamRunner

Place = tuple[str, str, int]


def batch(rows: list[tuple[str, int, Status, int]], level: int = 0) -> ResultBatch:
    """Results (key, start, status, value), without the second value of the query."""
    keys, starts, status, values = zip(*rows, strict=True)
    return ResultBatch.of(
        level,
        np.array(starts),
        (pa.array(keys),),
        (pa.array(values), pa.array(values)),
        np.array(status, np.int8),
        np.zeros(len(rows), np.int16),
    )


def report(batches: list[tuple[str, ResultBatch]], **facts: Any) -> Report:
    told: dict[str, Any] = {"rows": 10, "ahead": 0, "watermark": 5, "max_event": 9, "late": {"q": 1}, "slices": 1}
    bundles = list(starmap(ResultBundle.of, batches))
    return Report(**told | {"tuples": 0, "state_bytes": 7, "finished": False} | facts, bundles=bundles)


def told(kept: Record) -> dict[Place, tuple[Status, int]]:
    """What a store would hold in the end: query, key, start -> status, value."""
    found: dict[Place, tuple[Status, int]] = {}
    for each in (each for _, reports in kept.read() for each in reports):
        for query, results in each.results:
            own = results.own()
            rows = zip(own.keys[0].to_pylist(), own.starts, own.status, own.values[0], strict=True)
            for key, start, status, value in rows:
                found[query, key, int(start)] = Status(status), value.as_py()
    return {place: entry for place, entry in found.items() if entry[0] != Status.ABSENT}


def two_versions(kept: Record) -> dict[Place, tuple[Status, int]]:
    """Writes three micro-batches, the last one of a second plan; what stands in the end."""
    first = [("a", 0, Status.PROVISIONAL, 1), ("b", 0, Status.PROVISIONAL, 2), ("a", 60, Status.PROVISIONAL, 3)]
    kept.put(0, [encode_report(report([("q", batch(first))]))])
    second = [("a", 0, Status.FINAL, 4), ("b", 0, Status.ABSENT, 0)]
    kept.put(1, [encode_report(report([("q", batch(second))])), encode_report(report([]))])
    kept.put(2, [encode_report(report([("q", batch([("a", 60, Status.ABSENT, 0)]))], plan=2, finished=True))])
    return {("q", "a", 0): (Status.FINAL, 4)}


def test_a_micro_batch_that_runs_again_writes_over_itself(tmp_path: Path) -> None:
    kept = Record(tmp_path / "results")
    assert list(kept.read()) == []
    for value in (1, 2):
        kept.put(7, [encode_report(report([("q", batch([("a", 0, Status.FINAL, value)]))]))])
    assert told(kept) == {("q", "a", 0): (Status.FINAL, 2)}
    assert [number for number, _ in kept.read()] == [7]


def test_files_put_together_say_the_same(tmp_path: Path) -> None:
    kept = Record(tmp_path / "results")
    right = two_versions(kept)
    assert told(kept) == right
    kept.compact()
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["000000000002.base"]
    assert told(kept) == right
    ((number, (first, second)),) = kept.read()
    assert (number, first.rows, first.late, first.plan) == (2, 20, {"q": 3}, 1)
    assert (second.rows, second.late, second.plan, second.finished) == (10, {"q": 1}, 2, True)
    kept.put(3, [encode_report(report([("q", batch([("c", 0, Status.FINAL, 5)]))], plan=2))])
    kept.compact()
    assert told(kept) == right | {("q", "c", 0): (Status.FINAL, 5)}


def test_a_crash_while_files_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Record(tmp_path / "results")
    right = two_versions(kept)

    def crash(path: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", crash)
        with pytest.raises(KeyboardInterrupt):
            kept.compact()
    assert len(list((tmp_path / "results").iterdir())) == 4
    again = Record(tmp_path / "results")
    assert told(again) == right
    assert sum(each.rows for _, reports in again.read() for each in reports) == 30


def test_windows_without_keys_and_with_numbers(tmp_path: Path) -> None:
    kept = Record(tmp_path / "results")
    for value in (1, 2):
        plain = ResultBatch.of(
            0,
            np.array([10, 10]),
            (),
            (pa.array([value, value * 10]),),
            np.full(2, Status.PROVISIONAL, np.int8),
            np.zeros(2, np.int16),
            np.array([20, 30]),
            np.array([1, 2]),
        )
        kept.put(value, [encode_report(report([("q", plain)]))])
    kept.compact()
    ((_, (only,)),) = kept.read()
    columns = only.results[0][1].own()
    assert columns.values[0].to_pylist() == [2, 20]
    assert columns.ends is not None
    assert columns.ends.tolist() == [20, 30]


def test_the_oldest_windows_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Record(tmp_path / "results")
    kept.put(0, [encode_report(report([("q", batch([("a", n * 60, Status.FINAL, n) for n in range(100)]))]))])
    monkeypatch.setattr(record, "BUDGET", 1_000)
    kept.compact()
    starts = sorted(start for _, _, start in told(kept))
    assert 10 < len(starts) < 50
    assert starts == [n * 60 for n in range(100 - len(starts), 100)]


def test_now_and_then_files_are_put_together(tmp_path: Path) -> None:
    kept = Record(tmp_path / "results")
    for number in range(record.EVERY + 1):
        kept.put(number, [encode_report(report([]))])
    names = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert names == [f"{record.EVERY - 1:012d}.base", f"{record.EVERY:012d}.batch"]


@pytest.mark.parametrize("batches", [3, 4, 5])
def test_what_runs_again_counts_once_whenever_files_were_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """The driver dies before Spark takes note of the latest micro-batch, which comes to the next one again."""
    monkeypatch.setattr(record, "EVERY", 4)
    sent = [encode_report(report([], late={"q": number})) for number in range(batches)]
    for first in (0, batches - 1):
        runner = opened(tmp_path)
        for number in range(first, batches):
            runner._deliver(number, [sent[number]])
        assert runner.progress().rows == 10 * batches
        assert runner.progress().late == {"q": sum(range(batches))}
        runner._checkpoint.close()


def opened(folder: Path, plan: SharedPlan | None = None) -> Any:
    """A runner on a checkpoint, as it is when it starts its query on Spark."""
    runner: Any = StreamRunner(None, plan or make_plan(), None, lambda reports: None, folder / "checkpoint")
    runner._checkpoint.open(2)
    runner._plans = PlanFolder(runner._checkpoint.path / "winquery-plans")
    runner._publish()
    runner._refill()
    return runner


def test_what_goes_on_is_what_has_run(tmp_path: Path) -> None:
    """A plan that was published, but by which no micro-batch was through, has nothing to go on with."""
    first = opened(tmp_path)
    assert first.progress().resumed is None
    first._checkpoint.close()
    never = opened(tmp_path)
    assert never.progress().resumed is None
    never._deliver(0, [])  # no bucket had a row
    never._deliver(1, [encode_report(report([], plan=1))])
    both = plan_of(q=SQL, r=SQL.replace("sum", "max"))
    never.change(both)
    never._checkpoint.close()
    third = opened(tmp_path, both)
    assert third.progress().resumed == "goes on: `q`; begins afresh: `r`"
    third._deliver(2, [encode_report(report([], plan=2))])
    third._checkpoint.record.compact()
    third._checkpoint.close()
    fourth = opened(tmp_path, both)
    assert fourth.progress().resumed == "goes on: `q`, `r`"
    fourth._checkpoint.close()


def test_late_rows_of_a_query_that_is_replaced_are_forgotten_once_and_for_all(tmp_path: Path) -> None:
    """Also where the first micro-batch of the new plan runs twice; those of a query with one more level stay."""
    runner = opened(tmp_path)
    old = plan_of(q=SQL, r=SQL)
    runner.change(old)
    runner._deliver(0, [encode_report(report([], plan=2, late={"q": 1, "r": 2}, backward={"r": (1, "5 after 6")}))])
    runner.change(plan_of(q=LEVELS, r=SQL.replace("sum", "max")))
    again = [encode_report(report([], plan=3, late={"r": 4}))]
    for _ in range(2):
        runner._deliver(1, again)
        assert runner.progress().late == {"q": 1, "r": 4}
        assert runner.progress().backward == {}
        assert runner.progress().rows == 20
    runner._checkpoint.close()


def test_two_runs_on_one_checkpoint_are_refused(tmp_path: Path) -> None:
    first, second = Checkpoint(tmp_path / "c"), Checkpoint(tmp_path / "c")
    first.open(2)
    with pytest.raises(
        EngineError, match=rf"is in use by process {os.getpid()} on .*: two runs on one would spoil it"
    ):
        second.open(2)
    first.close()
    second.open(2)
    second.close()


def test_a_run_that_cannot_begin_leaves_the_checkpoint_to_others(tmp_path: Path) -> None:
    """Spark's folder of temporary files has been swept away: no run begins, and none holds the checkpoint."""
    context = SimpleNamespace(master="local[2]", defaultParallelism=2, _temp_dir=str(tmp_path / "gone"))
    session: Any = SimpleNamespace(sparkContext=context)
    feed: Any = None
    runner = StreamRunner(session, make_plan(), feed, print, tmp_path / "kept")
    with pytest.raises(FileNotFoundError):
        runner.start()
    other = Checkpoint(tmp_path / "kept")
    other.open(2)
    other.close()


def test_a_disk_that_fails_at_the_end_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = opened(tmp_path)

    def fail() -> None:
        raise OSError("input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(runner._checkpoint, "close", fail)
        with pytest.raises(OSError, match="input/output"):
            runner._watch(tmp_path / "scratch")
    assert runner.wait(0)
    assert runner.progress().state == "finished"
    runner._checkpoint.close()


def test_a_crash_leaves_no_lock(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from workbench.spark.checkpoint import Checkpoint
import time
held = Checkpoint(Path({str(tmp_path)!r}) / "c")
held.open(2)
print("held", flush=True)
time.sleep(1000)
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    ours = Checkpoint(tmp_path / "c")
    with pytest.raises(EngineError, match=f"process {other.pid} on "):
        ours.open(2)
    os.kill(other.pid, signal.SIGKILL)
    other.communicate()
    ours.open(2)
    ours.close()


def test_a_checkpoint_keeps_its_buckets(tmp_path: Path) -> None:
    """The state lies by bucket: on a machine with more cores there are still as many."""
    held = Checkpoint(tmp_path / "c")
    for usual in (2, 8):
        held.open(usual)
        assert held.buckets == 2
        held.close()


def test_a_checkpoint_of_another_format_or_program_is_refused(tmp_path: Path) -> None:
    held = Checkpoint(tmp_path / "c")
    held.open(2)
    held.close()
    facts = tmp_path / "c" / "winquery.json"
    facts.write_text(json.dumps({"format": 99, "buckets": 2}))
    with pytest.raises(EngineError, match=f"has format 99, this winquery reads {wire.VERSION}"):
        held.open(2)
    facts.write_text("{")
    with pytest.raises(EngineError, match="the checkpoint is damaged"):
        held.open(2)
    facts.unlink()
    (tmp_path / "c" / "offsets").mkdir()
    with pytest.raises(EngineError, match="the checkpoint of another streaming query"):
        held.open(2)
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="cannot be used"):
        Checkpoint(tmp_path / "file").open(2)


def test_state_of_an_unknown_version_is_refused() -> None:
    operator = BucketOperator(make_plan())
    operator.apply([])
    meta = bytearray(operator.changes().meta)
    meta[2] = wire.VERSION + 1
    with pytest.raises(EngineError, match=f"of format {wire.VERSION + 1} cannot be read, this is format"):
        operator.load(bytes(meta), [])


def test_a_plan_of_another_winquery_is_refused(tmp_path: Path) -> None:
    plans = PlanFolder(tmp_path / "plans")
    plans.publish(1, b"cworkbench.gone\nPlan\n.")
    with pytest.raises(EngineError, match=r"plan 1 of the checkpoint .* cannot be read: ModuleNotFoundError"):
        kept_plan(plans, 1)


def plan_of(**queries: str) -> SharedPlan:
    parsed = tuple(
        query for name, sql in queries.items() for query in parse_queries(sql, {"events": STREAM}, name=name)
    )
    return compile_workload(Workload(STREAM, parsed))


LEVELS = "SELECT key, sum(value) AS total, count(*) AS n FROM events GROUP BY key, zoom(ts, '10 seconds', '1 minute')"


def test_results_of_queries_that_there_still_are_fit_in() -> None:
    old, new = plan_of(q=SQL, r=SQL, s=SQL), plan_of(q=LEVELS, r=SQL.replace("sum", "max"))
    rows = batch([("a", 0, Status.FINAL, 1)])
    fitting = fitted(report([(name, rows) for name in "qrs"], late={"q": 1, "r": 3, "s": 2}), old, new)
    assert [(name, each.level) for name, each in fitting.results] == [("q", 1)]
    assert fitting.late == {"q": 1}
    back = fitted(report([("q", rows)]), plan_of(q=LEVELS), plan_of(q=SQL))
    assert back.results == [], "its finest level is gone"


def test_what_goes_on_is_told_by_query_and_level() -> None:
    old = plan_of(q=SQL, s=SQL)
    new = compile_workload(
        Workload(STREAM, tuple(e.query for e in plan_of(q=LEVELS, r=SQL.replace("sum", "max")).queries)), running=old
    )
    said = passage(old, new)
    assert str(said) == "goes on: `q`; begins afresh: `q` at '10 seconds', `r`; gone: `s`"
    assert str(passage(old, old)) == "goes on: `q`, `s`"


def test_a_stream_that_is_defined_otherwise_is_told_apart() -> None:
    from dataclasses import replace

    other = replace(STREAM, delay=1)
    queries = parse_queries(SQL, {"events": other}, name="q")
    with pytest.raises(QueryError, match="the stream `events` has another delay than its plan began with"):
        passage(make_plan(), compile_workload(Workload(other, queries)))
