"""What compiling kernels leaves alone."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
import warnings

import numba
import pytest

from workbench.kernels.jit import jit


def test_compiling_beside_a_cell_leaves_the_streams_of_the_process_alone() -> None:
    """With colorama, which numba uses where it is there; what is compiled has an error on the way."""
    pytest.importorskip("colorama")

    def wrong(x: float) -> object:
        return x.nothing  # type: ignore[attr-defined]

    def compiled() -> None:
        with pytest.raises(numba.TypingError):
            jit(wrong, keep=False)(1.0)

    seen, done = set(), threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.add(sys.stdout)

    with contextlib.redirect_stdout(io.StringIO()) as redirected:
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for _ in range(20):
                compiled()
        finally:
            done.set()
            watcher.join()
    assert seen == {redirected}


def test_compiling_beside_a_cell_leaves_its_warnings_alone() -> None:
    """Cells that filter warnings for a while, again and again, have those shown that they had before."""

    def compile_some() -> None:
        for number in range(3):

            def summed(x: float, number: int = number) -> float:
                total = 0.0
                for step in range(10):
                    total += x * step + number
                return total

            jit(summed, keep=False)(1.0)

    shows = warnings.showwarning, vars(warnings)["_showwarnmsg_impl"]
    compiler, changed = threading.Thread(target=compile_some), 0
    compiler.start()
    while compiler.is_alive():
        with warnings.catch_warnings():
            time.sleep(0.0001)
        time.sleep(0.0001)
        changed += (warnings.showwarning, vars(warnings)["_showwarnmsg_impl"]) != shows
    compiler.join()
    assert changed == 0
