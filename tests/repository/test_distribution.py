"""What a user gets from `pip install`: every module once, the widgets' scripts, the type marker, the licence."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(root: Path, files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from a copy so that nothing left over from an earlier build gets in."""
    copy = tmp_path_factory.mktemp("source")
    links = [root / "workbench" / name for name in ("kernels", "widgets")]
    for path in [*files, *links]:
        target = copy / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    built = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(built), str(copy)]
    subprocess.run(command, check=True)
    (path,) = built.glob("winquery-*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"workbench"}


def test_jupyterlab_finds_the_entry_of_its_launcher(root: Path, wheel: zipfile.ZipFile) -> None:
    ours = root / "widgets" / "labextension"
    wanted = {path.relative_to(ours).as_posix() for path in ours.rglob("*") if path.is_file()}
    data = [name.split(".data/data/", 1)[1] for name in wheel.namelist() if ".data/" in name]
    assert set(data) == {f"share/jupyter/labextensions/winquery/{name}" for name in wanted}


def test_every_source_file_is_in_the_wheel(root: Path, files: list[Path], wheel: zipfile.ZipFile) -> None:
    wanted = set()
    for path in files:
        name = path.relative_to(root)
        if "labextension" in name.parts:  # goes to where JupyterLab looks, above
            continue
        if name.parts[0] in ("kernels", "widgets"):
            name = Path("workbench") / name
        if name.parts[0] == "workbench" and path.suffix in {".py", ".js", ".css", ".typed"}:
            wanted.add(name.as_posix())
    assert wanted
    assert wanted - set(wheel.namelist()) == set()
    assert any(name.startswith("workbench/kernels/") for name in wanted)
    assert any(name.startswith("workbench/widgets/") and name.endswith(".js") for name in wanted)
    assert "workbench/py.typed" in wanted


def test_the_licence_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
