"""Rows that are put into a folder or sent to a topic while a query runs, and the windows that they make."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from brokers import Cluster

from tests.spark.events import SCHEMA, SECOND

#: (key, window start in seconds) -> (total, n).
Windows = dict[tuple[str, int], tuple[int, int]]


def expected(rows: int) -> Windows:
    """The windows of one minute of one row a second, keys a, b, c in turn, values 0, 1, ...: counted one by one."""
    windows: Windows = {}
    for n in range(rows):
        place = "abc"[n % 3], n // 60 * 60
        total, count = windows.get(place, (0, 0))
        windows[place] = total + n, count + 1
    return windows


class Inbox:
    """Puts files of 100 rows, one a second, keys a, b, c in turn."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir()
        self.rows = 0

    def put(self, files: int = 1) -> None:
        """The next files."""
        for _ in range(files):
            numbers = range(self.rows, self.rows + 100)
            self.rows += 100
            times = pa.array([n * SECOND for n in numbers], pa.int64()).cast(SCHEMA.field("ts").type)
            table = pa.table([times, pa.array(["abc"[n % 3] for n in numbers]), pa.array(numbers)], schema=SCHEMA)
            aside = self.path / f".{self.rows:05}.parquet"
            pq.write_table(table, aside, row_group_size=40)
            aside.rename(self.path / f"{self.rows:05}.parquet")

    def expected(self) -> Windows:
        return expected(self.rows)


class Sender:
    """Sends one event a second to partitions in turn, keys a, b, c."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster, self.topic, self.rows = cluster, topic, 0

    def put(self, hundreds: int = 1) -> None:
        """The next hundreds of messages."""
        numbers = range(self.rows, self.rows + 100 * hundreds)
        self.rows += len(numbers)
        for partition in range(4):
            values = [
                json.dumps({"ts": n * 1_000, "key": "abc"[n % 3], "value": n}).encode()
                for n in numbers
                if n // 5 % 4 == partition
            ]
            self.cluster.send(self.topic, values, partition)

    def expected(self) -> Windows:
        return expected(self.rows)
