"""Generated source as real modules, so that numba's disk cache works and tracebacks show the text.

A module is named by the sha256 of its text, of the kernels it calls, of numba's version and of the processor;
it lives in the user's cache folder (mode 0700) beside numba's own files, so another process finds the machine code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from workbench import kernels
from workbench.cache import cache_folder


def _folder() -> Path | None:
    return cache_folder("kernels")


def digest(source: str) -> str:
    """The name of a kernel: changes with its text and with everything that its machine code depends on."""
    return hashlib.sha256("\0".join([source, *_surroundings()]).encode()).hexdigest()[:24]


@cache
def _surroundings() -> tuple[str, ...]:
    """What machine code depends on beside its own text."""
    # As resources: on an executor the package may be in a zip. All, whichever of them a text calls.
    called = [each for each in files(kernels).iterdir() if each.name.endswith(".py")]
    called.sort(key=lambda each: each.name)
    return (*(each.read_text() for each in called), version("numba"), *os.uname()[3:], _processor())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return "".join(line for line in lines[:40] if line.startswith(("model name", "flags")))


def load(name: str, source: str, functions: Mapping[str, Callable[..., Any]]) -> ModuleType:
    """The module of a kernel; compiles nothing yet. The same object for every call in a process.

    ``functions`` are put into it by name. A module with such functions stays in memory: they belong to this process.
    """
    qualified = f"winquery_kernel_{name}"
    if qualified in sys.modules:
        return sys.modules[qualified]
    if functions:
        module = ModuleType(qualified)
        vars(module).update(functions)
        exec(compile(source, f"<{qualified}>", "exec"), vars(module))
        sys.modules[qualified] = module
        return module
    folder = _folder()
    path = (folder or Path(tempfile.mkdtemp(prefix="winquery-kernels-"))) / f"{qualified}.py"
    if not path.exists():  # numba's cache is tied to the file's time stamp: write once, and whole
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".py", delete=False) as file:
            file.write(source)
        os.replace(file.name, path)
    spec = importlib.util.spec_from_file_location(qualified, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the generated kernel {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[qualified] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[qualified]
        raise
    return module
