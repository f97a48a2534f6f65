"""Executors in processes of their own, as a cluster has them: the package is sent to them, and one is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from workbench.spark.shipping import package_zip

pytestmark = pytest.mark.spark

CODE = """
    import os
    import random
    import sys
    import time
    from pathlib import Path

    import psutil
    from pyspark.sql import SparkSession

    from tests.spark.events import wait_for
    from tests.spark.faults import LONG, Finals, counted, kill, run
    from workbench.spark.session import get_session
    from workbench.spark.shipping import ship

    path, checkpoint, seed = sys.argv[1:]
    mine = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    mine.sparkContext.setLogLevel("OFF")
    ship(mine.sparkContext)

    def where(_):
        import workbench.runtime
        return os.getppid(), workbench.__file__

    found = dict(mine.sparkContext.parallelize(range(2), 2).map(where).collect())
    assert all("winquery.zip" in file for file in found.values()), found
    executors = [
        process
        for process in psutil.Process().children(recursive=True)
        if process.name() == "java" and "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
    ]
    assert len(executors) == 2, executors
    got, moment = Finals(), random.Random(seed)
    batches, wait, victim = moment.randrange(1, 8), moment.random() / 2, moment.choice(executors)

    def harm(runner):
        if seed != "none":
            wait_for(lambda: len(got.rows) >= batches or runner.wait(0), LONG, "some batches")
            time.sleep(wait)
            kill(victim)

    progress = run(get_session(), path, Path(checkpoint), got, harm)
    said = progress.error, (progress.details or "")[:2_000]
    assert (progress.state, progress.rows) == ("finished", 1_000), said
    gone = not victim.is_running() or victim.status() == psutil.STATUS_ZOMBIE
    assert gone == (seed != "none")
    assert got.found == counted(), got.found
    print("right")
    mine.stop()
"""


@pytest.mark.slow
def test_a_stream_on_executors_of_their_own(recording: Callable[..., str], tmp_path: Path) -> None:
    run_on_cluster(recording(), tmp_path, "none")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20 if "WINQUERY_NIGHTLY" in os.environ else 1))
def test_a_killed_executor(recording: Callable[..., str], tmp_path: Path, seed: int) -> None:
    run_on_cluster(recording(), tmp_path, str(seed))


def run_on_cluster(path: str, tmp_path: Path, seed: str) -> None:
    """One executor dies at the moment that ``seed`` says, if it is a number.

    Without PYTHONPATH: executors have the package from the driver, or installed, but the driver's goes first.
    """
    home = tmp_path / "home"  # executors keep their logs in Spark's home
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{textwrap.dedent(CODE)}"
    done = subprocess.run(
        [sys.executable, "-c", code, path, str(tmp_path / "checkpoint"), seed],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    assert done.stdout == "right\n"


def test_the_zip_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    names = zipfile.ZipFile(package_zip(tmp_path / "p.zip")).namelist()
    assert {"workbench/__init__.py", "workbench/kernels/jit.py", "workbench/spark/processor.py"} <= set(names)
    assert all(name.startswith("workbench/") and "__pycache__" not in name for name in names)
    path = str(tmp_path / "p.zip")
    code = f"import sys; sys.path.insert(0, {path!r}); import workbench.runtime; print(workbench.runtime.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "p.zip" in done.stdout
