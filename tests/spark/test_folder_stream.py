"""A growing folder on Spark: every row counted once, whatever is stopped in the middle and whatever is wrong."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SCHEMA, SECOND, make_plan, wait_for
from tests.spark.finals import LONG, Finals
from tests.spark.senders import Inbox
from workbench.feeds.folder import FolderOptions
from workbench.session import Session
from workbench.spark.runner import StreamRunner

pytestmark = pytest.mark.spark


def test_rows_count_once_over_stops_in_the_middle_of_batches(spark: Any, tmp_path: Path) -> None:
    inbox, finals = Inbox(tmp_path / "inbox"), Finals()
    options = FolderOptions(str(inbox.path), "parquet", SCHEMA, max_rows=130)
    inbox.put(3)
    for let_pass in (1, 0):
        finals.hang(let_pass)
        runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
        runner.start()
        assert finals.inside.wait(LONG), "a batch hangs whose offsets are in the log"
        inbox.put(2)
        threading.Timer(0.5, finals.gate.set).start()
        assert runner.stop(LONG)
        assert runner.progress().state == "stopped", runner.progress().details
    runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    inbox.put()
    seen = int(inbox.rows) - 1
    wait_for(lambda: runner.progress().max_event == seen * SECOND, LONG, "the last row")
    assert runner.stop(LONG, finish=True)
    assert runner.progress().state == "finished", runner.progress().details
    assert finals.found == inbox.expected()


def test_a_file_that_does_not_fit_stops_the_query_until_it_is_gone(spark: Any, tmp_path: Path) -> None:
    inbox, finals = Inbox(tmp_path / "inbox"), Finals()
    options = FolderOptions(str(inbox.path), "parquet", SCHEMA)
    inbox.put()
    bad = inbox.path / "00150.parquet"
    pq.write_table(pa.table({"ts": [1.5], "key": ["a"], "value": [7]}), bad)
    runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    assert runner.wait(LONG)
    progress = runner.progress()
    assert progress.state == "failed"
    assert f"column `ts` of `{bad}` is of type `double`, but of type `timestamp[us, tz=UTC]`" in (
        progress.error or ""
    )
    assert "hint: " in (progress.error or "")
    bad.unlink()
    inbox.put()
    runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    wait_for(lambda: runner.progress().max_event == 199 * SECOND, LONG, "the last row")
    assert runner.stop(LONG, finish=True)
    assert finals.found == inbox.expected()


def test_a_file_that_vanishes_before_it_is_read_is_awaited(spark: Any, tmp_path: Path) -> None:
    """Its rows count already, so nothing may go on without them; when it is back, nothing is lost or doubled."""
    inbox, finals = Inbox(tmp_path / "inbox"), Finals()
    options = FolderOptions(str(inbox.path), "parquet", SCHEMA, max_rows=150)
    inbox.put(3)
    last = inbox.path / "00300.parquet"
    finals.hang(0)
    runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    assert finals.inside.wait(LONG)
    last.rename(tmp_path / "away")
    finals.gate.set()
    assert runner.wait(LONG)
    assert f"the file `{last}` has vanished before its rows were read" in (runner.progress().error or "")
    (tmp_path / "away").rename(last)
    runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    wait_for(lambda: runner.progress().max_event == 299 * SECOND, LONG, "the last row")
    assert runner.stop(LONG, finish=True)
    assert finals.found == inbox.expected()


def test_a_session_follows_a_folder_of_lines(spark: Any, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "1.csv").write_text("ts,key,value\n2024-01-01 00:00:01,a,1\n2024-01-01 00:00:02,b,2\n")
    session = Session()
    source = session.source("events", inbox, time="ts", follow=True, delay="0 seconds")
    assert repr(source).startswith(f"Source `events`: follows the folder `{inbox}`, event time `ts`")
    sql = "SELECT key, sum(value) AS total FROM events GROUP BY key, window(ts, '10 seconds')"
    (query,) = session.start(session.parse(sql, name="totals"))
    wait_for(lambda: query.status().rows == 2, LONG, "the first file")
    (inbox / "2.csv").write_text("ts,key,value\n2024-01-01 00:00:03,a,10\n2024-01-01 00:01:00,a,5\n")
    wait_for(lambda: len(query.results(status="final")) == 2, LONG, "the second file")
    found = query.results(status="final")
    assert dict(zip(found["key"], found["total"], strict=True)) == {"a": 11, "b": 2}
    session.stop_all()
