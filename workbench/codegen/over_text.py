"""The text of the kernels for windows that slide by one row: frames by time or by a number of rows, for any monoid.

It is made of the names of a kind's functions:

``stacks``
    TwoStacks over rows, for windows of few rows (:meth:`~workbench.codegen.text.KernelText.stacks`).
``near``
    The same for the frames of rows in order, which it finds by itself.
``shared``
    For windows of many rows, any number of frames at once. In every ``chunk`` rows one prefix and one suffix scan,
    shared by all frames; the chunks in between by TwoStacks over chunks, as in ``codegen/slices.py``. A window is a
    suffix, what is in between (the same for as long as neither end leaves its chunk) and a prefix: two combines a row
    and frame, whatever the size. Where both ends are in one chunk, TwoStacks over its rows.

    It goes tile by tile, all frames over the rows of one before the next, so that what they share and what they make
    is in the first-level cache. Where rows come at equal distances, the windows of a tile begin one row after the
    other: two bounds tell all of them, and what is left to do are loops over neighbours.

``scans``, ``peers``
    What ``shared`` needs: the scans of all chunks, and rows of equal time as one.

None takes anything away from a running total, so a result depends on its own rows alone.
"""

from __future__ import annotations

from workbench.algebra import PartialKind
from workbench.codegen.text import KernelText
from workbench.kernels.prefetch import AHEAD

#: Rows at a time: of few rows each, of all frames.
_NEAR_TILE, _TILE = 1024, 2048
#: Results that fill a line of the caches, which dealing reads at a time: there is room for them behind a tile.
_LINE = 8
#: Rows of the moments of a tile up to which each is dealt its result; where there are more, they are spread.
_ROWS = 4 * _TILE
#: Results at a time: while some are on their way to memory, the next ones are computed.
_STEP = 128
#: Windows that begin one after the other, or at the same row, from which on they are told by two bounds.
_REGULAR = 32


def stacks_source(kind: PartialKind) -> str:
    """``over(first, last, x.., unit.., o..)``."""
    t = KernelText(kind)
    t.stack_room("    ")
    t.stack_start("    ")
    t("    i = 0")
    t.stacks("    ", "first.size", "o#")
    return t.text("over", ["first", "last", "x#", "unit#", "o#"], frames="behind")


def near_source(kind: PartialKind) -> str:
    """``over(times, runs, at, by_time, preceding, x.., unit.., begin, end, mean, o..)``."""
    t = KernelText(kind)
    t("    reached = first_low(times, runs, by_time, preceding, begin)")
    t(f"    first, last = np.empty({_NEAR_TILE}, np.int64), np.empty({_NEAR_TILE}, np.int64)")
    t.stack_room("    ")
    t.stack_start("    ")
    t("    start = begin", "    while start < end:", f"        stop = min(start + {_NEAR_TILE}, end)")
    t("        i, count = 0, stop - start")
    t("        reached = fill_first(times, runs, by_time, preceding, reached, start, stop, first)")
    t("        fill_last(times, runs, by_time and not at.size, start, stop, last)")
    t.each("        w# = o#[start - begin:stop - begin]")
    t.stacks("        ", "count", "w#")
    if kind.name == "sum_float":
        t("        for j in range(count if mean else 0):")
        t("            w0[j] /= at[last[j]] - at[first[j]] if at.size else last[j] - first[j]")
    t("        start = stop")
    parameters = ["times", "runs", "at", "by_time", "preceding", "x#", "unit#", "begin", "end", "mean", "o#"]
    return t.text("over", parameters, frames="behind, fill_first, fill_last, first_low")


def peers_source(kind: PartialKind) -> str:
    """``over(at, begin, end, x.., o..)``: the rows of each moment as one.

    Mostly they are few, and nobody can foretell how many. So where a combine is one instruction there are three of
    them for each moment, of which it takes the results that it needs.
    """
    t = KernelText(kind)
    t("    for m in range(begin, end):", "        low, high = at[np.uint64(m)], at[np.uint64(m + 1)]")
    t.each(f"        soon_read(x#, np.uint64(low + {AHEAD}))")
    t.each("        z# = x#[np.uint64(low)]")
    t("        low += 1")
    if t.scan:
        t("        if low + 3 <= x0.size:")
        t("            a0, = combine_(z0, x0[np.uint64(low)])")
        t("            b0, = combine_(a0, x0[np.uint64(low + 1)])")
        t("            c0, = combine_(b0, x0[np.uint64(low + 2)])")
        t("            z0 = z0 if high - low < 1 else a0 if high - low < 2 else b0 if high - low < 3 else c0")
        t("            low += 3")
    t("        for j in range(low, high):")
    t.merge(" " * 12, "z#", "z#", "x#[np.uint64(j)]")
    t.each("        o#[np.uint64(m)] = z#")
    return t.text("over", ["at", "begin", "end", "x#", "o#"], prefetch="soon_read")


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
    """``over(times, runs, at, steps, index, shift, by_time, preceding, x.., p.., s.., unit.., chunk, ..., o..)``.

    Rows ``[begin, end)``; ``o[q, i - origin]`` is the window of row ``i`` by frame ``q``. ``mean``: of a sum of
    floats, the quotient of it and the window's number of rows. ``wide``: where moments stand for rows, results are
    those of rows all the same, row ``i`` at ``o[q, i - origin]``.

    All but the room for a tile is in a function that creates no arrays.
    """
    t = KernelText(kind)
    means = _averaged(t)
    t.stack_start("    ")
    _tile(t)
    t("        for q in range(frames):", "            i, last = 0, ends if tied and not by_time[q] else peers")
    t.each("            d# = o#[q, head:head + rows]")
    if means:
        t("            sent, ready = 0, 0")
    t(
        "            while i < count:",
        "                row, low, m, moves = start + i, lows[q], 0, 0",
        "                if not tied or not by_time[q]:",
        "                    low, m, moves = regular(",
        "                        times, steps, chunk, by_time[q], preceding[q], low, runs[run], row, stop",
        "                    )",
        "                inner, tail = low // chunk + 1, start // chunk",
        f"                if inner <= tail and (m >= {_REGULAR} or m == count - i):",
    )
    _regular(t)
    t("                else:")
    _irregular(t)
    _written(t)
    t("        start = stop")
    if means:
        t("    if wide:", "        settle()")
    parameters = ["times", "runs", "at", "steps", "index", "shift", "by_time", "preceding", "x#", "p#", "s#", "unit#"]
    parameters += ["chunk", "begin", "end", "mean", "wide", "origin", "o#"]
    used = {"frames": "behind, fill_first, fill_last, first_low, look_up, place, regular"}
    if means:
        used |= {"peers": "own, row_ends, spread", "streaming": "deal, settle, stream"}
    opening, room = _opening(kind)
    opening(f"    tiles({t.named([*parameters, *room])})")
    tiles = t.function("tiles", [*parameters, *room], compiled="bare")
    return "\n".join([*t.head(**used), tiles, opening.function("over", parameters), ""])


def _averaged(t: KernelText) -> bool:
    """Whether there may be means of it, and results that are written past the caches."""
    return t.kind.name == "sum_float"


def _tile(t: KernelText) -> None:
    """Of the rows of one run, and what all frames use of them."""
    t(
        "    run, start = place(runs, 0, runs.size, begin + 1) - 1, begin",
        "    while start < end:",
        "        while start >= runs[run + 1]:",
        "            run += 1",
        f"        stop = min(end, runs[run + 1], (start // {_TILE} + 1) * {_TILE})",
        "        count = stop - start",
        "        tied = fill_last(times, runs, not at.size, start, stop, peers)",
        "        if tied:",
        "            fill_last(times, runs, False, start, stop, ends)",
        "        head, rows = start - origin, count",
    )
    if _averaged(t):
        t(
            "        if wide and at.size:",
            "            head, rows = at[start] - origin, at[stop] - at[start]",
            f"        dealt = wide and at.size and rows <= {_ROWS}",
            "        if dealt:",
            "            own(at[start:stop + 1], owners)",
            "        if mean:",
            "            row_ends(at, start, tails[:count])",
        )


def _written(t: KernelText) -> None:
    """What is made of a tile, or left of it, to where it stands in the end; each moment's to its rows."""
    if _averaged(t):
        t(
            "            if wide and at.size and not dealt:",
            "                spread(w0[:count], at[start:stop + 1], d0)",
            "            elif dealt:",
            "                deal(w0, owners, d0, sent, rows)",
            "            elif wide:",
            "                stream(w0, d0, sent, rows)",
        )
    t("            else:" if _averaged(t) else "            if True:")
    # Not as an assignment of slices: for the text of its error numba compiles all its strings, a third of the time.
    t("                for j in range(count):")
    t.each("                    d#[j] = w#[j]")


def _opening(kind: PartialKind) -> tuple[KernelText, list[str]]:
    """What is kept for each frame: where the last one began, and the stacks over chunks; and room for one tile."""
    t = KernelText(kind)
    t(
        "    frames = preceding.size",
        f"    first, peers = np.empty({_TILE}, np.int64), np.empty({_TILE}, np.int64)",
        f"    ends = np.empty({_TILE}, np.int64)",
        "    lows, oldest = np.empty(frames, np.int64), begin",
        "    for q in range(frames):",
        "        lows[q] = first_low(times, runs, by_time[q], preceding[q], begin)",
        "        oldest = min(oldest, lows[q])",
        "    room = (times.size - 1) // chunk - oldest // chunk + 2",
        "    bases, tops, dones = np.zeros(frames, np.int64), np.full(frames, -1), np.zeros(frames, np.int64)",
    )
    t.each("    front# = np.empty((frames, room), x#.dtype)")
    t.each("    back# = np.empty(frames, x#.dtype)")
    t.each(f"    w#, held# = np.empty({_TILE + _LINE}, x#.dtype), np.empty({_STEP}, x#.dtype)")
    t.stack_room("    ", "chunk + 1")
    names = ["frames", "first", "peers", "ends", "lows", "bases", "tops", "dones"]
    names += ["front#", "back#", "w#", "held#", "f#", "g#"]
    if _averaged(t):
        t(f"    owners, tails = np.empty({_ROWS + 3}, np.int16), np.empty({_TILE}, np.float64)")
        names += ["owners", "tails"]
    return t, names


def _regular(t: KernelText) -> None:
    """The windows of ``m`` rows that begin at ``low``, all of them or one row further each, and end with the row.

    In steps: what has been made in one is sent off to memory when the next one is made, which needs no memory.
    """
    means = _averaged(t)
    _between(t, " " * 20)
    t.each("                    h# = s#[low]")
    if means:
        t("                    before, length = np.float64(at[low] if at.size else low), np.float64(row + 1 - low)")
    t(
        f"                    for b in range(0, m, {_STEP}):",
        f"                        n, here, lead = min({_STEP}, m - b), row + b, low + moves * b",
    )
    t.each("                        k#, l#, r# = s#[lead:lead + n], p#[here:here + n], w#[i:i + n]")
    if means:
        _means(t)
    t(f"                        if not {'(moves or mean)' if means else 'moves'}:")
    t.each("                            k# = held#[:n]")
    t.each("                            k#[:] = h#")
    t(f"                        for j in range({'0 if mean else n' if means else 'n'}):")
    t.merge(" " * 28, "r#[j]", "k#[j]", "y#", "l#[j]")
    t("                        i += n")
    if means:
        t(
            "                        if dealt:",
            "                            sent = deal(w0, owners, d0, sent, ready)",
            "                            ready = at[start + i] - at[start]",
            "                        elif wide and not at.size:",
            "                            sent, ready = stream(w0, d0, sent, ready), i",
        )
    t("                    lows[q] = low + moves * (m - 1)")


def _means(t: KernelText) -> None:
    """The same, each divided by its number of rows, in one loop: the row behind its last less its first.

    A division of integers that were made floats on the way would not be one of neighbours.
    """

    def divided(condition: str, first: str, number: str) -> None:
        t(f"                        {condition}:", "                            for j in range(n):")
        t.merge(" " * 32, "z#", first, "y#", "l#[j]")
        t(f"                                r0[j] = z0 / {number}")

    t("                        close, open_ = tails[i:i + n], at[lead:lead + n]")
    divided("if mean and not moves", "h#", "(close[j] - before)")
    divided("elif mean and at.size", "k#[j]", "(close[j] - np.float64(open_[j]))")
    divided("elif mean", "k#[j]", "length")


def _irregular(t: KernelText) -> None:
    """The windows of all rows of the tile that are left, wherever they begin and end."""
    t(
        "                    if index.size and by_time[q] and preceding[q] >= 0:",
        "                        look_up(times, index, shift, preceding[q], row, stop, first[i:])",
        "                        lows[q] = first[count - 1]",
        "                    else:",
        "                        low = fill_first(",
        "                            times, runs, by_time[q], preceding[q], lows[q], row, stop, first[i:]",
        "                        )",
        "                        lows[q] = low",
    )
    t(
        "                    top, begun = -1, i",
        "                    while i < count:",
        "                        inner, tail = first[i] // chunk + 1, (last[i] - 1) // chunk",
        "                        until = place(last, i, count, (tail + 1) * chunk + 1)",
        "                        if inner > tail:",
    )
    t.stacks(" " * 28, "until", "w#", grow=False)
    t(
        "                            continue",
        "                        until = place(first, i, until, inner * chunk)",
    )
    _between(t, " " * 24)
    t("                        for j in range(i, until):")
    t.merge(" " * 28, "w#[j]", "s#[np.uint64(first[j])]", "y#", "p#[np.uint64(last[j] - 1)]")
    t("                        i = until")
    if _averaged(t):
        t(
            "                    for j in range(begun, count if mean else 0):",
            "                        w0[j] /= at[last[j]] - at[first[j]] if at.size else last[j] - first[j]",
        )


def _between(t: KernelText, indent: str) -> None:
    """The whole chunks ``[inner, tail)`` between the ends of a window, by TwoStacks over chunks."""
    t.each(f"{indent}y# = unit#[0]")
    t(f"{indent}if inner < tail:", f"{indent}    if inner >= tops[q]:")
    t(f"{indent}        bases[q], tops[q], dones[q] = inner, tail, tail")
    t.each(f"{indent}        back#[q] = unit#[0]")
    t(f"{indent}        for j in range(tail - 1, inner - 1, -1):")
    t.merge(f"{indent}            ", "y#", "p#[(j + 1) * chunk - 1]", "y#")
    t.each(f"{indent}            front#[q, j - inner] = y#")
    t(f"{indent}    else:", f"{indent}        for j in range(dones[q], tail):")
    t.merge(f"{indent}            ", "back#[q]", "back#[q]", "p#[(j + 1) * chunk - 1]")
    t(f"{indent}        dones[q] = tail")
    t.merge(f"{indent}        ", "y#", "front#[q, inner - bases[q]]", "back#[q]")
