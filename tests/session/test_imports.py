"""What a notebook pays for before its first query."""

from __future__ import annotations

import subprocess
import sys


def test_a_session_does_not_load_the_compiler() -> None:
    """numba takes half a second to import; kernels are compiled where rows are, in workers or in the engine."""
    program = "import sys, workbench.session; print([m for m in ('numba', 'bokeh', 'IPython') if m in sys.modules])"
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": ""}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"
