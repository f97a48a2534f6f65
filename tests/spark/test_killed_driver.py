"""kill -9 of the driver in the middle, and a restart on the checkpoint by another process: every row counts once."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from brokers import Cluster, cluster

from tests.spark.events import SCHEMA, SECOND, make_plan, wait_for
from tests.spark.finals import LONG, Finals
from tests.spark.senders import Inbox, Sender
from workbench.feeds import FeedOptions
from workbench.feeds.folder import FolderOptions
from workbench.feeds.kafka import KafkaOptions
from workbench.feeds.payloads import Payloads
from workbench.spark.runner import StreamRunner

__all__ = ["cluster"]

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
DELAY = 300 * SECOND

#: Runs a plan and writes final results to a file, a line a micro-batch, before the micro-batch counts.
DRIVER = """
import json, pickle, sys
from pathlib import Path
from tests.spark.events import make_plan
from tests.spark.finals import finals_of
from workbench.spark.runner import StreamRunner
from workbench.spark.session import get_session

options, delay, checkpoint, results = pickle.loads(Path(sys.argv[1]).read_bytes())

def keep(reports):
    with open(results, "a") as out:
        print(json.dumps(list(finals_of(reports))), file=out)

runner = StreamRunner(get_session(master="local[2]"), make_plan(delay=delay), options, keep, checkpoint=checkpoint)
runner.start()
runner.wait()
sys.exit(runner.progress().details)
"""


class Driver:
    """A driver in a process of its own; ``batches`` are the lines that it has written."""

    def __init__(self, options: FeedOptions, folder: Path) -> None:
        self.results = folder / "results.jsonl"
        (folder / "options.pickle").write_bytes(pickle.dumps((options, DELAY, folder / "checkpoint", self.results)))
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        self._process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(folder / "options.pickle")],
            env=os.environ | {"PYTHONPATH": paths},
            stderr=(folder / "errors.txt").open("w"),
            start_new_session=True,
        )
        self._errors = folder / "errors.txt"

    def batches(self) -> int:
        assert self._process.poll() is None, self._errors.read_text()
        return len(self.results.read_text().splitlines()) if self.results.exists() else 0

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finals(self) -> Finals:
        """All that it has written; a last line that is not whole did not count."""
        found = Finals()
        for line in self.results.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                for (key, start), value in json.loads(line):
                    assert found.found.setdefault((key, start), tuple(value)) == tuple(value)
        return found


@pytest.mark.parametrize("kind", ["folder", "kafka"])
def test_rows_count_once_over_a_killed_driver(spark: Any, cluster: Cluster, tmp_path: Path, kind: str) -> None:
    source: Inbox | Sender
    options: FeedOptions
    if kind == "folder":
        source, options = Inbox(tmp_path / "inbox"), FolderOptions(str(tmp_path / "inbox"), "parquet", SCHEMA, 130)
    else:
        source = Sender(cluster, "killed")
        options = KafkaOptions(cluster.servers, "killed", SCHEMA, Payloads(epoch="ms"), max_rows=130)
    source.put(6)
    driver = Driver(options, tmp_path)
    wait_for(lambda: driver.batches() >= 3, LONG, "some batches")
    driver.kill()
    source.put(2)
    finals = driver.finals()
    runner = StreamRunner(spark, make_plan(delay=DELAY), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    read = [-1]

    def all_read() -> bool:
        assert runner.progress().state in ("starting", "running"), runner.progress().details
        read.append(runner.progress().rows)
        return runner.progress().max_event == (source.rows - 1) * SECOND and read[-1] == read[-2]

    wait_for(all_read, LONG, "the last row")
    assert runner.stop(LONG, finish=True)
    assert runner.progress().state == "finished", runner.progress().details
    assert finals.found == source.expected()
