"""What the tests of the repository itself share: the files that belong to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def files(root: Path) -> list[Path]:
    """Every file that is in the repository or about to be: tracked, or new and not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"not in a git checkout: {error}")
    paths = (root / name for name in listed.split("\0") if name)
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())
