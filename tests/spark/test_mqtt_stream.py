"""MQTT topics on Spark: every message that the broker delivered counted once over crashes and absences."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mosquitto import Mosquitto, broker

from tests.spark.events import SCHEMA, SECOND, make_plan, wait_for
from tests.spark.finals import LONG, Finals
from tests.spark.senders import expected
from workbench.errors import QueryError
from workbench.feeds.mqtt import MqttOptions
from workbench.feeds.payloads import Payloads
from workbench.feeds.receiving import Broker
from workbench.session import Session
from workbench.session.topics import MqttTopic
from workbench.spark.runner import StreamRunner

__all__ = ["broker"]

pytestmark = pytest.mark.spark


def events(start: int, end: int) -> list[dict[str, Any]]:
    """One event a second, keys a, b, c in turn."""
    return [{"ts": n, "key": "abc"[n % 3], "value": n} for n in range(start, end)]


def test_messages_count_once_over_crashes_and_absences(spark: Any, broker: Mosquitto, tmp_path: Path) -> None:
    finals = Finals()
    options = MqttOptions(Broker("127.0.0.1", broker.port), "once", SCHEMA, Payloads(epoch="s"))
    runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()

    def subscribed() -> bool:
        broker.send("once", [{"ts": 0, "key": "before", "value": 0}])
        return runner.progress().rows > 0

    wait_for(subscribed, LONG, "a subscription")
    finals.hang(0)
    broker.send("once", events(0, 100))
    assert finals.inside.wait(LONG)
    broker.send("once", events(100, 150))
    threading.Timer(0.5, finals.gate.set).start()
    assert runner.stop(LONG)
    assert runner.progress().state == "stopped", runner.progress().details
    broker.send("once", events(150, 200))  # nobody is there
    finals.let_pass = 1_000
    runner = StreamRunner(spark, make_plan(), options, finals, checkpoint=tmp_path / "checkpoint")
    runner.start()
    wait_for(lambda: runner.progress().max_event == 199 * SECOND, LONG, "what was sent meanwhile")
    broker.send("once", events(200, 250))
    wait_for(lambda: runner.progress().max_event == 249 * SECOND, LONG, "the last message")
    assert runner.stop(LONG, finish=True)
    assert runner.progress().state == "finished", runner.progress().details
    assert {place: value for place, value in finals.found.items() if place[0] != "before"} == expected(250)


def test_queries_of_a_session_begin_with_what_comes(spark: Any, broker: Mosquitto) -> None:
    """Messages cannot be read twice, so the running plan changes; it does not start anew."""
    session = Session()
    topic = MqttTopic("127.0.0.1", "rooms/#", "heat DOUBLE", port=broker.port)
    session.source("rooms", topic, time="mqtt_received", delay="0 seconds")
    sql = "SELECT mqtt_topic, count(*) AS n FROM rooms GROUP BY mqtt_topic, window(mqtt_received, '7 days')"
    (first,) = session.start(session.parse(sql, name="first"))

    def send_until(done: Callable[[], bool]) -> None:
        def sent() -> bool:
            broker.send("rooms/a", [{"heat": 20.5}])
            return done()

        wait_for(sent, LONG, "messages")

    send_until(lambda: first.status().rows > 0)
    (second,) = session.start(session.parse(sql.replace("7 days", "1 second"), name="second"))
    before = first.status().rows
    send_until(lambda: len(second.results(status="final")) > 0)
    assert first.status().rows > before, "its plan goes on"
    with pytest.raises(QueryError, match="the rows of `rooms` cannot be read again"):
        first.add_level("14 days / 7 days")
    session.stop_all()
