"""Messages that cannot be asked for again, on the disk before they count.

Segments of records, only ever appended to; a position is a segment and a byte in it, so old segments can go. Cost:
what is received is written once, synced once a group of messages, and deleted when the checkpoint is beyond it.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import SourceError

#: Bytes after which a segment is followed by another one.
_SEGMENT = 1 << 24
#: Messages between two places where a micro-batch can end, at most.
_STRIDE = 500
#: Checksum of what follows, time of receipt in microseconds, lengths of topic and payload.
_HEAD = struct.Struct(">IqHI")

#: A segment and a byte in it.
Place = tuple[int, int]


@dataclass(frozen=True)
class Record:
    """A message: when it was received, in microseconds, its topic and its payload."""

    received: int
    topic: str
    payload: bytes


class Journal:
    """A journal in a folder, with one writer; reading and writing may be done by two threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        #: Where micro-batches can end, in order, with the number of messages since the one before.
        self._marks: list[tuple[Place, int]] = []
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = sorted(int(path.stem.removeprefix("messages-")) for path in folder.glob("messages-*.log"))
        self._first = kept[0] if kept else 0
        self._end: Place = self._first, 0
        for segment in kept:
            self._open(segment, last=segment == kept[-1])

    @property
    def end(self) -> Place:
        """Behind the last message."""
        return self._end

    def append(self, records: Sequence[Record]) -> None:
        """Add messages, and return when they are on the disk."""
        for first in range(0, len(records), _STRIDE):
            group = records[first : first + _STRIDE]
            segment, byte = self._end
            if byte >= _SEGMENT:
                segment, byte = segment + 1, 0
            content = b"".join(map(_pack, group))
            with open(self._path(segment), "ab") as log:
                log.write(content)
                log.flush()
                os.fsync(log.fileno())
            with self._lock:
                self._end = segment, byte + len(content)
                self._marks.append((self._end, len(group)))

    def reach(self, start: Place, limit: int | None) -> Place:
        """How far ``limit`` messages behind ``start`` go, with at least one group if there is one."""
        with self._lock:
            if not (self._first, 0) <= start <= self._end:
                raise SourceError(
                    f"the journal `{self._folder}` does not hold what follows the checkpoint",
                    hint="it belongs to the checkpoint and must stay with it; start with a new checkpoint",
                )
            reached, rows = start, 0
            for place, count in self._marks:
                if place <= start:
                    continue
                if limit is not None and rows and rows + count > limit:
                    break
                reached, rows = place, rows + count
            return reached

    def between(self, start: Place, end: Place) -> bytes:
        """The records between two places, as bytes for :func:`unpack`."""
        if start == end:
            return b""  # there may be no segment yet
        found = []
        for segment in range(start[0], end[0] + 1):
            with open(self._path(segment), "rb") as log:
                if segment == start[0]:
                    log.seek(start[1])
                found.append(log.read() if segment < end[0] else log.read(end[1] - log.tell()))
        return b"".join(found)

    def forget(self, place: Place) -> None:
        """Delete the segments before the one of ``place``."""
        with self._lock:
            self._marks = [mark for mark in self._marks if mark[0] > place]
            gone, self._first = range(self._first, place[0]), max(self._first, place[0])
        for segment in gone:
            self._path(segment).unlink(missing_ok=True)

    def _open(self, segment: int, *, last: bool) -> None:
        """Find the marks of a segment; a record that a crash has cut off never counted, and is taken away."""
        path, byte, rows = self._path(segment), 0, 0
        content = path.read_bytes()
        for _, byte in _records(content):
            rows += 1
            if rows % _STRIDE == 0:
                self._marks.append(((segment, byte), _STRIDE))
        if rows % _STRIDE:
            self._marks.append(((segment, byte), rows % _STRIDE))
        if byte < len(content):
            if not last:
                raise SourceError(
                    f"the journal `{path}` is broken at byte {byte}", hint="start with a new checkpoint"
                )
            os.truncate(path, byte)
        self._end = segment, byte

    def _path(self, segment: int) -> Path:
        return self._folder / f"messages-{segment}.log"


def unpack(content: bytes) -> list[Record]:
    """The records in a piece of a journal."""
    return [record for record, _ in _records(content)]


def _pack(record: Record) -> bytes:
    topic = record.topic.encode()
    body = _HEAD.pack(0, record.received, len(topic), len(record.payload))[4:] + topic + record.payload
    return struct.pack(">I", zlib.crc32(body)) + body


def _records(content: bytes) -> Iterator[tuple[Record, int]]:
    """The whole records at the beginning of ``content``, each with the byte behind it."""
    byte = 0
    while byte + _HEAD.size <= len(content):
        check, received, topic, payload = _HEAD.unpack_from(content, byte)
        middle = byte + _HEAD.size + topic
        end = middle + payload
        if end > len(content) or zlib.crc32(content[byte + 4 : end]) != check:
            return
        yield Record(received, content[byte + _HEAD.size : middle].decode(), content[middle:end]), end
        byte = end
