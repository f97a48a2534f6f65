"""A subscriber on threads of its own: messages of a broker into a journal, acknowledged when they are there."""

from __future__ import annotations

import queue
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import SourceError
from workbench.feeds.journal import Journal, Record

#: Messages that go into the journal at once, at most.
_GROUP = 1_000


@dataclass(frozen=True)
class Broker:
    """Where an MQTT broker is, and how to speak to it.

    ``keep`` is how many seconds it shall keep what comes while nobody is there; ``qos`` the quality of service.
    """

    host: str
    port: int = 1883
    qos: int = 1
    keep: int = 3600
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def library() -> Any:
    """The module of the client. Raises SourceError where it is not installed."""
    try:
        import paho.mqtt.client
    except ImportError:
        raise SourceError("reading MQTT needs the package `paho-mqtt`", hint="pip install 'winquery[mqtt]'") from None
    return paho.mqtt.client


class Receiver:
    """Subscribes to ``topic`` as ``identity`` and puts what comes into ``journal``; reconnects by itself.

    ``fault`` is why it will receive nothing more: the broker refuses it, or the journal cannot be written.
    """

    def __init__(self, broker: Broker, topic: str, identity: str, journal: Journal) -> None:
        self._broker = broker
        self._topic = topic
        self._identity = identity
        self._journal = journal
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="winquery mqtt journal", daemon=True)
        self._client: Any = None
        self.fault: SourceError | None = None
        self.connected = False

    def start(self) -> None:
        """Connect, if that was not done before; returns at once."""
        if self._client is not None:
            return
        mqtt = library()
        self._client = client = _client(mqtt, self._broker, self._identity)
        client.on_connect, client.on_disconnect, client.on_message = self._connect, self._disconnect, self._message
        client.on_subscribe = self._subscribed
        self._writer.start()
        client.connect_async(
            self._broker.host, self._broker.port, clean_start=False, properties=_keeping(self._broker.keep)
        )
        client.loop_start()

    def stop(self) -> None:
        """Write and acknowledge what has come, then disconnect. The broker sends again what comes meanwhile."""
        if self._client is None:
            return
        self._inbox.put(None)
        self._writer.join()
        self._client.disconnect()
        self._client.loop_stop()

    def _connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.fault = self.fault or refused(self._broker, reason)
            return
        # Messages that the broker retains are older than the stream: they are not asked for.
        options = library().SubscribeOptions(qos=self._broker.qos, retainHandling=2)
        client.subscribe(self._topic, options=options)

    def _subscribed(self, client: Any, data: Any, mid: int, reasons: list[Any], properties: Any) -> None:
        if reasons[0].is_failure:
            self.fault = SourceError(f"`{self._broker}` refuses the topic `{self._topic}`: {reasons[0]}")
        self.connected = not reasons[0].is_failure

    def _disconnect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.connected = False

    def _message(self, client: Any, data: Any, message: Any) -> None:
        received = time.time_ns() // 1_000
        self._inbox.put((message.mid, message.qos, Record(received, message.topic, bytes(message.payload))))

    def _write(self) -> None:
        """The thread of the journal: what has come meanwhile goes to the disk at once, then it is acknowledged."""
        while (first := self._inbox.get()) is not None:
            group = [first]
            while len(group) < _GROUP and not self._inbox.empty():
                following = self._inbox.get()
                if following is None:
                    self._inbox.put(None)
                    break
                group.append(following)
            try:
                self._journal.append([record for _, _, record in group])
            except OSError as error:
                self.fault = SourceError(
                    f"cannot write the journal of the topic `{self._topic}`: {error}",
                    hint="start the query again when the cause is gone: the broker has kept what was not written",
                )
                return
            for mid, qos, _ in group:
                self._client.ack(mid, qos)


def check(broker: Broker, timeout: float = 10.0) -> None:
    """Raise SourceError where the broker cannot be reached, or refuses us."""
    client = _client(library(), broker, "")
    answered, reasons = threading.Event(), []

    def connected(client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        reasons.append(reason)
        answered.set()

    client.on_connect = connected
    try:
        client.connect(broker.host, broker.port)
    except (OSError, ValueError) as error:
        raise SourceError(f"`{broker}` cannot be reached: {error}") from None
    client.loop_start()
    answered.wait(timeout)
    client.disconnect()
    client.loop_stop()
    if not reasons:
        raise SourceError(f"`{broker}` does not answer as an MQTT broker (version 5)")
    if reasons[0].is_failure:
        raise refused(broker, reasons[0])


def refused(broker: Broker, reason: Any) -> SourceError:
    return SourceError(f"`{broker}` refuses the connection: {reason}", hint="check `username`, `password` and `tls`")


def _client(mqtt: Any, broker: Broker, identity: str) -> Any:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=identity, protocol=mqtt.MQTTv5, manual_ack=True)
    if broker.username is not None:
        client.username_pw_set(broker.username, broker.password)
    if broker.tls:
        client.tls_set_context(ssl.create_default_context())
    return client


def _keeping(seconds: int) -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = seconds
    return properties
