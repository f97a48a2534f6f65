"""How long a user waits: from a cold process to the first result of the quickstart's query, and the next query.

Each run is a process of its own, as a fresh notebook kernel is: ``cold_s`` counts from the start of that process
(imports, JVM, Spark query, first window in the result store) with the caches of this machine, ``fresh_s`` is the
same with an empty cache folder (a user's very first time, without the download of the package), ``warm_s`` is a
second query once the session is up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.workload import Bar, Figures, Workload

SQL = """
SELECT carrier, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst, count(*) AS n
FROM flights WHERE dep_delay IS NOT NULL
GROUP BY carrier, zoom(ts, '15 minutes / 1 minute', '2 hours / 10 minutes', '1 day / 1 hour')
"""

#: A second question, of another shape, so that nothing but the session is there already.
OTHER_SQL = """
SELECT origin, min(arr_delay) AS best, sum(distance) AS miles, count(*) AS n
FROM flights GROUP BY origin, zoom(ts, '30 minutes / 5 minutes', '6 hours / 30 minutes')
"""


def child() -> None:
    """The measured process: prints its figures as one line of JSON."""
    import psutil

    started = psutil.Process().create_time()

    import workbench

    workbench.source("flights", workbench.datasets.flights(), time="ts", replay="1 day/s")
    first = workbench.run(SQL, name="delays")
    assert first.wait_for_results(120), first.status()
    cold = time.time() - started
    begin = time.perf_counter()
    second = workbench.run(OTHER_SQL, name="origins")
    assert second.wait_for_results(120), second.status()
    print(json.dumps({"cold_s": cold, "warm_s": time.perf_counter() - begin}), flush=True)
    workbench.stop_all()


def run(quick: bool) -> Figures:
    """One cold process with the caches as they are and, unless quick, one with none."""
    figures = _process(os.environ)
    if not quick:
        with tempfile.TemporaryDirectory() as empty:
            figures["fresh_s"] = _process({**os.environ, "XDG_CACHE_HOME": empty})["cold_s"]
    return figures


def warm_up(quick: bool) -> None:
    """The flights are converted and the kernels compiled once per machine: that is ``fresh_s``, not ``cold_s``."""
    _process(os.environ)


def _process(environment: os._Environ[str] | dict[str, str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.workloads.first_picture import child; child()"],
        env=dict(environment),
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


WORKLOAD = Workload(
    name="first-picture",
    summary="seconds until a cold process, and then a second query, shows its first result",
    run=run,
    warm_up=warm_up,
    bars=(Bar("cold_s", "<=", 20), Bar("warm_s", "<=", 5)),
)
