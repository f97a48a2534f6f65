"""Growing folders: every row once, in order, whatever is half written, and on after every crash."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import SourceError
from workbench.feeds import Position, Tally
from workbench.feeds.folder import FolderFeed, FolderOptions
from workbench.feeds.times import MICROS

SCHEMA = pa.schema([("ts", MICROS), ("n", pa.int64())])


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Folder:
    """A folder, a feed over it, and all that the feed has given; ``crash`` forgets what is not on the disk."""

    def __init__(self, path: Path, kind: str = "parquet", schema: pa.Schema = SCHEMA) -> None:
        self.inbox = path / "inbox"
        self.inbox.mkdir()
        self.clock = Clock()
        self.options = FolderOptions(str(self.inbox), kind, schema)
        self.own = path / "own"
        self.written = 0
        self.open()
        self.position = self.feed.initial()

    def open(self) -> None:
        self.feed: FolderFeed = self.options.open("ts", self.own, self.clock)

    def put(self, name: str, rows: int, when: int) -> list[int]:
        """A file of the next rows, last changed at ``when``; written aside first, as it should be."""
        numbers = list(range(self.written, self.written + rows))
        self.written += rows
        table = pa.table({"ts": pa.array(numbers, pa.int64()).cast(MICROS), "n": numbers})
        aside = self.inbox / f".{name}"
        pq.write_table(table, aside, row_group_size=3)
        os.utime(aside, (when, when))
        aside.rename(self.inbox / name)
        return numbers

    def step(self, limit: int | None = None) -> list[int]:
        """The rows of one micro-batch after a while."""
        self.clock.now += 1
        end, finished = self.feed.advance(self.position, limit)
        assert not finished
        found = self.rows(self.position, end)
        self.position = end
        return found

    def rows(self, start: Position, end: Position) -> list[int]:
        (pieces,) = self.feed.pieces(start, end, 1)
        return [n for piece in pieces for batch in piece.read(SCHEMA, Tally()) for n in batch.column(1).to_pylist()]


def test_files_come_once_in_order_of_time_then_name(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.step() == []
    first = folder.put("z.parquet", 4, when=1)
    second = folder.put("b.parquet", 2, when=2)
    third = folder.put("a.parquet", 3, when=3)
    fourth = folder.put("c.parquet", 1, when=3)
    assert folder.step() == first + second + third + fourth
    assert folder.step() == []
    later = folder.put("y.parquet", 1, when=0)  # older than all, but it came later
    assert folder.step() == later
    assert folder.position == {"row": 11}


def test_a_limit_cuts_files(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    numbers = folder.put("a.parquet", 7, when=1) + folder.put("b.parquet", 3, when=2)
    assert [folder.step(4), folder.step(4), folder.step(4), folder.step(4)] == [
        numbers[:4], numbers[4:8], numbers[8:], [],
    ]  # fmt: skip


def test_nothing_is_looked_for_more_often_than_needed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.step()
    folder.put("a.parquet", 1, when=1)
    assert folder.feed.advance(folder.position, None) == (folder.position, False)
    folder.clock.now += 0.3
    assert folder.feed.advance(folder.position, None) == ({"row": 1}, False)


def test_a_crash_at_any_moment_changes_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    one = folder.put("a.parquet", 5, when=1)
    folder.clock.now += 1
    end, _ = folder.feed.advance(folder.position, 3)
    two = folder.put("b.parquet", 5, when=0)  # would have been the first
    folder.open()
    assert folder.rows(folder.position, end) == one[:3], "the same rows between the same positions"
    folder.position = end
    assert folder.step() == one[3:] + two
    (folder.inbox / "a.parquet").unlink()  # what is out may go
    folder.open()
    assert folder.step() == []
    assert folder.step() == []
    assert folder.put("a.parquet", 1, when=9)
    assert folder.step() == [], "no name is read twice"


def test_a_log_that_a_crash_has_cut_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    one = folder.put("a.parquet", 5, when=1)
    assert folder.step() == one
    two = folder.put("b.parquet", 5, when=2)
    log = folder.own / "files.jsonl"
    with open(log, "ab") as content:
        content.write(b'[1, "/some/wh')
    folder.open()
    assert folder.step() == two
    folder.open()
    assert folder.step() == []


def test_a_log_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.put("a.parquet", 5, when=1)
    folder.step()
    (folder.own / "files.jsonl").unlink()
    folder.open()
    with pytest.raises(SourceError, match="has only 0 rows, but 5 are out"):
        folder.step()


def test_a_log_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.own.mkdir()
    (folder.own / "files.jsonl").write_text('[7, "a.parquet", "parquet", 1, []]\n')
    with pytest.raises(SourceError, match=r"cannot read line 1 of `.*`: version 7, expected 1"):
        folder.open()


def test_hidden_and_other_files_are_not_seen(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for name in (".a.parquet", "_a.parquet", "a.parquet.tmp", "notes.txt", "a.crc"):
        (folder.inbox / name).write_text("not yet")
    (folder.inbox / "inside").mkdir()
    # Folders inside the folder are not looked into; Spark gives them such names.
    (folder.inbox / "spark.parquet").mkdir()
    (folder.inbox / "loop.parquet").symlink_to("loop.parquet")
    (folder.inbox / "nowhere.parquet").symlink_to("gone.parquet")
    assert folder.step() == []
    folder.clock.now += 100
    assert folder.step() == []
    assert folder.put("z.parquet", 2, when=1) == folder.step()


def test_a_file_that_is_not_complete_is_waited_for_and_so_are_those_behind_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    one = folder.put("a.parquet", 5, when=1)
    two = folder.put("b.parquet", 5, when=2)
    path, content = folder.inbox / "a.parquet", (folder.inbox / "a.parquet").read_bytes()
    for end in (0, 10, len(content) - 1):
        path.write_bytes(content[:end])
        os.utime(path, (1, 1))
        folder.clock.now += 20  # not stuck, since it grows
        assert folder.step() == []
    path.write_bytes(content)
    os.utime(path, (1, 1))
    assert folder.step() == one + two


def test_a_file_that_stays_incomplete_is_told_and_then_all_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    one = folder.put("a.parquet", 5, when=1)
    (folder.inbox / "b.parquet").write_bytes(b"PAR1 and no more")
    two = folder.put("c.parquet", 2, when=2**31)
    assert folder.step() == one
    folder.clock.now += 31
    with pytest.raises(SourceError, match=r"cannot read `.*b\.parquet` as Parquet.*has not changed") as caught:
        folder.step()
    assert "rename it when it is complete" in (caught.value.hint or "")
    (folder.inbox / "b.parquet").unlink()
    folder.open()
    assert folder.step() == two


def test_a_file_of_other_columns_is_told_and_what_came_before_it_is_not_lost(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    one = folder.put("a.parquet", 5, when=1)
    other = folder.inbox / "b.parquet"
    pq.write_table(pa.table({"ts": pa.array([1], MICROS), "n": ["one"]}), other)
    with pytest.raises(SourceError, match=r"column `n` of `.*b\.parquet` is of type `string`, but of type `int64`"):
        folder.step()
    pq.write_table(pa.table({"ts": pa.array([1], MICROS), "m": [1]}), other)
    with pytest.raises(SourceError, match=r"`.*b\.parquet` has no column `n`"):
        folder.step()
    pq.write_table(pa.table({"more": [1], "n": [77], "ts": pa.array([1], MICROS)}), other)
    folder.open()
    assert folder.step() == [*one, 77], "further columns and another order do no harm"


def test_lines_count_as_complete_when_they_have_not_grown_for_a_second(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv")
    path = folder.inbox / "a.csv"
    path.write_text("ts,n\n1970-01-01,1\n1970-0")
    assert folder.step() == []
    path.write_text("ts,n\n1970-01-01,1\n1970-01-02,2\n")
    assert folder.step() == []
    assert folder.step() == [1, 2]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_an_empty_file_of_lines_is_one_that_is_begun(tmp_path: Path, kind: str) -> None:
    """It counted as complete after a second: JSON that was written later was never read, CSV had no columns."""
    folder = Folder(tmp_path, kind)
    path, other = folder.inbox / f"a.{kind}", folder.inbox / f"b.{kind}"
    text = {"csv": "ts,n\n1970-01-01,{}\n", "json": '{{"ts": "1970-01-01", "n": {}}}\n'}[kind]
    path.touch()
    other.write_text(text.format(2))
    assert folder.step() == []
    assert folder.step() == [2]
    assert folder.step() == []
    path.write_text(text.format(1))
    assert folder.step() == []
    assert folder.step() == [1]


def test_a_folder_of_many_files_is_taken_in_bit_by_bit(tmp_path: Path) -> None:
    """All were opened before the first result: a minute for 50,000, and again after a stop within it."""
    folder = Folder(tmp_path)
    files = [folder.put(f"{n}.parquet", 4, when=n) for n in range(9)]
    slow = iter(range(100))
    folder.feed._now = lambda: 1000 + next(slow) * 0.3
    assert folder.step() == [*files[0], *files[1]]
    assert len(folder.feed._log.files) == 2
    folder.open()
    assert folder.step() == [row for file in files[2:] for row in file]


def test_files_of_lines_that_lie_there_already_are_not_waited_for_one_by_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv")
    for n in range(5):
        (folder.inbox / f"{n}.csv").write_text(f"ts,n\n1970-01-01,{n}\n")
    assert folder.step() == []
    assert folder.step() == list(range(5))


@pytest.mark.parametrize("line", ["1970-01-01,one", "yesterday,1", "1970-01-01"])
def test_a_line_that_does_not_fit_is_told_before_it_counts(tmp_path: Path, line: str) -> None:
    folder = Folder(tmp_path, "csv")
    path = folder.inbox / "a.csv"
    path.write_text(f"ts,n\n1970-01-01,1\n{line}\n")
    folder.step()
    with pytest.raises(SourceError, match=r"cannot read `.*a\.csv` as CSV"):
        folder.step()
    path.write_text("ts,n\n1970-01-01,1\n1970-01-01,11111\n")
    folder.step()
    assert folder.step() == [1, 11111]


def test_nanoseconds_are_refused_before_they_count(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for nanos, fits in ((1_001, False), (1_000, True)):
        table = pa.table({"ts": pa.array([nanos], pa.int64()).cast(pa.timestamp("ns", "UTC")), "n": [5]})
        pq.write_table(table, folder.inbox / "a.parquet")
        if fits:
            assert folder.step() == [5]
        else:
            with pytest.raises(
                SourceError, match=r"the column `ts` of `.*a\.parquet` does not fit into microseconds"
            ):
                folder.step()


def test_a_vanished_folder_is_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.inbox.rename(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match=r"no folder `.*inbox`"):
        folder.step()
    (tmp_path / "elsewhere").rename(folder.inbox)
    assert folder.step() == []


def test_a_file_that_goes_between_two_looks_is_simply_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path)
    folder.put("a.parquet", 5, when=1)
    real: Callable[..., object] = os.scandir

    class Scan:
        def __init__(self, path: str) -> None:
            self.entries = real(path)

        def __enter__(self) -> list[os.DirEntry[str]]:
            found = list(self.entries)  # type: ignore[call-overload]
            (folder.inbox / "a.parquet").unlink()
            return found

        def __exit__(self, *error: object) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Scan)
        assert folder.step() == []
    assert folder.step() == []
