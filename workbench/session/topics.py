"""Topics as a user names them: where the messages are, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import pyarrow as pa

from workbench.errors import SourceError, did_you_mean
from workbench.feeds.kafka import COLUMNS, KafkaOptions, ends_of
from workbench.feeds.payloads import Epoch, Payloads, Poisoned
from workbench.session.columns import Columns, parse_schema


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
        return check_payloads(self.schema, COLUMNS, self.poisoned, self.epoch)

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
