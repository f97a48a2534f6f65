"""The state of one bucket, and how it is kept: a small head and blocks that belong to branches.

What is written after a micro-batch is what has changed: blocks of slices, of sessions, of kept rows, and of keys.
Blocks are known by one number: ``2 * (number * branches + branch)`` for the content of a branch, one more for its
keys.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from workbench.runtime import wire
from workbench.runtime.branches.base import Branch


@dataclass(frozen=True)
class StateChanges:
    """What to write after a micro-batch: the head, blocks by id, and the ids of blocks that are gone."""

    meta: bytes
    put: dict[int, bytes]
    remove: tuple[int, ...]


@dataclass
class BucketState:
    """Everything that a bucket remembers. Times in microseconds; None before the first row."""

    branches: Sequence[Branch]
    watermark: int | None = None
    max_event: int | None = None
    token: str = field(default="")

    def snapshot(self) -> StateChanges:
        """What has changed since the last snapshot or restore; gives the state a new token."""
        self.token = secrets.token_hex(8)
        put: dict[int, bytes] = {}
        remove: list[int] = []
        for place, branch in enumerate(self.branches):
            content, gone = branch.changes()
            for number, block in content.items():
                put[self._id(place, number)] = _pack(place, number, False, block)
            for number, block in branch.table.changes().items():
                put[self._id(place, number) + 1] = _pack(place, number, True, block)
            remove += [self._id(place, number) for number in gone]
        header = {"token": self.token, "watermark": self.watermark, "max_event": self.max_event}
        return StateChanges(wire.pack(wire.Kind.STATE_META, header), put, tuple(remove))

    def _id(self, place: int, number: int) -> int:
        return 2 * (number * len(self.branches) + place)

    def restore(self, meta: bytes, blocks: Iterable[bytes]) -> None:
        """Bring a fresh state to what was written. Blocks may come in any order."""
        header, _ = wire.unpack(wire.Kind.STATE_META, meta)
        self.token, self.watermark, self.max_event = header["token"], header["watermark"], header["max_event"]
        content: list[dict[int, pa.RecordBatch]] = [{} for _ in self.branches]
        keys: list[dict[int, pa.RecordBatch]] = [{} for _ in self.branches]
        for block in blocks:
            facts, (table,) = wire.unpack(wire.Kind.STATE_BLOCK, block)
            (keys if facts["keys"] else content)[facts["branch"]][facts["number"]] = table
        for branch, own, of_branch in zip(self.branches, keys, content, strict=True):
            branch.table.restore(own)
            branch.restore(of_branch)


def _pack(place: int, number: int, keys: bool, table: pa.RecordBatch) -> bytes:
    return wire.pack(wire.Kind.STATE_BLOCK, {"branch": place, "number": number, "keys": keys}, [table])
