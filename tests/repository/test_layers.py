"""Imports go downward only, and the two symlinked packages have one name each.

The table is the one of ``docs/architecture.md``. A module may import its own layer's package and every layer
below; two layers of one line know nothing of each other.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

#: From the top of the house to its leaves.
LAYERS = (
    ("__main__",),
    ("__init__", "calibrate", "doctor", "headless", "prepare", "template"),
    ("notebook",),
    ("widgets",),
    ("session",),
    ("spark",),
    ("runtime",),
    ("codegen",),
    ("plan",),
    ("language", "temporal"),
    ("logical",),
    ("algebra",),
    ("kernels",),
    ("results", "datasets", "feeds"),
    ("time",),
    ("errors", "cache"),
)
HEIGHT = {name: -line for line, names in enumerate(LAYERS) for name in names}


def layer_of(module: str) -> str:
    """The layer of a dotted module below ``workbench``; the package itself counts as ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import in a module of ``package``, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, base] if base else parent)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def upward(source: str, module: str, package: str) -> list[str]:
    """The imports in ``source`` that do not go downward, as ``line N: name``."""
    own = layer_of(module)
    found = []
    for line, name in imports(ast.parse(source), package):
        if name.split(".")[0] != "workbench":
            continue
        other = layer_of(name)
        other = other if other in HEIGHT else "__init__"
        if other != own and HEIGHT[other] >= HEIGHT[own]:
            found.append(f"line {line}: {name}")
    return found


def modules(root: Path) -> list[tuple[str, Path]]:
    """Dotted name and path of every module of the package, through the symlinks."""
    folders = [root / "workbench", *(child for child in (root / "workbench").iterdir() if child.is_symlink())]
    paths = {path for folder in folders for path in folder.rglob("*.py")}
    return sorted((".".join(path.relative_to(root).with_suffix("").parts), path) for path in paths)


def test_every_module_has_a_layer(root: Path) -> None:
    found = {layer_of(name) for name, _ in modules(root)}
    assert found <= set(HEIGHT), "a new top-level module needs a line in LAYERS and in docs/architecture.md"


def test_imports_go_downward_only(root: Path) -> None:
    wrong = {}
    for name, path in modules(root):
        package = name.removesuffix(".__init__") if name.endswith("__init__") else name.rpartition(".")[0]
        if bad := upward(path.read_text(encoding="utf-8"), name, package):
            wrong[name] = bad
    assert not wrong


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from workbench.errors import QueryError", []),
        ("from workbench.plan.cost import Cost", []),
        ("from . import cost", []),
        ("from workbench.spark import lifecycle", ["line 1: workbench.spark.lifecycle"]),
        ("def late():\n    import workbench.session", ["line 2: workbench.session"]),
        ("from workbench import source", ["line 1: workbench.source"]),
        ("from ..runtime import operator", ["line 1: workbench.runtime.operator"]),
        ("import pyarrow as pa", []),
    ],
)
def test_the_check_itself(source: str, expected: list[str]) -> None:
    assert upward(source, "workbench.plan.share", "workbench.plan") == expected


def test_numba_is_imported_in_one_place(root: Path) -> None:
    """Threads that import parts of it at once break each other's imports."""
    importing = {
        name
        for name, path in modules(root)
        for _, other in imports(ast.parse(path.read_text(encoding="utf-8")), "")
        if other.split(".")[0] in ("numba", "llvmlite")
    }
    assert importing == {"workbench.kernels.compiler"}


@pytest.mark.parametrize("name", ["kernels", "widgets"])
def test_kernels_and_widgets_are_seen_through_symlinks(root: Path, name: str) -> None:
    link = root / "workbench" / name
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{name}"
    assert (root / name / "__init__.py").is_file()
    assert not (root / name).is_symlink()


def test_nobody_imports_kernels_or_widgets_from_the_top(files: list[Path]) -> None:
    """Two names for one file would be two modules: two jit caches, two registries."""
    wrong = []
    for path in files:
        for source in python_sources(path):
            names = {name.split(".")[0] for _, name in imports(ast.parse(source), "") if name}
            if names & {"kernels", "widgets"}:
                wrong.append(str(path))
    assert not wrong


def python_sources(path: Path) -> Iterator[str]:
    """The Python in a file: the file itself, or the cells of a notebook without their magics."""
    if path.suffix == ".py":
        yield path.read_text(encoding="utf-8")
    elif path.suffix == ".ipynb":
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and not source.startswith("%%"):
                yield "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!", "?")))
