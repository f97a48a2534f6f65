"""Messages in JSON: what is decoded, what is poisoned, and that each poisoned one is found among good ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import SourceError
from workbench.feeds import Tally
from workbench.feeds.payloads import Payloads
from workbench.feeds.times import MICROS

SCHEMA = pa.schema([("ts", MICROS), ("key", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
GOOD = b'{"ts": "2024-01-01T00:00:00Z", "key": "a", "n": 1, "x": 2}'
POISON = [
    None, b"", b"  ", b"5", b"[1]", b'"text"', b'{"n": "1"}', b'{"n": 1.5}', b'{"key": 5}', b'{"key": "\xff"}',
    b'{"n": 1}{"n": 2}', b'{"n": 1', b'"n": 1}', b'{"a": {}', b'{"ts": "yesterday"}', b'{"n": 1, "n": 2}',
    b'{"ts": "2024-01-01T00:00:00.0000001"}', b'{"n": 9223372036854775808}', b'{"n": true}',
]  # fmt: skip


def name(place: int) -> str:
    return f"message {place}"


def test_objects_become_columns() -> None:
    values = [
        GOOD,
        b'{"n": 2, "more": {"n": [3]}}',
        b'{\n "ts": null,\n "x": 1e3\n}',
        b'{"ts": "2024-01-01 01:00:00+01:00"}',
    ]
    table, kept = Payloads().decode(values, SCHEMA, name, Tally())
    first = datetime(2024, 1, 1, tzinfo=UTC)
    assert table.schema == SCHEMA
    assert kept.tolist() == [0, 1, 2, 3]
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (first, "a", 1, 2.0), (None, None, 2, None), (None, None, None, 1000.0), (first, None, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6)])
def test_times_may_be_numbers(unit: str, scale: int) -> None:
    values = [b'{"ts": %d}' % (-3 * scale), b'{"ts": null}']
    table, _ = Payloads(epoch=unit).decode(values, SCHEMA, name, Tally())  # type: ignore[arg-type]
    assert table.column("ts").cast(pa.int64()).to_pylist() == [-3_000_000, None]


@pytest.mark.parametrize("value", POISON)
def test_a_poisoned_message_is_named(value: bytes | None) -> None:
    with pytest.raises(SourceError, match="message 2 cannot be decoded: ") as caught:
        Payloads().decode([GOOD, GOOD, value, GOOD], SCHEMA, name, Tally())
    assert "poisoned='drop'" in (caught.value.hint or "")


@given(st.lists(st.one_of(st.none(), st.sampled_from(range(len(POISON)))), max_size=40))
def test_only_poisoned_messages_are_dropped(places: list[int | None]) -> None:
    """Whatever neighbours they have: halves of one object in two messages are no row, either."""
    values = [b'{"n": %d}' % n if place is None else POISON[place] for n, place in enumerate(places)]
    good = [n for n, place in enumerate(places) if place is None]
    tally = Tally()
    table, kept = Payloads("drop").decode(values, SCHEMA, name, tally)
    assert kept.tolist() == good
    assert table.column("n").to_pylist() == good
    assert tally.dropped == len(places) - len(good)
