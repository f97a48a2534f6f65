"""A Kafka topic: tasks read their offsets of its partitions themselves, through librdkafka; no group, no commit.

What has been read is known from positions alone. A partition takes part from the first position that names it: so
where it begins is decided once, whatever the broker has thrown away or got when a crash makes it be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from workbench.errors import SourceError
from workbench.feeds.consuming import Messages, client, consume
from workbench.feeds.feed import Position, Tally, task_count
from workbench.feeds.payloads import Payloads
from workbench.feeds.times import MICROS

#: What a message has beside its payload. The key is text; the timestamp is NULL where the broker keeps none.
COLUMNS = pa.schema(
    [
        ("kafka_key", pa.string()),
        ("kafka_partition", pa.int32()),
        ("kafka_offset", pa.int64()),
        ("kafka_timestamp", MICROS),
    ]
)

#: Seconds between two questions to the brokers for the ends of partitions, and for new partitions.
_ASK = 0.1
_REFRESH = 30.0
#: Seconds that one question may take, and for which brokers may be out of reach before that is an error.
_ANSWER = 5.0
_PATIENCE = 60.0


@dataclass(frozen=True)
class KafkaOptions:
    """A topic of the brokers at ``servers``, whose messages are JSON objects with the fields of ``schema``.

    ``begin`` says where partitions begin, by number; others begin with the first message there is. ``config`` are
    settings of librdkafka, such as those of security.
    """

    replayable: ClassVar[bool] = True

    servers: str
    topic: str
    schema: pa.Schema
    payloads: Payloads = field(default_factory=Payloads)
    begin: tuple[tuple[int, int], ...] = ()
    config: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    max_rows: int = 500_000
    tasks: int | None = None

    def __str__(self) -> str:
        return f"the topic `{self.topic}` of `{self.servers}`"

    def open(self, time: str, folder: Path, now: Callable[[], float]) -> KafkaFeed:
        """The feed; it writes nothing. The brokers are asked when it is."""
        return KafkaFeed(self, now)

    def settings(self) -> tuple[tuple[str, str], ...]:
        """Those of librdkafka."""
        return (("bootstrap.servers", self.servers), *self.config)


def ends_of(options: KafkaOptions, timeout: float = 10.0) -> dict[int, tuple[int, int]]:
    """The first offset that is there and the next one to come, by partition.

    Raises SourceError where no broker answers, or there is no such topic.
    """
    kafka = client()
    consumer = kafka.Consumer(_asking(options))
    try:
        return _ends(consumer, options, _partitions(consumer, options, timeout), timeout)
    except kafka.KafkaException as error:
        raise _out_of_reach(options, error) from None
    finally:
        consumer.close()


class KafkaFeed:
    """A topic; a position is ``offsets``, the next offset of each partition by its number, as text.

    Partitions get shares of a micro-batch by how far they are behind. Never ends by itself.
    """

    def __init__(self, options: KafkaOptions, now: Callable[[], float]) -> None:
        self._options = options
        self._now = now
        self._ends: dict[int, tuple[int, int]] = {}
        self._asked: float | None = None
        self._listed: tuple[float, list[int]] | None = None
        self._silent_since: float | None = None
        self._consumer: Any = None

    def initial(self) -> Position:
        """Before the first message, wherever that is: no partition takes part yet."""
        return {"offsets": {}}

    def advance(self, position: Position, limit: int | None) -> tuple[Position, bool]:
        """The messages that are there. The first step only notes where partitions begin."""
        self._ask()
        offsets: Mapping[str, int] = position["offsets"]
        behind = {}
        for partition, (first, end) in self._ends.items():
            if str(partition) in offsets:
                behind[partition] = self._behind(partition, offsets[str(partition)], first, end)
        total = sum(behind.values())
        share = 1.0 if limit is None or total <= limit else limit / total
        ahead = dict(offsets)
        for partition, rows in behind.items():
            ahead[str(partition)] += rows if share == 1.0 else min(rows, max(1, int(rows * share))) if rows else 0
        begin = dict(self._options.begin)
        for partition, (first, end) in self._ends.items():
            if str(partition) not in offsets:
                ahead[str(partition)] = min(max(first, begin.get(partition, first)), end)
        return {"offsets": ahead}, False

    def pieces(self, start: Position, end: Position, tasks: int) -> list[list[KafkaPiece]]:
        """The offsets between two positions, cut where tasks have enough; within a task by partition."""
        ranges = [
            (int(partition), start["offsets"][partition], until)
            for partition, until in end["offsets"].items()
            if start["offsets"].get(partition, until) < until
        ]
        total = sum(until - first for _, first, until in ranges)
        size = -(-total // task_count(total, tasks)) or 1
        runs: list[list[KafkaPiece]] = [[]]
        room = size
        for partition, first, until in ranges:
            while first < until:
                if not room:
                    runs.append([])
                    room = size
                rows = min(room, until - first)
                runs[-1].append(KafkaPiece(self._options, partition, first, first + rows))
                first, room = first + rows, room - rows
        return runs

    def commit(self, position: Position) -> None:
        """Nothing can go: the topic keeps its messages for as long as it is told to."""

    def close(self) -> None:
        """Leave the brokers."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _behind(self, partition: int, offset: int, first: int, end: int) -> int:
        where = f"partition {partition} of {self._options}"
        if offset < first:
            raise SourceError(
                f"the messages {offset} to {first - 1} of {where} are gone before they were read",
                hint="let the topic keep messages for longer; to go on without them, start with a new checkpoint",
            )
        if offset > end:
            raise SourceError(
                f"{where} ends at {end}, but {offset} of its offsets are read: it was made anew, or cut",
                hint="start with a new checkpoint",
            )
        return end - offset

    def _ask(self) -> None:
        """Ask the brokers how far they are, not all the time; they may be out of reach for a while."""
        now = self._now()
        if self._asked is not None and now - self._asked < _ASK:
            return
        self._asked = now
        kafka = client()
        if self._consumer is None:
            self._consumer = kafka.Consumer(_asking(self._options))
        try:
            if self._listed is None or now - self._listed[0] > _REFRESH:
                self._listed = now, _partitions(self._consumer, self._options, _ANSWER)
            self._ends = _ends(self._consumer, self._options, self._listed[1], _ANSWER)
            self._silent_since = None
        except kafka.KafkaException as error:
            if self._silent_since is None:
                self._silent_since = now
            if now - self._silent_since >= _PATIENCE:
                raise _out_of_reach(self._options, error) from None


@dataclass(frozen=True)
class KafkaPiece:
    """The offsets ``[start, end)`` of one partition; not all of them need have messages."""

    options: KafkaOptions
    partition: int
    start: int
    end: int

    def read(self, schema: pa.Schema, tally: Tally) -> Iterator[pa.RecordBatch]:
        """The columns of ``schema`` of these messages; see :class:`workbench.feeds.feed.Piece`."""
        options = self.options
        wanted = [field for field in schema if field.name not in COLUMNS.names] or [options.schema.field(0)]
        for messages in consume(options.settings(), options.topic, self.partition, self.start, self.end):
            name = partial(self._name, messages)
            table, kept = options.payloads.decode(messages.values, pa.schema(wanted), name, tally)
            columns = [
                self._beside(messages, field.name, kept) if field.name in COLUMNS.names else table.column(field.name)
                for field in schema
            ]
            yield from pa.table(columns, schema=schema).combine_chunks().to_batches()

    def _name(self, messages: Messages, place: int) -> str:
        return f"the message at offset {messages.offsets[place]} of partition {self.partition} of {self.options}"

    def _beside(self, messages: Messages, name: str, kept: Any) -> Any:
        """A column of :data:`COLUMNS`, of the messages that could be decoded."""
        if name == "kafka_partition":
            return pa.array([self.partition] * len(kept), pa.int32())
        if name == "kafka_offset":
            return pa.array(messages.offsets, pa.int64()).take(pa.array(kept))
        if name == "kafka_timestamp":
            return pa.array(messages.millis, pa.timestamp("ms")).take(pa.array(kept)).cast(MICROS)
        keys = [None if key is None else key.decode("utf-8", "backslashreplace") for key in messages.keys]
        return pa.array(keys, pa.string()).take(pa.array(kept))


def _asking(options: KafkaOptions) -> dict[str, str]:
    return dict(options.settings()) | {"group.id": "winquery", "enable.auto.commit": "false", "log_level": "2"}


def _partitions(consumer: Any, options: KafkaOptions, timeout: float) -> list[int]:
    """The numbers of the partitions of the topic."""
    found = consumer.list_topics(options.topic, timeout=timeout).topics[options.topic]
    if found.error is not None or not found.partitions:
        raise SourceError(f"no topic `{options.topic}` at `{options.servers}`: {found.error}")
    return sorted(found.partitions)


def _ends(consumer: Any, options: KafkaOptions, partitions: list[int], timeout: float) -> dict[int, tuple[int, int]]:
    kafka = client()
    return {
        partition: consumer.get_watermark_offsets(kafka.TopicPartition(options.topic, partition), timeout=timeout)
        for partition in partitions
    }


def _out_of_reach(options: KafkaOptions, error: Exception) -> SourceError:
    return SourceError(
        f"{options} cannot be read: {error.args[0].str() if error.args else error}",
        hint="check the address and the settings in `config`; started again, a query goes on where it was",
    )
