"""The dashboard of ``spark-others`` in Apache Flink: a script of its own, for the interpreter of another environment.

Flink's Python API wants other versions of Arrow and pandas than we do. ``python flink_hop.py CSV FOLDER LEVELS``
reads rows ``time,key,value`` from a file, runs one statement set of a ``HOP`` window for each level (``LEVELS`` is
JSON: pairs of size and slide in seconds) on two slots, and writes windows as CSV below ``FOLDER``; it prints the
seconds from the call to the end of the job, as JSON. All of it runs in Flink's JVM: Python only says what to do.
"""

from __future__ import annotations

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment


def main(rows: str, folder: str, levels: list[tuple[int, int]]) -> float:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {
        "parallelism.default": "2",
        "taskmanager.numberOfTaskSlots": "2",
        "table.local-time-zone": "UTC",
    }.items():
        table.get_config().set(name, value)
    table.execute_sql(
        "CREATE TABLE events (ts TIMESTAMP(3), k INT, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = 'file://{rows}', 'format' = 'csv')"
    )
    statements = table.create_statement_set()
    for number, (size, slide) in enumerate(levels):
        table.execute_sql(
            f"CREATE TABLE level{number} (k INT, start_ TIMESTAMP(3), mean DOUBLE, top DOUBLE, n BIGINT)"
            f" WITH ('connector' = 'filesystem', 'path' = 'file://{folder}/{number}', 'format' = 'csv')"
        )
        statements.add_insert_sql(
            f"INSERT INTO level{number} SELECT k, window_start, AVG(x), MAX(x), COUNT(*) FROM TABLE(HOP(TABLE events,"
            f" DESCRIPTOR(ts), INTERVAL '{slide}' SECOND(4), INTERVAL '{size}' SECOND(4)))"
            " GROUP BY k, window_start, window_end"
        )
    begin = time.perf_counter()
    statements.execute().wait()
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
