"""Whatever is killed or breaks: nothing lost, nothing doubled, and where it stops, it says why and goes on later."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import wait_for
from tests.spark.faults import LONG, ROWS, Finals, assert_readable, counted, kill, pythons, run
from workbench.runtime.wire import Report
from workbench.spark.runner import StreamRunner

pytestmark = pytest.mark.spark

#: Moments at which things break.
SEEDS = range(20 if "WINQUERY_NIGHTLY" in os.environ else 1)


def gateway(spark: Any) -> int:
    """The process of the JVM."""
    return int(spark.sparkContext._gateway.proc.pid)


def kill_a_python(spark: Any, path: str, checkpoint: Path, moment: random.Random) -> None:
    """One Python process of Spark's dies at a moment; the run goes on, or the next one does."""
    got, batches = Finals(), moment.randrange(1, 8)

    def harm(runner: StreamRunner) -> None:
        wait_for(lambda: runner.progress().batches >= batches or runner.wait(0), LONG, "some batches")
        time.sleep(moment.random() / 2)
        found = list(pythons(gateway(spark)))
        if found:
            kill(moment.choice(found))

    progress = run(spark, path, checkpoint, got, harm)
    if progress.state != "finished":
        assert_readable(progress)
        progress = run(spark, path, checkpoint, got)
    assert (progress.state, progress.rows) == ("finished", ROWS), progress.details
    assert got.found == counted()


def test_a_killed_python_process(spark: Any, recording: Callable[..., str], tmp_path: Path) -> None:
    kill_a_python(spark, recording(), tmp_path / "checkpoint", random.Random(5))


def test_pythons_that_died_between_two_queries(recording: Callable[..., str], tmp_path: Path) -> None:
    """Spark keeps idle ones for the next query, and notices by failing, one at a time, that they are not there.

    In a process of its own, as nobody knows how many of them Spark still has in the end.
    """
    code = f"""
        from pathlib import Path
        from workbench.spark.session import get_session
        from tests.spark.faults import ROWS, Finals, assert_readable, counted, kill, pythons, run

        spark, got, path, folder = get_session(), Finals(), {recording()!r}, Path({str(tmp_path)!r})
        assert run(spark, path, folder / "before", Finals()).state == "finished"
        for process in pythons(spark.sparkContext._gateway.proc.pid):
            kill(process)
        for _ in range(10):
            progress = run(spark, path, folder / "behind", got)
            if progress.state == "finished":
                break
            assert_readable(progress)
            assert "start the query again" in progress.error
        assert (progress.state, progress.rows) == ("finished", ROWS), progress.details
        assert got.found == counted()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_python_process_at_many_moments(
    spark: Any, recording: Callable[..., str], tmp_path: Path, seed: int
) -> None:
    kill_a_python(spark, recording(), tmp_path / "checkpoint", random.Random(seed))


def test_a_micro_batch_that_a_stop_cuts_off_is_not_committed(
    spark: Any, recording: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop first cancels the jobs of a running micro-batch and then interrupts its thread, which may be late.

    Meanwhile Spark noted the micro-batch as done, whose state was never written: no run could go on behind it.
    """
    path, checkpoint, got = recording(), tmp_path / "checkpoint", Finals()
    frame, runners = type(spark.range(1)), list[Any]()
    collect = frame.toArrow

    def cancelled(results: Any) -> Any:
        if not runners or runners[0].progress().batches < 3:
            return collect(results)
        runners[0]._ending = "stopped"
        raise RuntimeError("the job was cancelled")

    with monkeypatch.context() as patched:
        patched.setattr(frame, "toArrow", cancelled)
        progress = run(spark, path, checkpoint, got, runners.append)
    assert (progress.state, progress.batches) == ("stopped", 3)
    assert {name.name for name in (checkpoint / "commits").glob("[0-9]*")} == {"0", "1", "2"}
    progress = run(spark, path, checkpoint, got)
    assert progress.state == "finished", progress.details
    assert got.found == counted()


def kill_the_driver(spark: Any, path: str, checkpoint: Path, moment: random.Random) -> None:
    """A kernel dies with all that it knew; another one goes on, and has the results of both."""
    code = f"""
        from pathlib import Path
        from workbench.spark.session import get_session
        from tests.spark.faults import run
        print(run(get_session(master="local[2,3]"), {path!r}, Path({str(checkpoint)!r}), lambda reports: None).state)
    """
    driver = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    batches = moment.randrange(1, 8)
    try:
        results = checkpoint / "winquery-results"
        wait_for(
            lambda: len(list(results.glob("*.batch"))) >= batches or driver.poll() is not None, LONG, "some batches"
        )
        time.sleep(moment.random())
    finally:
        driver.kill()
        said, _ = driver.communicate()
    assert driver.returncode in (-signal.SIGKILL, 0), said  # 0: it was quicker than we
    got = Finals()
    progress = run(spark, path, checkpoint, got)
    assert (progress.state, progress.rows) == ("finished", ROWS), progress.details
    assert progress.resumed == "goes on: `q`"
    assert got.found == counted()


def test_a_killed_driver(spark: Any, recording: Callable[..., str], tmp_path: Path) -> None:
    kill_the_driver(spark, recording(), tmp_path / "checkpoint", random.Random(3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_driver_at_many_moments(
    spark: Any, recording: Callable[..., str], tmp_path: Path, seed: int
) -> None:
    kill_the_driver(spark, recording(), tmp_path / "checkpoint", random.Random(seed))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of two megabytes, where this process may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no right to mount a small disk: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_full_disk(spark: Any, recording: Callable[..., str], small_disk: Path, seed: int) -> None:
    got, filler, path = Finals(), small_disk / "filler", recording()
    batch = random.Random(seed).randrange(1, 9)

    def fill_up(reports: list[Report]) -> None:
        got(reports)
        if len(got.rows) == batch:
            with open(filler, "wb", buffering=0) as file:
                while file.write(bytes(1 << 12)) == 1 << 12:
                    pass

    def fill(reports: list[Report]) -> None:
        try:
            fill_up(reports)
        except OSError:
            return

    progress = run(spark, path, small_disk / "checkpoint", fill)
    assert_readable(progress)
    assert "No space left on device" in str(progress.error)
    filler.unlink()
    progress = run(spark, path, small_disk / "checkpoint", got)
    assert (progress.state, progress.rows) == ("finished", ROWS), progress.details
    assert got.found == counted()


def test_a_folder_of_the_checkpoint_that_cannot_be_written(
    spark: Any, recording: Callable[..., str], tmp_path: Path
) -> None:
    """A file in its place, since the rights of folders mean nothing to root."""
    got, checkpoint, path = Finals(), tmp_path / "checkpoint", recording()
    results, aside = checkpoint / "winquery-results", checkpoint / "aside"

    def spoil(reports: list[Report]) -> None:
        got(reports)
        if len(got.rows) == 3:
            results.rename(aside)
            results.write_text("in the way")

    progress = run(spark, path, checkpoint, spoil)
    assert_readable(progress)
    assert str(results) in str(progress.error)
    results.unlink()
    aside.rename(results)
    progress = run(spark, path, checkpoint, got)
    assert (progress.state, progress.rows) == ("finished", ROWS), progress.details
    assert got.found == counted()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_poisoned_row(spark: Any, recording: Callable[..., str], tmp_path: Path, seed: int) -> None:
    """A sum that overflows stops the stream before its window is told; with the row mended it goes on."""
    got, checkpoint, path = Finals(), tmp_path / "checkpoint", recording()
    good = pq.read_table(path)
    values = good["value"].to_pylist()
    window = 60 * random.Random(seed).randrange(1, ROWS // 60)
    for row in (27, 30, 33):  # of one key
        values[window + row] = 2**62
    pq.write_table(good.set_column(2, "value", pa.array(values)), path)
    progress = run(spark, path, checkpoint, got)
    assert_readable(progress)
    assert "overflow" in str(progress.error)
    assert max((start for _, start in got.found), default=0) < window
    pq.write_table(good, path)
    progress = run(spark, path, checkpoint, got)
    assert (progress.state, progress.rows) == ("finished", ROWS), progress.details
    assert got.found == counted()
