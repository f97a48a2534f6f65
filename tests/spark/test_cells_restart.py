"""A notebook with a query a cell on one checkpoint, whose kernel is killed: all of them go on, whichever runs first.

Rows come one a second; the watermark is 5 seconds behind::

    rows      0 ------------------- 399 | 400 ------------ 699
    kernel    all cells run             ^ killed, and another one (or this process) on the checkpoint
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.spark.events import wait_for
from tests.spark.kernel import LONG, killed, run_all
from tests.spark.senders import Inbox
from workbench.errors import EngineError
from workbench.session import LiveQuery, Session

pytestmark = pytest.mark.spark

SCHEMA = "ts TIMESTAMP, key STRING, value BIGINT"
SUMS = "SELECT key, sum(value) AS x, count(*) AS n FROM events GROUP BY key, window(ts, '1 minute')"
TOPS = "SELECT key, max(value) AS x, count(*) AS n FROM events GROUP BY key, window(ts, '30 seconds')"
LAST = "OVER (PARTITION BY key ORDER BY ts ROWS 2 PRECEDING)"
FRAMES = f"SELECT key, sum(value) {LAST} AS x, count(*) {LAST} AS n FROM events"
#: The same as statements of Spark's.
BATCH = {
    "sums": SUMS.replace("SELECT", "SELECT window.start AS at,"),
    "tops": TOPS.replace("SELECT", "SELECT window.start AS at,"),
    "frames": FRAMES.replace("SELECT", "SELECT ts AS at,"),
}
QUERIES = {"frames": FRAMES, "sums": SUMS, "tops": TOPS}
#: How long a window is, in seconds; a row of OVER is told when the watermark has passed it.
SIZES = {"sums": 60, "tops": 30, "frames": 1}

Found = dict[tuple[str, int], tuple[int, int]]


@dataclass(frozen=True)
class Notebook:
    """Where the rows are, and the checkpoint that a killed kernel has left at row 399."""

    inbox: Inbox
    checkpoint: Path
    answer: Callable[[str], Found]

    def again(self, folder: Path) -> tuple[Session, Path]:
        """A session on a copy of the checkpoint, as what ran before is to be the same for all."""
        shutil.copytree(self.checkpoint, folder / "checkpoint")
        session = Session()
        options: dict[str, Any] = {"format": "parquet", "schema": SCHEMA}
        session.source(
            "events",
            self.inbox.path,
            time="ts",
            follow=True,
            delay="5 seconds",
            checkpoint=folder / "checkpoint",
            **options,
        )
        return session, folder / "checkpoint"


def cells(notebook: Path, checkpoint: Path, names: list[str]) -> list[str]:
    source = (
        f"workbench.source('events', {str(notebook / 'inbox')!r}, time='ts', follow=True, delay='5 seconds', "
        f"format='parquet', schema={SCHEMA!r}, checkpoint={str(checkpoint)!r})"
    )
    return [source, *(f"%%winquery {name}\n{QUERIES[name]}" for name in names)]


def first_run(folder: Path, begin: list[str]) -> Inbox:
    """All cells run before the first row comes, so each query has all rows; then 400 come, the kill, and 300 more."""
    inbox, stage = Inbox(folder / "inbox"), Inbox(folder / "stage")
    stage.put(4)
    arrive = f"import os\nfor name in sorted(os.listdir({str(stage.path)!r})):\n"
    arrive += f"    os.rename(os.path.join({str(stage.path)!r}, name), os.path.join({str(inbox.path)!r}, name))"
    killed(folder / "first", [*begin, arrive], 400)
    inbox.rows = stage.rows
    inbox.put(3)
    return inbox


@pytest.fixture(scope="module")
def notebook(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Notebook:
    folder = tmp_path_factory.mktemp("notebook")
    checkpoint = folder / "checkpoint"
    inbox = first_run(folder, cells(folder, checkpoint, ["frames", "sums", "tops"]))
    spark.read.parquet(str(inbox.path)).createOrReplaceTempView("events")

    def answer(name: str) -> Found:
        """What Spark says of all rows, of windows that end up to the watermark, at 694."""
        rows = spark.sql(BATCH[name]).selectExpr("key", "unix_seconds(at) AS at", "x", "n").collect()
        return {(row.key, row["at"]): (row.x, row.n) for row in rows if row["at"] + SIZES[name] <= 694}

    return Notebook(inbox, checkpoint, answer)


def finals(table: Any) -> Found:
    rows = [row for row in table.to_pylist() if row["status"] == "final"]
    found = {(row["key"], int(row["window_start"].timestamp())): (row["x"], row["n"]) for row in rows}
    assert len(found) == len(rows)
    return found


def told(handle: LiveQuery) -> Found:
    return finals(handle.results(format="arrow"))


def start(session: Session, name: str, sql: str = "") -> LiveQuery:
    (handle,) = session.start(session.parse(sql or QUERIES[name], name=name))
    return handle


def read_all(handle: LiveQuery) -> None:
    wait_for(lambda: handle.status().rows == 700, LONG, f"all rows: {handle.status()}")


def since(found: Found, second: int) -> Found:
    return {place: row for place, row in found.items() if place[1] >= second}


def test_all_cells_run_again_in_another_kernel(notebook: Notebook, tmp_path: Path) -> None:
    """In another order than before; what goes on is told until its cell has run."""
    shutil.copytree(notebook.checkpoint, tmp_path / "checkpoint")
    order = ["sums", "tops", "frames"]
    ran = run_all(tmp_path / "second", cells(notebook.inbox.path.parent, tmp_path / "checkpoint", order), 700)
    for name in order:
        assert finals(ran.results[name]) == notebook.answer(name)
        assert "  checkpoint goes on: `frames`, `sums`, `tops`\n" in ran.statuses[name]
        assert "background" not in ran.statuses[name]
    _, first, second, third = ran.printed
    assert "goes on from an earlier run: `frames`, `tops`; run the cell of each" in first
    assert "goes on from an earlier run: `frames`; run the cell of each, or end it: `%winquery stop frames`" in second
    assert "earlier" not in third


@pytest.mark.usefixtures("spark")
def test_cells_that_run_long_after_the_first(notebook: Notebook, tmp_path: Path) -> None:
    """All rows are read by then; a sink has each result once, and another notebook is refused meanwhile."""
    session, checkpoint = notebook.again(tmp_path)
    first = start(session, "sums")
    read_all(first)
    other = Session()
    other.source("events", str(notebook.inbox.path), time="ts", delay="5 seconds", checkpoint=checkpoint)
    with pytest.raises(EngineError, match=r"is in use by process .*: two runs on one would spoil it"):
        start(other, "tops")
    handles = {"sums": first} | {name: start(session, name) for name in ("tops", "frames")}
    for name, handle in handles.items():
        assert told(handle) == notebook.answer(name)
        assert handle.status().background == ()
    sunk: list[Any] = []
    handles["tops"].to_spark(lambda frame, batch: sunk.extend(frame.collect()))
    assert len(sunk) == len(notebook.answer("tops"))
    session.stop_all()


def test_a_cell_that_is_missing_keeps_its_query_for_the_run_after(
    spark: Any, notebook: Notebook, tmp_path: Path
) -> None:
    session, checkpoint = notebook.again(tmp_path)
    first = start(session, "tops")
    read_all(first)
    assert first.status().background == ("frames", "sums")
    assert told(first) == notebook.answer("tops")
    first.stop()
    third = Session()
    third.source("events", notebook.inbox.path, time="ts", follow=True, delay="5 seconds", checkpoint=checkpoint)
    frames = start(third, "frames")
    assert frames.status().resumed == "goes on: `frames`, `sums`, `tops`"
    assert told(frames) == notebook.answer("frames")
    (background,) = [handle for handle in third.queries() if handle.name == "sums"]
    assert told(background) == notebook.answer("sums")
    background.stop()
    assert frames.status().background == ("tops",)
    third.stop_all()


@pytest.mark.usefixtures("spark")
def test_a_cell_that_was_changed_and_one_that_is_new(notebook: Notebook, tmp_path: Path) -> None:
    """The first cell that runs is the changed one: it begins behind row 399, the others go on."""
    session, _ = notebook.again(tmp_path)
    changed = start(session, "tops", TOPS.replace("max(value)", "min(value)"))
    assert changed.status().resumed == "goes on: `frames`, `sums`; begins afresh: `tops`"
    read_all(changed)
    lows = {place: (top - 27, n) for place, (top, n) in notebook.answer("tops").items()}
    assert told(changed) == since(lows, 420), "ten rows of a key in 30 seconds, three apart"
    fewer = start(session, "new", TOPS.replace("count(*)", "count(value)"))
    assert fewer.status().background == ("frames", "sums")
    assert told(start(session, "sums")) == notebook.answer("sums")
    assert told(start(session, "frames")) == notebook.answer("frames")
    session.stop_all()


@pytest.mark.usefixtures("spark")
def test_one_that_was_replaced_as_the_stream_ran(notebook: Notebook, tmp_path: Path) -> None:
    """Its cell has other SQL now: as in any running stream the older one ends, and the new one begins with no row."""
    session, _ = notebook.again(tmp_path)
    first = start(session, "sums")
    read_all(first)
    changed = start(session, "tops", TOPS.replace("max(value)", "min(value)"))
    assert changed.status().resumed == "begins afresh: `tops`"
    assert told(changed) == {}
    assert first.status().background == ("frames",)
    assert told(first) == notebook.answer("sums")
    session.stop_all()


OWN = """
import workbench

@workbench.aggregate
class squares:
    fields = {"total": ("int64", 0)}
    inputs = ("int64",)
    result = "bigint"
    commutative = True
    def lift(x): return (x * x,)
    def combine(a, b): return (a.total + b.total,)
    def lower(state): return state.total

@workbench.window_type
class minutes:
    fields = {"begun": ("int64", -(2**61))}
    def notify(self, context, time):
        if time >= context.begun + 60_000_000:
            context.begin(time)
            context.begun = time
"""
SQUARES = "SELECT key, squares(value) AS x, count(*) AS n FROM events GROUP BY key, window(ts, '1 minute')"
MINUTES = "SELECT key, sum(value) AS x, count(*) AS n FROM events GROUP BY key, minutes()"


@pytest.mark.usefixtures("spark")
def test_aggregates_and_window_types_of_the_notebook_go_on(tmp_path: Path) -> None:
    """Their classes are defined again, by the same code; windows of such a type could not begin in the middle.

    Rows of a key are three seconds apart, so each key has 20 in a minute, and its minutes begin with its first row.
    """
    source = cells(tmp_path, tmp_path / "checkpoint", [])
    inbox = first_run(tmp_path, [*source, OWN, f"%%winquery own\n{MINUTES}", f"%%winquery squared\n{SQUARES}"])
    exec(OWN, {"__name__": "__main__"})
    session, _ = Notebook(inbox, tmp_path / "checkpoint", lambda name: {}).again(tmp_path / "second")
    squared = start(session, "squared", SQUARES)
    read_all(squared)
    assert squared.status().resumed == "goes on: `own`, `squared`"
    own = start(session, "own", MINUTES)
    assert own.status().resumed == "goes on: `own`, `squared`"

    def by_hand(key: int, begin: int, power: int) -> tuple[int, int]:
        rows = [row for row in range(begin, begin + 60) if row % 3 == key]
        return sum(row**power for row in rows), len(rows)

    keys, begins = list(enumerate("abc")), range(0, 660, 60)
    assert told(squared) == {(name, begin): by_hand(key, begin, 2) for key, name in keys for begin in begins}
    assert told(own) == {(name, begin + key): by_hand(key, begin + key, 1) for key, name in keys for begin in begins}
    session.stop_all()
