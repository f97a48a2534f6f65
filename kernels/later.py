"""Functions that are compiled while other code already does their work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

_EVERY: list[Later] = []


def compile_all() -> None:
    """Wait until all functions of the modules imported so far are compiled."""
    for later in _EVERY:
        later.compile()


class Later:
    """A function that is compiled on a thread of its own, from its first use on (*Grizzly* §6.1: start generic).

    ``samples`` are arguments of all types it will be called with. ``WINQUERY_KERNELS`` chooses as for the kernels of
    plans: ``generic`` never compiles, ``compiled`` waits.
    """

    def __init__(self, function: Callable[..., Any], samples: Sequence[tuple[Any, ...]]) -> None:
        self._function = function
        self._samples = samples
        self._lock = threading.Lock()
        self._future: Future[Callable[..., Any]] | None = None
        _EVERY.append(self)

    def ready(self) -> Callable[..., Any] | None:
        """The compiled function, or None as long as other code must do its work. Raises what the compiler raised."""
        choice = os.environ.get("WINQUERY_KERNELS", "auto")
        if choice == "generic":
            return None
        future = self._begun()
        return future.result() if choice == "compiled" or future.done() else None

    def compile(self) -> Callable[..., Any]:
        """Wait for the compiled function. Raises what the compiler raised."""
        return self._begun().result()

    def _begun(self) -> Future[Callable[..., Any]]:
        with self._lock:
            if self._future is None:
                self._future = Future()
                threading.Thread(
                    target=self._compile, args=(self._future,), name="kernel compiler", daemon=True
                ).start()
        return self._future

    def _compile(self, future: Future[Callable[..., Any]]) -> None:
        try:
            # numba takes half a second to import, which processes that only plan and show need not wait for.
            from workbench.kernels.jit import jit

            compiled = jit(self._function)
            for sample in self._samples:
                compiled(*sample)
            future.set_result(compiled)
        except BaseException as error:
            future.set_exception(error)
