"""The operator of a bucket between several Python processes: any of them may get its task, one has it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Client
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.spark.events import SCHEMA, SECOND, make_plan, wait_for
from workbench.plan import SharedPlan
from workbench.runtime import BucketOperator, Level1
from workbench.runtime.wire import signal as message
from workbench.spark import residents
from workbench.spark.residents import Homes, Residents, Step

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each process keeps its own operators")


def serve(asked: Any, plan: SharedPlan) -> None:
    """A Python worker of Spark's: runs the steps that come, and tells whether it had to load the state for one."""
    own = Residents()
    while True:
        name, step, stored = asked.recv()
        loaded = []

        def load(stored: Any = stored, loaded: list[bool] = loaded) -> BucketOperator:
            loaded.append(True)
            operator = BucketOperator(plan)
            if stored is not None:
                operator.load(*stored)
            return operator

        try:
            asked.send((own.run(name, step, load), bool(loaded)))
        except Exception as error:
            asked.send((error, bool(loaded)))


@dataclass
class Worker:
    """Such a process, seen from outside."""

    process: Any
    pipe: Any

    def run(self, name: residents.Name, step: Step, stored: Any) -> tuple[Any, bool]:
        self.pipe.send((name, step, stored))
        assert self.pipe.poll(60)
        answer: tuple[Any, bool] = self.pipe.recv()
        return answer

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


@dataclass
class Bucket:
    """The state that Spark keeps, and which steps it went through."""

    name: residents.Name = field(default_factory=lambda: (uuid.uuid4().hex, 0))
    meta: bytes | None = None
    blocks: dict[int, bytes] = field(default_factory=dict)

    def step(self, worker: Worker, payloads: list[bytes], *, write: bool = True) -> tuple[bytes, bool]:
        token = "" if self.meta is None else BucketOperator.token_of(self.meta)
        stored = None if self.meta is None else (self.meta, list(self.blocks.values()))
        answer, loaded = worker.run(self.name, Step(token, None, payloads), stored)
        if isinstance(answer, Exception):
            raise answer
        report, changes = answer
        if write:
            self.blocks |= changes.put
            self.blocks = {number: block for number, block in self.blocks.items() if number not in changes.remove}
            self.meta = changes.meta
        return report, loaded


@pytest.fixture
def workers() -> Iterator[Callable[[], Worker]]:
    context, made = get_context("forkserver"), []
    context.set_forkserver_preload(["workbench.runtime", "workbench.spark.residents"])

    def make() -> Worker:
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, make_plan()), daemon=True)
        process.start()
        made.append(process)
        return Worker(process, ours)

    yield make
    for process in made:
        process.kill()
        process.join()


def micro_batches(count: int) -> list[list[bytes]]:
    """A minute of rows each; messages that must not be taken twice, nor left out: every window has a sum."""
    random = np.random.default_rng(7)
    batches = []
    for number in range(count):
        level1 = Level1(make_plan(), 1)
        times = pa.array((number * 60 + np.arange(60)) * SECOND).cast(SCHEMA.field("ts").type)
        keys = pa.array(random.choice(["a", "b"], 60).astype(object), pa.string())
        level1.fold(pa.record_batch([times, keys, pa.array(random.integers(0, 9, 60))], schema=SCHEMA))
        batches.append(level1.messages())
    return batches


def straight(batches: list[list[bytes]]) -> list[bytes]:
    """The reports of one operator that gets one micro-batch after the other."""
    operator = BucketOperator(make_plan())
    reports = []
    for batch in batches:
        reports.append(operator.apply(batch))
        operator.changes()
    return reports


def test_whoever_is_asked_the_state_is_loaded_once(workers: Callable[[], Worker]) -> None:
    pair, bucket, batches = [workers(), workers()], Bucket(), micro_batches(7)
    answers = [bucket.step(pair[place], batch) for place, batch in zip((0, 1, 1, 0, 1, 0, 0), batches, strict=True)]
    assert [report for report, _ in answers] == straight(batches)
    assert [loaded for _, loaded in answers] == [True] + 6 * [False]


def test_a_home_that_is_killed_is_another_one_s_from_then_on(workers: Callable[[], Worker]) -> None:
    first, second, third = workers(), workers(), workers()
    bucket, batches = Bucket(), micro_batches(4)
    answers = [bucket.step(first, batches[0])]
    first.kill()
    answers += [bucket.step(each, batch) for each, batch in zip((second, third, second), batches[1:], strict=True)]
    assert [report for report, _ in answers] == straight(batches)
    assert [loaded for _, loaded in answers] == [True, True, False, False]


@pytest.mark.parametrize("again", [0, 1])
def test_a_micro_batch_whose_changes_were_not_written_is_run_anew(workers: Callable[[], Worker], again: int) -> None:
    """By the worker that ran it, or by the other: from the written state, so that no row counts twice."""
    pair, bucket, batches = [workers(), workers()], Bucket(), micro_batches(3)
    reports = [bucket.step(pair[0], batches[0])[0]]
    bucket.step(pair[1], batches[1], write=False)
    report, loaded = bucket.step(pair[again], batches[1])
    assert loaded
    reports.append(report)
    report, loaded = bucket.step(pair[1 - again], batches[2])
    assert not loaded
    assert [*reports, report] == straight(batches)


def test_a_step_that_fails_fails_where_it_was_asked(workers: Callable[[], Worker]) -> None:
    """With its own error, and the operator that it may have left half-way is gone."""
    pair, bucket, batches = [workers(), workers()], Bucket(), micro_batches(2)
    reports = [bucket.step(pair[0], batches[0])[0]]
    with pytest.raises(Exception, match="message"):
        bucket.step(pair[1], [b"no message"])
    report, loaded = bucket.step(pair[0], batches[1])
    assert loaded
    assert [*reports, report] == straight(batches)


def test_what_is_not_kept_is_not_listened_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker outlives many runs: the oldest operators go, and with each its thread and its socket."""
    monkeypatch.setattr(residents, "_KEPT", 2)

    def listening() -> int:
        return sum(thread.name == "winquery resident" for thread in threading.enumerate())

    own, (batch,) = Residents(), micro_batches(1)
    for _ in range(5):
        own.run((uuid.uuid4().hex, 0), Step("", None, batch), lambda: BucketOperator(make_plan()))
    for thread in threading.enumerate():
        if thread.name == "winquery resident" and listening() > 2:
            thread.join(1)
    assert listening() == 2


def test_a_home_that_nobody_can_reach_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more files can be opened: who waits for an answer is let go, the thread ends, another may be the home."""
    own, (batch, *_), name = Residents(), micro_batches(1), (uuid.uuid4().hex, 0)
    refused = threading.Event()

    class Deaf(residents.Listener):
        def accept(self) -> Any:
            refused.set()
            raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(residents, "Listener", Deaf)
    own.run(name, Step("", None, batch), lambda: BucketOperator(make_plan()))
    assert refused.wait(60)
    wait_for(lambda: name not in own._listening, 60, "the end of the home")
    monkeypatch.undo()
    assert residents._ask(name, Step("", None, batch)) is None
    other = Residents()
    other.run(name, Step("", None, batch), lambda: BucketOperator(make_plan()))
    assert name in other._listening


def test_someone_who_is_killed_while_asking_does_no_harm(workers: Callable[[], Worker]) -> None:
    """Nor does one who does not know the secret."""
    pair, bucket, batches = [workers(), workers()], Bucket(), micro_batches(2)
    reports = [bucket.step(pair[0], batches[0])[0]]
    for secret in (b"wrong", residents._secret(bucket.name)):
        with contextlib.suppress(Exception), Client(residents._address(bucket.name), "AF_UNIX", authkey=secret):
            pass  # gone before it has said what it wants
    report, loaded = bucket.step(pair[1], batches[1])
    assert not loaded
    assert [*reports, report] == straight(batches)


def homes_of(buckets: list[Bucket]) -> Homes:
    """What the driver knows of buckets of one run."""
    homes = Homes(buckets[0].name[0])
    homes.note({bucket.name[1]: BucketOperator.token_of(bucket.meta or b"") for bucket in buckets})
    return homes


def two_buckets(workers: Callable[[], Worker], batches: list[list[bytes]]) -> tuple[list[Worker], list[Bucket]]:
    run = uuid.uuid4().hex
    pair, buckets = [workers(), workers()], [Bucket((run, 0)), Bucket((run, 5))]
    for batch in batches:
        for worker, bucket in zip(pair, buckets, strict=True):
            bucket.step(worker, batch)
    return pair, buckets


def test_the_last_words_are_those_of_a_last_micro_batch(workers: Callable[[], Worker]) -> None:
    """Said once: the operators go with them."""
    batches, end = micro_batches(2), [message(finish=True)]
    _, buckets = two_buckets(workers, batches)
    homes = homes_of(buckets)
    assert homes.last_words(end[0]) == 2 * [straight([*batches, end])[-1]]
    assert homes.last_words(end[0]) is None


def test_without_all_of_the_last_words_the_stored_state_has_them(workers: Callable[[], Worker]) -> None:
    """One home is gone; the other one has spoken in vain, and is loaded anew."""
    batches, end = micro_batches(2), [message(finish=True)]
    pair, buckets = two_buckets(workers, batches)
    pair[1].kill()
    assert homes_of(buckets).last_words(end[0]) is None
    other = workers()
    for bucket in buckets:
        report, loaded = bucket.step(other, end)
        assert loaded
        assert report == straight([*batches, end])[-1]


def test_an_operator_that_is_elsewhere_says_nothing(workers: Callable[[], Worker]) -> None:
    """A micro-batch that Spark gave up has moved it on."""
    batches = micro_batches(3)
    pair, buckets = two_buckets(workers, batches[:2])
    buckets[0].step(pair[0], batches[2], write=False)
    assert homes_of(buckets).last_words(message(finish=True)) is None
    assert Homes(uuid.uuid4().hex).last_words(message(finish=True)) is None, "no micro-batch has run"
