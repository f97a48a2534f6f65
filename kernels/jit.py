"""The one place that says how kernels are compiled."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

from workbench.kernels import combine
from workbench.kernels.compiler import FunctionCache, cpu_target, errors, numba, overload, register_jitable, rtsys

F = TypeVar("F", bound=Callable[..., Any])

# Kernels are compiled beside a notebook's cells, and numba changes two things of the whole process meanwhile, which
# it puts back as they were before: what a cell has changed in between is undone, and what it puts back itself stays.
#
# Where colorama is installed, it wraps stdout and stderr while it words an error, and errors are part of its looking
# for types. The wrappers are for what is printed meanwhile, which nothing is.
if hasattr(errors, "ColorShell"):
    errors.ColorShell = nullcontext

_fixer: Any = vars(errors)["WarningsFixer"]
_collected = _fixer.catch_warnings


def _caught(fixer: Any, filename: str | None = None, lineno: int | None = None) -> Any:
    """It collects its warnings to show each once: on the main thread. On others they are shown at once."""
    beside = threading.current_thread() is not threading.main_thread()
    return nullcontext() if beside else _collected(fixer, filename, lineno)


_fixer.catch_warnings = _caught


class _DiskCache(FunctionCache):  # type: ignore[misc]
    """numba's disk cache, without numba's own ``refresh`` of all its types before it loads machine code.

    That imports and registers what a compiler needs, a third of a second once a process. Machine code needs the
    run-time symbols alone, which stand when the context does; whatever compiles later refreshes by itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature, None where there is none."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def jit(function: F, *, keep: bool = True) -> F:
    """Compile on first call: no Python objects, no GIL, IEEE division, kept in numba's disk cache.

    Without a writable cache folder (an executor of a cluster, say) the kernel is compiled once per process, as is
    one that is not to be kept: a user's function may change without its file. Raises ValueError for one from a
    factory that is to be kept and has no ``__qualname__`` of its own: machine code is found by that, and of two
    kernels of one name that different processes have compiled one would be taken for the other.
    """
    if keep and function.__closure__ and "<locals>" in function.__qualname__:
        raise ValueError(f"all kernels of a factory have one name, `{function.__qualname__}`")
    return _compiled(function, keep)


def bare(function: F) -> F:
    """As :func:`jit`, for one that creates no arrays: it counts no references to those that it is given.

    They live as long as the call. In a kernel over many short slices the counting is a twentieth of the time.
    """
    return _compiled(function, True, _nrt=False)


def _compiled(function: F, keep: bool, **options: bool) -> F:
    compiled: F = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if keep:
        # numba: "no locator available", where neither the source folder nor the user's is writable.
        with suppress(RuntimeError):
            compiled._cache = _DiskCache(function)  # type: ignore[attr-defined]
    return compiled


def warm_up() -> None:
    """Let numba register its own types now (half a second, once a process), not when it first compiles."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


#: Parts are always inlined (a call would hand over every array of the state in pieces, at many times the cost of the
#: work) and count no references to arrays (``_nrt`` is numba's own switch for that: they live as long as the call).
_PARTS = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}
_KNOWN: set[Callable[..., Any]] = set()


def jitable(function: F) -> F:
    """The function itself, plain Python as before, which :func:`assemble`d kernels may call as well.

    For the parts of a kernel that is put together at run time: they run in Python one by one, where a test can look
    into them, and as one piece in the kernel. They create no arrays and live as long as the process.
    """
    if function not in _KNOWN:  # numba takes a second telling for an ambiguity
        register_jitable(**_PARTS)(function)
        _KNOWN.add(function)
    return function


def assemble(function: F) -> F:
    """Compile a closure over :func:`jitable` parts on its first call, once per process; it creates no arrays.

    Not kept on disk: numba never finds such a closure again, but would store one more copy in every process.
    """
    compiled: F = numba.njit(**_PARTS)(function)
    return compiled


# numba compares the two signatures, so the stand-ins have no annotations.
@overload(combine.pick)
def _pick(take, yes, no):  # type: ignore[no-untyped-def]
    return lambda take, yes, no: yes if take else no


@overload(combine.frexp)
def _frexp(x):  # type: ignore[no-untyped-def]
    return lambda x: math.frexp(x)


register_jitable(combine.precedes)
register_jitable(combine.alike)
