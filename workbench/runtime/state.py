"""The state of one bucket, and how it is kept: a small head and blocks of slices.

What is written after a micro-batch is proportional to the slices that changed, not to the windows: slices are
grouped by start into blocks of ``BLOCK`` shortest slices, and only blocks with a changed slice are written again.
Keys are kept in blocks of their own, by number, and only grow.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.plan import SharedPlan
from workbench.runtime import wire
from workbench.runtime.slices import SliceStore

#: Shortest slices to a block: small enough that a change writes little, large enough that blocks are few.
BLOCK = 64
#: Keys to a block of keys.
KEY_BLOCK = 1024


@dataclass(frozen=True)
class StateChanges:
    """What to write after a micro-batch: the head, blocks by id, and the ids of blocks that are gone."""

    meta: bytes
    put: dict[int, bytes]
    remove: tuple[int, ...]


@dataclass
class BucketState:
    """Everything that a bucket remembers. Times in microseconds; None before the first row."""

    stores: list[SliceStore]
    span: int
    watermark: int | None = None
    max_event: int | None = None
    token: str = ""
    blocks: set[int] = field(default_factory=set)
    _dirty: set[int] = field(default_factory=set)
    _written_keys: list[int] = field(default_factory=list)

    @classmethod
    def fresh(cls, plan: SharedPlan) -> BucketState:
        """The state before the first row."""
        stores = [
            SliceStore([partial.monoid for partial in fold.partials], [named.expression.type for named in fold.keys])
            for fold in plan.folds
        ]
        span = BLOCK * min(edges.period for edges in plan.edges)
        return cls(stores, span, _written_keys=[0] * len(stores))

    def touch(self, fold: int, starts: Any) -> None:
        """Note that slices of a fold have changed."""
        self._dirty |= {self._id(fold, int(number)) for number in np.unique(starts // self.span)}

    def _id(self, fold: int, number: int) -> int:
        """Block ids: even for slices, odd for keys."""
        return 2 * (number * len(self.stores) + fold)

    def _key_id(self, fold: int, number: int) -> int:
        return 2 * (number * len(self.stores) + fold) + 1

    def snapshot(self) -> StateChanges:
        """What has changed since the last snapshot or restore; gives the state a new token."""
        self.token = secrets.token_hex(8)
        put, remove = {}, []
        for block in self._dirty:
            content = self._block(block)
            if content is not None:
                put[block] = content
        for block in self.blocks - put.keys():
            fold, number = self._place(block)
            kept = self.stores[fold].starts
            if not len(kept) or (number + 1) * self.span <= kept[0]:
                remove.append(block)
        self.blocks = (self.blocks | put.keys()) - set(remove)
        self._dirty.clear()
        put |= self._key_blocks()
        header = {"token": self.token, "watermark": self.watermark, "max_event": self.max_event}
        return StateChanges(wire.pack(wire.Kind.STATE_META, header), put, tuple(remove))

    def restore(self, meta: bytes, blocks: Iterable[bytes]) -> None:
        """Bring a fresh state to what was written. Blocks may come in any order."""
        header, _ = wire.unpack(wire.Kind.STATE_META, meta)
        self.token, self.watermark, self.max_event = header["token"], header["watermark"], header["max_event"]
        found = [wire.unpack(wire.Kind.STATE_BLOCK, block) for block in blocks]
        for head, (table,) in sorted(
            (entry for entry in found if entry[0]["keys"]), key=lambda entry: int(entry[0]["first"])
        ):
            store = self.stores[head["fold"]]
            store.number_keys(table)
            self._written_keys[head["fold"]] = store.keys
        for head, (table,) in found:
            if not head["keys"]:
                store = self.stores[head["fold"]]
                starts, keys, *fields = table.columns
                store.merge(starts.to_numpy(), keys.to_numpy(), store.from_arrow(fields))
                self.blocks.add(head["block"])

    def _place(self, block: int) -> tuple[int, int]:
        number, fold = divmod(block // 2, len(self.stores))
        return fold, number

    def _block(self, block: int) -> bytes | None:
        fold, number = self._place(block)
        store = self.stores[fold]
        starts, keys, *fields = store.entries(number * self.span, (number + 1) * self.span)
        if not len(starts):
            return None
        columns = [pa.array(starts), pa.array(keys), *store.to_arrow(fields)]
        table = pa.record_batch(columns, names=[str(i) for i in range(len(columns))])
        return wire.pack(wire.Kind.STATE_BLOCK, {"keys": False, "fold": fold, "block": block}, [table])

    def _key_blocks(self) -> dict[int, bytes]:
        """Blocks of keys with a key that is not written yet."""
        put = {}
        for fold, store in enumerate(self.stores):
            written, self._written_keys[fold] = self._written_keys[fold], store.keys
            if written == store.keys:
                continue
            for number in range(written // KEY_BLOCK, (store.keys - 1) // KEY_BLOCK + 1):
                first = number * KEY_BLOCK
                arrays = [array[:KEY_BLOCK] for array in store.key_arrays(first)]
                arrays = arrays or [pa.array([0] * min(KEY_BLOCK, store.keys - first), pa.int8())]
                table = pa.record_batch(arrays, names=[str(i) for i in range(len(arrays))])
                header = {"keys": True, "fold": fold, "first": first}
                put[self._key_id(fold, number)] = wire.pack(wire.Kind.STATE_BLOCK, header, [table])
        return put
