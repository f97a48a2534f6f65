"""The kernel of a notebook in a process of its own: cells run one after another in IPython, as in JupyterLab.

``python -m tests.spark.kernel FOLDER`` reads what to do from ``FOLDER/asked.json``, and leaves there what cells have
printed, the results of all queries, and how they were doing. One that is to be killed leaves nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.events import wait_for

LONG = 240.0
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """What a kernel has left: what its cells printed, and by query its results and its status."""

    printed: list[str]
    results: dict[str, pa.Table]
    statuses: dict[str, str]


def killed(folder: Path, cells: list[str], rows: int) -> None:
    """Run cells, and kill the kernel when so many rows were read."""
    assert _run(folder, cells, rows, kill=True) == -signal.SIGKILL


def run_all(folder: Path, cells: list[str], rows: int) -> Ran:
    """Run cells, wait until so many rows were read, and end in order."""
    assert _run(folder, cells, rows, kill=False) == 0
    told = json.loads((folder / "told.json").read_text())
    results = {name: pq.read_table(folder / f"{name}.parquet") for name in told["statuses"]}
    return Ran(told["printed"], results, told["statuses"])


def _run(folder: Path, cells: list[str], rows: int, *, kill: bool) -> int:
    folder.mkdir()
    (folder / "asked.json").write_text(json.dumps({"cells": cells, "rows": rows, "kill": kill}))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    errors = folder / "errors.txt"
    with errors.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.kernel", str(folder)],
            env=os.environ | {"PYTHONPATH": paths},
            cwd=ROOT,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        code = process.wait()
    with contextlib.suppress(ProcessLookupError):  # its Java, which may be planning a micro-batch still
        os.killpg(process.pid, signal.SIGKILL)
    assert code in (0, -signal.SIGKILL), errors.read_text()
    return code


def main(folder: Path) -> None:
    """The kernel's own process."""
    from IPython.core.interactiveshell import InteractiveShell

    import workbench

    asked = json.loads((folder / "asked.json").read_text())
    shell, printed = InteractiveShell.instance(), []
    for cell in ["import workbench\n%load_ext workbench", *asked["cells"]]:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            shell.run_cell(cell, store_history=True).raise_error()
        printed.append(out.getvalue())
    (first, *_) = workbench.queries()
    wait_for(lambda: first.status().rows >= asked["rows"], LONG, f"all rows: {first.status()}")
    if asked["kill"]:
        os.kill(os.getpid(), signal.SIGKILL)
    for handle in workbench.queries():
        pq.write_table(handle.results(format="arrow"), folder / f"{handle.name}.parquet")
    statuses = {handle.name: str(handle.status()) for handle in workbench.queries()}
    (folder / "told.json").write_text(json.dumps({"printed": printed[1:], "statuses": statuses}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
