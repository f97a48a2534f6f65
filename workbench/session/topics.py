"""Topics as a user names them: where the messages are, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import pyarrow as pa

from workbench.errors import QueryError, SourceError, did_you_mean
from workbench.feeds.kafka import COLUMNS as KAFKA_COLUMNS
from workbench.feeds.kafka import KafkaOptions, ends_of
from workbench.feeds.mqtt import COLUMNS as MQTT_COLUMNS
from workbench.feeds.mqtt import MqttOptions
from workbench.feeds.payloads import Epoch, Payloads, Poisoned
from workbench.feeds.receiving import Broker, check
from workbench.session.columns import Columns, parse_schema
from workbench.time import SECOND, parse_duration


@dataclass(frozen=True)
class KafkaTopic:
    """A topic of the Kafka brokers at ``servers`` (``"host:port,..."``), as the ``data`` of a source.

    Every message is a JSON object with the fields of ``schema`` (an Arrow schema, or ``"ts TIMESTAMP, key STRING"``);
    a field that is missing is NULL, others are left out. Beside them a source has the columns ``kafka_key`` (text),
    ``kafka_partition``, ``kafka_offset`` and ``kafka_timestamp``, which may be its ``time``. Times in messages are
    texts as in ISO 8601, or numbers of the unit ``epoch`` (``s``, ``ms``, ``us``) since 1970.

    ``start`` is ``earliest``, all messages that the topic keeps, or ``latest``, those from the definition of the
    source on. A message that cannot be decoded is an error, or, with ``poisoned="drop"``, counted and left out.
    ``config`` holds further settings of librdkafka, such as ``security.protocol``. Needs ``winquery[kafka]``.
    """

    servers: str
    topic: str
    schema: Columns
    start: Literal["earliest", "latest"] = "earliest"
    poisoned: Poisoned = "error"
    epoch: Epoch | None = None
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def columns(self) -> pa.Schema:
        """The columns of a source of this topic. Raises SourceError for options that make no sense."""
        _among("start", self.start, ("earliest", "latest"))
        return check_payloads(self.schema, KAFKA_COLUMNS, self.poisoned, self.epoch)

    def feed(self, max_rows: int) -> KafkaOptions:
        """The messages from now, or the first one, on. Asks the brokers; raises SourceError where none answers."""
        options = KafkaOptions(
            self.servers,
            self.topic,
            parse_schema(self.schema),
            Payloads(self.poisoned, self.epoch),
            config=tuple((str(name), str(value)) for name, value in self.config.items()),
            max_rows=max_rows,
        )
        ends = ends_of(options)
        if self.start == "earliest":
            return options
        return replace(options, begin=tuple((partition, end) for partition, (_, end) in ends.items()))


@dataclass(frozen=True)
class MqttTopic:
    """Topics of the MQTT broker (version 5) at ``host``, as ``data`` of a source; ``topic`` may have ``+`` and ``#``.

    Every message is a JSON object with the fields of ``schema``; ``epoch`` and ``poisoned`` are as for
    :class:`KafkaTopic`. Beside them a source has the columns ``mqtt_topic`` and ``mqtt_received``, when it came in
    here, which may be its ``time``.

    Messages from the start of a query on; they cannot be read twice, so a query that is added to others begins with
    what comes then. ``qos`` is the quality of service: with 1 and 2 the broker keeps what comes while the query is
    away, for ``keep``. Needs ``winquery[mqtt]``.
    """

    host: str
    topic: str
    schema: Columns
    port: int = 1883
    qos: Literal[0, 1, 2] = 1
    keep: str = "1 hour"
    poisoned: Poisoned = "error"
    epoch: Epoch | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False

    def columns(self) -> pa.Schema:
        """The columns of a source of this topic. Raises SourceError for options that make no sense."""
        if self.qos not in (0, 1, 2):
            raise SourceError(f"`qos` is 0, 1 or 2, not `{self.qos}`")
        return check_payloads(self.schema, MQTT_COLUMNS, self.poisoned, self.epoch)

    def feed(self, max_rows: int) -> MqttOptions:
        """The messages that will come. Connects once; raises SourceError where the broker does not let us."""
        try:
            keep = parse_duration(self.keep) // SECOND
        except QueryError as error:
            raise SourceError(f"cannot read `keep`: {error.message}", hint=error.hint) from None
        broker = Broker(self.host, self.port, self.qos, keep, self.username, self.password, self.tls)
        check(broker)
        payloads = Payloads(self.poisoned, self.epoch)
        return MqttOptions(broker, self.topic, parse_schema(self.schema), payloads, max_rows)


#: What a source may be made of beside files and tables.
TOPICS = (KafkaTopic, MqttTopic)


def check_payloads(schema: Columns, beside: pa.Schema, poisoned: str, epoch: str | None) -> pa.Schema:
    """The columns of messages of ``schema``, with those ``beside`` it. Raises SourceError for what makes no sense."""
    _among("poisoned", poisoned, get_args(Poisoned))
    if epoch is not None:
        _among("epoch", epoch, get_args(Epoch))
    columns = parse_schema(schema)
    if not columns.names:
        raise SourceError("the schema of messages needs at least one field")
    for name in columns.names:
        if name in beside.names:
            raise SourceError(f"the field `{name}` has the name of a column that every message has")
    return pa.schema([*columns, *beside])


def _among(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(f"`{choice}`" for choice in choices)
        raise SourceError(f"`{option}` is {listed}, not `{value}`", hint=did_you_mean(value, choices))
