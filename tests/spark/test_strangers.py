"""Other programs knock on ports: a client of a Jupyter kernel that is gone tries the kernel's port for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import psutil
import pytest

from workbench.session import Session

pytestmark = pytest.mark.spark

#: How ZeroMQ greets.
GREETING = b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f"


@pytest.fixture
def strangers() -> Iterator[None]:
    """Greets every loopback port that opens from now on, as ZeroMQ does."""

    def listening() -> set[int]:
        return {held.laddr.port for held in psutil.net_connections("tcp") if held.status == psutil.CONN_LISTEN}

    known, held, over = listening(), list[socket.socket](), threading.Event()

    def greet() -> None:
        while not over.wait(0.001):
            for port in listening() - known:
                try:
                    connection = socket.create_connection(("127.0.0.1", port), timeout=1)
                    connection.sendall(GREETING)
                except OSError:
                    continue
                held.append(connection)
                known.add(port)

    thread = threading.Thread(target=greet)
    thread.start()
    yield
    over.set()
    thread.join()
    for connection in held:
        connection.close()


@pytest.mark.usefixtures("spark", "strangers")
def test_a_stranger_cannot_answer_for_a_worker(recording: Callable[..., str]) -> None:
    """The workers of its source, of its state and of its tasks all start under the eyes of the stranger."""
    session = Session()
    session.source("events", recording(), time="ts", replay="max")
    sql = "SELECT count(*) AS n FROM events GROUP BY window(ts, '1 hour')"
    (handle,) = session.start(session.parse(sql, name="n"))
    assert handle.wait(120)
    assert handle.status().state == "finished"
    assert handle.results(status="final")["n"].tolist() == [1_000]
