"""What tasks and driver tell each other by files, where they are on one machine: large payloads, and the horizon.

A micro-batch that catches up with a recording carries tens of megabytes of slices to the operators and of results to
the driver. On the way through the JVM each of them is copied some eight times, on a heap that is meant for planning.
A file is written once and read once, and Spark carries its name.

Before a micro-batch begins, the driver knows which rows will be late: it has seen the watermark of the one before.
Tasks that know it too can put rows together that else they must keep apart (:mod:`workbench.runtime.fragmenting`).
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
_HORIZON = "horizon-"


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

    def note(self, batch: int, horizon: int) -> None:
        """On the driver, before a micro-batch begins: the watermark less the allowed lateness."""
        if self.folder is not None:
            with contextlib.suppress(OSError):  # tasks can do without
                aside = self.folder / f".{_HORIZON}{batch}"
                aside.write_text(str(horizon))
                aside.rename(self.folder / f"{_HORIZON}{batch}")

    def horizon(self, batch: int) -> int | None:
        """In a task of a micro-batch: what was noted, None if nothing was."""
        try:
            return None if self.folder is None else int((self.folder / f"{_HORIZON}{batch}").read_text())
        except FileNotFoundError:
            return None

    def sweep(self) -> None:
        """On the driver, between two micro-batches: nobody will ask for what was sent so far."""
        if self.folder is not None:
            for entry in os.scandir(self.folder):
                with contextlib.suppress(FileNotFoundError):  # a task that was given up clears up after itself
                    os.remove(entry.path)
