"""Large payloads of a micro-batch as files, where tasks and driver are on one machine.

A micro-batch that catches up with a recording carries tens of megabytes of slices to the operators and of results to
the driver. On the way through the JVM each of them is copied some eight times, on a heap that is meant for planning.
A file is written once and read once, and Spark carries its name.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

#: Bytes up to which the JVM is as quick.
SMALL = 1 << 18
#: No payload begins like this: theirs is :func:`workbench.runtime.wire.pack`.
_MARK = b"file:"


@dataclass(frozen=True)
class Spool:
    """A folder of a run, which its tasks and the driver see; None where they do not, and all goes through Spark."""

    folder: Path | None = None

    @classmethod
    def beside(cls, scratch: Path, *, local: bool) -> Spool:
        """One in a folder of the driver, which is made, where executors are on its machine (``local``)."""
        if not local:
            return cls()
        folder = scratch / "spool"
        folder.mkdir(mode=0o700)
        return cls(folder)

    def put(self, payload: bytes) -> bytes:
        """In a task: what to send for a payload. Where the disk is full that is the payload itself."""
        if self.folder is None or len(payload) < SMALL:
            return payload
        path = None
        try:
            handle, path = tempfile.mkstemp(dir=self.folder)
            with open(handle, "wb") as file:
                file.write(payload)
        except OSError:
            if path is not None:
                with contextlib.suppress(OSError):
                    os.remove(path)
            return payload
        return _MARK + os.path.basename(path).encode()

    def get(self, sent: bytes) -> bytes:
        """The payload that was sent, as often as it is asked for: a task may have to run again."""
        if self.folder is None or not sent.startswith(_MARK):
            return sent
        return (self.folder / sent.removeprefix(_MARK).decode()).read_bytes()

    def sweep(self) -> None:
        """On the driver, between two micro-batches: nobody will ask for what was sent so far."""
        if self.folder is not None:
            for entry in os.scandir(self.folder):
                with contextlib.suppress(FileNotFoundError):  # a task that was given up clears up after itself
                    os.remove(entry.path)
