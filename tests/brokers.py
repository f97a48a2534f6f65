"""A Kafka cluster inside this process: librdkafka's own mock, of one broker and four partitions a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest


class Cluster:
    """``servers`` is the address for every other client; the cluster lives as long as this object."""

    def __init__(self) -> None:
        import confluent_kafka

        self._producer: Any = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock"})
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def send(self, topic: str, values: Sequence[bytes | None], partition: int = 0, key: bytes | None = None) -> None:
        """Messages to a partition, with timestamps 1 s, 2 s, ... of their place in ``values``."""
        for place, value in enumerate(values):
            self._producer.produce(topic, value, key, partition=partition, timestamp=1_000 * (place + 1))
        assert self._producer.flush(30) == 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One cluster for the tests of a module; each takes topics of its own."""
    from workbench.feeds.consuming import close_consumers

    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    yield Cluster()
    close_consumers()
