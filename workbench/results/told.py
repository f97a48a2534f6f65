"""What somebody has been told of the results of a query, so that none is taken back that never came there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from workbench.results.keys import key_values
from workbench.results.shapes import Schema
from workbench.time import LIMIT

#: What identifies a result: level, keys, and number or start.
Name = tuple[Any, ...]


class Told:
    """The results that are out and may still be taken back, by what identifies them.

    ``statuses`` are those of results that are told. Windows that ended ``lateness`` before another one that is final
    are settled, so they are forgotten: where there is any, ends are times.
    """

    def __init__(self, schema: Schema, statuses: Collection[str], lateness: int) -> None:
        which = "window_number" if schema.numbered else "window_start"
        self._identity = ["level", *(name for name, _ in schema.keys), which]
        self._statuses = statuses
        self._lateness = lateness
        #: When they end, those that are not final at LIMIT.
        self._out: dict[Name, int] = {}
        self._passed = -LIMIT
        #: The latest micro-batch, and what it has changed as it was before.
        self._batch = -1
        self._before: dict[Name, int | None] = {}

    def fitting(self, rows: pa.Table, batch: int) -> pa.Table:
        """The rows of a micro-batch that are to be told: an ``absent`` one only where the result is out.

        The same micro-batch may come again, with the same rows.
        """
        if batch == self._batch:
            for name, end in self._before.items():
                self._set(name, end)
        else:
            self._out = {name: end for name, end in self._out.items() if end + self._lateness > self._passed}
        self._batch, self._before = batch, {}
        columns = [key_values(rows[name].combine_chunks()) for name in self._identity]
        ends = rows["window_end"].cast(pa.int64()).to_pylist() if self._lateness else [-LIMIT] * len(rows)
        kept = []
        for name, status, end in zip(zip(*columns, strict=True), rows["status"].to_pylist(), ends, strict=True):
            before, told = self._out.get(name), status in self._statuses
            self._before.setdefault(name, before)
            kept.append(told or (status == "absent" and before is not None))
            if status == "absent":
                self._set(name, None)
            elif told or before is not None:
                final = status != "provisional"
                self._set(name, end if final else LIMIT)
                self._passed = max(self._passed, end) if final else self._passed
        return rows.filter(pa.array(kept, pa.bool_()))

    def _set(self, name: Name, end: int | None) -> None:
        if end is None:
            self._out.pop(name, None)
        else:
            self._out[name] = end
