"""Messages with a JSON object each, decoded in columns; a *poisoned* one, that cannot be decoded, is found and named.

All messages of a batch are parsed in one call. Only if that fails, the batch is halved until the poisoned messages
are alone, so a good stream pays nothing for it: the same parser decides either way. What is not read cannot poison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from workbench.errors import SourceError
from workbench.feeds.feed import Tally
from workbench.feeds.lines import parse_json
from workbench.feeds.times import MICROS, from_text, is_text

Poisoned: TypeAlias = Literal["error", "drop"]
Epoch: TypeAlias = Literal["s", "ms", "us"]


@dataclass(frozen=True)
class Payloads:
    """How messages are decoded: ``epoch`` is the unit of times that are numbers since 1970, None if they are text.

    ``poisoned`` says what happens to a message that cannot be decoded: ``error`` raises, ``drop`` counts it and
    leaves it out.
    """

    poisoned: Poisoned = "error"
    epoch: Epoch | None = None

    def decode(
        self, values: Sequence[bytes | None], wanted: pa.Schema, name: Callable[[int], str], tally: Tally
    ) -> tuple[pa.Table, Any]:
        """The columns of ``wanted`` of the messages that can be decoded, and the places of these, in order.

        ``name(place)`` says which message it is, for the error. Raises SourceError.
        """
        found: list[tuple[pa.Table, int, int]] = []
        faults: list[tuple[int, str]] = []
        self._decode(values, wanted, 0, len(values), found, faults)
        if faults and self.poisoned == "error":
            place, reason = faults[0]
            raise SourceError(
                f"{name(place)} cannot be decoded: {reason}",
                hint="expected a JSON object of the declared schema; `poisoned='drop'` leaves such messages out",
            )
        tally.dropped += len(faults)
        kept = [np.arange(start, end) for _, start, end in found]
        table = pa.concat_tables(part for part, _, _ in found) if found else wanted.empty_table()
        return table, np.concatenate(kept) if kept else np.empty(0, np.int64)

    def _decode(
        self,
        values: Sequence[bytes | None],
        wanted: pa.Schema,
        start: int,
        end: int,
        found: list[tuple[pa.Table, int, int]],
        faults: list[tuple[int, str]],
    ) -> None:
        """Decode ``values[start:end]``, by halves where that fails. Cost: logarithmic in the size for each fault."""
        try:
            found.append((self._parse(values[start:end], wanted), start, end))
        except (pa.ArrowException, ValueError) as error:
            if end - start == 1:
                faults.append((start, str(error)))
                return
            middle = (start + end) // 2
            self._decode(values, wanted, start, middle, found, faults)
            self._decode(values, wanted, middle, end, found, faults)

    def _parse(self, values: Sequence[bytes | None], wanted: pa.Schema) -> pa.Table:
        """All of some messages. Raises ArrowInvalid or ValueError where one of them is poisoned."""
        lines = []
        for value in values:
            line = b"" if value is None else value.strip()
            if not line:
                raise ValueError("it is empty")
            # Each begins and ends as an object: so no two of them can be taken for one, nor one for none, and equal
            # numbers of messages and rows mean that each is a row.
            if line[:1] != b"{" or line[-1:] != b"}":
                raise ValueError("it is no JSON object")
            lines.append(line.replace(b"\n", b" "))
        raw = pa.schema([(field.name, self._raw(field.type)) for field in wanted])
        table = parse_json(b"\n".join(lines), raw)
        if len(table) != len(lines):
            raise ValueError("it is more than one JSON object")
        return pa.table([self._column(table.column(field.name), field) for field in wanted], schema=wanted)

    def _raw(self, kind: pa.DataType) -> pa.DataType:
        """How a field of a type stands in a message."""
        if self.epoch and pa.types.is_timestamp(kind):
            return pa.int64()
        return pa.string() if is_text(kind) else kind

    def _column(self, column: Any, field: pa.Field) -> Any:
        if self.epoch and pa.types.is_timestamp(field.type):
            return column.cast(pa.timestamp(self.epoch)).cast(MICROS).cast(field.type)
        return from_text(column, field.type) if is_text(field.type) else column
