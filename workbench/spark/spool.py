"""Large results from tasks to the driver as files, where both are on one machine.

A micro-batch that catches up with a recording brings tens of megabytes of results. Through the JVM they are copied
some eight times, on a heap that is meant for planning; a file is written once and read once.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext

from workbench.spark.session import is_local

#: Bytes up to which the JVM is as quick.
SMALL = 1 << 18
#: No payload begins like this: theirs is :func:`workbench.runtime.wire.pack`.
_MARK = b"file:"


@dataclass(frozen=True)
class Spool:
    """A folder that tasks and driver see, or None where there is none. Its files end with it, if nobody takes them."""

    folder: Path | None

    @classmethod
    def beside(cls, scratch: Path, context: SparkContext) -> Spool:
        """One in a folder of the driver, which is made, where executors are on its machine."""
        if not is_local(context):
            return cls(None)
        folder = scratch / "results"
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

    def take(self, sent: bytes) -> bytes:
        """On the driver, once: the payload that was sent."""
        if self.folder is None or not sent.startswith(_MARK):
            return sent
        path = self.folder / sent.removeprefix(_MARK).decode()
        payload = path.read_bytes()
        path.unlink()
        return payload
