"""Topics of an MQTT broker. A message cannot be asked for again, so a journal keeps it until it counts.

A message is acknowledged when it is in the journal. Up to there it is delivered as MQTT has it for its quality of
service: 0 at most once, 1 and 2 at least once where a process dies between journal and acknowledgement. From there on
it counts exactly once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from workbench.errors import SourceError
from workbench.feeds.feed import Position, Tally
from workbench.feeds.journal import Journal, Place, Record, unpack
from workbench.feeds.payloads import Payloads
from workbench.feeds.receiving import Broker, Receiver
from workbench.feeds.times import MICROS
from workbench.time import format_time

#: What a message has beside its payload: the topic that it was sent to, and when it was received here.
COLUMNS = pa.schema([("mqtt_topic", pa.string()), ("mqtt_received", MICROS)])

#: Seconds for which the broker may be out of reach before that is an error.
_PATIENCE = 60.0


@dataclass(frozen=True)
class MqttOptions:
    """The messages of all topics that ``topic`` stands for, with ``+`` and ``#`` in it: JSON objects of ``schema``.

    ``max_rows`` bounds a micro-batch to some hundreds of messages more or less.
    """

    replayable: ClassVar[bool] = False

    broker: Broker
    topic: str
    schema: pa.Schema
    payloads: Payloads = field(default_factory=Payloads)
    max_rows: int = 500_000
    tasks: int | None = None

    def __str__(self) -> str:
        return f"the topic `{self.topic}` of `{self.broker}`"

    def open(self, time: str, folder: Path, now: Callable[[], float]) -> MqttFeed:
        """The feed; its journal is in ``folder``. It connects when it is asked for rows."""
        return MqttFeed(self, Journal(folder), _identity(folder), now)


class MqttFeed:
    """Messages by way of a journal; a position is ``segment`` and ``byte``, a place in it. Never ends by itself."""

    def __init__(self, options: MqttOptions, journal: Journal, identity: str, now: Callable[[], float]) -> None:
        self._options = options
        self._journal = journal
        self._now = now
        self._receiver = Receiver(options.broker, options.topic, identity, journal)
        self._away_since: float | None = None

    def initial(self) -> Position:
        """Before the first message of the journal."""
        return {"segment": 0, "byte": 0}

    def advance(self, position: Position, limit: int | None) -> tuple[Position, bool]:
        """The messages in the journal. The first step connects to the broker, and does not wait for it."""
        self._receiver.start()
        self._check()
        segment, byte = self._journal.reach(_place(position), limit)
        return {"segment": segment, "byte": byte}, False

    def pieces(self, start: Position, end: Position, tasks: int) -> list[list[MqttPiece]]:
        """The messages between two positions, by value: tasks need not reach the journal."""
        content = self._journal.between(_place(start), _place(end))
        return [[MqttPiece(self._options, content)] if content else []]

    def commit(self, position: Position) -> None:
        """What is before ``position`` may go."""
        self._journal.forget(_place(position))

    def close(self) -> None:
        """Leave the broker, which keeps what comes for as long as it was told to."""
        self._receiver.stop()

    def _check(self) -> None:
        fault = self._receiver.fault
        if fault is not None:
            raise fault
        if self._receiver.connected:
            self._away_since = None
        elif self._away_since is None:
            self._away_since = self._now()
        elif self._now() - self._away_since > _PATIENCE:
            raise SourceError(
                f"`{self._options.broker}` has been out of reach for {_PATIENCE:.0f} s",
                hint="start the query again when it is back: it goes on where it was",
            )


@dataclass(frozen=True)
class MqttPiece:
    """Some messages, as they stand in the journal."""

    options: MqttOptions
    content: bytes

    def read(self, schema: pa.Schema, tally: Tally) -> Iterator[pa.RecordBatch]:
        """The columns of ``schema`` of these messages; see :class:`workbench.feeds.feed.Piece`."""
        records = unpack(self.content)
        wanted = [field for field in schema if field.name not in COLUMNS.names] or [self.options.schema.field(0)]
        values = [record.payload for record in records]
        table, kept = self.options.payloads.decode(values, pa.schema(wanted), partial(_name, records), tally)
        topics = pa.array([records[place].topic for place in kept], pa.string())
        times = pa.array([records[place].received for place in kept], pa.int64()).cast(MICROS)
        beside = {"mqtt_topic": topics, "mqtt_received": times}
        columns = [beside[field.name] if field.name in beside else table.column(field.name) for field in schema]
        yield from pa.table(columns, schema=schema).combine_chunks().to_batches()


def _name(records: list[Record], place: int) -> str:
    record = records[place]
    return f"the message of the topic `{record.topic}` received at {format_time(record.received)}"


def _place(position: Position) -> Place:
    return position["segment"], position["byte"]


def _identity(folder: Path) -> str:
    """The name by which the broker knows this run, and the runs after it on the same checkpoint."""
    path = folder / "client"
    if not path.exists():
        aside = folder / ".client.new"
        aside.write_text(f"winquery-{os.urandom(8).hex()}")
        os.replace(aside, path)
    return path.read_text()
