"""Source text of the kernels that put windows together from slices, for all keys at once.

Matrices ``[slice, key]`` in, matrices ``[window, key]`` out, keys innermost, so that a combine is a run of SIMD
instructions (*LightSaber* §3 leaves this open). A window is any run of slices ``[first, last)``; the windows of one
kind ascend, kinds follow each other at ``bounds``; the first ``keys`` columns of the store's matrices are in use. One
kernel takes all windows over a partial (fused), so what they share is computed once: the scans ``p`` and ``s`` beside
the slices, kept from call to call and brought up to date for the slices ``[begin, end)``, the first of which changed,
or, in a tree, for those ``changed``, ascending.

``differences``
    SlideSide for groups, unrolled: prefixes of all slices; a window is the difference of two. Prefixes that round
    begin anew every ``chunk`` slices, so that a window has seen no rows but those of the chunks that it lies in.
``overlaid``
    SlideSide for monoids: in every ``chunk`` slices a prefix and a suffix scan, shared by all windows; the whole
    chunks of a window in between by TwoStacks over chunks.
``two_stacks``
    Every kind of window by itself: a suffix scan at each flip and a running back.
``tree``
    FlatFAT: a tree over the slices, of which ``p`` has the levels above; a window takes two nodes a level.
"""

from __future__ import annotations

from workbench.algebra import PartialKind
from workbench.codegen.text import KernelText

_PARAMETERS = ["first", "last", "bounds", "changed", "l#", "p#", "s#", "unit#", "keys", "begin", "end", "chunk", "o#"]
_KEYS = "for k in range(keys):"


def differences_source(kind: PartialKind) -> str:
    """``p[j]`` is the partial of all slices before ``j`` since the last rebuild of the store."""
    if kind.rounding:
        return _restarting_source(kind)
    t = KernelText(kind)
    t("    for j in range(begin, end):", f"        {_KEYS}")
    t.merge(" " * 12, "p#[j + 1, k]", "p#[j, k]", "l#[j, k]")
    t("    for w in range(first.size):", "        low, high = first[w], last[w]", f"        {_KEYS}")
    t.merge(" " * 12, "o#[w, k]", "p#[high, k]", "p#[low, k]", function="invert_")
    return t.text("assemble", _PARAMETERS)


def _restarting_source(kind: PartialKind) -> str:
    """``p[j + 1]`` is the partial from the start of j's chunk to j, inclusive."""
    t = KernelText(kind)
    t("    for j in range(begin, end):", "        if j % chunk == 0:", f"            {_KEYS}")
    t.each("                p#[j + 1, k] = l#[j, k]")
    t("        else:", f"            {_KEYS}")
    t.merge(" " * 16, "p#[j + 1, k]", "p#[j, k]", "l#[j, k]")
    t(
        "    for w in range(first.size):",
        "        low, high = first[w], last[w]",
        "        start = low - low % chunk",
        "        close = min(high, start + chunk)",
        "        if low >= high:",
        f"            {_KEYS}",
    )
    t.each("                o#[w, k] = unit#[0]")
    t("        elif low == start:", f"            {_KEYS}")
    t.each("                o#[w, k] = p#[close, k]")
    t("        else:", f"            {_KEYS}")
    t.merge(" " * 16, "o#[w, k]", "p#[close, k]", "p#[low, k]", function="invert_")
    t("        while close < high:", "            close = min(high, close + chunk)", f"            {_KEYS}")
    t.merge(" " * 16, "o#[w, k]", "o#[w, k]", "p#[close, k]")
    return t.text("assemble", _PARAMETERS)


def overlaid_source(kind: PartialKind) -> str:
    """``p[j]`` is the partial from the start of j's chunk to j, ``s[j]`` that from j to the end of its chunk."""
    t = KernelText(kind)
    t("    for j in range(begin, end):", "        fresh = j % chunk == 0", f"        {_KEYS}")
    t("            if fresh:")
    t.each("                p#[j, k] = l#[j, k]")
    t("            else:")
    t.merge(" " * 16, "p#[j, k]", "p#[j - 1, k]", "l#[j, k]")
    t("        if (j + 1) % chunk == 0:", f"            {_KEYS}")
    t.each("                s#[j, k] = l#[j, k]")
    t("            for i in range(j - 1, j - chunk, -1):", f"                {_KEYS}")
    t.merge(" " * 20, "s#[i, k]", "l#[i, k]", "s#[i + 1, k]")
    t("    most = 0", "    for w in range(first.size):", "        most = max(most, (last[w] - first[w]) // chunk)")
    t.each("    f# = np.empty((most + 2, keys), l#.dtype)")
    t.each("    b# = np.empty(keys, l#.dtype)")
    t.each("    m# = np.empty(keys, l#.dtype)")
    t(
        "    for kind in range(bounds.size - 1):",
        "        base, top, done = 0, -1, 0  # f[j - base]: chunks [j, top), b: chunks [top, done)",
        "        held = 0  # m: chunks [held, done)",
        "        for w in range(bounds[kind], bounds[kind + 1]):",
        "            low, high = first[w], last[w]",
        "            inner, outer = low // chunk + 1, (high - 1) // chunk  # whole chunks [inner, outer)",
        "            if high <= low:",
        f"                {_KEYS}",
    )
    t.each("                    o#[w, k] = unit#[0]")
    t("            elif outer < inner:")
    _within(t)
    t("            elif outer == inner:", f"                {_KEYS}")
    t.merge(" " * 20, "o#[w, k]", "s#[low, k]", "p#[high - 1, k]")
    t(
        "            else:",
        "                if inner >= top:",
        "                    base, top, done = inner, outer, outer",
    )
    t(f"                    {_KEYS}")
    t.each("                        f#[top - base, k] = unit#[0]")
    t.each("                        b#[k] = unit#[0]")
    t("                    for j in range(outer - 1, inner - 1, -1):", f"                        {_KEYS}")
    t.merge(" " * 28, "f#[j - base, k]", "p#[(j + 1) * chunk - 1, k]", "f#[j + 1 - base, k]")
    t("                    held = 0")
    t("                for j in range(done, outer):", f"                    {_KEYS}")
    t.merge(" " * 24, "b#[k]", "b#[k]", "p#[(j + 1) * chunk - 1, k]")
    t("                if inner != held or outer != done:", "                    held, done = inner, outer")
    t(f"                    {_KEYS}")
    t.merge(" " * 24, "m#[k]", "f#[inner - base, k]", "b#[k]")
    t(f"                {_KEYS}")
    t.merge(" " * 20, "o#[w, k]", "s#[low, k]", "m#[k]", "p#[high - 1, k]")
    return t.text("assemble", _PARAMETERS)


def _within(t: KernelText) -> None:
    """A window inside one chunk: its prefix, its suffix, or slice by slice."""
    t("                if low % chunk == 0:", f"                    {_KEYS}")
    t.each("                        o#[w, k] = p#[high - 1, k]")
    t("                elif high % chunk == 0:", f"                    {_KEYS}")
    t.each("                        o#[w, k] = s#[low, k]")
    t("                else:", f"                    {_KEYS}")
    t.each("                        o#[w, k] = l#[low, k]")
    t("                    for j in range(low + 1, high):", f"                        {_KEYS}")
    t.merge(" " * 28, "o#[w, k]", "o#[w, k]", "l#[j, k]")


def two_stacks_source(kind: PartialKind) -> str:
    """No scans are kept; ``p`` and ``s`` are not looked at. The compiled form of ``kernels/two_stacks.py``."""
    t = KernelText(kind)
    t("    span = 0", "    for w in range(first.size):")
    t("        span = max(span, last[w] - first[w])")
    t.each("    f# = np.empty((span + 1, keys), l#.dtype)")
    t.each("    b# = np.empty(keys, l#.dtype)")
    t(
        "    for kind in range(bounds.size - 1):",
        "        base, top, done = 0, -1, 0  # f[j - base]: slices [j, top), b: slices [top, done)",
        "        for w in range(bounds[kind], bounds[kind + 1]):",
        "            low, high = first[w], last[w]",
        "            if low >= top:",
        "                base, top, done = low, high, high",
        f"                {_KEYS}",
    )
    t.each("                    f#[high - low, k] = unit#[0]")
    t.each("                    b#[k] = unit#[0]")
    t("                for j in range(high - 1, low - 1, -1):", f"                    {_KEYS}")
    t.merge(" " * 24, "f#[j - low, k]", "l#[j, k]", "f#[j - low + 1, k]")
    t("            for j in range(done, high):", f"                {_KEYS}")
    t.merge(" " * 20, "b#[k]", "b#[k]", "l#[j, k]")
    t("            done = max(done, high)", f"            {_KEYS}")
    t.merge(" " * 16, "o#[w, k]", "f#[low - base, k]", "b#[k]")
    return t.text("assemble", _PARAMETERS)


def tree_source(kind: PartialKind) -> str:
    """The compiled form of ``kernels/tree.py``."""
    t = KernelText(kind)
    t("    dirty, count, size, below, above = changed.copy(), changed.size, l0.shape[0], 0, 0")
    t("    while size > 1:", "        nodes = 0")
    t("        for i in range(count):", "            node = dirty[i] >> 1")
    t("            if nodes == 0 or dirty[nodes - 1] != node:", "                dirty[nodes] = node")
    t("                nodes += 1", "        count = nodes", "        for i in range(count):")
    t("            node, a, b = above + dirty[i], 2 * dirty[i], 2 * dirty[i] + 1")
    for level, (a, b) in (("above == 0", ("l#[a, k]", "l#[b, k]")), ("", ("p#[below + a, k]", "p#[below + b, k]"))):
        t(f"            {f'if {level}' if level else 'else'}:", f"                {_KEYS}")
        t("                    if b < size:")
        t.merge(" " * 24, "p#[node, k]", a, b)
        t("                    else:")
        t.each(f"                        p#[node, k] = {a}")
    t("        below, size = above, (size + 1) // 2", "        above += size")
    t.each("    b# = np.empty(keys, l#.dtype)")
    t.each("    m# = np.empty(keys, l#.dtype)")
    t("    for w in range(first.size):", "        low, high, size, above = first[w], last[w], l0.shape[0], 0")
    t(f"        {_KEYS}")
    t.each("            b#[k] = unit#[0]")
    t.each("            m#[k] = unit#[0]")
    t("        level = 0", "        while low < high:")
    for side, (target, left, right) in {
        "low & 1": ("b#[k]", "b#[k]", "{}[{}low, k]"),
        "high & 1": ("m#[k]", "{}[{}high - 1, k]", "m#[k]"),
    }.items():
        t(f"            if {side}:")
        for case, node in (("if level == 0", ("l#", "")), ("else", ("p#", "above + "))):
            t(f"                {case}:", f"                    {_KEYS}")
            t.merge(" " * 24, target, left.format(*node), right.format(*node))
    t("            if level > 0:", "                above += size", "            size = (size + 1) // 2")
    t("            low, high, level = (low + 1) >> 1, high >> 1, level + 1", f"        {_KEYS}")
    t.merge(" " * 12, "o#[w, k]", "b#[k]", "m#[k]")
    return t.text("assemble", _PARAMETERS)
