"""A real MQTT broker for the tests: Mosquitto, as Debian has it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest


class Mosquitto:
    """A broker on a port of its own. ``stop`` and ``start`` again: it forgets all sessions."""

    def __init__(self, program: str, folder: Path, *, anonymous: bool = True) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.program = program
        self._config = folder / "mosquitto.conf"
        allowed = str(anonymous).lower()
        self._config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous {allowed}\n")
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen([self.program, "-c", str(self._config)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, "Mosquitto does not start"
                time.sleep(0.05)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def send(self, topic: str, values: Sequence[Any], qos: int = 1, retain: bool = False) -> None:
        """Messages, acknowledged by the broker; bytes as they are, others as JSON."""
        import paho.mqtt.client as mqtt

        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for value in values:
            payload = value if isinstance(value, bytes) else json.dumps(value).encode()
            client.publish(topic, payload, qos, retain).wait_for_publish(30)
        client.disconnect()
        client.loop_stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """A broker for the tests of a module; they are skipped, with the reason, where there is no Mosquitto."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("no Mosquitto on this machine (apt-get install mosquitto)")
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed")
    made = Mosquitto(program, tmp_path_factory.mktemp("mosquitto"))
    yield made
    made.stop()
