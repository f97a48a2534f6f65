"""The loop that a specialised graph stands for, one element at a time: *LightSaber* Fig. 8c and 8f as text.

The kernels that run are made block by block (``rows.py``, ``slices.py``); this is the same computation in the form
in which the papers print it, for ``explain`` and for reading. It is valid Python over ``elements``, ``identity``,
``combine`` (written ``+``), ``invert`` (written ``-``) and ``emit(window number, value)``.
"""

from __future__ import annotations

from workbench.plan.gag import Algorithm, Graph, algorithm_of


def listing(graph: Graph) -> str:
    """The loop of a scheduled graph. SlickDeque's deque has no fixed nodes to print and is refused."""
    body = {
        Algorithm.SUBTRACT_ON_EVICT: _totals,
        Algorithm.SLICK_DEQUE_INV: _totals,
        Algorithm.TWO_STACKS: _stacks,
        Algorithm.SLIDE_SIDE: _stacks,
        Algorithm.SLIDE_SIDE_INV: _prefixes,
    }.get(algorithm_of(graph))
    if body is None:
        raise ValueError("a deque keeps as many suffixes as its values allow, so there is no loop over fixed nodes")
    return "\n".join(body(graph))


def _totals(graph: Graph) -> list[str]:
    lines = [f"ps_{size} = identity" for size in graph.windows]
    lines.append("for i, x in enumerate(elements):")
    for number, size in enumerate(graph.windows, start=1):
        lines += [
            f"    ps_{size} = ps_{size} + x",
            f"    if i >= {size}:",
            f"        ps_{size} = ps_{size} - elements[i - {size}]",
            f"    emit({number}, ps_{size})",
        ]
    return lines


def _stacks(graph: Graph) -> list[str]:
    lines = [
        "ps = identity",
        f"ss = [identity] * {graph.leaves + 1}  # ss[j]: the last j elements before the trigger point",
        "since = 0",
        "for i, x in enumerate(elements):",
        f"    if since == {graph.trigger}:  # trigger point: flip",
        f"        for j in range({graph.leaves}):",
        "            ss[j + 1] = (elements[i - 1 - j] if j < i else identity) + ss[j]",
        "        ps, since = identity, 0",
        "    ps, since = ps + x, since + 1",
    ]
    for number, size in enumerate(graph.windows, start=1):
        lines.append(f"    emit({number}, ss[{size} - since] + ps)")
    return lines


def _prefixes(graph: Graph) -> list[str]:
    leaves = graph.leaves
    lines = [
        f"a = [identity] * {leaves}",
        f"ps = [identity] * {leaves}",
        f"ss = [identity] * {leaves + 1}  # ss[j]: the last j elements of the buffer when it was full",
        "for i, x in enumerate(elements):",
        f"    end = i % {leaves}",
        "    if end == 0:  # trigger point: the buffer begins anew",
        f"        for j in range({leaves}):",
        f"            ss[j + 1] = a[{leaves} - 1 - j] + ss[j]",
        "    a[end] = x",
        "    ps[end] = ps[end - 1] + x if end else x",
    ]
    for number, size in enumerate(graph.windows, start=1):
        lines += [
            f"    if end >= {size}:",
            f"        emit({number}, ps[end] - ps[end - {size}])",
            "    else:",
            f"        emit({number}, ss[{size} - 1 - end] + ps[end])",
        ]
    return lines
