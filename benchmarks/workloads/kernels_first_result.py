"""How long the first answer of a query takes whose kernels nobody has compiled, and how soon compiled ones are used.

Three processes one after the other with one cache folder, empty at first (winquery's and numba's). Each runs the same
query in the in-process engine over 20,000 rows in batches of 2,000: a sum, a maximum and a count by key over three
sliding windows; it checks the counts. Wall clock, since a user waits for it:

- ``answer_s``: first process, from the call (SQL text in, imports done) to the first window result; the array code
  answers while kernels compile in the background (bar 1 s). ``process_answer_s``: the same from the process's start.
- ``compiled_s``: from that call until a batch has been answered by compiled kernels, for the first process; that
  batch takes ``swap_s`` (it should be no more than ``step_s``, the median of the batches after it);
- ``cached_compiled_s``: for the second process, which finds them in the disk cache (bar 0.3 s), and
  ``cached_answer_s``, its own first answer;
- ``cached_ready_s``: as ``cached_compiled_s``, for a third process that has had numba register its own types before
  the call, which numba does once in a process, when it first compiles or loads anything.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.workload import Bar, Figures, Workload

SQL = """
SELECT k, sum(v) AS total, max(v) AS worst, count(*) AS n
FROM events GROUP BY k, zoom(ts, '1 minute', '10 minutes / 1 minute', '1 hour / 5 minutes')
"""
ROWS, BATCH, KEYS = 20_000, 2000, 20


def child() -> None:
    """The measured process: prints its figures as one line of JSON."""
    import psutil
    import pyarrow as pa

    from workbench.language import parse_queries
    from workbench.logical import Stream, Workload
    from workbench.plan import compile_workload
    from workbench.runtime.engine import Engine

    stamps = pa.array(range(0, ROWS * 1_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    numbers = pa.array([row % 997 / 8 for row in range(ROWS)])
    table = pa.table({"ts": stamps, "k": [str(row % KEYS) for row in range(ROWS)], "v": numbers})
    batches = [table.slice(low, BATCH) for low in range(0, ROWS, BATCH)]

    if "ready" in sys.argv:
        from workbench.kernels.jit import warm_up

        warm_up()
    begin = time.perf_counter()
    stream = Stream("events", table.schema, "ts", 0)
    engine = Engine(compile_workload(Workload(stream, parse_queries(SQL, {"events": stream}, name="q"))))
    steps = []
    for number, batch in enumerate(batches):
        while number >= ROWS // BATCH - 2 and not ready():
            time.sleep(0.002)
        compiled, called = ready(), time.perf_counter()
        engine.step([batch])
        steps.append((compiled, called - begin, time.perf_counter() - begin))
        if number == 0:
            process = time.time() - psutil.Process().create_time()
            assert engine.results["q"].table().num_rows
    engine.step([], finish=True)
    check(engine.results["q"].table().to_pylist())
    print(json.dumps({**summarise(steps), "process_answer_s": process}), flush=True)


def ready() -> bool:
    """Whether every kernel that was asked for has its compiled variant, which the next call will use."""
    from workbench.codegen import kernels

    return bool(kernels._variants) and all(future.done() for future in kernels._variants.values())


def summarise(steps: Sequence[tuple[bool, float, float]]) -> dict[str, float]:
    """The figures of a process from its batches: whether kernels were compiled, when each began, when it ended."""
    (begin, end), *later = [(begin, end) for compiled, begin, end in steps if compiled]
    after = statistics.median(end - begin for begin, end in later)
    return {"answer_s": steps[0][2], "compiled_s": end, "swap_s": end - begin, "step_s": after}


def check(results: list[dict[str, Any]]) -> None:
    """The one-minute windows hold every row once."""
    counted = sum(row["n"] for row in results if row["level"] == "1 minute")
    if counted != ROWS:
        raise AssertionError(f"the one-minute windows count {counted} rows, expected {ROWS}")


def run(quick: bool) -> Figures:
    """The three processes with one new cache folder."""
    with tempfile.TemporaryDirectory() as empty:
        first, second, third = (_process(Path(empty), *words) for words in ((), (), ("ready",)))
    cached = {"cached_answer_s": second["answer_s"], "cached_compiled_s": second["compiled_s"]}
    return {**first, **cached, "cached_ready_s": third["compiled_s"]}


def _process(cache: Path, *words: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.workloads.kernels_first_result import child; child()", *words],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "NUMBA_CACHE_DIR": str(cache / "numba")},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


WORKLOAD = Workload(
    name="kernels-first-result",
    summary="seconds to a first answer with nothing compiled, and to compiled kernels from the disk cache",
    group="kernels",
    run=run,
    bars=(Bar("answer_s", "<=", 1), Bar("cached_compiled_s", "<=", 0.3)),
)
