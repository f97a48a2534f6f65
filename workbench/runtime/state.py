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

from workbench.errors import EngineError
from workbench.runtime import wire
from workbench.runtime.branches.base import Branch


@dataclass(frozen=True)
class StateChanges:
    """What to write after a micro-batch: the head, blocks by id, and the ids of blocks that are gone.

    ``afresh``: all blocks that were written before are gone.
    """

    meta: bytes
    put: dict[int, bytes]
    remove: tuple[int, ...]
    afresh: bool = False


@dataclass
class BucketState:
    """Everything that a bucket remembers. Times in microseconds; None before the first row.

    ``plan`` is the version of the plan that the branches belong to. ``since`` holds when partials of windows began,
    by (assembly, partial), where that was in the middle of the stream. ``afresh``: nothing of it is written yet.
    """

    branches: Sequence[Branch]
    plan: int
    watermark: int | None = None
    max_event: int | None = None
    token: str = field(default="")
    since: dict[tuple[int, int], int] = field(default_factory=dict)
    afresh: bool = False

    def snapshot(self) -> StateChanges:
        """What has changed since the last snapshot or restore; gives the state a new token."""
        self.token = secrets.token_hex(8)
        put: dict[int, bytes] = {}
        remove: list[int] = []
        for place, branch in enumerate(self.branches):
            content, gone = branch.changes()
            for number, block in content.items():
                put[self._id(place, number)] = _pack(place, number, False, block)
            keys, forgotten = branch.table.changes()
            for number, block in keys.items():
                put[self._id(place, number) + 1] = _pack(place, number, True, block)
            remove += [self._id(place, number) for number in gone]
            remove += [self._id(place, number) + 1 for number in forgotten]
        header = {
            "token": self.token,
            "plan": self.plan,
            "watermark": self.watermark,
            "max_event": self.max_event,
            "since": [[*place, time] for place, time in self.since.items()],
        }
        afresh, self.afresh = self.afresh, False
        return StateChanges(wire.pack(wire.Kind.STATE_META, header), put, tuple(remove), afresh)

    def _id(self, place: int, number: int) -> int:
        return 2 * (number * len(self.branches) + place)

    def restore(self, meta: bytes, blocks: Iterable[bytes]) -> None:
        """Bring a fresh state to what was written. Blocks may come in any order.

        Raises EngineError where another version of the plan has written it.
        """
        header, _ = wire.unpack(wire.Kind.STATE_META, meta)
        if header["plan"] != self.plan:
            raise EngineError(
                f"the state is of version {header['plan']} of the plan, this is version {self.plan}",
                hint="load it with the plan that wrote it, then change the plan",
            )
        self.since = {(assembly, partial): time for assembly, partial, time in header["since"]}
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
