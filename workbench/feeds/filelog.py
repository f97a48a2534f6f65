"""The files that a growing folder has given, in the order in which they were taken in: a log that survives crashes.

One line of JSON a file, only ever appended to and on the disk before an offset counts its rows, so that the offset
itself can be a number. Cost: some 100 bytes a file, kept for as long as the checkpoint, for no name is read twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import SourceError
from workbench.feeds.formats import RecordedFile
from workbench.feeds.lines import Block

#: Of the lines; a log of another one is refused.
_VERSION = 1


class FileLog:
    """A log with one writer. ``files`` are its entries when it was opened, and since then."""

    def __init__(self, path: Path) -> None:
        self.files: list[RecordedFile] = []
        self._path = path
        if path.exists():
            self._load()

    def append(self, files: Sequence[RecordedFile]) -> None:
        """Add files, and return when they are on the disk."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._path, "ab") as log:
            log.writelines(_line(file) for file in files)
            log.flush()
            os.fsync(log.fileno())
        self.files += files

    def _load(self) -> None:
        """Read all lines; a last one that a crash has cut off was never counted, and is taken away."""
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with open(self._path, "r+b") as log:
                log.truncate(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                version, path, kind, size, blocks = json.loads(line)
                if version != _VERSION:
                    raise ValueError(f"version {version}, expected {_VERSION}")
                self.files.append(RecordedFile(path, kind, size, tuple(Block(*block) for block in blocks)))
            except (ValueError, TypeError) as error:
                raise SourceError(
                    f"cannot read line {number} of `{self._path}`: {error}",
                    hint="it was written by another version, or changed; start with a new checkpoint",
                ) from None


def _line(file: RecordedFile) -> bytes:
    blocks = [[block.rows, block.place, block.end] for block in file.blocks]
    return json.dumps([_VERSION, file.path, file.format, file.size, blocks]).encode() + b"\n"
