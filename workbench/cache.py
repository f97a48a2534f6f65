"""The user's cache folder. A leaf."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path


def cache_root() -> Path:
    """``winquery`` below ``$XDG_CACHE_HOME`` or ``~/.cache``; it need not exist."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "winquery"


def cache_folder(name: str) -> Path | None:
    """A folder below the root that belongs to the user alone (0700); None where none can be written.

    Executors of a cluster often have no home: callers do without, or keep things for this process only.
    """
    folder = cache_root() / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: there is no home at all
        return None


def put_script(path: Path, lines: Sequence[str]) -> None:
    """Write an executable script for the user alone, with the folders above it.

    Two kernels may start at once: it is written aside and renamed, so that nobody ever runs half of it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write("\n".join([*lines, ""]))
    os.chmod(aside, 0o700)
    os.replace(aside, path)
