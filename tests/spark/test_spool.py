"""Large payloads as files: what is sent is what arrives, as often as it is asked for, and nothing stays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from workbench.spark.spool import SMALL, Spool

LARGE = os.urandom(SMALL)


def test_a_large_payload_goes_by_way_of_a_file(tmp_path: Path) -> None:
    spool = Spool.beside(tmp_path, local=True)
    sent = [spool.put(payload) for payload in (LARGE, b"small", LARGE[:-1])]
    assert (len(sent[0]) < 100, sent[1], sent[2]) == (True, b"small", LARGE[:-1])
    for _ in range(2):  # a task that was killed runs again, from the same shuffle
        assert [spool.get(each) for each in sent] == [LARGE, b"small", LARGE[:-1]]
    spool.sweep()
    assert list((tmp_path / "spool").iterdir()) == []


def test_the_horizon_is_that_of_one_micro_batch(tmp_path: Path) -> None:
    spool = Spool.beside(tmp_path, local=True)
    spool.note(3, -5_000_000)
    assert [spool.horizon(batch) for batch in (2, 3, 4)] == [None, -5_000_000, None]
    spool.sweep()
    assert spool.horizon(3) is None


def test_a_cluster_has_no_folder_in_common(tmp_path: Path) -> None:
    spool = Spool.beside(tmp_path, local=False)
    spool.note(0, 7)
    assert spool.horizon(0) is None
    assert spool.get(spool.put(LARGE)) == spool.put(LARGE) == LARGE
    spool.sweep()
    assert list(tmp_path.iterdir()) == []


def test_where_the_disk_is_full_spark_carries_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool.beside(tmp_path, local=True)

    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: Any) -> None: ...

        def write(self, _: bytes) -> None:
            raise OSError(28, "No space left on device")

    def full(handle: int, mode: str) -> Full:
        os.close(handle)
        return Full()

    monkeypatch.setattr("builtins.open", full)
    assert spool.put(LARGE) == LARGE
    monkeypatch.undo()
    assert list((tmp_path / "spool").iterdir()) == []
