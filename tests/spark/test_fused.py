"""Offsets and partitions of a replay, without Spark: pace, admission, the end of the stream, restarts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from workbench.feeds import ReplayOptions, feed
from workbench.feeds.feed import TASK_ROWS
from workbench.feeds.formats import scan
from workbench.feeds.recording import Recording
from workbench.spark.fused import FusedReader, Offset, PlanFolder, RunFolder, RunSpec

SECOND = 1_000_000


class Clock:
    """A wall clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def record(path: Path, seconds: list[int | None], row_group: int = 3) -> str:
    """A recording of one row per entry that arrives at that second."""
    stamps = [None if second is None else second * SECOND for second in seconds]
    table = pa.table({"ts": pa.array(stamps, pa.int64()).cast(pa.timestamp("us", tz="UTC"))})
    pq.write_table(table, path, row_group_size=row_group)
    return str(path)


def reader(
    tmp_path: Path, seconds: list[int | None], clock: Clock | None = None, row_group: int = 3, **options: object
) -> FusedReader:
    path = record(tmp_path / "events.parquet", seconds, row_group)
    folder = RunFolder(tmp_path / "run")
    plans = PlanFolder(tmp_path / "plans")
    plans.publish(1, b"plan")
    folder.write(RunSpec(plans.path, "ts", ReplayOptions((path,), **options), (0, 2), tmp_path / "feed"))  # type: ignore[arg-type]
    return FusedReader(folder, clock or Clock())


def drain(source: FusedReader, limit: int) -> list[Offset]:
    """All offsets to the end."""
    offsets = [source.initialOffset()]
    while not offsets[-1]["finished"]:
        offsets.append(source.latestOffset(offsets[-1], ReadMaxRows(limit)))
    return offsets


def test_as_fast_as_possible_goes_by_the_limit_and_finishes_with_the_last_row(tmp_path: Path) -> None:
    source = reader(tmp_path, list(range(10)))
    offsets = drain(source, 4)
    assert [(offset["row"], offset["finished"]) for offset in offsets] == [
        (0, False), (4, False), (8, False), (10, True),
    ]  # fmt: skip
    assert source.latestOffset(offsets[-1], ReadMaxRows(4)) == offsets[-1]


def test_the_limit_is_that_of_the_feed(tmp_path: Path) -> None:
    source = reader(tmp_path, list(range(10)), max_rows=4)
    assert source.getDefaultReadLimit() == ReadMaxRows(4)


def test_without_a_limit_micro_batches_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times as large as all before it, from 2 rows to 20: by where it begins alone, also after a restart."""
    monkeypatch.setattr(feed, "FIRST_ROWS", 2)
    monkeypatch.setattr(feed, "MOST_ROWS", 20)
    source = reader(tmp_path, list(range(40)))
    assert source.getDefaultReadLimit() == ReadAllAvailable()
    offsets = [source.initialOffset()]
    while not offsets[-1]["finished"]:
        offsets.append(source.latestOffset(offsets[-1], ReadAllAvailable()))
    assert [offset["row"] for offset in offsets] == [0, 2, 8, 28, 40]
    assert reader(tmp_path, list(range(40))).latestOffset(offsets[2], ReadAllAvailable())["row"] == 28


def test_an_empty_recording_finishes_at_once(tmp_path: Path) -> None:
    for speed in (None, 1.0 * SECOND):
        source = reader(tmp_path, [], speed=speed)
        end = source.latestOffset(source.initialOffset(), ReadMaxRows(4))
        assert (end["row"], end["finished"]) == (0, True)
        [partition] = source.partitions(source.initialOffset(), end)
        assert (partition.pieces, partition.finish) == ((), True)


def test_the_pace_follows_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    #       wall      0  1        2
    #       arrival  10  12 (2 s of arrival per second of wall time)
    source = reader(tmp_path, [10, 11, 12, 12, 13, 14, 99], clock, speed=2.0 * SECOND)
    start = source.latestOffset(source.initialOffset(), ReadMaxRows(100))
    assert (start["row"], start["clock"]) == (1, 10 * SECOND)
    assert source.latestOffset(start, ReadMaxRows(100)) == start  # nothing is due: the very same offset
    clock.now += 1
    second = source.latestOffset(start, ReadMaxRows(100))
    assert (second["row"], second["clock"]) == (4, 12 * SECOND)
    clock.now += 1
    assert source.latestOffset(second, ReadMaxRows(1))["row"] == 5  # due are 6, admitted is 1
    clock.now += 100
    assert source.latestOffset(second, ReadMaxRows(100)) == Offset(
        row=7, clock=99 * SECOND, finished=True, plan=1
    )  # fmt: skip


def test_a_row_behind_the_clock_and_one_without_time_come_with_their_neighbours(tmp_path: Path) -> None:
    clock = Clock()
    source = reader(tmp_path, [10, None, 3, 12, 5, 14], clock, speed=1.0 * SECOND)
    assert source.latestOffset(source.initialOffset(), ReadMaxRows(100))["row"] == 3
    clock.now += 2
    assert source.latestOffset(source.initialOffset(), ReadMaxRows(100))["row"] == 5


def test_a_restarted_query_goes_on_from_its_clock(tmp_path: Path) -> None:
    clock = Clock()
    source = reader(tmp_path, list(range(20)), clock, speed=1.0 * SECOND)
    start = Offset(row=8, clock=7 * SECOND, finished=False, plan=1)
    assert source.latestOffset(start, ReadMaxRows(100)) == start
    clock.now += 3
    assert source.latestOffset(start, ReadMaxRows(100))["row"] == 11


def test_a_changed_plan_catches_up_to_its_clock_without_waiting(tmp_path: Path) -> None:
    clock = Clock()
    source = reader(tmp_path, list(range(20)), clock, speed=1.0 * SECOND, resume_clock=12 * SECOND)
    first = source.latestOffset(source.initialOffset(), ReadMaxRows(5))
    assert first["row"] == 5
    second = source.latestOffset(first, ReadMaxRows(100))
    assert second["row"] == 13
    clock.now += 1
    assert source.latestOffset(second, ReadMaxRows(100))["row"] == 14


def test_the_driver_can_end_the_stream(tmp_path: Path) -> None:
    source = reader(tmp_path, list(range(10)))
    start = source.latestOffset(source.initialOffset(), ReadMaxRows(4))
    RunFolder(tmp_path / "run").request_finish()
    end = source.latestOffset(start, ReadMaxRows(4))
    assert end == start | {"finished": True}
    [partition] = source.partitions(start, end)
    assert (partition.pieces, partition.finish) == ((), True)


def test_a_new_plan_starts_a_batch_without_rows_and_is_carried_once(tmp_path: Path) -> None:
    source = reader(tmp_path, list(range(20)), speed=1.0 * SECOND)
    first = source.latestOffset(source.initialOffset(), ReadMaxRows(100))
    [partition] = source.partitions(source.initialOffset(), first)
    assert (partition.plan, partition.version, partition.announce) == (b"plan", 1, True)
    assert source.latestOffset(first, ReadMaxRows(100)) == first
    PlanFolder(tmp_path / "plans").publish(2, b"another")
    second = source.latestOffset(first, ReadMaxRows(100))
    assert second == first | {"plan": 2}
    [partition] = source.partitions(first, second)
    assert (partition.plan, partition.version, partition.announce, partition.pieces) == (b"another", 2, True, ())
    assert source.latestOffset(second, ReadMaxRows(100)) == second
    PlanFolder(tmp_path / "plans").publish(3, b"third")  # a crash: the offsets of the batch are asked again
    [partition] = source.partitions(first, second)
    assert (partition.plan, partition.announce) == (b"another", True)


def test_of_many_tasks_one_carries_the_plan(tmp_path: Path) -> None:
    rows = 2 * TASK_ROWS
    source = reader(tmp_path, list(range(rows)), row_group=TASK_ROWS)
    start, end = source.initialOffset(), Offset(row=rows, clock=None, finished=False, plan=1)
    assert [partition.announce for partition in source.partitions(start, end)] == [True, False]
    assert [partition.announce for partition in source.partitions(start | {"plan": 1}, end)] == [False, False]


def test_every_row_goes_to_exactly_one_task(tmp_path: Path) -> None:
    rows = 4 * TASK_ROWS
    path = record(tmp_path / "big.parquet", list(range(rows)), row_group=TASK_ROWS - 1_000)
    paths = [path, record(tmp_path / "next.parquet", [1, 2, 3])]
    recording = Recording([scan(each, "parquet") for each in paths], "ts")
    runs = recording.split(10, rows + 2, 4)
    assert len(runs) == 4
    starts = {index: index * (TASK_ROWS - 1_000) for index in range(6)}
    covered = [
        row
        for run in runs
        for piece in run
        for base in [rows if piece.path.endswith("next.parquet") else starts[piece.block.place]]
        for row in range(base + piece.offset, base + piece.offset + piece.rows)
    ]
    assert covered == list(range(10, rows + 2))
    # Cuts move to the edges of row groups, so that no group is decoded twice.
    groups = [(piece.path, piece.block.place) for run in runs for piece in run]
    assert len(groups) == len(set(groups))


def test_few_rows_are_one_task(tmp_path: Path) -> None:
    source = reader(tmp_path, list(range(10)), tasks=8)
    [partition] = source.partitions(source.initialOffset(), Offset(row=10, clock=None, finished=True, plan=1))
    assert sum(piece.rows for piece in partition.pieces) == 10


def test_the_folder_is_the_users_alone(tmp_path: Path) -> None:
    reader(tmp_path, [1])
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("speed", [0.001, 1e12])
def test_any_speed_ends_at_the_last_row(tmp_path: Path, speed: float) -> None:
    clock = Clock()
    source = reader(tmp_path, [1, 2, 3], clock, speed=speed * SECOND)
    clock.now += 1
    source.latestOffset(source.initialOffset(), ReadMaxRows(10))
    clock.now += 10_000
    assert source.latestOffset(source.initialOffset(), ReadMaxRows(10))["finished"]


def test_o1_a_silent_stream_goes_on_with_the_clock_after_the_time_out(tmp_path: Path) -> None:
    """Rows arrive at 0 and at 1000 s, replayed at twice the speed; the time-out is 5 s of wall time.

    ::

        wall    0    5    5.5    6              40
        event   0    0    (1)    2              70     in steps of a second of wall time, 2 s of event time
    """
    clock = Clock()
    source = reader(tmp_path, [0, 1000], clock, speed=2.0 * SECOND)
    spec = RunFolder(tmp_path / "run").read()
    RunFolder(tmp_path / "run").write(replace(spec, idle=5 * SECOND))
    first = source.latestOffset(source.initialOffset(), ReadMaxRows(4))
    assert first == {"row": 1, "clock": 0, "finished": False, "plan": 1}
    begun = clock.now
    offset, told = first, []
    for wall in (0, 4.9, 5.5, 6, 6.5, 40):
        clock.now = begun + wall
        after = source.latestOffset(offset, ReadMaxRows(4))
        if after is not offset:
            told.append((wall, after["passed"] / SECOND))
            [partition] = source.partitions(offset, after)
            assert (partition.pieces, partition.passed, partition.finish) == ((), after["passed"], False)
        offset = after
    assert told == [(6, 2), (40, 70)]
    clock.now = begun + 500
    assert source.latestOffset(offset, ReadMaxRows(4)) == {
        "row": 2,
        "clock": 1000 * SECOND,
        "finished": True,
        "plan": 1,
    }
    again = FusedReader(RunFolder(tmp_path / "run"), clock)
    assert again.latestOffset(offset, ReadMaxRows(4)) is offset, "a restart begins no batch by itself"
