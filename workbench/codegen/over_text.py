"""The text of the kernels for windows that slide by one row: frames by time or by a number of rows, for any monoid.

It is made of the names of a kind's functions:

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

``scans``, ``peers``
    What ``shared`` needs: the scans of all chunks, and rows of equal time as one.

None takes anything away from a running total, so a result depends on its own rows alone.
"""

from __future__ import annotations

from workbench.algebra import PartialKind
from workbench.codegen.text import KernelText


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
    """``over(times, runs, at, by_time, preceding, x.., unit.., begin, end, mean, n, o..)``."""
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
    # Mostly three rows leave at most. Additions are cheaper than branches that nobody can foretell, and three loads
    # that do not wait for each other take as long as one.
    t("                    if low + 2 <= i:")
    t("                        some = (times[low] < since) + (times[low + 1] < since)")
    t("                        low += some + (times[low + 2] < since)")
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
        t("            if mean:", "                r0 /= at[high] - at[low] if at.size else high - low")
    t("            until = min(high, stop)", "            for j in range(i, until):")
    t.each("                o#[j - begin] = r#")
    t("            if n.size:", "                size = at[high] - at[low] if at.size else high - low")
    t("                n[i - begin:until - begin] = size")
    t("            i = until")
    parameters = ["times", "runs", "at", "by_time", "preceding", "x#", "unit#", "begin", "end", "mean", "n", "o#"]
    return t.text("over", parameters).replace("\n", "\nfrom workbench.kernels.frames import first_low, place\n", 1)


def peers_source(kind: PartialKind) -> str:
    """``over(at, begin, end, x.., o..)``: the rows of each moment as one."""
    t = KernelText(kind)
    t("    for m in range(begin, end):")
    t.each("        z# = x#[at[m]]")
    t("        for j in range(at[m] + 1, at[m + 1]):")
    t.merge(" " * 12, "z#", "z#", "x#[j]")
    t.each("        o#[m] = z#")
    return t.text("over", ["at", "begin", "end", "x#", "o#"])


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
        "                    sizes[i] = at[last[i]] - at[first[i]] if at.size else last[i] - first[i]",
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
    if kind.name == "sum_float":
        _even_means(t)
    t("                else:", "                    for j in range(m):")
    t.merge(" " * 24, "w#[j]", "s#[first[i + j]]", "y#", "p#[last[i + j] - 1]")
    if kind.name == "sum_float":
        t(
            "                    for j in range(m if mean else 0):",
            "                        k, l = first[i + j], last[i + j]",
        )
        t("                        w0[j] /= at[l] - at[k] if at.size else l - k")
    t("                i = until")
    t("        start = stop")
    parameters = ["times", "runs", "at", "index", "shift", "by_time", "preceding"]
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
    if t.kind.name == "sum_float":
        t(
            "                    if mean:",
            "                        o0[q, to] /= at[high] - at[low] if at.size else high - low",
        )
    t("                    i += 1")


def _even_means(t: KernelText) -> None:
    """Quotients where both ends of the windows go on by one from window to window."""
    t("                    if mean and at.size:")
    t("                        k, l = at[first[i]:first[i] + m], at[last[i]:last[i] + m]")
    t(
        "                        for j in range(m):",
        "                            w0[j] /= np.float64(l[j]) - np.float64(k[j])",
    )
    t("                    elif mean:", "                        size = np.float64(last[i] - first[i])")
    t("                        for j in range(m):", "                            w0[j] /= size")


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
