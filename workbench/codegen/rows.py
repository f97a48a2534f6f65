"""Source text of the kernels over rows: many windows that slide by one row, one batch at a time.

Three specialisations of the generalized aggregation graph (*LightSaber* §5), each with the state that it carries from
batch to batch. All work in pieces that stay in the first-level cache, with every window inside the loop over pieces
(fused), and read older rows from rings that hold as many as the largest window needs.

``differences``
    SlideSide for groups (*SlideSide* §3.1) without the suffix scan: the ring is unrolled, so no window is ever
    inverted. A ring of prefix partials; a window is the difference of two.
``overlaid``
    SlideSide for monoids (*SlideSide* §3.2). The stacks of all windows lie over each other: one suffix scan of every
    ``chunk`` rows, one running prefix, shared by all windows of at least ``chunk`` rows. A window is a suffix of one
    chunk, the chunks in between (TwoStacks over chunk partials, a combine every ``chunk`` rows), and a prefix.
``segmented``
    The same for one short window: a chunk is as long as the window, so nothing lies in between, and one loop over
    many chunks puts their windows together. Kept is the suffix *after* each row, empty at the end of a chunk.
``doubling``
    Short windows of any monoid: partials of the last 1, 2, 4, ... rows, a window from at most ``log2(size)`` of them.

``where[q]`` is the row of the output that a window is written to.
"""

from __future__ import annotations

from workbench.algebra import PartialKind
from workbench.codegen.text import KernelText


def differences_source(kind: PartialKind) -> str:
    """``push(x.., ring.., at, sizes, where, tile, out..)`` for a group.

    ``ring`` has ``rows + tile`` places, ``rows`` a multiple of ``tile``; the last ``tile`` repeat the first, so that
    a piece that begins near the end needs no second part. ``at[0]`` is the place of the next row.
    """
    t = KernelText(kind)
    t(
        "    rows = r0.size - tile",
        "    n = x0.size",
        "    row = 0",
        "    while row < n:",
        "        pos = at[0]",
        "        m = min(tile - pos % tile, n - row)",
        "        last = (pos - 1) % rows",
    )
    t.each("        z# = r#[last]")
    t.prefix("        ", "x#[row:row + m]", "r#[pos:pos + m]", "z")
    t("        if pos < tile:")
    t.each("            scan.copy(r#[pos:pos + m], r#[rows + pos:rows + pos + m])")
    t.each("        e# = r#[pos:pos + m]")
    t("        for q in range(sizes.size):", "            start = (pos - sizes[q]) % rows")
    t.each("            s# = r#[start:start + m]")
    t.each("            w# = o#[where[q], row:row + m]")
    t("            for i in range(m):")
    t.merge(" " * 16, "w#[i]", "e#[i]", "s#[i]", function="invert_")
    t("        at[0] = (pos + m) % rows", "        row += m")
    return t.text("push", ["x#", "r#", "at", "sizes", "where", "tile", "o#"])


def overlaid_source(kind: PartialKind) -> str:
    """``push(x.., c.., p.., s.., a.., f.., b.., near.., far.., unit.., at, reach, base, top, where, out..)``.

    ``c``, ``p`` rows and prefixes of the current chunk, ``s`` the ring of suffixes and ``a`` the ring of chunk
    partials, ``f[q]``, ``b[q]`` the stacks over chunks of each window (front from ``base`` to ``top``, back),
    ``near[q]`` and ``far[q]`` the partial of the chunks in between for starts in the older and the newer chunk.
    ``at`` is (chunk, rows in it), ``reach[q] = size - 1 >= chunk - 1``; ``unit`` the identity.
    """
    t = KernelText(kind)
    t(
        "    chunk, ring = c0.size, a0.size",
        "    n = x0.size",
        "    row = 0",
        "    while row < n:",
        "        now, offset = at[0], at[1]",
        "        end = min(chunk, offset + n - row)",
        "        shift = row - offset",
        "        whole = offset == 0 and end == chunk",
        "        if not whole:",
    )
    t.each("            scan.copy(x#[row:row + end - offset], c#[offset:end])")
    t.each("        z# = p#[offset - 1] if offset else unit#[0]")
    t.prefix("        ", "x#[row:row + end - offset]", "p#[offset:end]", "z")
    _results(t)
    t(
        "        row += end - offset",
        "        at[1] = end",
        "        if end == chunk:",
        "            at[0], at[1] = now + 1, 0",
        "            place = now % ring",
    )
    t.each("            z# = unit#[0]")
    t.each("            g# = x#[shift:shift + chunk] if whole else c#")
    t.suffix("            ", "g#", "s#[place * chunk:(place + 1) * chunk]", "z")
    t.each("            a#[place] = s#[place * chunk]")
    _advance(t)
    return t.text(
        "push",
        [
            "x#",
            "c#",
            "p#",
            "s#",
            "a#",
            "f#",
            "b#",
            "near#",
            "far#",
            "unit#",
            "at",
            "reach",
            "base",
            "top",
            "where",
            "o#",
        ],
    )


def _results(t: KernelText) -> None:
    """The windows that end at the rows ``offset .. end`` of the current chunk."""
    t(
        "        for q in range(reach.size):",
        "            back = -(-reach[q] // chunk)",
        "            cut = back * chunk - reach[q]  # the window of row i starts at place i + cut of that chunk",
        "            low, high = offset, min(end, chunk - cut)",
        "            if low < high:",
        "                start = (now - back) % ring * chunk + low + cut",
        "                m = high - low",
    )
    _segment(t, "near")
    t(
        "            low, high = max(offset, chunk - cut), end",
        "            if low < high and back > 1:",
        "                start = (now - back + 1) % ring * chunk + low + cut - chunk",
        "                m = high - low",
    )
    _segment(t, "far")
    t("            elif low < high:")
    t.each("                scan.copy(p#[low:high], o#[where[q], low + shift:high + shift])")


def _segment(t: KernelText, middle: str) -> None:
    """Results of the rows ``low .. high`` of the chunk, all of whose windows start in one chunk."""
    t.each("                w# = o#[where[q], low + shift:high + shift]")
    t.each("                u# = s#[start:start + m]")
    t.each("                v# = p#[low:high]")
    t.each(f"                y# = {middle}#[q]")
    t("                for i in range(m):")
    t.merge(" " * 20, "w#[i]", "u#[i]", "y#", "v#[i]")


def _advance(t: KernelText) -> None:
    """A chunk is complete: move the stacks over chunks of every window by one (TwoStacks, *SlideSide* §2)."""
    t("            for q in range(reach.size):", "                low = now + 2 + -reach[q] // chunk")
    t.merge(" " * 16, "b#[q]", "b#[q]", "a#[place]")
    t(
        "                if low >= top[q]:  # flip",
        "                    base[q], top[q] = low, now + 1",
    )
    t.each("                    z# = unit#[0]")
    t.each("                    b#[q] = z#")
    t("                    if low <= now + 1:")
    t.each("                        f#[q, now + 1 - low] = z#")
    t("                    for j in range(now, low - 1, -1):", "                        old = j % ring")
    t.merge(" " * 24, "z#", "a#[old]", "z#")
    t.each("                        f#[q, j - low] = z#")
    t("                place_ = low - base[q]")
    t.merge(" " * 16, "near#[q]", "f#[q, place_]", "b#[q]")
    t("                if low < now + 1:")
    t.merge(" " * 20, "far#[q]", "f#[q, place_ + 1]", "b#[q]")


def segmented_source(kind: PartialKind) -> str:
    """``push(x.., c.., s.., carry.., unit.., at, where, tile, out..)``: one window, as long as a chunk ``c``.

    ``at[0]`` is how many rows of the current chunk are in ``c``, ``carry`` their prefix. ``s[i]`` is the partial of
    the rows after row ``i`` in its chunk; it begins ``size`` rows before the piece, so that ``s[i]`` and the prefix
    of row ``i`` of the piece are a window.
    """
    t = KernelText(kind)
    t(
        "    size, n, held = c0.size, x0.size, at[0]",
        "    for row in range(0, n, tile):",
        "        m = min(tile, n - row)",
    )
    t.each("        w# = o#[where[0], row:row + m]")
    t(
        "        begin = 0",
        "        while begin < m:",
        "            end = min(m, begin + size - held)",
        "            whole = end - begin == size",
    )
    t.each("            y# = x#[row + begin:row + end]")
    t("            if not whole:")
    t.each("                scan.copy(y#, c#[held:held + end - begin])")
    t.each("            z# = carry#[0]")
    t.prefix("            ", "y#", "w#[begin:end]", "z")
    t.each("            carry#[0] = w#[end - 1]")
    t("            held += end - begin", "            if held == size:", "                held = 0")
    t.each("                carry#[0] = unit#[0]")
    t.each("                z# = unit#[0]")
    t.each("                g# = y# if whole else c#")
    t.suffix("                ", "g#", "s#[end - 1:end + size - 1]", "z")
    # The scan has put the whole chunk before its first row.
    t.each("                s#[end - 1] = unit#[0]")
    t.each("                s#[end + size - 1] = unit#[0]")
    t("            begin = end", "        for i in range(m):")
    t.merge(" " * 12, "w#[i]", "s#[i]", "w#[i]")
    t("        for i in range(size):")
    t.each("            s#[i] = s#[m + i]")
    t("    at[0] = held")
    return t.text("push", ["x#", "c#", "s#", "carry#", "unit#", "at", "where", "tile", "o#"])


def doubling_source(kind: PartialKind) -> str:
    """``push(x.., h.., u.., v.., sizes, where, tile, out..)``: windows of up to ``h.size + 1`` rows.

    ``h`` holds the rows before. A window is put together from the newest piece to the oldest, one for each binary
    digit of its size; ``u`` and ``v`` take turns in holding the pieces of ``2**k`` rows.
    """
    t = KernelText(kind)
    t(
        "    history, n, longest = h0.size, x0.size, 0",
        "    for q in range(sizes.size):",
        "        longest = max(longest, sizes[q])",
        "    for row in range(0, n, tile):",
        "        m = min(tile, n - row)",
        "        width = history + m",
    )
    t.each("        scan.copy(h#, u#[:history])")
    t.each("        scan.copy(x#[row:row + m], u#[history:width])")
    # The rows alone are enough to go on from; they are overwritten below.
    t.each("        scan.copy(u#[m:width], h#)")
    t("        half = 1", "        while True:")
    _double(t, "u", "v")
    _double(t, "v", "u")
    return t.text("push", ["x#", "h#", "u#", "v#", "sizes", "where", "tile", "o#"])


def _double(t: KernelText, held: str, next_: str) -> None:
    """Put the pieces held into the windows that want them, and make those of twice the rows, or leave the loop."""
    t("            for q in range(sizes.size):", "                if sizes[q] & half:")
    t.each("                    w# = o#[where[q], row:row + m]")
    t("                    newer = sizes[q] & (half - 1)")
    t.each(f"                    y# = {held}#[history - newer:width - newer]")
    t("                    if newer:", "                        for i in range(m):")
    t.merge(" " * 28, "w#[i]", "y#[i]", "w#[i]")
    t("                    else:", "                        for i in range(m):")
    t.each("                            w#[i] = y#[i]")
    t("            if 2 * half > longest:", "                break")
    t.each(f"            y#, z#, w# = {held}#[:width - half], {held}#[half:width], {next_}#[half:width]")
    t("            for i in range(width - half):")
    t.merge(" " * 16, "w#[i]", "y#[i]", "z#[i]")
    t("            half *= 2")
