"""Rows of a task into fragments of sessions: what level 1 sends where a gap may end between two rows of a slice.

Rows that are less than a gap apart are of one session whatever lies between them. So where the gap is the same for
all rows, slices are cut once more into ranges shorter than it, rows are folded into these, in any order, and only the
ranges are put in order and looked at for gaps. Where that would make nearly as many ranges as there are rows, or gaps
differ by row, the rows themselves are put in order.

Rows that are late join no session, so there is a cut behind them. Whoever does not know the watermark cannot place
it: there only rows of equal time are one fragment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.gaps import extents, fragments
from workbench.kernels.slicing import Extent, extent_of, slices_of
from workbench.logical import Session
from workbench.runtime.branches.leaves import combined
from workbench.runtime.folding import Folder, Rows, chosen

Array = npt.NDArray[Any]

#: At least so many rows to a range on the average.
_ROWS = 4


@dataclass(frozen=True)
class Fragments:
    """An entry for each: start of its slice, key code, time of the first row, the ends by gap, fields of partials."""

    starts: Array
    codes: Array
    firsts: Array
    ends: list[Array]
    fields: list[Array]


def fragments_of(folder: Folder, rows: Rows, horizon: int | None = None) -> Fragments:
    """The fragments of rows of which there is at least one, for a fold with gaps. They come in any order.

    ``horizon`` is the watermark before this micro-batch less the allowed lateness, None where it is not known.
    """
    found = None if horizon is None else _by_ranges(folder, rows, horizon)
    return _by_rows(folder, rows, horizon) if found is None else found


def _by_ranges(folder: Folder, rows: Rows, horizon: int) -> Fragments | None:
    """Without putting rows in order, or None where that is not for these."""
    reaches = _reaches(folder.spec.gaps)
    times, width = rows.times, 1 if rows.codes is None else len(rows.keys[0])
    if reaches is None or times is None:
        return None
    reach = min(reaches)
    extent = extent_of(times)
    ranges = (extent.last - extent.first) // reach + len(rows.slices.starts)
    if ranges * width * _ROWS > len(rows):
        return None
    cuts = np.union1d(rows.slices.starts, _cuts(folder.spec.gaps, horizon, extent))
    fine = slices_of(times, [(reach, 0)], cuts, extent)
    cells = len(fine.starts) * width
    partials = folder.blank(cells)
    folder.fold(Rows(fine, rows.codes, rows.keys, rows.inputs), None, width, partials)
    group = fine.positions() if rows.codes is None else fine.positions() * width + rows.codes.rows()
    first, last = extents(group, times, cells)
    used = np.flatnonzero(partials[0][0])
    used = used[np.argsort(used % width, kind="stable")]  # by key, then by time
    place, codes = np.divmod(used, width)
    starts = rows.slices.starts[np.searchsorted(rows.slices.starts, fine.starts[place], "right") - 1]
    piece = np.searchsorted(cuts, fine.starts[place], "right")
    first, last = first[used], last[used]
    new = np.ones(len(used), np.bool_)
    new[1:] = (codes[1:] != codes[:-1]) | (piece[1:] != piece[:-1]) | (first[1:] - last[:-1] >= reach)
    begins = np.flatnonzero(new)
    fields = [field[used] for fields in partials for field in fields]
    last = np.maximum.reduceat(last, begins)
    return Fragments(
        starts[begins],
        codes[begins],
        first[begins],
        [last + own for own in reaches],
        combined(np.cumsum(new) - 1, fields, folder.kinds),
    )


def _by_rows(folder: Folder, rows: Rows, horizon: int | None) -> Fragments:
    """The rows themselves in order of time."""
    assert rows.times is not None
    times, slices, inputs = rows.times, rows.slices.positions(), rows.inputs
    reaches = _reaches(folder.spec.gaps)
    ends = rows.ends if reaches is None else np.stack([times + reach for reach in reaches])
    assert ends is not None
    codes = np.zeros(len(rows), np.int64) if rows.codes is None else rows.codes.rows()
    extent = extent_of(times)
    if not extent.ordered:
        order = np.argsort(times, kind="stable")
        times, ends, slices, codes = times[order], ends[:, order], slices[order], codes[order]
        inputs = chosen(inputs, order)
    if horizon is None:
        pieces = np.cumsum(np.append(False, times[1:] != times[:-1]))
    else:
        cuts = _cuts(folder.spec.gaps, horizon, extent)
        pieces = slices + np.searchsorted(cuts, times, "right") if len(cuts) else slices
    group, first, until = fragments(pieces, codes, times, ends)
    partials = folder.blank(len(first))
    folder.fold_cells(group, inputs, partials)
    fields = [field for fields in partials for field in fields]
    return Fragments(rows.slices.starts[slices[first]], codes[first], times[first], list(until), fields)


def _cuts(gaps: Sequence[Session], horizon: int, extent: Extent) -> Array:
    """The first time of rows that are not late, for each gap, where rows are on both sides of it; ascending."""
    found = np.unique([horizon - session.reprieve + 1 for session in gaps])
    return found[(found > extent.first) & (found <= extent.last)]


def _reaches(gaps: Sequence[Session]) -> list[int] | None:
    """How far behind a row its session ends, by gap; None where that differs by row."""
    reaches = [session.gap + session.joins for session in gaps if isinstance(session.gap, int)]
    return reaches if len(reaches) == len(gaps) else None
