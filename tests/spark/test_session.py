"""Whose Spark it is: the user's stays as it is, ours is well-behaved, and nothing outlives the kernel.

Each test is a process of its own, since a process has one Spark at most.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.spark.events import wait_for
from workbench.spark.session import this_python

pytestmark = pytest.mark.spark


def run(code: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_users_session_is_reused_and_left_alone() -> None:
    """Case R6: their context is taken, its settings stay, nobody but the user stops it; a second one is ours."""
    printed = run("""
        from pyspark.sql import SparkSession
        mine = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
                .config("spark.sql.shuffle.partitions", "7").getOrCreate())
        mine.range(3).createOrReplaceTempView("mine")
        before = dict(mine.conf.getAll)
        from workbench.spark.session import get_session
        ours = get_session()
        assert ours.sparkContext is mine.sparkContext
        assert ours is not mine and get_session() is ours
        assert ours.conf.get("spark.sql.shuffle.partitions") == "1"
        assert dict(mine.conf.getAll) == before
        assert SparkSession.builder.getOrCreate().conf.get("spark.sql.shuffle.partitions") == "7"
        assert mine.table("mine").count() == 3
        mine.stop()
        again = get_session(master="local[1]")
        print(again is not ours, again.range(5).count())
    """)
    assert printed.split() == ["True", "5"]


def test_a_query_in_a_users_session_runs_on_this_python() -> None:
    """The user's own workers are another interpreter (here: none at all); ours must have our packages."""
    printed = run("""
        import os
        os.environ["PYSPARK_PYTHON"] = "/bin/false"
        from pyspark.sql import SparkSession
        mine = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        import psutil
        import pyarrow as pa
        import workbench
        stamps = pa.array([0, 1_000_000, 61_000_000], pa.timestamp("us", "UTC"))
        workbench.source("events", pa.table({"ts": stamps}), time="ts")
        query = workbench.run("SELECT count(*) AS n FROM events GROUP BY window(ts, '1 minute')")
        assert query.wait(300)
        workbench.stop_all()
        assert mine.sparkContext.pythonExec == "/bin/false"
        lines = []
        for process in psutil.Process().children(recursive=True):
            try:
                lines.append(process.cmdline())
            except psutil.Error:  # it has just ended
                pass
        daemons = [line[2] for line in lines if line[3:] == ["pyspark.worker"]]
        assert daemons, lines
        assert all("workbench.spark.daemon" in line for line in daemons), lines
        print(query.results()["n"].tolist(), mine.range(3).count())
    """)
    assert printed.split() == ["[2,", "1]", "3"]


def test_a_session_of_ours_keeps_quiet_and_to_itself() -> None:
    printed = run("""
        import os, signal, sys
        before = signal.getsignal(signal.SIGINT)
        from workbench.spark.session import get_session
        session = get_session(master="local[2]")
        context = session.sparkContext
        assert context.uiWebUrl is None
        assert context.getConf().get("spark.driver.bindAddress") == "127.0.0.1"
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
        assert signal.getsignal(signal.SIGINT) is before, "an interrupted cell would cancel all jobs"
        assert "PYSPARK_PYTHON" not in os.environ
        worker = context.parallelize([0]).map(lambda _: __import__("sys").executable).first()
        assert worker == sys.executable, worker
    """)
    assert printed == ""


def test_an_interrupted_start_of_spark_goes_on_for_the_next_cell() -> None:
    """The moment at which the JVM has a context and PySpark does not know of it yet; the JVM takes one alone."""
    printed = run("""
        import os, signal, time
        import psutil
        from pyspark import SparkContext
        from workbench.spark.session import get_session, is_running
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
        made = SparkContext._initialize_context
        def interrupted(self, conf):
            context = made(self, conf)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
            return context
        SparkContext._initialize_context = interrupted
        try:
            get_session(master="local[1]")
        except KeyboardInterrupt:
            assert not is_running()
        else:
            raise AssertionError("not interrupted")
        session = get_session(master="local[1]")
        assert get_session() is session
        assert session.range(3).count() == 3
        children = psutil.Process().children(recursive=True)
        assert len([each for each in children if each.name() == "java"]) == 1
    """)
    assert printed == ""


def test_a_dead_jvm_is_replaced() -> None:
    printed = run("""
        from pyspark import SparkContext
        from workbench.spark.session import get_session
        session = get_session(master="local[1]")
        jvm = SparkContext._gateway.proc
        jvm.kill(); jvm.wait()
        print(get_session(master="local[1]").range(5).count())
    """)
    assert printed.split() == ["5"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_kernel(recording: Callable[..., str], tmp_path: Path, how: signal.Signals) -> None:
    """A notebook kernel that is killed or restarted while a query runs takes Java and all workers with it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = f"""
        from workbench.spark.session import get_session
        from workbench.spark.runner import StreamRunner
        from workbench.feeds import ReplayOptions
        from tests.spark.events import make_plan
        import time
        session = get_session(master="local[2]")
        StreamRunner(session, make_plan(), ReplayOptions(({recording()!r},), speed=1e6),
                     lambda reports: print("batch", flush=True)).start()
        time.sleep(1000)
    """
    kernel = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    try:
        assert kernel.stdout is not None
        assert kernel.stdout.readline() == "batch\n"
        family = psutil.Process(kernel.pid).children(recursive=True)
        assert any("java" in process.name() for process in family)
        assert any("python" in process.name() for process in family)
        os.kill(kernel.pid, how)
        kernel.wait(10)
        wait_for(lambda: not any(alive(process) for process in family), 30, "the end of all its processes")
        assert not list(scratch.rglob("checkpoint")), "the JVM removes its folders"
    finally:
        kernel.kill()
        kernel.communicate()


def test_ctrl_c_leaves_a_running_stream_alone(recording: Callable[..., str]) -> None:
    printed = run(f"""
        from workbench.spark.session import get_session
        from workbench.spark.runner import StreamRunner
        from workbench.feeds import ReplayOptions
        from tests.spark.events import make_plan
        import os, signal, time
        os.setpgrp()  # the signal reaches Java too, as in a terminal, but not the test runner
        session = get_session(master="local[2]")
        runner = StreamRunner(session, make_plan(), ReplayOptions(({recording(300)!r},), speed=50e6), lambda r: None)
        runner.start()
        while runner.progress().batches < 2: time.sleep(0.1)
        try:
            os.killpg(os.getpgrp(), signal.SIGINT); time.sleep(5)
        except KeyboardInterrupt:
            pass
        assert runner.wait(300)
        print(runner.progress().state, runner.progress().error)
    """)
    assert printed.split() == ["finished", "None"]


def alive(process: psutil.Process) -> bool:
    """Running, and not merely waiting for its parent to read its exit code."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


class Lent:
    """As much of a user's Spark context as says which Python it starts."""

    master, pythonExec = "local[2]", "theirs"

    def getConf(self) -> dict[str, str]:
        return {}


def test_two_threads_leave_a_context_as_it_was() -> None:
    """A backfill holds ours for as long as its job; a stream that starts meanwhile may be done before it."""
    context: Any = Lent()
    backfill, stream = this_python(context), this_python(context)
    with backfill:
        ours = context.pythonExec
        assert ours != "theirs"
        with stream:
            assert context.pythonExec == ours
        assert context.pythonExec == ours
    assert context.pythonExec == "theirs"
    first, second = this_python(context), this_python(context)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert context.pythonExec == ours, "the other one still needs it"
    second.__exit__(None, None, None)
    assert context.pythonExec == "theirs"


def test_a_fork_leaves_the_spark_the_queries_and_the_tables_of_its_parent_alone(tmp_path: Path) -> None:
    """Both talked to the JVM by the same socket, and took each other's answers; a fork that ended took all along."""
    printed = run(f"""
        import os, sys
        import pandas as pd
        import workbench
        from workbench.spark.session import get_session

        rows = pd.DataFrame({{"ts": pd.date_range("2013-01-01", periods=9, freq="h", tz="UTC")}})
        workbench.source("s", rows, time="ts")
        sql = "SELECT count(*) AS n FROM s GROUP BY window(ts, '1 day')"
        get_session(master="local[1]")
        if not (child := os.fork()):
            try:
                workbench.run(sql)
            except workbench.EngineError as error:
                open({str(tmp_path / "said")!r}, "w").write(str(error))
            sys.exit()
        os.waitpid(child, 0)
        handle = workbench.run(sql)
        handle.wait(300)
        print(handle.results()["n"].tolist())
    """)
    assert printed.split() == ["[9]"]
    said = (tmp_path / "said").read_text()
    assert said.startswith("this process is a fork of the one that started Spark, and cannot use it\nhint: run the")
