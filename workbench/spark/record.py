"""The results of a run beside its checkpoint: a driver that starts again fills its result stores from them.

One file per micro-batch, written before the stores see it and named by its number, so that a micro-batch that runs
again after a crash writes over itself. Now and then the files become one, in which of each result only the newest
stands, and of each level no more than a bound of the newest windows.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from workbench.results import ResultBatch, ResultBundle, ResultColumns, Status, encode_columns
from workbench.runtime import wire
from workbench.runtime.wire import Report, added, decode_report, encode_report

#: Micro-batches after which the files are put together.
EVERY = 128
#: Bytes of one level of one query that are kept when files are put together; the oldest windows go first.
BUDGET = 64 << 20

_BASE, _BATCH = ".base", ".batch"


class Record:
    """The folder of results. One run writes at a time; see :class:`~workbench.spark.checkpoint.Checkpoint`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._since = 0

    def put(self, batch: int, payloads: Sequence[bytes]) -> None:
        """Keep the report blobs of a micro-batch. Raises OSError where the disk is full; nothing is half written.

        The newest micro-batch always has a file of its own: it may run again, and counts once.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._since >= EVERY:
            self.compact(batch)
        self._write(self._folder / f"{batch:012d}{_BATCH}", payloads)
        self._since += 1

    def read(self) -> Iterator[tuple[int, list[Report]]]:
        """The micro-batches kept, from the oldest on, each with its number; some of them may have become one."""
        base, batches = self._files()
        for path in [*([] if base is None else [base]), *batches]:
            yield _number(path), _reports(path)

    def newest_plan(self) -> int | None:
        """The version of the newest plan by which something was reported, None without any."""
        base, batches = self._files()
        for path in [*reversed(batches), *([] if base is None else [base])]:
            reports = _reports(path)
            if reports:
                return max(report.plan for report in reports)
        return None

    def compact(self, before: int | None = None) -> None:
        """Put all files together into one, or those of micro-batches ``before`` one.

        A crash in the middle loses and doubles nothing.
        """
        base, batches = self._files()
        if before is not None:
            batches = [path for path in batches if _number(path) < before]
        if not batches:
            return
        paths = [*([] if base is None else [base]), *batches]
        kept = [_reports(path) for path in paths]
        merged = _merged([report for reports in kept for report in reports], kept)
        newest = batches[-1].with_suffix(_BASE)
        self._write(newest, [encode_report(report) for report in merged])
        for path in paths:
            path.unlink(missing_ok=True)
        self._since = 0

    def _files(self) -> tuple[Path | None, list[Path]]:
        """The newest base, and the micro-batches behind it."""
        base = max(self._folder.glob(f"*{_BASE}"), key=_number, default=None)
        behind = -1 if base is None else _number(base)
        return base, sorted(path for path in self._folder.glob(f"*{_BATCH}") if _number(path) > behind)

    def _write(self, path: Path, payloads: Sequence[bytes]) -> None:
        aside = path.with_name(f".{path.name}.new")
        table = pa.record_batch([pa.array(payloads, pa.large_binary())], names=["payload"])
        try:
            aside.write_bytes(wire.pack(wire.Kind.RECORD, {}, [table]))
            os.replace(aside, path)
        except OSError:
            aside.unlink(missing_ok=True)
            raise


def _number(path: Path) -> int:
    return int(path.stem)


def _reports(path: Path) -> list[Report]:
    _, (table,) = wire.unpack(wire.Kind.RECORD, path.read_bytes())
    return [decode_report(payload) for payload in table.column(0).to_pylist()]


def _merged(reports: Sequence[Report], batches: Sequence[Sequence[Report]]) -> list[Report]:
    """One report for each version of the plan, with the newest of each result, and the counts of all."""
    last = {report.plan: report for report in reports}
    merged, oldest = [], min(last, default=0)
    for version, report in last.items():
        late: Counter[str] = Counter()
        backward: dict[str, tuple[int, str]] = {}
        found: dict[tuple[str, int], list[ResultBatch]] = defaultdict(list)
        for each in reports:
            if each.plan == version:
                late.update(each.late)
                backward = added(backward, each.backward)
                for query, batch in each.results:
                    found[query, batch.level].append(batch)
        first = [each[0] for each in batches if each and each[0].plan == version]
        kept = [(query, _newest(parts, version == oldest)) for (query, _), parts in found.items()]
        merged.append(
            replace(
                report,
                rows=sum(each.rows for each in first),
                ahead=sum(each.ahead for each in first),
                dropped=sum(each.dropped for each in first),
                late=dict(late),
                backward=backward,
                bundles=[ResultBundle.of(query, batch) for query, batch in kept],
            )
        )
    return merged


def _newest(parts: Sequence[ResultBatch], drop: bool) -> ResultBatch:
    """The last one of each result within the budget; ``drop`` leaves out those that were withdrawn."""
    columns = ResultColumns.joined([part.own() for part in parts])
    rows = len(columns)
    codes = encode_columns(columns.keys)[0] if columns.keys else np.zeros(rows, np.int64)
    _, windows = np.unique(columns.starts if columns.numbers is None else columns.numbers, return_inverse=True)
    _, backwards = np.unique((codes * np.int64(rows) + windows)[::-1], return_index=True)
    chosen = np.zeros(rows, np.bool_)
    chosen[rows - 1 - backwards] = True
    if drop:
        chosen &= columns.status != Status.ABSENT
    size = sum(column.nbytes for column in (*columns.keys, *columns.values)) + 16 * rows
    most = max(1, int(rows * BUDGET / max(size, 1)))
    if chosen.sum() > most:
        chosen &= columns.starts >= np.partition(columns.starts[chosen], -most)[-most]
    kept = columns.pick(chosen)
    return ResultBatch(parts[0].level, kept, 0, len(kept))
