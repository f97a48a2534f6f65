"""What Spark calls on the driver with every micro-batch of a query, and what is let go of when that has ended."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from workbench.errors import EngineError


class Callback:
    """Calls ``call(results, batch)`` until it is closed.

    py4j keeps what Java may call for as long as the process lives, and a thread with a socket for each thread of Java
    that ever called. So the results of every query that ever ran would be kept, and one more thread and socket each.
    """

    def __init__(self, session: SparkSession, call: Callable[[DataFrame, int], None]) -> None:
        self._call: Callable[[DataFrame, int], None] | None = call
        # Where threads are not pinned, connections belong to no thread.
        self._line_of_thread = getattr(session.sparkContext._gateway._gateway_client, "get_thread_connection", None)
        self._line: Any = None

    def __call__(self, results: DataFrame, batch: int) -> None:
        if self._call is None:  # what returns counts as committed
            raise EngineError("the query has ended")
        if self._line_of_thread is not None:
            self._line = self._line_of_thread()
        self._call(results, batch)

    def close(self) -> None:
        """Call nothing any more, and end the thread that listens to Java. The query must have ended."""
        self._call = None
        line = None if self._line is None else self._line.socket
        if line is not None:
            with contextlib.suppress(OSError):  # Java has hung up
                line.shutdown(socket.SHUT_RDWR)
