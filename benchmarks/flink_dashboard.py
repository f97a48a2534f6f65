"""The three-level dashboard in Apache Flink's SQL; run by an interpreter with ``apache-flink``, which needs its own.

``python flink_dashboard.py FILE.csv SIZE/SLIDE...`` with seconds: prints the seconds of all levels, and by level the
windows and the rows in them, as JSON. Streaming mode, two slots; the file is read once for each level, as Flink has
no plan that several windows share. It imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

EVENTS = """
CREATE TABLE events (
  ms BIGINT, k INT, x DOUBLE, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
LEVEL = """
SELECT count(*) AS windows, sum(n) AS inside FROM (
  SELECT k, window_start, avg(x) AS mean, max(x) AS top, count(*) AS n
  FROM TABLE(HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND(4), INTERVAL '{size}' SECOND(4)))
  GROUP BY k, window_start, window_end)
"""


def main(path: str, levels: list[str]) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "2")
    # Only the last count is asked for, not one for each window.
    tables.get_config().set("table.exec.mini-batch.enabled", "true")
    tables.get_config().set("table.exec.mini-batch.allow-latency", "5 s")
    tables.get_config().set("table.exec.mini-batch.size", "100000")
    tables.execute_sql(EVENTS.format(path=path))
    totals = []
    begin = time.perf_counter()
    for level in levels:
        size, slide = level.split("/")
        *_, last = tables.execute_sql(LEVEL.format(size=size, slide=slide)).collect()
        totals.append([last[0], last[1]])
    print(json.dumps({"seconds": time.perf_counter() - begin, "totals": totals}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
