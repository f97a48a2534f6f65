"""The machine a figure was measured on, so that two figures can be told apart later."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

PACKAGES = ("winquery", "numba", "numpy", "pyarrow", "pyspark")


def describe() -> dict[str, Any]:
    """Cores, load over 1, 5 and 15 minutes as it is now, and the versions that matter."""
    return {
        "cpus": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
