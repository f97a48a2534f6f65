"""numba is imported by several threads at once: that of each kernel that is compiled, and that of the cells."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading, time
from importlib import import_module

failed = []

def load(name):
    try:
        import_module(name)
    except BaseException as error:
        failed.append(error)

threads = [threading.Thread(target=load, args=("workbench.kernels." + name,)) for name in ("jit", *sys.argv[1:])]
for thread in threads:
    thread.start()
    time.sleep(0.005)
for thread in threads:
    thread.join()
print(failed)
"""


@pytest.mark.parametrize("name", ["peers", "prefetch", "scan", "streaming"])
def test_threads_that_import_parts_of_numba_wait_for_each_other(name: str) -> None:
    """Python gives up waiting where two wait for one another, and one goes on with half a module."""
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": ""}
    command = [sys.executable, "-c", PROGRAM, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"
