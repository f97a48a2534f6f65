"""Kafka topics: every message once, whatever is asked again; where messages are gone or poisoned, that is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from brokers import Cluster, cluster

from workbench.errors import SourceError
from workbench.feeds import Position, Tally
from workbench.feeds.kafka import COLUMNS, KafkaFeed, KafkaOptions, ends_of
from workbench.feeds.payloads import Payloads
from workbench.session.sources import make_source
from workbench.session.topics import KafkaTopic

__all__ = ["cluster"]

SCHEMA = pa.schema([("n", pa.int64()), ("key", pa.string())])
ALL = pa.schema([*SCHEMA, *COLUMNS])


class Reader:
    """A feed with a clock that never makes it wait, and the position that it has come to."""

    def __init__(self, options: KafkaOptions) -> None:
        self.options = options
        self.now = 0.0
        self.tally = Tally()
        self.open()
        self.position = self.feed.initial()

    def open(self) -> None:
        self.feed: KafkaFeed = self.options.open("ts", Path("nowhere"), lambda: self.now)

    def step(self, limit: int | None = None) -> list[int]:
        self.now += 100
        end, finished = self.feed.advance(self.position, limit)
        assert not finished
        found = self.rows(self.position, end)
        self.position = end
        return found

    def rows(self, start: Position, end: Position, tasks: int = 1) -> list[int]:
        pieces = [piece for run in self.feed.pieces(start, end, tasks) for piece in run]
        return [row["n"] for row in self.read(pieces)]

    def read(self, pieces: list[Any], schema: pa.Schema = ALL) -> Iterator[dict[str, Any]]:
        for piece in pieces:
            for batch in piece.read(schema, self.tally):
                assert batch.schema == schema
                yield from batch.to_pylist()


def numbers(*values: int) -> list[bytes]:
    return [json.dumps({"n": n, "key": "abc"[n % 3]}).encode() for n in values]


def reader(cluster: Cluster, topic: str, **options: Any) -> Reader:
    return Reader(KafkaOptions(cluster.servers, topic, SCHEMA, **options))


def test_all_partitions_come_once(cluster: Cluster) -> None:
    for partition in range(4):
        cluster.send("all", numbers(*range(10 * partition, 10 * partition + 5)), partition)
    source = reader(cluster, "all")
    assert source.step() == [], "the first step notes where partitions begin"
    assert source.position == {"offsets": {"0": 0, "1": 0, "2": 0, "3": 0}}
    assert sorted(source.step()) == [10 * tens + ones for tens in range(4) for ones in range(5)]
    assert source.step() == []
    cluster.send("all", numbers(77), 2)
    assert source.step() == [77]
    assert source.position == {"offsets": {"0": 5, "1": 5, "2": 6, "3": 5}}


def test_what_stands_beside_a_payload(cluster: Cluster) -> None:
    cluster.send("beside", numbers(1), 1, key=b"k\xff")
    cluster.send("beside", [*numbers(2), b'{"n": 3}'], 3)
    source = reader(cluster, "beside")
    source.step()
    end, _ = source.feed.advance(source.position, None)
    source.now += 1
    end, _ = source.feed.advance(source.position, None)
    rows = list(source.read(source.feed.pieces(source.position, end, 1)[0]))
    assert [tuple(row.values()) for row in rows] == [
        (1, "b", "k\\xff", 1, 0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (2, "c", None, 3, 0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (3, None, None, 3, 1, datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)),
    ]
    only = pa.schema([COLUMNS.field("kafka_offset")])
    assert list(source.read(source.feed.pieces(source.position, end, 1)[0], only)) == [
        {"kafka_offset": 0}, {"kafka_offset": 0}, {"kafka_offset": 1},
    ]  # fmt: skip


def test_a_crash_at_any_moment_changes_nothing(cluster: Cluster) -> None:
    cluster.send("crash", numbers(*range(20)), 0)
    source = reader(cluster, "crash")
    source.step()
    assert source.step(7) == list(range(7))
    source.now += 1
    end, _ = source.feed.advance(source.position, 7)
    cluster.send("crash", numbers(*range(20, 30)), 0)
    source.open()
    assert source.rows(source.position, end) == list(range(7, 14)), "the same messages between the same positions"
    assert source.rows(source.position, end) == list(range(7, 14))
    source.position = end
    assert source.step() == list(range(14, 30))


def test_a_limit_is_shared_by_how_far_partitions_are_behind(cluster: Cluster) -> None:
    cluster.send("shares", numbers(*range(90)), 0)
    cluster.send("shares", numbers(*range(90, 100)), 1)
    source = reader(cluster, "shares")
    source.step()
    assert source.step(10) == [*range(9), 90]
    seen: list[int] = []
    while len(seen) < 90:
        step = source.step(10)
        assert 0 < len(step) <= 11, "a partition that is behind gets at least one"
        seen += step
    assert sorted(seen) == [*range(9, 90), *range(91, 100)]


def test_tasks_share_the_messages(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.feeds.feed.TASK_ROWS", 5)
    cluster.send("tasks", numbers(*range(20)), 0)
    cluster.send("tasks", numbers(*range(20, 24)), 1)
    source = reader(cluster, "tasks")
    source.step()
    source.now += 1
    end, _ = source.feed.advance(source.position, None)
    runs = source.feed.pieces(source.position, end, 3)
    assert [[(piece.partition, piece.start, piece.end) for piece in run] for run in runs] == [
        [(0, 0, 8)], [(0, 8, 16)], [(0, 16, 20), (1, 0, 4)],
    ]  # fmt: skip
    assert source.rows(source.position, end, 3) == list(range(24))


def test_poisoned_messages_are_named_or_dropped_and_counted(cluster: Cluster) -> None:
    cluster.send("poison", [*numbers(1), b'{"n": "two"}', *numbers(3), None], 2)
    source = reader(cluster, "poison")
    source.step()
    with pytest.raises(SourceError, match=r"message at offset 1 of partition 2 of the topic `poison` of .*: .*/n"):
        source.step()
    source = reader(cluster, "poison", payloads=Payloads("drop"))
    source.step()
    assert source.step() == [1, 3]
    assert source.tally.dropped == 2


def test_messages_that_are_gone_are_told(cluster: Cluster) -> None:
    cluster.send("gone", numbers(1, 2), 0)
    source = reader(cluster, "gone")
    source.step()
    source.position = {"offsets": {"0": 5}}
    with pytest.raises(SourceError, match=r"partition 0 of .* ends at 2, but 5 of its offsets are read"):
        source.step()
    with pytest.raises(SourceError, match="messages from 7 on of partition 0 of the topic `gone` are gone"):
        source.rows({"offsets": {"0": 7}}, {"offsets": {"0": 9}})
    source.feed._ends = {0: (3, 9)}
    with pytest.raises(SourceError, match=r"the messages 1 to 2 of partition 0 .* are gone before they were read"):
        source.feed.advance({"offsets": {"0": 1}}, None)


def test_brokers_out_of_reach_are_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.feeds.kafka._ANSWER", 0.2)
    options = KafkaOptions("127.0.0.1:1", "t", SCHEMA)
    with pytest.raises(SourceError, match=r"the topic `t` of `127.0.0.1:1` cannot be read"):
        ends_of(options, 0.2)
    source = Reader(options)
    source.now = -50
    assert source.step() == []
    with pytest.raises(SourceError, match=r"the topic `t` of `127.0.0.1:1` cannot be read"):
        source.step()
    source.feed.close()


def test_a_source_of_a_topic(cluster: Cluster) -> None:
    cluster.send("events", numbers(1, 2, 3), 1)
    topic = KafkaTopic(cluster.servers, "events", "n BIGINT, key STRING", start="latest", config={"client.id": "me"})
    source = make_source("events", topic, time="kafka_timestamp", max_rows=10)
    assert source.stream.schema.equals(ALL)
    assert repr(source).startswith(f"Source `events`: follows the topic `events` of `{cluster.servers}`")
    assert "client.id" not in repr(topic), "settings may hold secrets"
    cluster.send("events", numbers(4), 1)
    options = source.feed_options(None)
    assert isinstance(options, KafkaOptions)
    assert options.max_rows == 10
    found = Reader(options)
    assert found.step() == []
    assert found.step() == [4], "those from the definition of the source on"


@pytest.mark.parametrize(
    ("options", "time", "message"),
    [
        (
            {"schema": "n BIGINT, key STRNG"},
            "kafka_timestamp",
            "no type `STRNG` of a column\nhint: did you mean `string`",
        ),
        ({"schema": "n"}, "kafka_timestamp", "cannot read `n` as a column"),
        ({"schema": "n INT, n INT"}, "kafka_timestamp", "two columns `n`"),
        ({"schema": "kafka_offset INT"}, "kafka_timestamp", "the field `kafka_offset` has the name of a column"),
        ({"schema": "n INT", "start": "newest"}, "kafka_timestamp", "`start` is `earliest`, `latest`, not `newest`"),
        ({"schema": "n INT", "poisoned": "skip"}, "kafka_timestamp", "`poisoned` is `error`, `drop`, not `skip`"),
        ({"schema": "n INT", "epoch": "ns"}, "kafka_timestamp", "`epoch` is `s`, `ms`, `us`, not `ns`"),
        ({"schema": "n INT"}, "ts", "no column `ts` for `time`"),
        ({"schema": "n INT"}, "n", "column `n` of type `int32` is not a timestamp"),
        ({"schema": "n INT"}, None, "needs its event time\nhint: time=... timestamp columns: `kafka_timestamp`"),
    ],
)
def test_a_topic_that_does_not_fit_is_refused(options: dict[str, Any], time: str | None, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        make_source("events", KafkaTopic("nowhere:1", "t", **options), time=time)
    assert message in str(caught.value)


@pytest.mark.parametrize("option", [{"replay": "60x"}, {"arrival": "ts"}, {"format": "csv"}, {"follow": True}])
def test_options_that_mean_nothing_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match=f"`{next(iter(option))}` has no meaning for a topic"):
        make_source("events", KafkaTopic("nowhere:1", "t", "n INT"), time="kafka_timestamp", **option)
