"""Documents say only what is there: links lead somewhere, named files exist, commands work."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
NAMED_FILE = re.compile(
    r"`((?:\.ci|workbench|kernels|widgets|tests|benchmarks|notebooks|examples|docs|binder)/[\w./-]*)`"
)
COMMAND = re.compile(r"(?:^|`)make ([\w-]+)", re.MULTILINE)
TARGET = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)


@pytest.fixture(scope="module")
def documents(files: list[Path]) -> list[Path]:
    return [path for path in files if path.suffix == ".md"]


def test_links_lead_somewhere(root: Path, documents: list[Path]) -> None:
    broken = [
        f"{path.relative_to(root)}: {target}"
        for path in documents
        for target in LINK.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_files_named_in_documents_exist(root: Path, documents: list[Path]) -> None:
    missing = [
        f"{path.relative_to(root)}: {name}"
        for path in documents
        for name in NAMED_FILE.findall(path.read_text(encoding="utf-8"))
        if not (root / name).exists()
    ]
    assert missing == []


def test_commands_in_documents_are_in_the_makefile(root: Path, documents: list[Path]) -> None:
    targets = set(TARGET.findall((root / "Makefile").read_text(encoding="utf-8")))
    assert {"setup", "demo", "test", "test-all", "lint"} <= targets
    used = {(path.name, target) for path in documents for target in COMMAND.findall(path.read_text(encoding="utf-8"))}
    assert {target for name, target in used if name == "README.md"} >= {"demo", "test"}
    assert {(name, target) for name, target in used if target not in targets} == set()


def test_ci_runs_the_tests_as_the_readme_says(root: Path) -> None:
    script = root / ".ci" / "run"
    assert "\nmake test\n" in script.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_the_cell_of_the_readme_is_the_one_of_the_quickstart(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    notebook = json.loads((root / "notebooks" / "00_quickstart.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    live = [cell for cell in cells if cell.startswith("%%winquery") and "--live" in cell.splitlines()[0]]
    assert live
    assert live[0].strip() in readme


def test_notebooks_are_kept_without_outputs(files: list[Path]) -> None:
    notebooks = [path for path in files if path.suffix == ".ipynb"]
    kept = {
        path.name
        for path in notebooks
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell.get("outputs") or cell.get("execution_count")
    }
    assert notebooks
    assert kept == set()


def test_the_command_line_explains_itself() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "workbench", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "doctor" in shown
    assert "run-notebook" in shown
