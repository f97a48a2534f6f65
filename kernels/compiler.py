"""All of numba and llvmlite that kernels are made with, and the one place that imports them.

Kernels are compiled on several threads. Two threads that import parts of a package which import one another can wait
for each other; Python lets one of them go on with half a module then, and it fails with "partially initialized
module". Here the whole package comes first, and whoever needs a part waits for this module.
"""

from __future__ import annotations

import numba
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, errors, types
from numba.core.caching import FunctionCache
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.extending import intrinsic, overload, register_jitable

__all__ = [
    "FunctionCache",
    "cgutils",
    "cpu_target",
    "errors",
    "get_host_cpu_features",
    "intrinsic",
    "ir",
    "numba",
    "overload",
    "register_jitable",
    "rtsys",
    "types",
]
