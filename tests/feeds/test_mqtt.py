"""MQTT topics by way of the journal: with a real broker, over crashes, absences and messages that do not fit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mosquitto import Mosquitto, broker

from tests.spark.events import wait_for
from workbench.errors import SourceError
from workbench.feeds import Position, Tally
from workbench.feeds.mqtt import COLUMNS, MqttFeed, MqttOptions
from workbench.feeds.payloads import Payloads
from workbench.feeds.receiving import Broker, check
from workbench.session.sources import make_source
from workbench.session.topics import MqttTopic

__all__ = ["broker"]

SCHEMA = pa.schema([("n", pa.int64())])
ALL = pa.schema([*SCHEMA, *COLUMNS])
LONG = 60.0


class Subscriber:
    """Runs of a feed, one after the other, on one folder; ``position`` is what the last one has come to."""

    def __init__(self, broker: Mosquitto, topic: str, folder: Path, **options: Any) -> None:
        self.options = MqttOptions(Broker("127.0.0.1", broker.port), topic, SCHEMA, **options)
        self.folder = folder
        self.tally = Tally()
        self.position: Position = {"segment": 0, "byte": 0}

    @contextmanager
    def run(self) -> Iterator[MqttFeed]:
        """A run that is subscribed."""
        feed = self.options.open("ts", self.folder, lambda: 0.0)
        feed.advance(self.position, None)
        wait_for(lambda: feed._receiver.connected, LONG, "a subscription")
        yield feed
        feed.close()

    def read(self, feed: MqttFeed, start: Position, end: Position) -> list[dict[str, Any]]:
        pieces = feed.pieces(start, end, 2)[0]
        return [row for piece in pieces for b in piece.read(ALL, self.tally) for row in b.to_pylist()]

    def take(self, feed: MqttFeed, count: int) -> list[int]:
        """The next numbers, when there are so many."""
        found: list[int] = []

        def enough() -> bool:
            end, _ = feed.advance(self.position, None)
            found.extend(row["n"] for row in self.read(feed, self.position, end))
            self.position = end
            return len(found) >= count

        wait_for(enough, LONG, f"{count} messages, there are {found}")
        return found


def numbers(*values: int) -> list[dict[str, int]]:
    return [{"n": n} for n in values]


def test_messages_come_once_with_their_topics(broker: Mosquitto, tmp_path: Path) -> None:
    rooms = Subscriber(broker, "rooms/+/heat", tmp_path / "own")
    broker.send("rooms/a/heat", numbers(-1), retain=True)  # older than the stream
    with rooms.run() as feed:
        broker.send("rooms/a/heat", numbers(*range(100)))
        broker.send("rooms/b/heat", numbers(100), qos=0)
        broker.send("rooms/b/cold", numbers(-2))
        broker.send("rooms/b/heat", numbers(101), qos=2)
        assert sorted(rooms.take(feed, 102)) == list(range(102)), "one of quality 0 may overtake others"
        rows = rooms.read(feed, {"segment": 0, "byte": 0}, rooms.position)
        assert all(row["mqtt_topic"] == f"rooms/{'ab'[row['n'] >= 100]}/heat" for row in rows)
        times = [row["mqtt_received"] for row in rows]
        assert times == sorted(times)
        assert rooms.read(feed, {"segment": 0, "byte": 0}, rooms.position) == rows, (
            "the same again, to the microsecond"
        )


def test_what_came_before_a_crash_and_while_nobody_was_there_counts_once(broker: Mosquitto, tmp_path: Path) -> None:
    subscriber = Subscriber(broker, "away", tmp_path / "own")
    with subscriber.run() as feed:
        broker.send("away", numbers(1, 2))
        assert subscriber.take(feed, 2) == [1, 2]
        broker.send("away", numbers(3))
        wait_for(lambda: feed.advance(subscriber.position, None)[0] != subscriber.position, LONG, "a journal")
    broker.send("away", numbers(4, 5))  # the broker keeps them
    with subscriber.run() as feed:
        assert subscriber.take(feed, 3) == [3, 4, 5]
        feed.commit(subscriber.position)
        broker.send("away", numbers(6))
        assert subscriber.take(feed, 1) == [6]


def test_messages_are_not_acknowledged_before_they_are_in_the_journal(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(records: object) -> None:
        raise OSError(28, "no space left")

    subscriber = Subscriber(broker, "full", tmp_path / "own")
    with subscriber.run() as feed:
        with monkeypatch.context() as patch:
            patch.setattr(
                feed._journal, "append", lambda records: (_ for _ in ()).throw(OSError(28, "no space left"))
            )
            broker.send("full", numbers(1, 2))
            wait_for(lambda: feed._receiver.fault is not None, LONG, "a full disk")
        with pytest.raises(SourceError, match=r"cannot write the journal of the topic `full`: .*no space left"):
            feed.advance(subscriber.position, None)
    with subscriber.run() as feed:
        assert subscriber.take(feed, 2) == [1, 2]


def test_what_is_on_its_way_into_the_journal_at_a_stop_counts_once(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscriber, writing = Subscriber(broker, "slow", tmp_path / "own"), threading.Event()
    with subscriber.run() as feed:
        append = feed._journal.append

        def slowly(records: Any) -> None:
            writing.set()
            time.sleep(0.5)
            append(records)

        monkeypatch.setattr(feed._journal, "append", slowly)
        broker.send("slow", numbers(1))
        assert writing.wait(LONG)
    with subscriber.run() as feed:
        broker.send("slow", numbers(2))
        assert subscriber.take(feed, 2) == [1, 2]


def test_a_broker_that_goes_and_comes_back_is_waited_for(tmp_path: Path, broker: Mosquitto) -> None:
    subscriber = Subscriber(broker, "back", tmp_path / "own")
    with subscriber.run() as feed:
        broker.send("back", numbers(1))
        assert subscriber.take(feed, 1) == [1]
        broker.stop()
        wait_for(lambda: not feed._receiver.connected, LONG, "the end of the connection")
        assert feed.advance(subscriber.position, None) == (subscriber.position, False)
        feed._away_since = -61.0
        with pytest.raises(SourceError, match=rf"`127.0.0.1:{broker.port}` has been out of reach for 60 s"):
            feed.advance(subscriber.position, None)
        broker.start()
        wait_for(lambda: feed._receiver.connected, LONG, "a new connection")
        broker.send("back", numbers(2))
        assert subscriber.take(feed, 1) == [2]


def test_poisoned_messages_are_named_or_dropped_and_counted(broker: Mosquitto, tmp_path: Path) -> None:
    subscriber = Subscriber(broker, "bad", tmp_path / "own")
    with subscriber.run() as feed:
        broker.send("bad", [b"no JSON", {"n": 1}])
        with pytest.raises(SourceError, match=r"message of the topic `bad` received at .* cannot be decoded"):
            subscriber.take(feed, 1)
    dropping = Subscriber(broker, "bad", tmp_path / "own", payloads=Payloads("drop"))
    with dropping.run() as feed:
        assert dropping.take(feed, 1) == [1]
        assert dropping.tally.dropped == 1


def test_a_source_of_a_topic(broker: Mosquitto) -> None:
    topic = MqttTopic("127.0.0.1", "t", "n BIGINT", port=broker.port, password="secret", keep="90 seconds")
    source = make_source("events", topic, time="mqtt_received")
    assert source.stream.schema.equals(ALL)
    assert isinstance(source.feed, MqttOptions)
    assert (source.feed.broker.keep, source.feed.replayable) == (90, False)
    assert "secret" not in repr(source) + repr(topic) + repr(source.feed)


def test_brokers_that_do_not_let_us_are_told(broker: Mosquitto, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"`127\.0\.0\.1:1` cannot be reached"):
        check(Broker("127.0.0.1", 1))
    strict = Mosquitto(broker.program, tmp_path, anonymous=False)
    try:
        with pytest.raises(SourceError, match="refuses the connection: Not authorized"):
            check(Broker("127.0.0.1", strict.port))
    finally:
        strict.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qos": 3}, "`qos` is 0, 1 or 2, not `3`"),
        ({"keep": "1 month"}, "cannot read `keep`"),
        ({"schema": "mqtt_topic STRING"}, "the field `mqtt_topic` has the name of a column"),
    ],
)
def test_a_topic_that_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    topic = MqttTopic(**({"host": "nowhere", "topic": "t", "schema": "n INT"} | options))
    with pytest.raises(SourceError, match=message):
        make_source("s", topic, time="mqtt_received")
