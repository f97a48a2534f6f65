"""What a Python worker does once, at its first task for us."""

from __future__ import annotations

import gc
from functools import cache


@cache
def settle() -> None:
    """Import what tasks need, and take it out of Python's garbage collection.

    numba and pandas bring a million objects, and each full collection would walk through all of them, 50 ms a time.
    Not for the driver's process, whose objects are the user's.
    """
    import workbench.runtime  # noqa: F401

    gc.collect()
    gc.freeze()
