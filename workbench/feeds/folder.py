"""A folder into which files are put while the stream runs: each is read once, in the order in which they come."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from workbench.errors import SourceError
from workbench.feeds.dialect import PLAIN, Dialect
from workbench.feeds.feed import Position, task_count, usual_rows
from workbench.feeds.filelog import FileLog
from workbench.feeds.formats import LINES, SUFFIXES, RecordedFile, UnreadableError, scan, verify
from workbench.feeds.recording import FilePiece, Recording

#: Seconds between two looks into the folder.
_LOOK = 0.2
#: Seconds for which a file must not have grown before it counts as complete, if its format has no end mark.
_SETTLED = 1.0
#: Seconds for which a file that cannot be read is taken to be still on its way, after it last grew.
_PATIENCE = 30.0
#: Seconds after which the files that have been taken in are given out, before those that also are there.
_LONG = 0.5
#: How names of files begin that are not meant to be seen.
_HIDDEN = (".", "_")


@dataclass(frozen=True)
class FolderOptions:
    """A folder of files of one ``format`` with the columns of ``schema``; not those of folders inside it.

    ``dialect`` is how files of lines are written; ``patience`` is how many seconds a file that cannot be read may
    stay as it is before that is an error.
    """

    replayable: ClassVar[bool] = True

    path: str
    format: str
    schema: pa.Schema
    max_rows: int | None = None
    tasks: int | None = None
    patience: float = _PATIENCE
    dialect: Dialect = PLAIN

    def __str__(self) -> str:
        return f"the folder `{self.path}`"

    def open(self, time: str, folder: Path, now: Callable[[], float]) -> FolderFeed:
        """The feed; its log is in ``folder``. Raises SourceError for a log that cannot be read."""
        return FolderFeed(self, FileLog(folder / "files.jsonl"), time, now)


class FolderFeed:
    """A growing folder; a position is ``row``, the number of rows that are out of all files of the log.

    Files that are seen together come in the order of their time of modification, then name; a file waits for those
    before it, also for one that is not complete.
    """

    def __init__(self, options: FolderOptions, log: FileLog, time: str, now: Callable[[], float]) -> None:
        self._options = options
        self._log = log
        self._now = now
        self._recording = Recording((replace(file, dialect=options.dialect) for file in log.files), time)
        self._known = {os.path.basename(file.path) for file in log.files}
        self._looked: float | None = None
        #: Files on their way, by name: size and time of modification, and since when they have been so.
        self._waiting: dict[str, tuple[tuple[int, int], float]] = {}

    def initial(self) -> Position:
        """Before the first file."""
        return {"row": 0}

    def advance(self, position: Position, limit: int | None) -> tuple[Position, bool]:
        """The rows of the files that are there; it never ends by itself. One look every fifth of a second."""
        start = position["row"]
        if start > self._recording.rows:
            raise SourceError(
                f"the log of the files of `{self._options.path}` has only {self._recording.rows:,} rows, but "
                f"{start:,} are out",
                hint="it belongs to the checkpoint and must stay with it; start with a new checkpoint",
            )
        limit = usual_rows(start) if limit is None else limit
        if self._recording.rows - start < limit:
            self._look()
        row = min(self._recording.rows, start + limit)
        return {"row": row}, False

    def pieces(self, start: Position, end: Position, tasks: int) -> list[list[FilePiece]]:
        """The rows between two positions; see :meth:`Recording.split`."""
        return self._recording.split(start["row"], end["row"], task_count(end["row"] - start["row"], tasks))

    def commit(self, position: Position) -> None:
        """Nothing can go: files are the user's, and no name is read twice."""

    def close(self) -> None:
        """Nothing is open."""

    def _look(self) -> None:
        """Take in the files that have come, those that are complete, in order, for half a second.

        The rest is for the next look: tens of thousands of files do not have to be opened before the first result.
        """
        now = self._now()
        if self._looked is not None and now - self._looked < _LOOK:
            return
        self._looked = now
        taken: list[RecordedFile] = []
        try:
            new = self._new()
            self._note({name: stamp for stamp, name in new}, now)
            for _, name in new:
                file = self._take(name, now)
                if file is None:
                    break
                taken.append(file)
                if self._now() - now > _LONG:
                    break
        finally:
            if taken:
                self._log.append(taken)
            for file in taken:
                self._known.add(os.path.basename(file.path))
                self._recording.add(file)

    def _new(self) -> list[tuple[tuple[int, int], str]]:
        """Size and time of modification, and name, of the files that are not in the log, in order."""
        endings = SUFFIXES[self._options.format]
        found = []
        try:
            with os.scandir(self._options.path) as entries:
                for entry in entries:
                    if entry.name in self._known or entry.name.startswith(_HIDDEN):
                        continue
                    if not entry.name.casefold().endswith(endings):
                        continue
                    try:
                        stamp = entry.stat()
                    except OSError as error:
                        if isinstance(error, FileNotFoundError) or error.errno == errno.ELOOP:
                            continue  # renamed or taken away between two calls, or a link to nowhere: not there, then
                        raise
                    # A folder may have such a name, as Spark's do. A file of lines is begun before it is written.
                    if stat.S_ISREG(stamp.st_mode) and (stamp.st_size or self._options.format not in LINES):
                        found.append(((stamp.st_size, stamp.st_mtime_ns), entry.name))
        except (FileNotFoundError, NotADirectoryError):
            raise SourceError(
                f"no folder `{self._options.path}`", hint="bring it back and start the query again"
            ) from None
        except OSError as error:
            raise SourceError(f"cannot look into `{self._options.path}`: {error.strerror}") from None
        return sorted(found, key=lambda entry: (entry[0][1], entry[1]))

    def _note(self, stamps: dict[str, tuple[int, int]], now: float) -> None:
        """Remember since when the files that have come are as they are."""
        before, self._waiting = self._waiting, {}
        for name, stamp in stamps.items():
            same = name in before and before[name][0] == stamp
            self._waiting[name] = before[name] if same else (stamp, now)

    def _take(self, name: str, now: float) -> RecordedFile | None:
        """A new file if it is complete, else None. Raises SourceError for one that never will be, or does not fit."""
        options, path = self._options, os.path.join(self._options.path, name)
        still = now - self._waiting[name][1]
        if options.format in LINES and still < _SETTLED:
            return None
        try:
            file = scan(path, options.format, options.schema, options.dialect)
            verify(file, options.schema)
        except UnreadableError as error:
            if still < options.patience:
                return None
            raise SourceError(
                f"{error.message} (for {still:.0f} s it has not changed)",
                hint="write a file under a name that begins with `.` or `_`, and rename it when it is complete; or "
                "take it out of the folder, and start the query again",
            ) from None
        except SourceError:
            if not os.path.exists(path):
                return None  # taken away since it was seen: its rows do not count yet
            raise
        return file
