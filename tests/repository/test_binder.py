"""``binder/`` keeps the rules of repo2docker that nobody notices here until an image fails to build."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_scripts_can_be_run_and_stop_at_the_first_failure(name: str) -> None:
    script = BINDER / name
    assert os.access(script, os.X_OK)
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert script.read_text().startswith("#!/bin/bash\n")
    assert lines[0] == "set -e"
    if name == "start":
        assert lines[-1] == 'exec "$@"', "else signals do not reach the server"


def test_the_image_has_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (asked,) = [line for line in (BINDER / "requirements.txt").read_text().split("\n") if line and line[0] != "#"]
    assert asked.startswith(".[")
    assert set(asked[2:-1].split(",")) <= set(project["optional-dependencies"])
    version = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    assert tuple(map(int, version.split("."))) >= (3, 11)
    assert project["requires-python"].startswith(">=3.11")
    assert "jre-headless" in (BINDER / "apt.txt").read_text()
