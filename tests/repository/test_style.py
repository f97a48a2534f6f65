"""What ruff cannot see: short files and functions, and nothing that belongs to one machine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

FILE_LINES = 400
FUNCTION_LINES = 60
CODE = ("workbench", "kernels", "widgets", "benchmarks", "examples")
TEXT = {".py", ".js", ".css", ".md", ".toml", ".txt", ".ipynb", ".cfg", ".yml", ".yaml", ".json", ""}

#: Written so that this file does not match itself.
BANNED = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:wor[k]|roo[t]|hom[e]/\w+)/"),
    "the address of a package index": re.compile(r"(?:index-ur[l]|://[\w.-]*(?:pyp[i]|npmj[s])\b)"),
}


def code(root: Path, files: list[Path], suffix: str) -> list[Path]:
    return [path for path in files if path.suffix == suffix and path.relative_to(root).parts[0] in CODE]


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from its name to its end, without the docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


@pytest.mark.parametrize("suffix", [".py", ".js"])
def test_files_are_short(root: Path, files: list[Path], suffix: str) -> None:
    sizes = {
        str(path.relative_to(root)): len(path.read_text(encoding="utf-8").splitlines())
        for path in code(root, files, suffix)
    }
    assert {name: size for name, size in sizes.items() if size > FILE_LINES} == {}


def test_functions_are_short(root: Path, files: list[Path]) -> None:
    long = {}
    for path in code(root, files, ".py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > FUNCTION_LINES:
                long[f"{path.relative_to(root)}:{node.lineno} {node.name}"] = body_lines(node)
    assert long == {}


@pytest.mark.parametrize("what", BANNED)
def test_nothing_belongs_to_one_machine(root: Path, files: list[Path], what: str) -> None:
    found = []
    for path in files:
        if path.suffix not in TEXT:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if BANNED[what].search(line):
                found.append(f"{path.relative_to(root)}:{number}: {line.strip()[:80]}")
    assert found == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("cd /" + "root/x", "a path of one machine"),
        ("--extra-index" + "-url=x", "the address of a package index"),
    ],
)
def test_the_patterns_match(line: str, what: str) -> None:
    assert BANNED[what].search(line)
