"""Machine code of several processes in one: each kernel finds its own, whatever was compiled where and when."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.kernels.jit import jit

#: A kernel that calls one of the scans, so that its machine code brings the scan's along.
CALLER = """
import numpy as np
from workbench.kernels import scan
from workbench.kernels.jit import jit

{name} = scan.{name}

@jit
def run(source, target, carry):
    return {name}(source, target, carry)

def main():
    source = np.array([3, 1, 2], np.int32)
    target = np.empty_like(source)
    run(source, target, np.int32(2))
    return target.tolist()
"""
ANSWERS = {
    "prefix_add": [5, 6, 8],
    "prefix_min": [2, 1, 1],
    "prefix_max": [3, 3, 3],
    "suffix_add": [8, 5, 4],
    "suffix_min": [1, 1, 2],
    "suffix_max": [3, 2, 2],
}


def test_kernels_that_were_compiled_apart_do_not_take_each_others_scan(tmp_path: Path) -> None:
    """Each in a process of its own, the first that it compiles; then all from the disk cache, in one process."""
    for name in ANSWERS:
        (tmp_path / f"calls_{name}.py").write_text(CALLER.format(name=name))

    def run(*names: str) -> list[str]:
        code = "; ".join(f"import calls_{name}; print(calls_{name}.main())" for name in names)
        paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
        environment = os.environ | {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False, timeout=300
        )
        assert not done.returncode, done.stderr
        return done.stdout.splitlines()

    for name, answer in ANSWERS.items():
        assert run(name) == [str(answer)]
    assert run(*ANSWERS) == [str(answer) for answer in ANSWERS.values()]


def test_a_kernel_from_a_factory_needs_a_name_of_its_own() -> None:
    def factory(step: int) -> None:
        def kernel(x: int) -> int:
            return x + step

        jit(kernel)

    with pytest.raises(ValueError, match="one name"):
        factory(1)
