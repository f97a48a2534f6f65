"""Windows that slide by one row over rows of many keys: frames by time or by a number of rows, for any monoid.

Three kernels, whose text is made of the names of a kind's functions:

``stacks``
    TwoStacks over rows, for windows of few rows. A flip scans the window's rows back to front into an array that
    stays in the cache; until the next flip a window is one of these suffixes and a running back: three combines.
``near``
    The same for the frames of rows in order, which it finds by itself. Rows of equal time have one window by time.
``shared``
    For windows of many rows, any number of frames at once. In every ``chunk`` rows one prefix and one suffix scan,
    shared by all frames; the chunks in between by TwoStacks over chunks, as in ``codegen/slices.py``. A window is a
    suffix, what is in between (the same for as long as neither end leaves its chunk) and a prefix: two combines a row
    and frame, whatever the size. Where both ends are in one chunk, TwoStacks over its rows.

Neither takes anything away from a running total, so a result depends on its own rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.algebra import PartialKind
from workbench.codegen import modules
from workbench.codegen.kernels import Job, choice, variant
from workbench.codegen.text import KernelText
from workbench.kernels.frames import NO_INDEX, windows_by_doubling

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

#: Rows to a scan: what the kernels work on at a time stays in the second-level cache.
CHUNK = 4096
#: Rows of array code at a time: partials that are objects grow with the window.
_BLOCK = 4096
#: Measured on a 2-core cloud machine: array code needs this long for a row of a window of a thousand rows.
_ROW_SECONDS = 5e-7


def stacks_source(kind: PartialKind) -> str:
    """``over(first, last, x.., unit.., o..)``; no window is empty."""
    t = KernelText(kind)
    t("    span = 1", "    for w in range(first.size):", "        span = max(span, last[w] - first[w])")
    t.each("    f# = np.empty(span, x#.dtype)")
    t.each("    b# = unit#[0]")
    t("    base, top, done = 0, -1, 0  # f[j - base]: rows [j, top), b: rows [top, done)")
    t("    for w in range(first.size):", "        low, high = first[w], last[w]", "        if low >= top:")
    t("            base, top, done = low, high, high")
    t.each("            z# = unit#[0]")
    t("            for j in range(high - 1, low - 1, -1):")
    t.merge(" " * 16, "z#", "x#[j]", "z#")
    t.each("                f#[j - low] = z#")
    t.each("            o#[w] = z#")
    t.each("            b# = unit#[0]")
    t("        else:", "            for j in range(done, high):")
    t.merge(" " * 16, "b#", "b#", "x#[j]")
    t("            done = high")
    t.merge(" " * 12, "o#[w]", "f#[low - base]", "b#")
    return t.text("over", ["first", "last", "x#", "unit#", "o#"])


def near_source(kind: PartialKind) -> str:
    """``over(times, runs, by_time, preceding, x.., unit.., begin, end, mean, n, o..)``: ``shared`` for one frame."""
    t = KernelText(kind)
    t("    run, i = place(runs, 0, runs.size, begin + 1) - 1, begin")
    t("    low = first_low(times, runs, by_time, preceding, begin)")
    t("    base, top, done = 0, -1, 0  # f[j - base]: rows [j, top), b: rows [top, done)")
    t.each("    f# = np.empty(256, x#.dtype)")
    t.each("    b# = unit#[0]")
    t("    while i < end:", "        while i >= runs[run + 1]:", "            run += 1")
    t("        head, tail, stop = runs[run], runs[run + 1], min(runs[run + 1], end)", "        low = max(low, head)")
    t("        while i < stop:", "            high = i + 1", "            if by_time:")
    t("                while high < tail and times[high] == times[i]:", "                    high += 1")
    t("                if preceding >= 0:", "                    since = times[i] - preceding")
    # Mostly none or one or two rows leave, and additions are cheaper than branches that nobody can foretell.
    t("                    low += times[low] < since", "                    low += times[low] < since")
    t("                    while times[low] < since:", "                        low += 1")
    t("            elif preceding >= 0:", "                low = max(head, i - preceding)")
    t("            if low >= top:", "                base, top, done = low, high, high")
    t("                if high - low > f0.size:")
    t.each("                    f# = np.empty(2 * (high - low), x#.dtype)")
    t.each("                b# = unit#[0]")
    t.each("                z# = unit#[0]")
    t("                for j in range(high - 1, low - 1, -1):")
    t.merge(" " * 20, "z#", "x#[j]", "z#")
    t.each("                    f#[j - low] = z#")
    t.each("                r# = z#")
    t("            else:", "                for j in range(done, high):")
    t.merge(" " * 20, "b#", "b#", "x#[j]")
    t("                done = high")
    t.merge(" " * 16, "r#", "f#[low - base]", "b#")
    if kind.name == "sum_float":
        t("            if mean:", "                r0 /= high - low")
    t("            until = min(high, stop)", "            for j in range(i, until):")
    t.each("                o#[j - begin] = r#")
    t("            if n.size:", "                n[i - begin:until - begin] = high - low")
    t("            i = until")
    parameters = ["times", "runs", "by_time", "preceding", "x#", "unit#", "begin", "end", "mean", "n", "o#"]
    return t.text("over", parameters).replace("\n", "\nfrom workbench.kernels.frames import first_low, place\n", 1)


def scans_source(kind: PartialKind) -> str:
    """``scans(x.., p.., s.., unit.., chunk, begin, end)``: in every chunk from ``begin`` to ``end`` both scans."""
    t = KernelText(kind)
    t("    for low in range(begin, end, chunk):", "        high = min(low + chunk, end)")
    t.each("        z# = unit#[0]")
    t.prefix("        ", "x#[low:high]", "p#[low:high]", "z")
    t.each("        z# = unit#[0]")
    t.suffix("        ", "x#[low:high]", "s#[low:high]", "z")
    return t.text("scans", ["x#", "p#", "s#", "unit#", "chunk", "begin", "end"])


def shared_source(kind: PartialKind) -> str:
    """The function ``over``; see ``parameters`` below.

    Rows ``[begin, end)``; ``o[q, i - begin]`` is the window of row ``i`` by frame ``q``, ``n`` its number of rows (if
    it has room for them). ``mean``: of a sum of floats, the quotient of the two.
    """
    t = KernelText(kind)
    _opening(t)
    t(
        "    start = begin",
        "    while start < end:",
        "        stop = min(end, (start // chunk + 1) * chunk)",
        "        count = stop - start",
        "        fill_last(times, runs, True, start, stop, peers)",
        "        fill_last(times, runs, False, start, stop, ends)",
        "        for q in range(frames):",
        "            last = peers if by_time[q] else ends",
        "            if index.size and by_time[q] and preceding[q] >= 0:",
        "                look_up(times, index, shift, preceding[q], start, stop, first)",
        "            else:",
        "                lows[q] = fill_first(times, runs, by_time[q], preceding[q], lows[q], start, stop, first)",
        "            if n.size:",
        "                sizes = n[q, start - begin:stop - begin]",
        "                for i in range(count):",
        "                    sizes[i] = last[i] - first[i]",
        "            i, flip = 0, -1  # g[j - ground]: rows [j, flip) of one chunk",
        "            while i < count:",
        "                head, tail = first[i] // chunk, (last[i] - 1) // chunk",
        "                if head == tail:",
    )
    _within(t)
    t(
        "                    continue",
        "                until = place(first, i, count, (head + 1) * chunk)",
        "                until = place(last, i, until, (tail + 1) * chunk + 1)",
    )
    _between(t)
    t("                m = until - i", "                to = start - begin + i")
    t.each("                w# = o#[q, to:to + m]")
    t("                even = first[until - 1] - first[i] == m - 1 and last[until - 1] - last[i] == m - 1")
    t("                for j in range(m if even else 0):")
    t("                    even &= (first[i + j] - j == first[i]) & (last[i + j] - j == last[i])")
    t("                if even:")
    t.each("                    u# = s#[first[i]:first[i] + m]")
    t.each("                    v# = p#[last[i] - 1:last[i] - 1 + m]")
    t("                    for j in range(m):")
    t.merge(" " * 24, "w#[j]", "u#[j]", "y#", "v#[j]")
    t("                else:", "                    for j in range(m):")
    t.merge(" " * 24, "w#[j]", "s#[first[i + j]]", "y#", "p#[last[i + j] - 1]")
    t("                i = until")
    if kind.name == "sum_float":
        t("            if mean:", "                w0 = o0[q, start - begin:stop - begin]")
        t("                for i in range(count):", "                    w0[i] /= last[i] - first[i]")
    t("        start = stop")
    parameters = ["times", "runs", "index", "shift", "by_time", "preceding"]
    parameters += ["x#", "p#", "s#", "unit#", "chunk", "begin", "end", "mean", "n", "o#"]
    text = t.text("over", parameters)
    return text.replace(
        "\n", "\nfrom workbench.kernels.frames import fill_first, fill_last, first_low, look_up, place\n", 1
    )


def _opening(t: KernelText) -> None:
    """What is kept for each frame: where the last one began, and the stacks over chunks."""
    t(
        "    frames = preceding.size",
        "    first, peers = np.empty(chunk, np.int64), np.empty(chunk, np.int64)",
        "    ends = np.empty(chunk, np.int64)",
        "    lows = np.empty(frames, np.int64)",
        "    for q in range(frames):",
        "        lows[q] = first_low(times, runs, by_time[q], preceding[q], begin)",
        "    oldest = lows.min() // chunk",
        "    room = (times.size - 1) // chunk - oldest + 2",
        "    base, top, done = np.zeros(frames, np.int64), np.full(frames, -1), np.zeros(frames, np.int64)",
    )
    t.each("    f# = np.empty((frames, room), x#.dtype)")
    t.each("    b# = np.empty(frames, x#.dtype)")
    t.each("    g# = np.empty(chunk, x#.dtype)")


def _within(t: KernelText) -> None:
    """A window inside one chunk: its prefix, its suffix, or TwoStacks over its rows."""
    t("                    low, high = first[i], last[i]", "                    to = start - begin + i")
    t("                    if low % chunk == 0:")
    t.each("                        o#[q, to] = p#[high - 1]")
    t("                    elif high % chunk == 0:")
    t.each("                        o#[q, to] = s#[low]")
    t("                    elif low >= flip:")
    t("                        ground, flip, back = low, high, high")
    t.each("                        h# = unit#[0]")
    t.each("                        z# = unit#[0]")
    t("                        for j in range(high - 1, low - 1, -1):")
    t.merge(" " * 28, "z#", "x#[j]", "z#")
    t.each("                            g#[j - ground] = z#")
    t.each("                        o#[q, to] = z#")
    t("                    else:", "                        for j in range(back, high):")
    t.merge(" " * 28, "h#", "h#", "x#[j]")
    t("                        back = high")
    t.merge(" " * 24, "o#[q, to]", "g#[low - ground]", "h#")
    t("                    i += 1")


def _between(t: KernelText) -> None:
    """The whole chunks between the ends of a window, by TwoStacks over chunks."""
    t.each("                y# = unit#[0]")
    t(
        "                inner = head + 1",
        "                if inner < tail:",
        "                    if inner >= top[q]:",
    )
    t("                        base[q], top[q], done[q] = inner, tail, tail")
    t.each("                        b#[q] = unit#[0]")
    t("                        for j in range(tail - 1, inner - 1, -1):")
    t.merge(" " * 28, "y#", "p#[(j + 1) * chunk - 1]", "y#")
    t.each("                            f#[q, j - inner] = y#")
    t("                    else:", "                        for j in range(done[q], tail):")
    t.merge(" " * 28, "b#[q]", "b#[q]", "p#[(j + 1) * chunk - 1]")
    t("                        done[q] = tail")
    t.merge(" " * 24, "y#", "f#[q, inner - base[q]]", "b#[q]")


@dataclass(frozen=True)
class SortedRows:
    """Times of rows by key and then in order, where each key's begin (and the last's end), and a ``time_index``."""

    times: Array
    runs: Array
    index: Array = field(default_factory=lambda: NO_INDEX)
    shift: int = 0


_NO_SIZES, _NO_SIZE = np.zeros((0, 0), np.int64), np.zeros(0, np.int64)


class FrameKernel:
    """Windows of the frames of rows over one partial."""

    def __init__(self, kind: PartialKind) -> None:
        self.kind = kind
        makers = {"stacks": stacks_source, "near": near_source, "scans": scans_source, "shared": shared_source}
        self._jobs = {name: self._job(name, make(kind)) for name, make in makers.items()} if kind.compiled else {}

    def windows(self, first: Array, last: Array, fields: Fields, *, compiled: bool | None = None) -> Fields:
        """Partials of the rows ``[first, last)`` of ``fields``; neither descends, and no window is empty."""
        function = None
        if self.kind.compiled:
            function = variant(self._jobs["stacks"], choice(compiled), len(first) * _ROW_SECONDS)
        if function is None:
            return self._generic(first, last, fields)
        out = self._empty(len(first))
        function(first, last, *map(sealed, fields), *self.kind.blank(1), *out)
        return out

    def near(
        self,
        rows: SortedRows,
        frame: tuple[bool, int],
        fields: Fields,
        piece: tuple[int, int],
        out: Fields,
        sizes: Array | None = None,
        mean: bool = False,
    ) -> bool:
        """Write the partials of the windows of the rows ``[begin, end)`` to ``out``; False where array code must.

        ``frame`` tells whether it goes by time, and how far back. As :meth:`shared` otherwise.
        """
        if not self.kind.compiled:
            return False
        function = variant(self._jobs["near"], choice(None), (piece[1] - piece[0]) * _ROW_SECONDS)
        if function is None:
            return False
        parts = [*map(sealed, fields), *self.kind.blank(1)]
        where = [sealed(rows.times), sealed(rows.runs), *frame]
        function(*where, *parts, *piece, mean, _NO_SIZE if sizes is None else sizes, *out)
        return True

    def scans(self, fields: Fields) -> tuple[Fields, Fields]:
        """Room for the scans of rows, for :meth:`scan`."""
        return self._empty(len(fields[0])), self._empty(len(fields[0]))

    def scan(self, fields: Fields, scans: tuple[Fields, Fields], begin: int, end: int) -> None:
        """Make the scans of the chunks from ``begin`` (a multiple of ``CHUNK``) to ``end``."""
        function = variant(self._jobs["scans"], "compiled", 0.0)
        assert function is not None
        function(*map(sealed, fields), *scans[0], *scans[1], *self.kind.blank(1), CHUNK, begin, end)

    def shared(
        self,
        rows: SortedRows,
        frames: tuple[Array, Array],
        fields: Fields,
        scans: tuple[Fields, Fields],
        piece: tuple[int, int],
        out: Fields,
        sizes: Array | None = None,
        mean: bool = False,
    ) -> None:
        """Write the partials ``[frame, row]`` of the windows of the rows ``[begin, end)`` of a piece to ``out``.

        ``frames`` are which go by time, and how far back they reach (negative: all rows of the key). Needs the scans
        of all rows that the frames reach. ``sizes`` takes how many rows each window has; ``mean`` divides a sum of
        floats by it.
        """
        function = variant(self._jobs["shared"], "compiled", 0.0)
        assert function is not None
        where = [sealed(rows.times), sealed(rows.runs), rows.index, rows.shift, *map(sealed, frames)]
        parts = [*map(sealed, fields), *scans[0], *scans[1], *self.kind.blank(1)]
        function(*where, *parts, CHUNK, *piece, mean, _NO_SIZES if sizes is None else sizes, *out)

    def _empty(self, rows: int) -> Fields:
        return tuple(np.empty(rows, kind) for kind in self.kind.dtypes)

    def _generic(self, first: Array, last: Array, fields: Fields) -> Fields:
        """Array code, some rows at a time."""
        parts = []
        with np.errstate(all="ignore"):
            for low in range(0, len(first), _BLOCK):
                some = slice(low, low + _BLOCK)
                origin, until = first[low], last[some][-1]
                rows = tuple(field[origin:until] for field in fields)
                bounds = first[some] - origin, last[some] - origin
                parts.append(windows_by_doubling(*bounds, rows, self.kind.identity, self.kind.combine))
        if not parts:
            return self._empty(0)
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _job(self, name: str, source: str) -> Job:
        none, rows = np.zeros(0, np.int64), [np.zeros(1, kind) for kind in self.kind.dtypes]
        inputs, unit = [sealed(row) for row in rows], self.kind.blank(1)
        out = [np.zeros((1, 1), kind) for kind in self.kind.dtypes]
        one = [sealed(np.zeros(1, np.int64)), sealed(np.array([0, 1])), NO_INDEX, 0]
        one += [sealed(np.ones(1, np.bool_)), sealed(np.zeros(1, np.int64))]
        samples: dict[str, list[Any]] = {
            "stacks": [none, none, *inputs, *unit, *rows],
            "near": [*one[:2], True, 0, *inputs, *unit, 0, 0, False, none, *rows],
            "scans": [*inputs, *rows, *rows, *unit, CHUNK, 0, 0],
            "shared": [*one, *inputs, *rows, *rows, *unit, CHUNK, 0, 0, False, _NO_SIZES, *out],
        }
        entry = "scans" if name == "scans" else "over"
        return Job(modules.digest(source), source, entry, samples[name], self.kind.scalars)


def sealed(array: Array) -> Array:
    """A contiguous view that is not to be written to, so that there is one type of input and one machine code."""
    if array.flags.writeable or not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).view()
        array.flags.writeable = False
    return array
