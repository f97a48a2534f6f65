"""The user's cache folder. A leaf."""

from __future__ import annotations

import os
import tempfile
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
