"""A Kafka topic on Spark: every message counted once over crashes, poisoned ones told or counted."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from brokers import Cluster, cluster

from tests.spark.events import SCHEMA, SECOND, make_plan, wait_for
from tests.spark.finals import LONG, Finals
from tests.spark.senders import Sender
from workbench.feeds.kafka import KafkaOptions
from workbench.feeds.payloads import Payloads
from workbench.session import Session
from workbench.session.topics import KafkaTopic
from workbench.spark.runner import StreamRunner

__all__ = ["cluster"]

pytestmark = pytest.mark.spark


def test_messages_count_once_over_crashes_in_the_middle_of_batches(
    spark: Any, cluster: Cluster, tmp_path: Path
) -> None:
    sender, finals = Sender(cluster, "once"), Finals()
    payloads = Payloads(epoch="ms")
    options = KafkaOptions(cluster.servers, "once", SCHEMA, payloads, max_rows=130)
    plan = make_plan(delay=300 * SECOND)  # partitions come unevenly
    sender.put(3)
    for let_pass in (2, 0):
        finals.hang(let_pass)
        runner = StreamRunner(spark, plan, options, finals, checkpoint=tmp_path / "checkpoint")
        runner.start()
        assert finals.inside.wait(LONG), runner.progress().details
        sender.put()
        threading.Timer(0.5, finals.gate.set).start()
        assert runner.stop(LONG)
        assert runner.progress().state == "stopped", runner.progress().details
    finals.let_pass = 1_000
    runner = StreamRunner(spark, plan, options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    sender.put()
    read = [0]

    def all_read() -> bool:
        assert runner.progress().state in ("starting", "running"), runner.progress().details
        read.append(runner.progress().rows)
        return runner.progress().max_event == (sender.rows - 1) * SECOND and read[-1] == read[-2]

    wait_for(all_read, LONG, "the last message")
    assert runner.stop(LONG, finish=True)
    assert runner.progress().state == "finished", runner.progress().details
    assert finals.found == sender.expected()


def test_a_poisoned_message_stops_the_query_and_is_named(spark: Any, cluster: Cluster) -> None:
    cluster.send("bad", [b'{"ts": "1970-01-01", "key": "a", "value": 1}', b"no JSON"], 3)
    runner = StreamRunner(spark, make_plan(), KafkaOptions(cluster.servers, "bad", SCHEMA), Finals())
    runner.start()
    assert runner.wait(LONG)
    error = runner.progress().error or ""
    assert error.startswith("the message at offset 1 of partition 3 of the topic `bad` of ")
    assert "cannot be decoded: it is no JSON object" in error


def test_a_session_reads_a_topic(spark: Any, cluster: Cluster) -> None:
    session = Session()
    cluster.send("mixed", [b'{"value": 1}', b"no JSON", b'{"value": 2}'], 0)
    topic = KafkaTopic(cluster.servers, "mixed", "value BIGINT", poisoned="drop")
    session.source("mixed", topic, time="kafka_timestamp", delay="0 seconds")
    window = "window(kafka_timestamp, '1 minute')"
    sql = f"SELECT kafka_partition, sum(value) AS total FROM mixed GROUP BY kafka_partition, {window}"
    (query,) = session.start(session.parse(sql, name="totals"))
    wait_for(lambda: query.status().dropped == 1, LONG, "the first messages")
    assert query.status().rows == 2
    assert "1 rows that could not be read" in str(query.status())
    (row,) = query.results(format="arrow").to_pylist()
    assert (row["kafka_partition"], row["total"], row["status"]) == (0, 3, "provisional")
    session.stop_all()
