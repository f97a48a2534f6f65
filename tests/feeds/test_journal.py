"""The journal of messages: what was appended is there after any crash, and what was not counted is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import SourceError
from workbench.feeds.journal import Journal, Record, unpack


def records(first: int, count: int) -> list[Record]:
    return [Record(-n, f"room/{n % 3}", b"x" * (n % 40)) for n in range(first, first + count)]


def test_what_was_appended_is_there_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "own")
    assert journal.reach((0, 0), None) == (0, 0)
    assert journal.between((0, 0), (0, 0)) == b""
    for first in range(0, 3_000, 1_000):
        journal.append(records(first, 1_000))
    for each in (journal, Journal(tmp_path / "own")):
        assert unpack(each.between((0, 0), each.end)) == records(0, 3_000)
        place, found = (0, 0), []
        while (following := each.reach(place, 600)) != place:
            group = unpack(each.between(place, following))
            assert 0 < len(group) <= 600
            found += group
            place = following
        assert found == records(0, 3_000)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> pytest.TempPathFactory:
    return tmp_path_factory


@given(st.data())
def test_a_record_that_a_crash_has_cut_never_counted(folders: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = folders.mktemp("journal")
    journal = Journal(folder)
    journal.append(records(0, 5))
    whole = journal.end
    journal.append(records(5, 1))
    path = folder / "messages-0.log"
    content = path.read_bytes()
    cut = data.draw(st.integers(whole[1], len(content) - 1))
    torn = content[:cut] + bytes(data.draw(st.integers(0, len(content) - cut)))  # a disk may show zeros
    path.write_bytes(torn)
    again = Journal(folder)
    assert again.end == whole or torn == content
    again.append(records(9, 1))
    assert unpack(again.between((0, 0), again.end))[-1:] == records(9, 1)
    assert unpack(Journal(folder).between((0, 0), again.end))[:5] == records(0, 5)


def test_segments_go_when_they_are_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.feeds.journal._SEGMENT", 1_000)
    journal = Journal(tmp_path)
    for first in range(0, 500, 50):
        journal.append(records(first, 50))
    middle = journal.reach((0, 0), 250)
    assert middle[0] > 1
    journal.forget(middle)
    assert min(int(path.stem.split("-")[1]) for path in tmp_path.glob("*.log")) == middle[0]
    for each in (journal, Journal(tmp_path)):
        assert unpack(each.between(middle, each.reach(middle, None))) == records(250, 250)
    with pytest.raises(SourceError, match="does not hold what follows the checkpoint"):
        journal.reach((0, 0), None)


def test_a_lost_or_broken_journal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.feeds.journal._SEGMENT", 1_000)
    with pytest.raises(SourceError, match="does not hold what follows the checkpoint"):
        Journal(tmp_path).reach((0, 10), None)
    journal = Journal(tmp_path)
    for first in range(0, 500, 50):
        journal.append(records(first, 50))
    path = tmp_path / "messages-0.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(SourceError, match=r"`.*messages-0\.log` is broken at byte \d+"):
        Journal(tmp_path)
