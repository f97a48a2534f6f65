"""What travels between tasks, state and driver: a JSON header and Arrow tables in one block of bytes.

Layout: ``b"WQ" + version + kind``, the header's length, the header (UTF-8 JSON), then Arrow IPC streams of the
lengths that the header names. Everything inside is columnar Arrow; an unknown version is refused, never guessed. The
one thing that is pickled is a plan, by the driver, for its own tasks.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.errors import EngineError
from workbench.results import ResultBatch, ResultBundle, ResultColumns, Targets, batches_of
from workbench.runtime.learned import Learned, read_learned

VERSION = 7
_HEAD = struct.Struct("<2sBBI")


class Kind(IntEnum):
    """What a block of bytes is."""

    SLICES = 1
    STATE_META = 2
    STATE_BLOCK = 3
    REPORT = 4
    PLAN = 5
    RECORD = 6
    SIGNALS_META = 7
    SIGNALS_BLOCK = 8
    SIGNALS_ROWS = 9
    SIGNALS_POINTS = 10


def pack(kind: Kind, header: dict[str, Any], tables: Sequence[pa.RecordBatch | bytes] = ()) -> bytes:
    """One block of bytes; inverse of :func:`unpack`. A table may be one that is written already."""
    bodies = [table if isinstance(table, bytes) else _written(table) for table in tables]
    head = json.dumps({**header, "lengths": [len(body) for body in bodies]}, separators=(",", ":")).encode()
    return b"".join([_HEAD.pack(b"WQ", VERSION, kind, len(head)), head, *bodies])


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as one batch, also where it has no rows."""
    return next(iter(table.combine_chunks().to_batches()), pa.RecordBatch.from_pylist([], table.schema))


def _written(table: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    return sink.getvalue()


def _read(body: pa.Buffer | bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(body) as reader:
        return reader.read_next_batch()


def unpack(kind: Kind, payload: bytes) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
    """Header and tables (no copy of the columns). Raises EngineError for another kind or version."""
    header, bodies = _opened(kind, payload)
    return header, list(map(_read, bodies))


def _opened(kind: Kind, payload: bytes) -> tuple[dict[str, Any], list[pa.Buffer]]:
    """As :func:`unpack`, the tables as they are written."""
    if len(payload) < _HEAD.size:
        raise EngineError(f"expected a {kind.name.lower()} message, got {len(payload)} bytes")
    magic, version, found, length = _HEAD.unpack_from(payload)
    if magic != b"WQ" or found != kind:
        raise EngineError(f"expected a {kind.name.lower()} message, got something else")
    if version != VERSION:
        raise EngineError(
            f"a {kind.name.lower()} message of format {version} cannot be read, this is format {VERSION}",
            hint="it was written by another version of winquery; start with a new checkpoint folder",
        )
    position = _HEAD.size + length
    header = json.loads(payload[_HEAD.size : position])
    bodies = []
    buffer = pa.py_buffer(payload)
    for size in header.pop("lengths"):
        bodies.append(buffer.slice(position, size))
        position += size
    return header, bodies


def signal(*, finish: bool) -> bytes:
    """A message of level 1 without rows; ``finish`` says that no row will ever follow."""
    return pack(Kind.SLICES, {"rows": 0, "max_event": None, "ahead": 0, "finish": finish, "folds": []})


def encode_plan(version: int, pickled: bytes) -> bytes:
    """A plan for the operators, from the next micro-batch on."""
    return pack(
        Kind.PLAN, {"version": version}, [pa.record_batch([pa.array([pickled], pa.binary())], names=["plan"])]
    )


def decode_plan(payload: bytes) -> tuple[int, bytes]:
    """The version and the pickled plan; inverse of :func:`encode_plan`."""
    header, (table,) = unpack(Kind.PLAN, payload)
    return int(header["version"]), table.column(0)[0].as_py()


def is_plan(payload: bytes) -> bool:
    """Whether :func:`encode_plan` has made a block of bytes."""
    return payload[:2] == b"WQ" and payload[3] == Kind.PLAN


@dataclass(frozen=True)
class Report:
    """What a bucket tells the driver about one micro-batch.

    ``rows``, ``ahead`` (of these, the ones too far in the future), ``dropped`` (rows that could not be read) and
    ``max_event`` are of the whole micro-batch and equal in every bucket; ``late`` counts, by query, the rows of this
    bucket that missed at least one window because its result was settled, where there are any; ``backward`` those
    that were left out because their measure goes back, with one of them in words; ``watermark`` is the one that now
    holds; ``slices`` and ``tuples`` are what is kept, ``keys`` of how many keys, by the windows that know most;
    ``merges``, ``splits`` and ``recomputations`` are what rows out of order made necessary in this micro-batch;
    ``plan`` is the version of the plan that ran. Times in microseconds,
    None before the first row. ``batch`` is the number of the micro-batch, which only the host knows: it does not
    travel. ``learned`` is what tasks have seen of the rows of folds, in one bucket for all.
    """

    rows: int
    ahead: int
    watermark: int | None
    max_event: int | None
    late: dict[str, int]
    slices: int
    tuples: int
    state_bytes: int
    finished: bool
    plan: int = 1
    dropped: int = 0
    batch: int = 0
    backward: dict[str, tuple[int, str]] = field(default_factory=dict)
    merges: int = 0
    splits: int = 0
    recomputations: int = 0
    keys: int = 0
    learned: dict[str, Learned] = field(default_factory=dict)
    bundles: list[ResultBundle] = field(default_factory=list)

    @property
    def results(self) -> list[tuple[str, ResultBatch]]:
        """The results by query, one by one: costs what there are queries."""
        return batches_of(self.bundles)


def added(counted: Mapping[str, tuple[int, str]], more: Mapping[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """Rows that went back, of two reports: counts add up, the first one that was told stays."""
    total = dict(counted)
    for query, (count, text) in more.items():
        before, known = total.get(query, (0, text))
        total[query] = before + count, known
    return total


def encode_report(report: Report) -> bytes:
    """A report as bytes; inverse of :func:`decode_report`."""
    header: dict[str, Any] = {
        "rows": report.rows,
        "ahead": report.ahead,
        "dropped": report.dropped,
        "watermark": report.watermark,
        "max_event": report.max_event,
        "late": report.late,
        "backward": report.backward,
        "slices": report.slices,
        "merges": report.merges,
        "splits": report.splits,
        "recomputations": report.recomputations,
        "tuples": report.tuples,
        "keys": report.keys,
        "state_bytes": report.state_bytes,
        "finished": report.finished,
        "plan": report.plan,
        "learned": {subject: learned.written() for subject, learned in report.learned.items()},
    }
    # Bundles may have columns in common, which travel once.
    shared = {id(bundle.columns): bundle.columns for bundle in report.bundles}
    place = {name: number for number, name in enumerate(shared)}
    header["columns"] = [[len(columns.keys), columns.numbers is None] for columns in shared.values()]
    header["bundles"] = [[len(bundle.targets), place[id(bundle.columns)]] for bundle in report.bundles]
    none = np.zeros(0, np.int64)
    lows, highs = ([none, *(getattr(each, side) for each in report.bundles)] for side in ("lows", "highs"))
    bounds = pa.record_batch([pa.array(np.concatenate(side)) for side in (lows, highs)], names=["low", "high"])
    tables: list[pa.RecordBatch | bytes] = [_targets_written(tuple(each.targets for each in report.bundles)), bounds]
    for columns in shared.values():
        sides = [columns.starts, columns.status, columns.revisions]
        sides += [] if columns.ends is None or columns.numbers is None else [columns.ends, columns.numbers]
        arrays = [*map(pa.array, sides), *columns.keys, *columns.values]
        tables.append(pa.record_batch(arrays, names=[str(index) for index in range(len(arrays))]))
    return pack(Kind.REPORT, header, tables)


@lru_cache(maxsize=16)
def _targets_written(every: tuple[Targets, ...]) -> bytes:
    """Who the results of a report are for, as a table: the same ones for many micro-batches."""
    names = pa.array([name for targets in every for name in targets.names], pa.string())
    levels = pa.array([level for targets in every for level in targets.levels], pa.int32())
    return _written(pa.record_batch([names, levels], names=["query", "level"])).to_pybytes()


@lru_cache(maxsize=16)
def _targets_read(body: bytes, sizes: tuple[int, ...]) -> tuple[Targets, ...]:
    """Inverse of :func:`_targets_written`, so many targets to each bundle."""
    names, levels = (tuple(column.to_pylist()) for column in _read(body).columns)
    return tuple(
        Targets(names[low:high], levels[low:high]) for low, high in pairwise(np.cumsum([0, *sizes]).tolist())
    )


def decode_report(payload: bytes) -> Report:
    """The report in a block of bytes."""
    header, (written, bounds, *tables) = _opened(Kind.REPORT, payload)
    shared = []
    for (keys, regular), table in zip(header.pop("columns"), map(_read, tables), strict=True):
        starts, status, revisions, *rest = table.columns
        ends, numbers = (None, None) if regular else (rest.pop(0).to_numpy(), rest.pop(0).to_numpy())
        shared.append(
            ResultColumns(
                starts.to_numpy(),
                tuple(rest[:keys]),
                tuple(rest[keys:]),
                status.to_numpy().astype(np.int8),
                revisions.to_numpy().astype(np.int16),
                ends,
                numbers,
            )
        )
    header["backward"] = {query: (count, text) for query, (count, text) in header["backward"].items()}
    header["learned"] = {subject: read_learned(each) for subject, each in header.get("learned", {}).items()}
    told = header.pop("bundles")
    sizes, places = tuple(size for size, _ in told), [place for _, place in told]
    lows, highs = (column.to_numpy() for column in _read(bounds).columns)
    bundles, done = [], 0
    for targets, place in zip(_targets_read(written.to_pybytes(), sizes), places, strict=True):
        own = slice(done, done := done + len(targets))
        bundles.append(ResultBundle(targets, shared[place], lows[own], highs[own]))
    return Report(**header, bundles=bundles)
