"""Run a notebook from top to end without a browser, and print what each cell said. Needs the `demo` extra."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from workbench.errors import SourceError

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def run(path: Path, timeout: int = 300, out: TextIO | None = None) -> int:
    """Execute ``path`` in a fresh kernel, in its own folder; the file itself stays as it is.

    After each code cell its first line, its time and the last lines of its output are printed. Returns 0 if every
    cell ran (a cell tagged ``raises-exception`` may fail, as its story demands), otherwise prints the error of
    the first cell that failed and returns 1. ``timeout`` is in seconds for one cell.
    """
    stream = out or sys.stdout
    try:
        import nbclient
        import nbformat
    except ImportError as error:
        raise SourceError(
            f"running a notebook needs the package `{error.name}`", hint="pip install 'winquery[demo]'"
        ) from error
    if not path.is_file():
        raise SourceError(f"no notebook `{path}`", hint="give the path of an .ipynb file")
    try:
        notebook = nbformat.read(path, as_version=4)
    except (ValueError, nbformat.ValidationError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"`{path}` is no notebook: {reason}", hint="give the path of an .ipynb file") from None
    started: dict[int, float] = {}

    def on_start(cell: Any, cell_index: int) -> None:
        started[cell_index] = time.perf_counter()

    def on_done(cell: Any, cell_index: int, execute_reply: Any) -> None:
        failed = execute_reply["content"]["status"] == "error"
        if failed and "raises-exception" not in cell.metadata.get("tags", ()):
            return
        seconds = time.perf_counter() - started.get(cell_index, time.perf_counter())
        print(describe(cell, seconds), file=stream, flush=True)

    client = nbclient.NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.resolve().parent)}},
        on_cell_start=on_start,
        on_cell_executed=on_done,
    )
    begin = time.perf_counter()
    try:
        client.execute()
    except nbclient.exceptions.CellTimeoutError as error:
        print(f"{path.name}: a cell took longer than {timeout} s\n{error}", file=stream)
        return 1
    except nbclient.exceptions.DeadKernelError:
        print(f"{path.name}: the kernel died; is there memory enough?", file=stream)
        return 1
    except nbclient.exceptions.CellExecutionError as error:
        print(f"{path.name}: a cell failed\n{_ANSI.sub('', str(error))}", file=stream)
        return 1
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    print(f"{path.name}: {cells} cells ran in {time.perf_counter() - begin:.0f} s", file=stream)
    return 0


def describe(cell: Any, seconds: float, lines: int = 12) -> str:
    """A cell in a few lines: its first line of code, how long it took, the last ``lines`` of its output."""
    source = next((line for line in cell.source.splitlines() if line.strip()), "")
    shown = [line for output in cell.outputs for line in text_of(output).splitlines()]
    cut = [f"  ... ({len(shown) - lines} lines more)"] if len(shown) > lines else []
    return "\n".join([f"[{seconds:5.1f} s] {source}", *cut, *(f"  {line}" for line in shown[-lines:])])


def text_of(output: Any) -> str:
    """The plain text of one output of a cell, without colours."""
    if output.output_type == "stream":
        text = output.text
    elif output.output_type == "error":
        text = "\n".join(output.traceback)
    else:
        text = output.data.get("text/plain", "")
    return _ANSI.sub("", text)
