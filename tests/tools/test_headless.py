"""Running a notebook without a browser: what is printed, and what counts as a failure."""

from __future__ import annotations

import io
from pathlib import Path

import nbformat
import pytest

from workbench import headless
from workbench.__main__ import main


def notebook(folder: Path, *cells: str, failing: int | None = None) -> Path:
    sheet = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    if failing is not None:
        sheet.cells[failing].metadata["tags"] = ["raises-exception"]
    path = folder / "sheet.ipynb"
    nbformat.write(sheet, path)
    return path


def test_it_prints_the_last_lines_of_every_cell(tmp_path: Path) -> None:
    out = io.StringIO()
    path = notebook(tmp_path, "import os\nprint(os.getcwd())", "for n in range(20):\n    print('line', n)", "6 * 7")
    before = path.read_bytes()
    assert headless.run(path, timeout=60, out=out) == 0
    shown = out.getvalue()
    assert str(tmp_path) in shown
    assert "... (8 lines more)\n  line 8\n" in shown
    assert "\n  42\n" in shown
    assert shown.splitlines()[-1].startswith("sheet.ipynb: 3 cells ran in ")
    assert path.read_bytes() == before


def test_a_failing_cell_ends_it_with_the_error(tmp_path: Path) -> None:
    out = io.StringIO()
    assert headless.run(notebook(tmp_path, "1 / 0", "print('not reached')"), timeout=60, out=out) == 1
    assert "ZeroDivisionError" in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert "not reached" not in out.getvalue()


def test_a_cell_that_is_meant_to_fail_does_not_end_it(tmp_path: Path) -> None:
    out = io.StringIO()
    assert headless.run(notebook(tmp_path, "1 / 0", "print('reached')", failing=0), timeout=60, out=out) == 0
    assert "ZeroDivisionError" in out.getvalue()
    assert "  reached" in out.getvalue()


def test_a_cell_that_never_ends_is_stopped(tmp_path: Path) -> None:
    out = io.StringIO()
    assert headless.run(notebook(tmp_path, "import time\ntime.sleep(60)"), timeout=1, out=out) == 1
    assert "took longer than 1 s" in out.getvalue()


def test_a_missing_notebook_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-notebook", str(tmp_path / "none.ipynb")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("no notebook `")
    assert "Traceback" not in error


@pytest.mark.parametrize("content", ["ts,k\n", "{}"])
def test_what_is_no_notebook_is_told_in_a_line(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sheet.ipynb"
    path.write_text(content)
    assert main(["run-notebook", str(path)]) == 1
    assert f"`{path}` is no notebook: " in capsys.readouterr().err


def test_a_kernel_that_dies_is_told(tmp_path: Path) -> None:
    out = io.StringIO()
    assert headless.run(notebook(tmp_path, "import os\nos._exit(3)"), timeout=60, out=out) == 1
    assert out.getvalue() == "sheet.ipynb: the kernel died; is there memory enough?\n"


def test_ctrl_c_is_no_fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(path: Path, timeout: int) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(headless, "run", interrupted)
    assert main(["run-notebook", "sheet.ipynb"]) == 130
    assert capsys.readouterr().err == "stopped\n"
