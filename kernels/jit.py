"""The one place that says how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile on first call: no Python objects, no GIL, IEEE division, kept in numba's disk cache.

    Without a writable cache folder (an executor of a cluster, say) the kernel is compiled once per process.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba: "no locator available", neither the source folder nor the user's is writable
        compiled = numba.njit(**options)(function)
    return compiled
