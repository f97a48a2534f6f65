"""Messages of one partition of a Kafka topic, from one offset to another, through librdkafka.

A consumer costs a connection, so a process keeps those that it used last. It is assigned a partition by hand: it
joins no group, and commits nothing.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import SourceError

#: Messages of one call at most.
_ROOM = 10_000
#: Seconds without a message after which a range is given up.
_PATIENCE = 60.0
_WAIT = 0.5
_KEPT = 8
_OWN = {
    "group.id": "winquery",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    # What is fetched ahead of a task stays in the process until the next one.
    "queued.max.messages.kbytes": "16384",
    "log_level": "2",
}

#: The consumers of this process, newest last, with the offset that each goes on with.
_consumers: OrderedDict[tuple[object, ...], tuple[Any, int | None]] = OrderedDict()


@dataclass
class Messages:
    """Messages in order, column by column; ``millis`` are times in milliseconds since 1970, None without one."""

    values: list[bytes | None] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    millis: list[int | None] = field(default_factory=list)

    def add(self, message: Any) -> None:
        kind, millis = message.timestamp()
        self.values.append(message.value())
        self.keys.append(message.key())
        self.offsets.append(message.offset())
        self.millis.append(millis if kind else None)


def client() -> Any:
    """The module of the client. Raises SourceError where it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise SourceError(
            "reading Kafka needs the package `confluent-kafka`", hint="pip install 'winquery[kafka]'"
        ) from None
    return confluent_kafka


def consume(
    settings: tuple[tuple[str, str], ...], topic: str, partition: int, start: int, end: int
) -> Iterator[Messages]:
    """The messages at the offsets ``[start, end)``, some thousands at a time; offsets may have none.

    Raises SourceError where messages are gone, or do not come for a minute.
    """
    kafka = client()
    address = (settings, topic, partition)
    consumer, following = _consumers.pop(address, (None, None))
    if consumer is None:
        consumer = kafka.Consumer(dict(settings) | _OWN)
    try:
        if following != start:
            consumer.assign([kafka.TopicPartition(topic, partition, start)])
        position, moved = start, time.monotonic()
        while position < end:
            messages, position = _some(
                kafka, consumer, position, end, f"partition {partition} of the topic `{topic}`"
            )
            if messages.values:
                moved = time.monotonic()
                yield messages
            elif time.monotonic() - moved > _PATIENCE:
                raise SourceError(
                    f"no message of partition {partition} of the topic `{topic}` came for {_PATIENCE:.0f} s, with "
                    f"offset {position} of {end} to come",
                    hint="check the brokers and start the query again: it goes on where it was",
                )
        following = position if position == end else None
    except BaseException:
        consumer.close()
        raise
    _keep(address, consumer, following)


def close_consumers() -> None:
    """Leave all brokers."""
    while _consumers:
        _consumers.popitem()[1][0].close()


def _some(kafka: Any, consumer: Any, position: int, end: int, where: str) -> tuple[Messages, int]:
    """The next messages, if there are any within half a second, and the offset behind them; ``end`` when it is over.

    A message behind ``end`` is where offsets have no message (markers of transactions, compaction): then the
    position is beyond ``end``, and the consumer must be assigned again.
    """
    messages = Messages()
    for message in consumer.consume(min(_ROOM, end - position), timeout=_WAIT):
        error = message.error()
        if error is None:
            if message.offset() >= end:
                return messages, end + 1
            messages.add(message)
            position = message.offset() + 1
        elif error.code() == kafka.KafkaError._PARTITION_EOF:
            position = max(position, min(message.offset(), end))
        elif error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
            raise SourceError(
                f"the messages from {position} on of {where} are gone before they were read",
                hint="let the topic keep messages for longer; to go on without them, start with a new checkpoint",
            )
        elif error.code() not in _outages(kafka) and not error.retriable():
            raise SourceError(f"cannot read {where}: {error.str()}")
    return messages, position


def _outages(kafka: Any) -> tuple[int, ...]:
    """What a consumer says while no broker can be reached; it goes on trying by itself."""
    error = kafka.KafkaError
    return error._ALL_BROKERS_DOWN, error._TRANSPORT, error._RESOLVE, error._TIMED_OUT


def _keep(address: tuple[object, ...], consumer: Any, following: int | None) -> None:
    _consumers[address] = consumer, following
    while len(_consumers) > _KEPT:
        _consumers.popitem(last=False)[1][0].close()
